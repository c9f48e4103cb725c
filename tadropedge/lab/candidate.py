"""``Candidate``: what takes part in a comparison, a way of dropping with a network and a way of training.

==============================  =======================================================================
``[NETWORK+]DROPPING[:WAY…]``   a network, a name of :class:`tadropedge.Dropping`, and ways of training
``NETWORK``                     a network from which nothing is dropped
``[NETWORK+]auto``              score, rule, options and budget are settings of the search
``[NETWORK+]sharpen``           short for ``original:sharpen``
==============================  =======================================================================

Ways of training are no ways of dropping, so a :class:`~tadropedge.Dropping` knows nothing of them:

* ``finish``: the last fifth of the epochs sees the whole graph. With few edges the others are cheap on
  dense graphs; with none at all (``dropedge@0:finish``) an MLP is trained first, as in MLPInit (Han et al., ICLR 2023);
* ``consistent``: several subgraphs are drawn in each step, and their predictions are asked to agree on all nodes; its
  formula, sources and cost stand with ``Consistency`` in :mod:`tadropedge.lab.training.objective`;
* ``sharpen``: the same loss with one draw;
* ``epochs@SHARE``: only this share of the epochs, a control for what trains faster.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from tadropedge._support.checks import check_kind, check_number
from tadropedge.dropping import SHARE, Dropping
from tadropedge.errors import TadropedgeError, lookup, show
from tadropedge.lab.registry import NETWORKS

AUTO = "auto"
WAYS = {
    "finish": "the last fifth of the epochs sees the whole graph",
    "consistent": "several subgraphs per step, and a loss that asks their predictions to agree on all nodes",
    "sharpen": "the same loss with one draw",
}
EPOCHS = "epochs@"


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """One row of a comparison. Without a ``network`` it trains that of the experiment.

    >>> Candidate.parse("jknet+degree-proportional@0.1:finish").ways
    ('finish',)
    >>> [str(Candidate.parse(name)) for name in ("original:sharpen", "gat", "gat+original", "cdf:consistent:connected")]
    ['sharpen', 'gat', 'gat', 'cdf:connected:consistent']
    >>> str(Candidate.parse("original:epochs@0.35"))
    'original:epochs@0.35'
    """

    dropping: Dropping = field(default_factory=Dropping)
    network: str | None = None
    ways: tuple[str, ...] = ()
    epochs: float = 1.0  # the share of the epochs that it trains
    is_auto: bool = False

    def __post_init__(self) -> None:
        if not check_number("epochs", self.epochs, 0, 1) > 0:
            raise TadropedgeError("the share of the epochs must be above 0, got 0", argument="epochs")
        check_kind("dropping", self.dropping, Dropping)
        for way in check_kind("ways", self.ways, tuple):
            lookup("way of training", way, WAYS)
        if {"consistent", "sharpen"} <= set(self.ways):
            raise TadropedgeError(f"{str(self)!r}: sharpen is consistent with one draw: take one of them")
        object.__setattr__(self, "ways", tuple(way for way in WAYS if way in self.ways))

    @classmethod
    def parse(cls, name: str | Dropping | Candidate) -> Candidate:
        """Read a name; a :class:`~tadropedge.Dropping` is the candidate that drops so.

        >>> Candidate.parse("gcn+")
        Traceback (most recent call last):
        tadropedge.errors.TadropedgeError: 'gcn+' names no way of dropping after the +; for none of it write 'gcn'
        """
        if isinstance(name, Candidate):
            return name
        if isinstance(name, Dropping):
            return cls(dropping=name)
        if not isinstance(name, str):
            raise TadropedgeError(f"a candidate is a name such as 'degree-proportional', got {show(name)}")
        network, plus, rest = name.rpartition("+")
        if plus:
            lookup("network", network, dict.fromkeys(NETWORKS))
            if not rest:
                raise TadropedgeError(
                    f"{name!r} names no way of dropping after the +; for none of it write {network!r}"
                )
        front, *words = rest.split(":")
        if not plus and front in NETWORKS:
            network, front = front, "original"
        if front == "sharpen":
            front, words = "original", [*words, "sharpen"]
        ways = tuple(word for word in words if word in WAYS)
        shares = [word for word in words if word.startswith(EPOCHS)]
        words = [word for word in words if word not in (*WAYS, *shares)]
        if len(set(ways)) < len(ways) or len(shares) > 1:
            raise TadropedgeError(f"{name!r} names a way of training twice")
        if front == AUTO:
            if words or ways or shares:
                raise TadropedgeError(f"{name!r}: auto chooses uses, options and ways of training itself")
            return cls(network=network or None, is_auto=True)
        dropping = _dropping(":".join((front, *words)))
        share = shares[0].removeprefix(EPOCHS) if shares else "1"
        if not SHARE.fullmatch(share):
            raise TadropedgeError(f"{name!r}: the share after {EPOCHS} is a number from 0 to 1, got {share!r}")
        return cls(dropping=dropping, network=network or None, ways=ways, epochs=float(share))

    def __str__(self) -> str:
        words = [AUTO if self.is_auto else str(self.dropping), *self.ways]
        words += [] if self.epochs == 1 else [f"{EPOCHS}{self.epochs!r}"]
        if words[0] == "original" and "sharpen" in words:
            words = [words[-1], *words[1:-1]]
        if self.network is None:
            return ":".join(words)
        return self.network if words == ["original"] else f"{self.network}+{':'.join(words)}"


def _dropping(text: str) -> Dropping:
    """The way of dropping in a candidate's name; an unknown one is told of networks and ways of training, too."""
    try:
        return Dropping.parse(text)
    except TadropedgeError as error:
        if "unknown method" not in str(error):
            raise
        more = f"NETWORK+ in front, of {', '.join(NETWORKS)}; :WAY behind, of {', '.join(WAYS)}"
        raise TadropedgeError(f"{error}; {more}", argument="methods") from None
