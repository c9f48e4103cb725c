"""The order in which the gallery shows the tutorials: that in which a newcomer reads them."""

from __future__ import annotations

from pathlib import Path

ORDER = ("plot_own_model", "plot_which_edges", "plot_does_it_help", "plot_sparsify")


class InReadingOrder:
    """The key by which tutorials are sorted; one that is not listed comes last.

    >>> sorted(["plot_sparsify.py", "plot_new.py", "plot_own_model.py"], key=InReadingOrder("tutorials"))
    ['plot_own_model.py', 'plot_sparsify.py', 'plot_new.py']
    """

    def __init__(self, src_dir: str) -> None:
        self.src_dir = src_dir

    def __call__(self, filename: str) -> int:
        """The place of a script."""
        name = Path(filename).stem
        return ORDER.index(name) if name in ORDER else len(ORDER)

    def __repr__(self) -> str:
        return "<InReadingOrder>"
