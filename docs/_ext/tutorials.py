"""What the gallery needs to know of the tutorials: their order, and what to clear up between them."""

from __future__ import annotations

from pathlib import Path

from tadropedge.registry import DATASETS, MEASURES, NETWORKS, SCORES, STRATEGIES

ORDER = ("own_model", "which_edges", "does_it_help", "sparsify")  # others come after these, by name
SHIPPED = [(registry, tuple(registry)) for registry in (SCORES, STRATEGIES, NETWORKS, DATASETS, MEASURES)]


class InOrder:
    """The place of a tutorial in the gallery.

    >>> sorted(["plot_new.py", "plot_sparsify.py", "plot_own_model.py"], key=InOrder("docs/tutorials"))
    ['plot_own_model.py', 'plot_sparsify.py', 'plot_new.py']
    """

    def __init__(self, folder: str) -> None:
        self.folder = folder

    def __call__(self, file: str) -> tuple[int, str]:
        """The key that files are sorted by."""
        name = Path(file).stem.removeprefix("plot_")
        return ORDER.index(name) if name in ORDER else len(ORDER), name


def forget(settings: object, script: object) -> None:
    """Remove what a tutorial has added to the registries; the gallery calls it before and after each of them."""
    for registry, shipped in SHIPPED:
        for name in set(registry) - set(shipped):
            del registry[name]
