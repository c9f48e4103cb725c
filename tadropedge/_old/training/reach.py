"""The smallest share of the edges that a method can keep; and the nearest budget that its options can meet.

A rule that adds to p keeps at least the mean of its scores s, at p = 0, because p + (1 − p) · s grows with p: the mean
of a CDF is (M + 1) / 2M or, with ties, more. A rule that meets any budget by itself keeps as little as is asked for.
:func:`least_share` says how options raise this. Searches draw their trials blindly, and :func:`within_reach` raises
budgets.

``connected`` keeps at least a spanning forest, so a smaller share is raised to that of the forest. ``unbiased`` divides
by keep probabilities, so none may be 0: where a rule that meets its budget by itself gives edges of score 0 no chance,
the share r becomes p + (1 − p) · min(1, c · score) with p = 2 r − 1, at least 0.05. The second factor has mean ½, so
that the share is r again where r is at least 0.525, and 0.525 otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from torch import Tensor

from tadropedge._old.graph import Graph
from tadropedge._old.method import Method
from tadropedge._old.registry import STRATEGIES
from tadropedge._old.shift import LEAST
from tadropedge._old.strategies import wants
from tadropedge._old.training.config import Trial
from tadropedge._old.training.edges import keep_row, keep_rows, layer_rates

FLOOR = 0.05  # the least p of the search space
NEARLY = 1e-12  # of the edges: a share that nobody can tell from none
HALVINGS = 40  # of [0, 1] leave as little


def least_share(
    graph: Graph,
    method: str,
    scores: Mapping[str, Tensor],
    *,
    gamma: float | None = None,
    sensitivity: float | None = None,
) -> float:
    """The smallest expected share of the edges that a method can keep; 1 where it drops nothing.

    ``scores`` holds those that it needs, by name; ``gamma`` and ``sensitivity`` are as in ``Trial``. Without options
    it is the mean of the rule's own scores, 0 for DropEdge and ``proportional``, and 1 − the mean drop rate for
    DropSens. ``connected`` needs the (N − C) / M of a spanning forest of C components. ``unbiased`` needs a probability
    of at least 2⁻⁵³ for every edge: with scores of 0, ``proportional`` must keep all others first. ``auto`` can draw
    DropEdge, which keeps anything.

    >>> ring = Graph.from_edge_index([[0, 1, 2, 3], [1, 2, 3, 0]])
    >>> import torch
    >>> scores = {"degree": torch.tensor([0.0, 1.0, 2.0, 3.0])}
    >>> [least_share(ring, name, scores) for name in ("degree-cdf", "degree-proportional", "dropedge:connected")]
    [0.625, 0.0, 0.75]
    >>> round(least_share(ring, "degree-proportional:unbiased", scores), 9)
    0.75
    """
    one = Method.of(method)
    if one.auto:
        return 0.0
    if one.strategy is None:
        return 1.0
    plain = Trial(one.name, gamma=gamma, sensitivity=sensitivity)
    ratio = wants(STRATEGIES[one.strategy], "keep_ratio")

    def row(budget: float) -> Tensor:
        return keep_row(graph, plain.but(**{"keep_ratio" if ratio else "keep_prob": budget}), scores)

    share = float(row(0.0).mean())
    if "unbiased" in one.options:
        share = max(share, _all_possible(row))
    if "connected" in one.options:
        share = max(share, forest_share(graph))
    return share


def forest_share(graph: Graph) -> float:
    """The share of the edges that a spanning forest has, (N − C) / M for C components.

    >>> forest_share(Graph.from_edge_index([[0, 1, 2, 3], [1, 2, 3, 0]]))
    0.75
    """
    return (graph.num_nodes - graph.components.count) / graph.num_edges


def _all_possible(row: Callable[[float], Tensor]) -> float:
    """The share that is kept with the smallest budget at which every edge has a probability; rows grow with it."""
    for budget in (0.0, NEARLY):  # most rules need no more, and each row may be a sort of all edges
        if bool((row(budget) >= LEAST).all()):
            return float(row(budget).mean())
    low, high = 0.0, 1.0
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        low, high = (low, middle) if bool((row(middle) >= LEAST).all()) else (middle, high)
    return float(row(high).mean())


def within_reach(graph: Graph, trial: Trial, scores: Mapping[str, Tensor]) -> Trial:
    """The trial, or where its options cannot meet its budget the same with the nearest that they can.

    >>> ring = Graph.from_edge_index([[0, 1, 2, 3], [1, 2, 3, 0]])
    >>> within_reach(ring, Trial("dropedge:connected", keep_prob=0.2), {}).keep_ratio
    0.75
    >>> import torch
    >>> scores = {"degree": torch.tensor([0.0, 1.0, 1.0, 1.0])}
    >>> within_reach(ring, Trial("degree-proportional:unbiased", keep_ratio=0.75), scores).keep_prob
    0.5
    """
    options = Method.of(trial.method).options
    if "unbiased" in options:
        return _possible(trial, keep_rows(graph, trial, scores, 2))
    if "connected" in options:
        return _connected(trial, keep_rows(graph, trial, scores, 2), graph)
    return trial


def _possible(trial: Trial, rows: Tensor) -> Trial:
    if trial.keep_ratio is None or not bool((rows < LEAST).any()):
        return trial
    return _with(trial, "keep_prob", [max(FLOOR, 2 * rate - 1) for rate in layer_rates(trial, 2)])


def _connected(trial: Trial, rows: Tensor, graph: Graph) -> Trial:
    least = forest_share(graph)
    shares = rows.mean(dim=1).tolist()
    if min(shares) >= least:
        return trial
    return _with(trial, "keep_ratio", [max(share, least) for share in (shares[0], shares[-1])])


def _with(trial: Trial, name: str, rates: list[float]) -> Trial:
    """The trial with rates of another kind, the first and the last."""
    budget = {"keep_prob": trial.keep_prob, "keep_ratio": None, name: rates[0]}
    last = rates[-1] if "nested" in Method.of(trial.method).options else trial.keep_last
    return trial.but(**budget, keep_last=last)
