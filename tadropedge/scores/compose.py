"""Scores made of scores: the ranks of one, and a mean of two. What they return is a score like any other."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from inspect import Parameter, Signature
from typing import Any

import torch
from torch import Tensor

from tadropedge._support.checks import check_number, settings_of
from tadropedge.errors import lookup, show
from tadropedge.graph import Graph
from tadropedge.registry import SCORES
from tadropedge.rules import sorted_values
from tadropedge.scores.solve import Score, edge_scores, settings_for


def rank(score: Score) -> Callable[..., Tensor]:
    """The ranks of another score, from 0 to 1: the share of edges below an edge, ties and itself counted half.

    Scores whose sizes cannot be compared become comparable, and outliers lose their weight. The settings are those of
    ``score``, a name of ``tadropedge.SCORES`` or a function.

    * Cost: that of the score, and a sort.

    >>> from tadropedge import Dropping, Graph, edge_scores
    >>> graph = Graph.from_edge_index([[0, 1, 2, 2], [1, 2, 0, 3]])  # a triangle with a tail
    >>> edge_scores(graph, rank("degree")).tolist()
    [0.625, 0.25, 0.25, 0.875]
    >>> str(Dropping(score=rank("degree"), rule="proportional", keep_ratio=0.5))
    'rank(degree)-proportional@0.5'
    """
    return _Rank(_known(score), _called(score))


def blend(a: Score, b: Score, share: float = 0.5) -> Callable[..., Tensor]:
    """``share · a + (1 − share) · b``, edge by edge. Where the sizes of two scores differ, blend their ranks.

    * Cost: that of both.

    >>> from tadropedge import Graph, edge_scores
    >>> graph = Graph.from_edge_index([[0, 1, 2, 2], [1, 2, 0, 3]])
    >>> edge_scores(graph, blend("common-neighbours", rank("degree"), 0.25)).tolist()
    [0.59375, 0.3125, 0.3125, 0.65625]
    """
    return _Blend(_known(a), _known(b), check_number("share", share, 0, 1), (_called(a), _called(b)))


@dataclass(frozen=True)
class _Rank:
    score: Callable[..., Any]
    called: str

    def __call__(self, graph: Graph, **settings: Any) -> Tensor:
        scores = edge_scores(graph, self.score, **settings)
        ascending = sorted_values(scores)
        below, up_to = (torch.searchsorted(ascending, scores, right=right) for right in (False, True))
        return (below + up_to).to(torch.float64) / (2 * max(1, len(scores)))

    @property
    def __name__(self) -> str:
        return f"rank({self.called})"

    @property
    def __signature__(self) -> Signature:
        return _signature(self.score)


@dataclass(frozen=True)
class _Blend:
    a: Callable[..., Any]
    b: Callable[..., Any]
    share: float
    called: tuple[str, str]

    def __call__(self, graph: Graph, **settings: Any) -> Tensor:
        a, b = (edge_scores(graph, part, **settings_for(part, settings)) for part in (self.a, self.b))
        return self.share * a + (1 - self.share) * b

    @property
    def __name__(self) -> str:
        return f"blend({', '.join(self.called)}, {self.share:g})"

    @property
    def __signature__(self) -> Signature:
        return _signature(self.a, self.b)


def _known(score: Score) -> Callable[..., Any]:
    """The function of a score, so that a fingerprint sees whose it is."""
    if callable(score):
        return score
    found: Callable[..., Any] = lookup("score", score, SCORES)
    return found


def _called(score: Score) -> str:
    return score if isinstance(score, str) else getattr(score, "__name__", show(score))


def _signature(*scores: Callable[..., Any]) -> Signature:
    """Of a function that takes the settings of all ``scores``: those that one of them requires are required."""
    takes: dict[str, Parameter] = {}
    for one in (one for score in scores for one in settings_of(score).values()):
        if one.name not in takes or one.default is Parameter.empty:
            takes[one.name] = one.replace(kind=max(one.kind, Parameter.KEYWORD_ONLY))
    ordered = sorted(takes.values(), key=lambda one: one.kind)
    return Signature([Parameter("graph", Parameter.POSITIONAL_OR_KEYWORD), *ordered])
