"""Which edges are dropped: a score, a rule, a budget and options, checked where they are written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from tadropedge._old.checks import check_flag, check_integer, check_number, check_path, check_text, is_plain, settle
from tadropedge._old.errors import TadropedgeError, lookup, show
from tadropedge._old.graph import Graph
from tadropedge._old.method import UNIFORM, Method, check_options
from tadropedge._old.pyg.hetero import check_relations, joined
from tadropedge._old.pyg.once import Once
from tadropedge._old.pyg.rules import check_probability_settings, looks_at_degrees, probabilities
from tadropedge._old.pyg.scoring import scores_of
from tadropedge._old.pyg.shapes import WEIGHT
from tadropedge._old.pyg.shown import listed
from tadropedge._old.scores.column import per_edge
from tadropedge._old.scores.solve import Score, check_settings, named, parameters, settings_for
from tadropedge._old.sensitivity import SENSITIVITY
from tadropedge._old.shift import LEAST, check_positive_probability
from tadropedge._old.strategies import Numbers
from tadropedge._old.strategies import Score as Strategy

DEFAULT_RULE = "cdf"  # of a score without a strategy, as in keep_probabilities
ROUNDING = 1e-9  # what a probability may fall by where rates rise
MOST_LAYERS = 10_000
COINS = {"pair": None, "arc": None}  # what has a coin of its own
EXPECTED = (
    "the option 'expected' belongs to the laboratory; leave it out, and in eval() give your layers "
    "edge_weight=drop.probabilities(edge_index).float(), or data.edge_keep_prob.float() of AddKeepProbability"
)
RULE = ("strategy", "keep_prob", "keep_ratio", "gamma", "inverse", "sensitivity")


@dataclass(frozen=True, kw_only=True, eq=False)
class Dropping:
    """A score, the rule that makes probabilities of it, and options; the arguments are those of :class:`TADropEdge`.

    Without a score, a strategy and a budget there is no rule: probabilities then come with every call.

    >>> Dropping(score="degree", keep_ratio=0.7, connected=True)
    Dropping(score='degree', strategy='cdf', keep_ratio=0.7, connected=True)
    >>> Dropping(score="degree", keep_ratio=0.7, exact=True, unbiased=True)
    Traceback (most recent call last):
    tadropedge._old.errors.TadropedgeError: 'unbiased, exact': unbiased and exact exclude each other: with a fixed number \
of edges, each is kept with only about its keep probability, so dividing by it would not be unbiased
    """

    score: Score | None = None
    strategy: str | Strategy | None = None
    keep_prob: Numbers | None = None
    keep_ratio: Numbers | None = None
    gamma: Numbers | str = "auto"
    inverse: bool = False
    sensitivity: float = SENSITIVITY
    unbiased: bool = False
    connected: bool = False
    exact: bool = False
    layers: int | None = None
    keep_last: float | None = None
    cache_dir: str | Path | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    coins: str = "pair"
    weight: str | None = WEIGHT
    relations: Sequence[str | Sequence[str]] | None = None

    def __post_init__(self) -> None:
        for name in ("inverse", "unbiased", "connected", "exact"):
            settle(self, **{name: check_flag(name, getattr(self, name))})
        options = [name for name in ("unbiased", "connected", "exact") if getattr(self, name)]
        if options:
            check_options(options, ", ".join(options))
        self._check_score()
        self._check_rule()
        self._check_layers()
        self._check_shape()

    # -- checks ---------------------------------------------------------------------------------------

    def _check_score(self) -> None:
        settle(self, cache_dir=None if self.cache_dir is None else check_path("cache_dir", self.cache_dir))
        if "expected" in self.settings:
            raise TadropedgeError(f"expected={show(self.settings['expected'], typed=False)}: {EXPECTED}")
        if self.score is not None:
            check_settings(self.score, settings_for(self.score, {"features": None}) | dict(self.settings))
        elif self.settings:
            name = next(iter(self.settings))
            if name == "p":
                raise TadropedgeError(
                    f"p={show(self.settings[name], typed=False)}: PyG's p is the probability of dropping an edge; give "
                    "that of keeping it, keep_prob=1 - p"
                )
            raise TadropedgeError(f"there is no setting {name!r}, or it belongs to a score and score= is missing")

    def _check_rule(self) -> None:
        if all(getattr(self, name) is None for name in ("score", "strategy", "keep_prob", "keep_ratio")):
            for name, default in (("gamma", "auto"), ("inverse", False), ("sensitivity", SENSITIVITY)):
                value = getattr(self, name)
                if not isinstance(value, type(default)) or value != default:
                    raise TadropedgeError(
                        f"{name}={show(value, typed=False)} belongs to a rule: give strategy= and keep_prob= or "
                        "keep_ratio="
                    )
            return
        if self.strategy is None:
            settle(self, strategy=UNIFORM if self.score is None else DEFAULT_RULE)
        scoreless = looks_at_degrees(self.strategy) or (isinstance(self.strategy, str) and self.strategy == UNIFORM)
        if scoreless and self.score is not None:
            raise TadropedgeError(f"the strategy {self.strategy!r} looks at no score: leave score= out")
        check_probability_settings(self.rule)
        if not scoreless and self.score is None:
            called = getattr(self.strategy, "__name__", self.strategy)
            raise TadropedgeError(f"the strategy {called!r} needs a score: give score= a name of tadropedge.SCORES")

    def _check_layers(self) -> None:
        if self.layers is None:
            if self.keep_last is not None:
                raise TadropedgeError("keep_last is the rate of the last layer: give layers=, the number of layers")
            return
        if self.strategy is None:
            raise TadropedgeError("layers have keep rates of their own: give keep_prob= or keep_ratio= of the first")
        settle(self, layers=check_integer("layers", self.layers, least=1, most=MOST_LAYERS))
        settle(self, keep_last=check_number("keep_last", 1.0 if self.keep_last is None else self.keep_last, 0, 1))

    def _check_shape(self) -> None:
        lookup("coins", self.coins, COINS)
        if self.coins == "arc" and (self.connected or self.exact):
            option = "connected" if self.connected else "exact"
            raise TadropedgeError(
                f"{option} is about edges, of which both arcs share a coin: use coins='pair', or leave {option} out"
            )
        settle(self, weight=None if self.weight is None else check_text("weight", self.weight))
        settle(self, relations=check_relations(self.relations))

    # -- what it says ---------------------------------------------------------------------------------

    @property
    def rule(self) -> dict[str, Any]:
        """The settings of :func:`tadropedge.keep_probabilities`."""
        return {name: getattr(self, name) for name in RULE}

    @cached_property
    def takes_features(self) -> bool:
        """Whether the score looks at features of nodes."""
        return self.score is not None and "features" in parameters(named(self.score)[1])

    @cached_property
    def once(self) -> Once:
        """What was said about graphs seen so far; a copy in a forked worker says nothing of it again."""
        return Once()

    @property
    def rates(self) -> list[float]:
        """``keep_prob`` or ``keep_ratio`` of each layer: from the first to ``keep_last`` in equal steps.

        >>> Dropping(keep_prob=0.5, layers=3).rates
        [0.5, 0.75, 1.0]
        """
        first = float(self.keep_prob if self.keep_ratio is None else self.keep_ratio)  # type: ignore[arg-type]
        if self.layers is None or self.layers == 1:
            return [first]
        last, steps = float(self.keep_last or 0.0), self.layers - 1
        return [first, *(first + (last - first) * step / steps for step in range(1, steps)), last]

    def features(self, x: object) -> Tensor | None:
        """The features that the score looks at, None where it takes none."""
        if not self.takes_features:
            return None
        name, function = named(self.score)  # type: ignore[arg-type]
        if isinstance(x, tuple):
            optional = parameters(function)["features"].default is None
            return None if optional and any(side is None for side in x) else joined(x, name)
        if x is None and parameters(function)["features"].default is not None:
            raise TadropedgeError(f"the score {name!r} needs node features: give x=, or a Data with x")
        if x is None or (isinstance(x, Tensor) and (is_plain(x) or (x.layout is torch.sparse_csr and not x.is_meta))):
            return x
        raise TadropedgeError(f"x must be a dense or CSR tensor of node features, got {show(x)}")

    @property
    def column(self) -> str | None:
        """The attribute of a ``Data`` that the score ``column`` names, if it does."""
        name = self.settings.get("column") if isinstance(self.score, str) and self.score == "column" else None
        return name if isinstance(name, str) else None

    def rows(self, graph: Graph, x: object = None, column: Tensor | None = None, *, among_many: bool = False) -> Tensor:
        """The keep probability of each edge in each layer, float64 ``[L, M]``; one row where layers do not differ.

        ``among_many``: the graph is one of a dataset, and a budget out of its reach is no error.

        >>> graph = Graph.from_edge_index([[0, 1, 2, 2], [1, 2, 0, 3]])
        >>> Dropping(score="degree", strategy="proportional", keep_ratio=0.5).rows(graph).round(decimals=4).tolist()
        [[0.5, 0.4167, 0.4167, 0.6667]]
        """
        name = "keep_prob" if self.keep_ratio is None else "keep_ratio"
        if graph.num_edges == 0:
            return torch.empty(len(self.rates), 0, dtype=torch.float64, device=graph.device)
        weights = self._weights(graph, x, column)
        rules = ({**self.rule, name: rate} for rate in self.rates)
        found = [probabilities(weights, rule, among_many=among_many, once=self.once) for rule in rules]
        rows = torch.stack(found)
        rising = rows if self.rates[0] <= self.rates[-1] else rows.flip(0)
        if bool((rising.diff(dim=0) < -ROUNDING).any()):
            raise TadropedgeError(
                f"layers cannot be nested here: the rule gives some edge a smaller probability at a larger {name}"
            )
        rising = rising.cummax(dim=0).values  # rounding must not break the nesting
        rows = rising if self.rates[0] <= self.rates[-1] else rising.flip(0)
        return check_divisible(rows) if self.unbiased else rows

    def _weights(self, graph: Graph, x: object, column: Tensor | None) -> Tensor | Graph:
        """What the rule looks at: scores, ones, or the graph."""
        if self.score is None:
            by_degree = looks_at_degrees(self.strategy)
            return graph if by_degree else torch.ones(graph.num_edges, dtype=torch.float64, device=graph.device)
        known = settings_for(self.score, {"features": self.features(x)}) | dict(self.settings)
        if self.column is not None:
            if column is None:
                raise TadropedgeError(
                    f"column={self.column!r} names an attribute of a Data: give the Data, not its arcs"
                )
            known["column"] = per_edge(graph, column, self.column)
        return scores_of(graph, self.score, known, cache_dir=self.cache_dir, once=self.once)

    def __repr__(self) -> str:
        return f"Dropping({self.told()})"

    def told(self) -> str:
        """The settings that are not as they are by default."""
        plain = {each.name: each.default for each in fields(self) if each.name != "settings"}
        said = {name: getattr(self, name) for name in plain}
        shown = {
            name: value
            for name, value in said.items()
            if not (value is plain[name] or (isinstance(value, str | float) and value == plain[name]))
        }
        return listed({**shown, **self.settings})


def settings_of(name: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of a :class:`Dropping` that a method of the grammar stands for, beside the other ``settings``.

    >>> settings_of("inverse-degree-cdf:exact", {"keep_ratio": 0.8})
    {'score': 'degree', 'strategy': 'cdf', 'inverse': True, 'unbiased': False, 'connected': False, 'exact': True, \
'keep_ratio': 0.8}
    """
    method = Method.of(name)
    if method.network is not None or method.strategy is None:
        what = "is found by a search" if method.auto else "names a network" if method.network else "drops no edges"
        raise TadropedgeError(f"{name!r} {what}; expected a method that drops edges, such as 'degree-proportional'")
    if "expected" in method.options:
        raise TadropedgeError(f"{name!r}: {EXPECTED}")
    said: dict[str, Any] = {"score": method.score, "strategy": method.strategy, "inverse": method.inverse}
    said |= {option: option in method.options for option in ("unbiased", "connected", "exact")}
    for setting in said:
        if setting in settings:
            raise TadropedgeError(f"{name!r} says {setting} itself: leave {setting}= out")
    if ("nested" in method.options) != (settings.get("layers") is not None):
        raise TadropedgeError(f"{name!r}: the option 'nested' and layers=, the number of layers, go together")
    return said | dict(settings)


def check_divisible(prob: Tensor) -> Tensor:
    """Return probabilities by which kept entries can be divided; refuse 0, and what no coin is ever below.

    >>> check_divisible(torch.tensor([0.5, 0.0]))
    Traceback (most recent call last):
    tadropedge._old.errors.TadropedgeError: unbiased needs keep probabilities above 0, got 0: an edge that is never kept \
cannot be made up for by dividing; use a larger budget, or a rule or score that gives every edge a chance
    """
    check_positive_probability("unbiased", torch.where(prob < LEAST, 0.0, prob))
    return prob
