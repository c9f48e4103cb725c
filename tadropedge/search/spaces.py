"""A search space for every method: the backbones share one, each of ``nn.baselines`` has its own."""

from __future__ import annotations

from collections.abc import Callable

from tadropedge.search.space import Choice, LogUniform, Parameter, Space, default_space
from tadropedge.training.config import Method

Spaces = Space | Callable[[str], Space]  # one for all methods, or a function from a method to its own

# Learning rates reach from the smallest of the public codes to three times the largest. Widths are few: trials of one
# width are trained together. Samples go beyond the papers', who draw 50 to 400: on PubMed so few cost accuracy here.
SHARED: dict[str, Parameter] = {
    "learning_rate": LogUniform(0.001, 0.03),
    "weight_decay": Choice((1e-5, 5e-5, 1e-4, 5e-4, 1e-3, 5e-3)),
    "dropout": Choice((0.0, 0.3, 0.5, 0.8)),
}
OWN: dict[str, dict[str, Parameter]] = {
    "graphsage": {"hidden": Choice((64, 128)), "samples": Choice((5, 10, 25))},
    "fastgcn": {"hidden": Choice((16, 128)), "samples": Choice((200, 400, 1000, 4000))},
    "as-gcn": {
        "hidden": Choice((16, 128)),
        "samples": Choice((256, 512, 1024, 4096)),
        "variance": Choice((0.0, 0.5)),
    },
    "neuralsparse": {"hidden": Choice((64, 128)), "samples": Choice((3, 5, 10, 15))},
    "ptdnet": {
        "hidden": Choice((64, 128, 256)),
        "sparsity": Choice((0.0, 0.001, 0.01, 0.1)),
        "nuclear": Choice((0.0, 0.0001, 0.001, 0.01)),
    },
}


def method_space(method: str, gamma: float | None = None) -> Space:
    """The space of a method; ``gamma`` as in :func:`default_space`.

    A composed method has its network's parameters and those of the dropping, drawn as they are without the other.

    >>> list(method_space("graphsage+cdf").parameters)
    ['learning_rate', 'weight_decay', 'dropout', 'hidden', 'samples', 'keep_prob']
    """
    chosen = Method.of(method)
    base = default_space(gamma)
    if chosen.network is None:
        return base
    dropping = ("keep_prob", "gamma") if chosen.strategy is not None else ()
    mine = {name: base.parameters[name] for name in dropping if name in base.parameters}
    return Space({**SHARED, **OWN[chosen.network], **mine})


def space_for(spaces: Spaces, method: str) -> Space:
    """The space of one method."""
    return spaces if isinstance(spaces, Space) else spaces(method)
