"""The grammar of methods: the name of a method says what is trained and which edges are dropped.

========================================  ====================================================================
``original``                              nothing is dropped
``dropedge``                              every edge is dropped with the same probability
``[inverse-][SCORE-]RULE``                edges are dropped by score; without SCORE it is aggregate resistance
``NETWORK`` or ``NETWORK+METHOD``         another network instead of the backbone of the comparison
========================================  ====================================================================

SCORE, RULE and NETWORK are the names in :mod:`tadropedge.registry`, including those that you add.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from dataclasses import dataclass, replace

from tadropedge.checks import check_flag, check_text, settle
from tadropedge.errors import TadropedgeError, lookup, show
from tadropedge.registry import NETWORKS, SCORES, STRATEGIES

PAPER_SCORE = "aggregate"  # the score of a rule that names none
UNIFORM = "uniform"  # the rule of DropEdge, which has no score and no name of its own in the grammar


@dataclass(frozen=True, kw_only=True)
class Method:
    """A way to train: ``score`` and ``strategy`` say which edges are dropped, ``network`` what is trained.

    Without a ``strategy`` nothing is dropped, without a ``score`` all edges are treated the same, and without a
    ``network`` it is the backbone of the comparison.

    >>> Method.of("effective-cdf")
    Method(name='effective-cdf', score='effective', strategy='cdf', inverse=False, network=None)
    >>> Method.of("graphsage+inverse-cdf").reference
    'graphsage+dropedge'
    """

    name: str
    score: str | None = None
    strategy: str | None = None
    inverse: bool = False
    network: str | None = None

    def __post_init__(self) -> None:
        check_text("name", self.name)
        for name, registry in (("score", SCORES), ("strategy", STRATEGIES), ("network", NETWORKS)):
            if getattr(self, name) is not None:
                lookup(name, getattr(self, name), dict.fromkeys(registry))  # without importing it
        settle(self, inverse=check_flag("inverse", self.inverse))

    @classmethod
    def of(cls, name: str) -> Method:
        """Look a method up by its name.

        >>> Method.of("effective-inverse-cdf").name  # another way to write it
        'inverse-effective-cdf'
        >>> Method.of("cfd")
        Traceback (most recent call last):
        tadropedge.errors.TadropedgeError: unknown method 'cfd'; choose from original, dropedge, \
[inverse-][SCORE-]RULE or NETWORK[+METHOD], with SCORE from aggregate, effective, RULE from cutoff, division, cdf and \
NETWORK from gcn, jknet, incepgcn, gcnn, graphsage, fastgcn, as-gcn, neuralsparse, ptdnet (did you mean 'cdf'?)
        """
        front, plus, rest = name.partition("+") if isinstance(name, str) else ("", "", "")
        if front in NETWORKS and not plus:
            return cls(name=name, network=name)
        dropping = _dropping(rest if plus else front)
        if dropping is None or (plus and front not in NETWORKS):
            raise TadropedgeError(_unknown(name))
        if not plus:
            return dropping
        if dropping.strategy is not None and not NETWORKS[front].drops:
            raise TadropedgeError(
                f"{front} chooses its edges itself and cannot be combined with edge dropping: {name!r}"
            )
        return replace(dropping, name=f"{front}+{dropping.name}", network=front)

    @property
    def adaptive(self) -> bool:
        """Whether edges are treated differently, so that there is a reference to compare with."""
        return self.score is not None

    @property
    def reference(self) -> str:
        """The same network with uniform dropping, which a score is compared with."""
        return "dropedge" if self.network is None else f"{self.network}+dropedge"


def rules() -> list[str]:
    """The rules that turn scores into probabilities."""
    return [name for name in STRATEGIES if name != UNIFORM]


def droppings() -> Iterator[str]:
    """Every name without a network, as it is printed.

    >>> list(droppings())[:5]
    ['original', 'dropedge', 'cutoff', 'inverse-cutoff', 'division']
    """
    yield from ("original", "dropedge")
    for score in SCORES:
        front = "" if score == PAPER_SCORE else f"{score}-"
        for rule in rules():
            yield from (f"{front}{rule}", f"inverse-{front}{rule}")


def _dropping(name: str) -> Method | None:
    """What a name without a network means."""
    if name == "original":
        return Method(name=name)
    if name == "dropedge":
        return Method(name=name, strategy=UNIFORM)
    for score in SCORES:
        for rule in rules():
            plain = rule if score == PAPER_SCORE else f"{score}-{rule}"
            ways = {plain: False, f"{score}-{rule}": False, f"inverse-{plain}": True, f"{score}-inverse-{rule}": True}
            if name in ways:
                printed = f"inverse-{plain}" if ways[name] else plain
                return Method(name=printed, score=score, strategy=rule, inverse=ways[name])
    return None


def _unknown(name: object) -> str:
    close = difflib.get_close_matches(name, [*droppings(), *NETWORKS], n=1) if isinstance(name, str) else []
    hint = f" (did you mean {close[0]!r}?)" if close else ""
    return (
        f"unknown method {show(name, typed=False)}; choose from original, dropedge, [inverse-][SCORE-]RULE or "
        f"NETWORK[+METHOD], with SCORE from {', '.join(SCORES)}, RULE from {', '.join(rules())} and NETWORK from "
        f"{', '.join(NETWORKS)}{hint}"
    )
