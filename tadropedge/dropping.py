"""``Dropping``: one way to weigh, drop or prune edges, as a value that has a name and can be read from it.

====================================================  ======================================================
``original``                                          nothing is dropped
``dropedge[@SHARE][:USE][:OPTION…]``                  every edge alike
``[inverse-][SCORE-]RULE[@SHARE][:USE][:OPTION…]``    by score; without SCORE, by aggregate resistance
====================================================  ======================================================

SCORE, RULE, USE and OPTION are names of :data:`tadropedge.SCORES`, ``RULES``, ``USES`` and ``OPTIONS``, including those
that you add. SHARE is the expected share of kept edges, from 0 to 1; without USE, edges are ``dropped``. So
``degree-proportional@0.1:expected`` keeps a tenth of the edges by degree, and weighs all of them in evaluation.
"""

from __future__ import annotations

import difflib
import re
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property, lru_cache
from inspect import Parameter
from typing import Any

import torch
from torch import Tensor

from tadropedge._support.checks import (
    check_flag,
    check_length,
    check_mapping,
    check_number,
    check_probability,
    check_settings,
    settings_of,
)
from tadropedge.errors import TadropedgeError, TooSmallError, lookup, show
from tadropedge.graph import Graph
from tadropedge.options import EXCLUSIVE
from tadropedge.registry import OPTIONS, RULES, SCORES, USES
from tadropedge.rules import NO_INVERSE, BudgetError, Rule, check_rule, keep_probabilities, meets_budget
from tadropedge.sampling.plan import Draw, Plan

Score = Callable[..., Tensor]
Schedule = Callable[[int], float]

PAPER_SCORE = "aggregate"  # the score of a rule that names none
UNIFORM = "uniform"  # the rule of DropEdge, which has no score; in the grammar it is dropedge
OF_SCORING = ("cache_dir", "device")  # settings of edge_scores itself
SETTING = Parameter("setting", Parameter.KEYWORD_ONLY)  # a stand-in for the signature of each of them
SHARE = re.compile(r"(\d+\.?\d*|\.\d+)(e[+-]?\d+)?")


@dataclass(frozen=True, kw_only=True, repr=False)
class Dropping:
    """A way to weigh, drop or prune edges. Without a ``rule`` nothing is dropped.

    * ``score``: a name of ``tadropedge.SCORES`` or your own function; ``None`` if the rule needs no score;
    * ``rule``: a name of ``tadropedge.RULES`` or your own function, with ``inverse``;
    * ``use``, ``options``: names of ``tadropedge.USES`` and ``tadropedge.OPTIONS``;
    * ``keep_prob`` or ``keep_ratio``: the budget, as in :func:`tadropedge.keep_probabilities`; ``keep_ratio`` may be a
      function of the epoch. With neither, the budget is left open (see :attr:`is_free`): a search can fill it in, and
      :meth:`plan` refuses until it is;
    * ``settings``: those of the score and of the rule, and ``cache_dir`` and ``device`` of
      :func:`tadropedge.edge_scores`.

    >>> Dropping.parse("effective-cdf@0.8:connected")
    Dropping(score='effective', rule='cdf', options=('connected',), keep_ratio=0.8)
    >>> str(Dropping.parse("dropedge", keep_prob=0.7)), str(Dropping(score="degree", rule="proportional"))
    ('dropedge@0.7', 'degree-proportional')
    """

    score: str | Score | None = None
    rule: str | Rule | None = None
    inverse: bool = False
    use: str = "dropped"
    options: tuple[str, ...] = ()
    keep_prob: float | None = None
    keep_ratio: float | Schedule | None = None
    settings: Mapping[str, Any] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        check_flag("inverse", self.inverse)
        check_mapping("settings", self.settings)
        lookup("use", self.use, dict.fromkeys(USES))
        object.__setattr__(self, "options", _ordered(self.options))
        for (one, other), why in EXCLUSIVE.items():
            if one in (self.use, *self.options) and other in self.options:
                raise TadropedgeError(f"{str(self)!r}: {one} and {other} exclude each other: {why}")
        if self.rule is None:
            self._check_original()
            return
        if self.rule == UNIFORM:
            self._check_uniform()
        elif self.score is None:
            raise TadropedgeError(f"the rule {called(self.rule)!r} needs a score: give score=", argument="score")
        if self.score is not None and not callable(self.score):
            lookup("score", self.score, dict.fromkeys(SCORES))
        ratio = 1.0 if self.is_scheduled or self.is_free else self.keep_ratio  # not known yet: any valid number will do
        known = self._rule_settings
        check_rule(self.rule, keep_prob=self.keep_prob, keep_ratio=ratio, inverse=self.inverse, settings=known)
        self._check_settings()

    def _check_original(self) -> None:
        for name in self._given:
            raise TadropedgeError(f"'original' drops nothing and has no {name}", argument=name)

    def _check_uniform(self) -> None:
        if self.score is not None:
            raise TadropedgeError("dropedge treats all edges alike and looks at no score", argument="score")
        if self.use == "pruned":
            raise TadropedgeError(f"{str(self)!r}: all edges are alike, so none is the best: prune by a score")
        if self.keep_prob is not None and self.keep_ratio is None:
            # For equal edges both mean the same, but only keep_ratio has a place in the name, after the @.
            object.__setattr__(self, "keep_ratio", self.keep_prob)
            object.__setattr__(self, "keep_prob", None)

    def _check_settings(self) -> None:
        takes = {**self._score_takes, **self._rule_takes, **dict.fromkeys(OF_SCORING, SETTING)}
        check_settings(repr(str(self)), takes, self.settings)

    # -- the grammar ----------------------------------------------------------------------------------

    @classmethod
    def parse(cls, method: str | Dropping, **values: Any) -> Dropping:
        """Read a method name; ``values`` are ``keep_prob`` or ``keep_ratio``, and settings of the score and the rule.

        >>> Dropping.parse("inverse-degree-cdf", keep_prob=0.5)
        Dropping(score='degree', rule='cdf', inverse=True, keep_prob=0.5)
        >>> Dropping.parse("cdf:unbiased:connected")
        Traceback (most recent call last):
        tadropedge.errors.TadropedgeError: 'cdf:connected:unbiased': unbiased and connected exclude each other: a \
spanning forest is kept whatever the keep probabilities of its edges, so dividing by them would not be unbiased
        """
        found = method if isinstance(method, Dropping) else cls(**_read(method))
        budget = {name: values.pop(name) for name in ("keep_prob", "keep_ratio") if values.get(name) is not None}
        if budget and not found.is_free:
            name, value = next(iter(budget.items()))
            said = "drops nothing" if found.rule is None else "says its budget itself"
            raise TadropedgeError(f"{str(found)!r} {said}: leave {name}={show(value, typed=False)} out", argument=name)
        values = {name: value for name, value in values.items() if name not in ("keep_prob", "keep_ratio")}
        return replace(found, **budget, settings={**found.settings, **values})

    def __str__(self) -> str:
        front = called(self.rule)
        if self.rule is None or self.rule == UNIFORM:
            front = "original" if self.rule is None else "dropedge"
        elif self.score not in (None, PAPER_SCORE):
            front = f"{called(self.score)}-{front}"
        share = "" if self.keep_ratio is None or callable(self.keep_ratio) else f"@{_number(self.keep_ratio)}"
        use = () if self.use == "dropped" else (self.use,)
        return ":".join((f"{'inverse-' if self.inverse else ''}{front}{share}", *use, *self.options))

    def __repr__(self) -> str:
        return f"Dropping({', '.join(f'{name}={value!r}' for name, value in self._given.items())})"

    @property
    def _given(self) -> dict[str, Any]:
        """The fields that differ from their defaults."""
        defaults: dict[str, Any] = {each.name: {} if each.name == "settings" else each.default for each in fields(self)}
        values = {name: getattr(self, name) for name in defaults}
        return {
            name: value for name, value in values.items() if value is not defaults[name] and value != defaults[name]
        }

    # -- what kind of method it is --------------------------------------------------------------------

    @property
    def is_free(self) -> bool:
        """Whether it drops edges but leaves open how many: neither ``keep_prob`` nor ``keep_ratio`` is given."""
        return self.rule is not None and self.keep_prob is None and self.keep_ratio is None

    @property
    def is_scheduled(self) -> bool:
        """Whether the budget changes with the epoch."""
        return callable(self.keep_ratio)

    @property
    def takes_keep_prob(self) -> bool:
        """Whether its rule has a default probability p, so that ``keep_prob`` can be given.

        >>> Dropping.parse("cdf").takes_keep_prob, Dropping.parse("degree-proportional").takes_keep_prob
        (True, False)
        """
        return self.rule is not None and not meets_budget(self.rule)

    @property
    def takes_features(self) -> bool:
        """Whether its score uses node features."""
        return "features" in self._score_takes

    @cached_property
    def weighs(self) -> bool:
        """Whether edges get weights: by its use, or by one of its options.

        >>> [Dropping.parse(f"degree-proportional{use}").weighs for use in ("", ":pruned", ":expected", ":unbiased")]
        [False, False, True, True]
        """
        # Uses and options may be anybody's functions, so a draw of a single edge shows what they do.
        plan = self._plan_of(Graph.from_edge_index([[0], [1]]), torch.ones(1, dtype=torch.float64))
        return any(plan.draw(0, 0, training=training)[1] is not None for training in (True, False))

    # -- the plan -------------------------------------------------------------------------------------

    def plan(
        self,
        graph: Graph,
        *,
        features: Any = None,
        column: Any = None,
        prob: Tensor | None = None,
        keys: Tensor | None = None,
        scores: Tensor | None = None,
        lenient: bool = False,
    ) -> Plan:
        """Score the edges of a graph and turn the scores into keep probabilities; masks are drawn from the result.

        * ``features [N, F]``, ``column [A]`` (one number per arc): for the scores that use them;
        * ``scores [M]``: what :meth:`scores` returned, if it was called before;
        * ``prob [M]``: your own probabilities, for a ``dropedge`` without a budget;
        * ``keys [M]``: the keys by which coins know the pairs; by default those of
          their node ids in ``graph``, which in a mini-batch are not the ids of the whole graph;
        * ``lenient``: warn instead of raising an error where a graph is too small, as a few among many are: all its
          edges are scored alike if the score needs more nodes, and it keeps as few edges as the rule allows if the
          budget asks for fewer.

        >>> graph = Graph.from_edge_index([[0, 1, 2, 2], [1, 2, 0, 3]])
        >>> plan = Dropping.parse("degree-proportional@0.5").plan(graph)
        >>> plan.prob.round(decimals=4).tolist()
        [0.5, 0.4167, 0.4167, 0.6667]
        >>> plan.sample(seed=0, epoch=3).tolist()
        [True, False, True, True]
        """
        if prob is not None:
            if self.rule != UNIFORM or not self.is_free:
                raise TadropedgeError(f"{str(self)!r} makes probabilities itself: give them to 'dropedge'")
            prob = check_probability("prob", check_length("prob", prob, graph.num_edges, "edge of the graph"))
            return self._plan_of(graph, prob, keys)
        if self.is_free:
            kinds = "keep_prob or keep_ratio" if self.takes_keep_prob else "keep_ratio"
            raise TadropedgeError(f"{str(self)!r} has no budget: give {kinds}", argument="keep_ratio")
        if scores is None:
            scores = self.scores(graph, features=features, column=column, lenient=lenient)
        if callable(schedule := self.keep_ratio):
            # All draws of one epoch share its probabilities; until an epoch is asked for, they are those of epoch 0.
            at = lru_cache(1)(lambda epoch: self._probabilities(scores, lenient, keep_ratio=schedule(epoch)))
            return replace(self._plan_of(graph, at(0), keys), schedule=at)
        return self._plan_of(graph, self._probabilities(scores, lenient, self.keep_prob, self.keep_ratio), keys)  # type: ignore[arg-type]

    def _plan_of(self, graph: Graph, prob: Tensor, keys: Tensor | None = None) -> Plan:
        keys = graph.keys if keys is None else keys
        use = _everything if self.rule is None else USES[self.use]
        return Plan(graph, keys, prob, use, tuple(OPTIONS[name] for name in self.options))

    def scores(self, graph: Graph, *, features: Any = None, column: Any = None, lenient: bool = False) -> Tensor:
        """The scores of the edges, float64 ``[M]``, all 1 if the method has no score; arguments as in :meth:`plan`.

        >>> graph = Graph.from_edge_index([[0, 1, 2, 2], [1, 2, 0, 3]])
        >>> Dropping.parse("common-neighbours-cdf").scores(graph).tolist()
        [0.5, 0.5, 0.5, 0.0]
        """
        ones = torch.ones(graph.num_edges, dtype=torch.float64, device=graph.device)
        if self.score is None or graph.num_edges == 0:
            return ones
        from tadropedge.scores.solve import edge_scores

        known = {name: value for name, value in self.settings.items() if name not in self._rule_settings}
        if self.takes_features and "features" not in known:
            known["features"] = features
        if column is not None and "column" in self._score_takes:
            known["column"] = column  # one number per arc: the score itself takes the mean of each pair
        elif isinstance(name := known.get("column"), str):
            raise TadropedgeError(f"column={name!r} names an attribute of a Data: give the Data, not its arcs")
        try:
            return edge_scores(graph, self.score, **known)
        except TooSmallError:
            if not lenient:
                raise
            # Without numbers, Python says it once for all graphs of a dataset.
            warnings.warn(f"a graph is too small for {str(self)!r}: its edges are scored alike", stacklevel=4)
            return ones

    def _probabilities(
        self, scores: Tensor, lenient: bool, keep_prob: float | None = None, keep_ratio: float | None = None
    ) -> Tensor:
        """The keep probabilities ``[M]``."""
        if self.rule is None or not len(scores):
            return torch.ones_like(scores)
        if self.rule == UNIFORM:
            return torch.full_like(scores, check_number("keep_ratio", keep_ratio, 0, 1))
        settings = {"rule": self.rule, "inverse": self.inverse, **self._rule_settings}
        try:
            return keep_probabilities(scores, keep_prob=keep_prob, keep_ratio=keep_ratio, **settings)
        except BudgetError:
            if not lenient:
                raise
            warnings.warn(f"a graph cannot meet {str(self)!r}: it keeps the least that the rule allows", stacklevel=4)
            # p = 0 keeps the least. Rules without p meet any budget, but for "floor", which keeps at least the mean.
            least = {"keep_prob": 0.0} if self.takes_keep_prob else {"keep_ratio": float(scores.mean())}
            return keep_probabilities(scores, **least, **settings)  # type: ignore[arg-type]

    @property
    def _score_takes(self) -> dict[str, Parameter]:
        """The settings that the score accepts, by name."""
        score = lookup("score", self.score, SCORES) if isinstance(self.score, str) else self.score
        return {} if score is None else settings_of(score)

    @property
    def _rule_takes(self) -> dict[str, Parameter]:
        """The settings that the rule accepts, by name; the budget is none of them."""
        rule = lookup("rule", self.rule, RULES) if isinstance(self.rule, str) else self.rule
        takes = {} if rule is None else settings_of(rule)
        return {name: value for name, value in takes.items() if name != "keep_ratio"}

    @property
    def _rule_settings(self) -> dict[str, Any]:
        """Those of the ``settings`` that are for the rule; all others are for the score."""
        return {name: value for name, value in self.settings.items() if name in self._rule_takes}


def names() -> list[str]:
    """Every method name without share, use and options, in the order in which they are listed.

    >>> names()[:6]
    ['original', 'dropedge', 'cutoff', 'inverse-cutoff', 'division', 'inverse-division']
    """
    return [name for name, found in _methods().items() if not (found.get("inverse") and found["rule"] in NO_INVERSE)]


def _methods() -> dict[str, dict[str, Any]]:
    """The fields of the :class:`Dropping` that each name without share, use and options stands for."""
    found: dict[str, dict[str, Any]] = {"original": {"rule": None}, "dropedge": {"rule": UNIFORM}}
    for score in SCORES:
        for rule in RULES:
            if rule != UNIFORM:
                name = rule if score == PAPER_SCORE else f"{score}-{rule}"
                for inverse in (False, True):
                    found[f"inverse-{name}" if inverse else name] = {"score": score, "rule": rule, "inverse": inverse}
    return found


def grammar() -> str:
    """What method names look like, in one line for error messages.

    >>> grammar().split(";")[0]
    'original, dropedge[@SHARE][:USE][:OPTION] or [inverse-][SCORE-]RULE[@SHARE][:USE][:OPTION]'
    """
    rules = ", ".join(name for name in RULES if name != UNIFORM)
    return (
        "original, dropedge[@SHARE][:USE][:OPTION] or [inverse-][SCORE-]RULE[@SHARE][:USE][:OPTION]; "
        f"SCORE: {', '.join(SCORES)}; RULE: {rules}; USE: {', '.join(USES)}; OPTION: {', '.join(OPTIONS)}"
    )


def _read(method: object) -> dict[str, Any]:
    """The fields of the :class:`Dropping` that a method name stands for."""
    if not isinstance(method, str):
        raise TadropedgeError(
            f"a method is a name such as 'degree-proportional', got {show(method)}", argument="method"
        )
    front, *words = method.split(":")  # words are the use and the options
    name, at, share = front.partition("@")
    paper = re.sub(f"^(inverse-)?{PAPER_SCORE}-({'|'.join(RULES)})$", r"\1\2", name)  # it may be named, too
    found = _methods().get(paper)
    if found is None:
        raise TadropedgeError(f"unknown method {method!r}{_hint(method, name)}; {grammar()}", argument="method")
    if at:
        if not SHARE.fullmatch(share):
            raise TadropedgeError(f"{method!r}: the share after @ is a number from 0 to 1, got {share!r}")
        found["keep_ratio"] = float(share)
    for word in words:
        lookup("use or option", word, dict.fromkeys((*USES, *OPTIONS)))
    uses = [word for word in words if word in USES]
    if len(uses) > 1:
        raise TadropedgeError(f"{method!r} names {len(uses)} uses, {' and '.join(uses)}: take one")
    options = tuple(word for word in words if word in OPTIONS)
    return {**found, "use": uses[0] if uses else "dropped", "options": options}


def _hint(method: str, name: str) -> str:
    """What was probably meant, for the error message; empty if there is no guess."""
    if name in SCORES:  # "floor" for dropsens, whose scores are keep probabilities already
        return (
            f": {name!r} is a score, and a rule is missing, as in '{name}-{'floor' if name == 'dropsens' else 'cdf'}'"
        )
    close = difflib.get_close_matches(name, names(), n=1)
    return f" (did you mean {method.replace(name, close[0], 1)!r}?)" if close else ""


def _everything(draw: Draw, training: bool) -> tuple[None, None]:
    """The use of ``original``: all edges are kept, and their weights stay as they are."""
    return None, None


def _ordered(options: object) -> tuple[str, ...]:
    """Options in the order of the registry, in which they are applied and printed; each at most once."""
    given = (options,) if isinstance(options, str) else tuple(options)  # type: ignore[arg-type]
    for option in given:
        lookup("option", option, dict.fromkeys(OPTIONS))
        if given.count(option) > 1:
            raise TadropedgeError(f"the option {option!r} is named more than once", argument="options")
    return tuple(name for name in OPTIONS if name in given)


def called(entry: object) -> str:
    """The name of a score or a rule, which may be a function."""
    return entry if isinstance(entry, str) else getattr(entry, "__name__", type(entry).__name__)


def _number(share: float) -> str:
    """A share as it is written after the ``@``: 1, not 1.0."""
    return repr(float(share)).removesuffix(".0")
