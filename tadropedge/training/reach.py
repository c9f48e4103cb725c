"""The nearest budget that the options of a method can meet, for searches whose trials are drawn blindly.

``connected`` keeps at least a spanning forest, so a smaller share is raised to that of the forest. ``unbiased`` divides
by keep probabilities, so none may be 0: where a rule that meets its budget by itself gives edges of score 0 no chance,
the share r becomes p + (1 − p) · min(1, c · score) with p = 2 r − 1, at least 0.05. The second factor has mean ½, so
that the share is r again where r is at least 0.525, and 0.525 otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping

from torch import Tensor

from tadropedge.graph import Graph
from tadropedge.method import Method
from tadropedge.shift import LEAST
from tadropedge.training.config import Trial
from tadropedge.training.edges import keep_rows, layer_rates

FLOOR = 0.05  # the least p of the search space


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
    least = (graph.num_nodes - graph.components.count) / graph.num_edges
    shares = rows.mean(dim=1).tolist()
    if min(shares) >= least:
        return trial
    return _with(trial, "keep_ratio", [max(share, least) for share in (shares[0], shares[-1])])


def _with(trial: Trial, name: str, rates: list[float]) -> Trial:
    """The trial with rates of another kind, the first and the last."""
    budget = {"keep_prob": trial.keep_prob, "keep_ratio": None, name: rates[0]}
    last = rates[-1] if "nested" in Method.of(trial.method).options else trial.keep_last
    return trial.but(**budget, keep_last=last)
