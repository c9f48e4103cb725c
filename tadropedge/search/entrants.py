"""What enters a comparison: methods, and the three references that each of them is judged against.

``none``, not dropping: the same network with all edges. ``dropedge``: the same network with uniform dropping.
``budget``: the same with the kept share of the method, its budget. All are tuned for themselves.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from tadropedge.method import Method
from tadropedge.registry import NETWORKS
from tadropedge.search.space import Space, Spaces, space_for, trial
from tadropedge.training.config import Trial

BUDGET = ("keep_prob", "keep_ratio")  # settings that a fixed share replaces
BACKBONE = ("original", "dropedge")  # of the comparison's own network: not dropping, and uniform dropping


@dataclass(frozen=True)
class Entrant:
    """A method that is tuned, or, with a ``keep_ratio``, a method at this expected share of kept edges.

    >>> Entrant("dropedge", 0.8125).name, Entrant("dropedge", 0.8125).place, Entrant("cdf").place
    ('dropedge at 81.25 %', 'budget/dropedge-0.8125', 'search/cdf')
    """

    method: str
    keep_ratio: float | None = None

    @property
    def name(self) -> str:
        """As results call it."""
        return self.method if self.keep_ratio is None else f"{self.method} at {100 * self.keep_ratio:.6g} %"

    @property
    def place(self) -> str:
        """What follows the name of a comparison in the names of its studies."""
        return f"search/{self.method}" if self.keep_ratio is None else f"budget/{self.method}-{self.keep_ratio:g}"

    @property
    def settings(self) -> dict[str, object]:
        """What decides an outcome beside the method and its space."""
        return {} if self.keep_ratio is None else {"keep_ratio": self.keep_ratio}

    def space(self, spaces: Spaces) -> Space:
        """What is tuned: the space of the method; with a fixed share there is no budget to tune."""
        space = space_for(spaces, self.method)
        if self.keep_ratio is None:
            return space
        return Space({name: one for name, one in space.parameters.items() if name not in BUDGET})

    def trial(self, space: Space, seed: int, i: int, split: int) -> Trial:
        """Trial ``i`` on a ``split``; see :func:`tadropedge.search.space.trial`."""
        made = trial(space, seed, i, self.method, split)
        return made if self.keep_ratio is None else made.but(keep_ratio=self.keep_ratio)


def references(method: str) -> dict[str, str]:
    """The tuned references that a method is judged against: ``none`` and, if it is adaptive, ``dropedge``.

    A network that sees no edges or chooses them itself is judged against the backbone with all edges.

    >>> references("cdf"), references("dropedge"), references("ptdnet")
    ({'none': 'original', 'dropedge': 'dropedge'}, {'none': 'original'}, {'none': 'original'})
    >>> references("graphsage+cdf"), references("graphsage")
    ({'none': 'graphsage', 'dropedge': 'graphsage+dropedge'}, {})
    """
    one = Method.of(method)
    undropped, uniform = _baselines(one)
    judged = {"none": undropped} if one.name != undropped else {}
    return judged | ({"dropedge": uniform} if one.adaptive and uniform else {})


def with_references(methods: Iterable[str]) -> list[str]:
    """The baselines of their networks, whether they are named or not, then the other methods.

    >>> with_references(["cdf"]), with_references(["ptdnet", "graphsage+cdf"])
    (['original', 'dropedge', 'cdf'], ['original', 'graphsage', 'graphsage+dropedge', 'ptdnet', 'graphsage+cdf'])
    """
    named = [Method.of(method) for method in methods]
    needed = [name for method in named for name in _baselines(method) if name]
    return list(dict.fromkeys([*needed, *(method.name for method in named)]))


def budgets(kept_share: Mapping[str, float]) -> dict[str, Entrant]:
    """DropEdge at the kept share of each adaptive method, by method.

    >>> budgets({"cdf": 0.8})["cdf"].name
    'dropedge at 80 %'
    """
    return {method: Entrant(Method.of(method).reference, share) for method, share in kept_share.items()}


def _baselines(method: Method) -> tuple[str, str | None]:
    """Not dropping on the network of a method, and DropEdge on it if edges can be dropped there."""
    if method.network is None:
        return BACKBONE
    if not NETWORKS[method.network].drops:
        return BACKBONE[0], None
    return method.network, method.reference
