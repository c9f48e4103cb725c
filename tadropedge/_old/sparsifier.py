"""Sparsify: fewer edges with larger weights, so that the Laplacian stays what it was on average.

Every edge m is kept by a coin of its own with probability p_m, and a kept edge has the weight w_m / p_m:
E[L'] = Σ_m p_m (w_m / p_m) D_m D_mᵀ = L. With p_m = min(1, c · w_m R_m), where R_m is the effective resistance, this is
the sampling of Spielman and Srivastava (Graph sparsification by effective resistances, 2008), with one coin per edge
in place of draws with replacement.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from tadropedge._old.certificate import Certificate, certify
from tadropedge._old.checks import check_flag, check_path, check_positive, check_progress, check_runs_on, check_seed
from tadropedge._old.errors import TadropedgeError
from tadropedge._old.graph import Graph, check_graph
from tadropedge._old.progress import Show
from tadropedge._old.sampling import sample_edges
from tadropedge._old.scores.solve import Score, check_settings, edge_scores
from tadropedge._old.strategies import Score as Rule
from tadropedge._old.strategies import check_rule, keep_probabilities

UNIFORM = "uniform"  # what is written in place of a score: all edges alike
ROUNDING = 1e-12


@dataclass(frozen=True, eq=False, repr=False)
class Sparsified(Graph):
    """A graph that :func:`sparsify` made; whatever takes a :class:`~tadropedge.Graph` takes it.

    * ``keep [M]``: which edges of the graph it was made of are kept;
    * ``prob [M]``: with which probability each was;
    * ``certificate``: what was measured, see :class:`~tadropedge._old.certificate.Certificate`; ``None`` if it was left out.

    ``arc_pair`` maps the arcs of the first input as before, −1 for self-loops and dropped edges: so
    ``to_arcs(weight)`` gives a weight for each arc of the user's ``edge_index``, 0 for dropped ones.
    """

    _: KW_ONLY
    keep: Tensor
    prob: Tensor
    certificate: Certificate | None = None

    def to(self, device: torch.device | str) -> Sparsified:
        """Return the same graph on another device."""
        device = check_runs_on(device)
        moved: Any = super().to(device)
        there: Sparsified = replace(moved, keep=self.keep.to(device), prob=self.prob.to(device))
        return there


def sparsify(
    graph: Graph,
    keep_ratio: float = 0.1,
    score: Score = "effective",
    seed: int = 0,
    *,
    strategy: str | Rule = "proportional",
    certificate: bool = True,
    cache_dir: str | Path | None = None,
    progress: Show = None,
    device: torch.device | str | None = None,
    **settings: Any,
) -> Sparsified:
    """A random graph of about ``keep_ratio`` of the edges, weighted so that its Laplacian L' has the mean E[L'] = L.

    Edge m is kept with probability p_m = min(1, c · w_m · score_m), where w_m is its weight (1 if the graph has none)
    and c is solved for ``keep_ratio``, the expected share of kept edges; a kept edge has the weight w_m / p_m.

    * ``score``: a name of ``tadropedge.SCORES`` or your own function, with its own ``settings``, as in
      :func:`tadropedge.edge_scores`; ``"uniform"`` keeps all edges with the same probability, whatever their weight.
    * ``seed``: of the coins. Scores that are estimated use a seed of their own, so that many sparsifiers of one
      graph share them.
    * ``strategy``: another rule from scores to probabilities, see :func:`tadropedge.keep_probabilities`.
    * ``certificate``: measure the result. It takes about as long as the effective resistances of a large graph.
    * ``cache_dir``, ``progress``, ``device``: as in :func:`tadropedge.edge_scores`; progress counts the edges twice,
      first for the scores, then for the certificate.

    A score of 0 is refused where it makes a probability of 0: an edge that is never kept cannot be made up for by any
    weight. There is no option ``connected``, for the same reason: the probability with which a spanning forest holds
    an edge is not known.

    >>> graph = Graph.from_edge_index([[0, 0, 0, 1, 1, 2, 3, 4, 4, 5], [1, 2, 3, 2, 3, 3, 4, 5, 6, 6]])
    >>> sparse = sparsify(graph, keep_ratio=0.7, seed=3)  # two cliques, joined by a bridge
    >>> sparse
    Graph(num_nodes=7, num_edges=8, weighted)
    >>> sparse.weight.round(decimals=2).tolist()  # the bridge, whose resistance is 1, is kept as it is
    [1.67, 1.67, 1.67, 1.67, 1.0, 1.25, 1.25, 1.25]
    >>> round(sparse.certificate.lambda_min.value, 3), round(sparse.certificate.lambda_max.value, 3)
    (0.833, 1.667)
    """
    check_graph(graph)
    keep_ratio, seed = check_ratio(keep_ratio), check_seed(seed, signed=True)
    progress, device = check_progress(progress), check_runs_on(device, graph.device)
    cache_dir = None if cache_dir is None else check_path("cache_dir", cache_dir)
    certificate = check_flag("certificate", certificate)
    check_rule(strategy)
    how: dict[str, Any] = {"cache_dir": cache_dir, "progress": progress, "device": device}
    found = draw(graph, keep_ratio, edge_importance(graph, score, settings, **how), seed, strategy)
    return replace(found, certificate=certify(graph, found, **how)) if certificate else found


def check_ratio(keep_ratio: object) -> float:
    """Return ``keep_ratio`` if it is more than 0 and at most 1."""
    ratio = check_positive("keep_ratio", keep_ratio)
    if ratio > 1:
        raise TadropedgeError(f"keep_ratio must be at most 1, got {ratio:g}")
    return ratio


def edge_importance(graph: Graph, score: Score, settings: dict[str, Any], **how: Any) -> Tensor | None:
    """What keep probabilities are made of, w_m · score_m ``[M]``; ``None`` where all edges are alike."""
    if isinstance(score, str) and score == UNIFORM:
        if settings:
            raise TadropedgeError(f"the score 'uniform' has no setting {next(iter(settings))!r}; it has none")
        return None
    check_settings(score, settings)
    scores = edge_scores(graph, score, **how, **settings)
    return scores if graph.weight is None else scores * graph.weight


def draw(
    graph: Graph, keep_ratio: float, importance: Tensor | None, seed: int, strategy: str | Rule = "proportional"
) -> Sparsified:
    """Keep each edge by its coin, with the weight w / p."""
    if importance is None:
        importance, strategy = torch.ones(graph.num_edges, dtype=torch.float64, device=graph.device), UNIFORM
    prob = keep_probabilities(importance, keep_ratio=keep_ratio, strategy=strategy)
    prob = torch.where(prob > 1 - ROUNDING, 1.0, prob)  # with keep_ratio=1 the graph comes back to the last digit
    never = int((prob == 0).sum())
    if never:
        raise TadropedgeError(
            f"{never} of {graph.num_edges} edges have a keep probability of 0, and no weight can make up for an edge "
            "that is never kept: choose a score that is positive everywhere, such as effective or degree"
        )
    keep = sample_edges(prob, seed=seed)
    weight = (1 if graph.weight is None else graph.weight[keep]) / prob[keep]
    place = torch.where(keep, keep.cumsum(0) - 1, -1)
    return Sparsified(
        graph.pairs[:, keep],
        graph.num_nodes,
        None if bool((weight == 1).all()) else weight,
        torch.where(graph.arc_pair >= 0, place[graph.arc_pair], -1),
        node_ids=graph.node_ids,
        keep=keep,
        prob=prob,
    )
