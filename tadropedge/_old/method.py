"""The grammar of methods: the name of a method says what is trained and which edges are dropped.

========================================  ====================================================================
``original``                              nothing is dropped
``auto``                                  score, rule, options and budget are found by the search
``dropedge[:OPTION…]``                    every edge is dropped with the same probability
``dropsens[:OPTION…]``                    edges are dropped by the degrees of their ends
``[inverse-][SCORE-]RULE[:OPTION…]``      edges are dropped by score; without SCORE it is aggregate resistance
``NETWORK`` or ``NETWORK+METHOD``         another network instead of the backbone of the comparison
========================================  ====================================================================

SCORE, RULE and NETWORK are the names in :mod:`tadropedge._old.registry`, including those that you add. An OPTION is a name
in :data:`OPTIONS`; several are written one after the other, as in ``degree-proportional:connected:nested``.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from tadropedge._old.checks import check_flag, check_text, settle
from tadropedge._old.errors import TadropedgeError, lookup, show
from tadropedge._old.registry import NETWORKS, SCORES, STRATEGIES

PAPER_SCORE = "aggregate"  # the score of a rule that names none
UNIFORM = "uniform"  # the rule of DropEdge, which has no score and no name of its own in the grammar
SENSITIVITY = "dropsens"  # the rule by degree, which has no score
AUTO = "auto"

OPTIONS = {
    "unbiased": "degrees of the whole graph, and kept entries divided by their keep probability",
    "connected": "every subgraph contains a spanning forest of the graph",
    "nested": "keep rates that rise or fall with the layer, by one coin",
    "exact": "the expected number of edges is kept exactly, not on average",
    "expected": "evaluation on the whole graph, with edges weighted by their keep probability",
}
EXCLUSIVE = {
    ("unbiased", "connected"): "a spanning forest is kept whatever the keep probabilities of its edges, so dividing by "
    "them would not be unbiased",
    (
        "unbiased",
        "exact",
    ): "with a fixed number of edges, each is kept with only about its keep probability, so dividing "
    "by it would not be unbiased",
    (
        "unbiased",
        "expected",
    ): "without bias the expected operator is that of the whole graph, on which networks are evaluated anyway",
    (
        "connected",
        "expected",
    ): "a spanning forest is kept whatever the keep probabilities of its edges, so these are not "
    "the weights that training saw",
    (
        "nested",
        "expected",
    ): "every layer has keep probabilities of its own, and evaluation has one weight for each edge",
}


@dataclass(frozen=True, kw_only=True)
class Method:
    """A way to train: ``score``, ``strategy`` and ``options`` say which edges are dropped, ``network`` what is trained.

    Without a ``strategy`` nothing is dropped, without a ``score`` it is not one that decides, and without a ``network``
    it is the backbone of the comparison. ``auto`` leaves all but the network to the search.

    >>> Method.of("effective-cdf:unbiased")
    Method(name='effective-cdf:unbiased', score='effective', strategy='cdf', inverse=False, options=('unbiased',), \
network=None, auto=False)
    >>> Method.of("graphsage+inverse-cdf").reference
    'graphsage+dropedge'
    """

    name: str
    score: str | None = None
    strategy: str | None = None
    inverse: bool = False
    options: tuple[str, ...] = ()
    network: str | None = None
    auto: bool = False

    def __post_init__(self) -> None:
        check_text("name", self.name)
        for name, registry in (("score", SCORES), ("strategy", STRATEGIES), ("network", NETWORKS)):
            if getattr(self, name) is not None:
                lookup(name, getattr(self, name), dict.fromkeys(registry))  # without importing it
        settle(self, inverse=check_flag("inverse", self.inverse), auto=check_flag("auto", self.auto))
        settle(self, options=check_options(self.options, self.name))
        if self.options and self.strategy is None:
            told = "leaves its options to the search" if self.auto else "drops no edges and has no options"
            raise TadropedgeError(f"{self.name!r} {told}")

    @classmethod
    def of(cls, name: str) -> Method:
        """Look a method up by its name.

        >>> Method.of("effective-inverse-cdf:nested:connected").name  # another way to write it
        'inverse-effective-cdf:connected:nested'
        >>> Method.of("cdf:unbiased:connected")
        Traceback (most recent call last):
        tadropedge._old.errors.TadropedgeError: 'cdf:unbiased:connected': unbiased and connected exclude each other: a \
spanning forest is kept whatever the keep probabilities of its edges, so dividing by them would not be unbiased
        """
        front, plus, rest = name.partition("+") if isinstance(name, str) else ("", "", "")
        if front in NETWORKS and not plus:
            return cls(name=name, network=name)
        dropping, *options = (rest if plus else front).split(":")
        found = _dropping(dropping)
        if found is None or (plus and front not in NETWORKS):
            raise TadropedgeError(_unknown(name))
        if options:
            ordered = check_options(options, name)
            found = replace(found, name=":".join((found.name, *ordered)), options=ordered)
        if not plus:
            return found
        network = NETWORKS[front]
        if (found.auto or found.strategy is not None) and not network.drops:
            raise TadropedgeError(f"{front} {network.because} and cannot be combined with edge dropping: {name!r}")
        return replace(found, name=f"{front}+{found.name}", network=front)

    @property
    def adaptive(self) -> bool:
        """Whether it is more than DropEdge, so that DropEdge is a reference to compare it with."""
        return self.auto or (self.strategy is not None and (self.strategy != UNIFORM or bool(self.options)))

    @property
    def reference(self) -> str:
        """The same network with uniform dropping, which a score is compared with."""
        return "dropedge" if self.network is None else f"{self.network}+dropedge"

    @property
    def dropping(self) -> str:
        """The name without the network.

        >>> Method.of("graphsage+effective-cdf:nested").dropping, Method.of("graphsage").dropping
        ('effective-cdf:nested', 'original')
        """
        if self.network is None:
            return self.name
        return self.name.partition("+")[2] or "original"


def check_options(options: object, name: str) -> tuple[str, ...]:
    """Return options in their printed order; refuse unknown, repeated and contradicting ones.

    >>> check_options(["nested", "exact"], "dropedge:nested:exact")
    ('nested', 'exact')
    """
    given = list(options) if isinstance(options, Sequence) and not isinstance(options, str) else [options]
    for option in given:
        try:
            lookup("option", option, OPTIONS)
        except TadropedgeError as error:
            raise TadropedgeError(f"{name!r}: {error}") from error
        if given.count(option) > 1:
            raise TadropedgeError(f"{name!r} names the option {option!r} more than once")
    for (one, other), why in EXCLUSIVE.items():
        if one in given and other in given:
            raise TadropedgeError(f"{name!r}: {one} and {other} exclude each other: {why}")
    return tuple(option for option in OPTIONS if option in given)


def rules() -> list[str]:
    """The rules that turn scores into probabilities."""
    return [name for name in STRATEGIES if name not in (UNIFORM, SENSITIVITY)]


def droppings() -> Iterator[str]:
    """Every name without a network and without options, as it is printed.

    >>> list(droppings())[:7]
    ['original', 'dropedge', 'dropsens', 'auto', 'cutoff', 'inverse-cutoff', 'division']
    """
    yield from ("original", "dropedge", SENSITIVITY, AUTO)
    for score in SCORES:
        front = "" if score == PAPER_SCORE else f"{score}-"
        for rule in rules():
            yield from (f"{front}{rule}", f"inverse-{front}{rule}")


def _dropping(name: str) -> Method | None:
    """What a name without a network and without options means."""
    without_score = {"original": None, "dropedge": UNIFORM, SENSITIVITY: SENSITIVITY, AUTO: None}
    if name in without_score:
        return Method(name=name, strategy=without_score[name], auto=name == AUTO)
    for score in SCORES:
        for rule in rules():
            plain = rule if score == PAPER_SCORE else f"{score}-{rule}"
            ways = {plain: False, f"{score}-{rule}": False, f"inverse-{plain}": True, f"{score}-inverse-{rule}": True}
            if name in ways:
                printed = f"inverse-{plain}" if ways[name] else plain
                return Method(name=printed, score=score, strategy=rule, inverse=ways[name])
    return None


def grammar() -> str:
    """What a method may be called, in one line.

    >>> grammar().split(";")[0]
    'original, auto, dropedge[:OPTION], dropsens[:OPTION], [inverse-][SCORE-]RULE[:OPTION] or NETWORK[+METHOD]'
    """
    return (
        "original, auto, dropedge[:OPTION], dropsens[:OPTION], [inverse-][SCORE-]RULE[:OPTION] or NETWORK[+METHOD]; "
        f"SCORE: {', '.join(SCORES)}; RULE: {', '.join(rules())}; OPTION: {', '.join(OPTIONS)}; "
        f"NETWORK: {', '.join(NETWORKS)}"
    )


def _unknown(name: object) -> str:
    hint = ""
    if isinstance(name, str):
        dropping, colon, options = name.partition(":")
        if dropping.removeprefix("inverse-") in ("original", "auto", "dropedge", "dropsens") and dropping[:1] == "i":
            return f"{name!r}: {dropping.removeprefix('inverse-')} has no inverse"
        close = difflib.get_close_matches(dropping, [*droppings(), *NETWORKS], n=1)
        hint = f" (did you mean {close[0] + colon + options!r}?)" if close else ""
    return f"unknown method {show(name, typed=False)}; choose from {grammar()}{hint}"
