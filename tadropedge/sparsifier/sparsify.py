"""Sparsify: fewer edges with larger weights, so that the Laplacian stays what it was on average.

Every edge m is kept by a coin of its own with probability p_m, and a kept edge has the weight w_m / p_m:
E[L'] = Σ_m p_m (w_m / p_m) D_m D_mᵀ = L. With p_m = min(1, c · w_m R_m), where R_m is the effective resistance, this is
the sampling of Spielman and Srivastava (Graph sparsification by effective resistances, 2008), with one coin per edge
in place of draws with replacement.

The edges of one spanning forest have p = 1, so no component falls apart. The forest depends on the scores alone and not
on the coins: every probability is known, and the mean is still L.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from tadropedge._support.checks import check_number, check_seed
from tadropedge._support.progress import Show
from tadropedge.errors import EqualScoresWarning, TadropedgeError
from tadropedge.graph import Graph, check_graph
from tadropedge.rules import BudgetError, Rule, keep_probabilities
from tadropedge.sampling.forest import Forest
from tadropedge.sampling.sample import sample_edges
from tadropedge.scores.solve import Score, edge_scores

ROUNDING = 1e-12


def sparsify(
    graph: Graph,
    score: Score | None = "effective",
    *,
    keep_ratio: float = 0.5,
    rule: str | Rule = "proportional",
    connected: bool = True,
    seed: int = 0,
    cache_dir: str | Path | None = None,
    progress: Show = None,
    device: torch.device | str | None = None,
    **settings: Any,
) -> tuple[Graph, Tensor]:
    """A random graph of about ``keep_ratio`` of the edges, weighted so that its Laplacian L' has the mean E[L'] = L.

    Returns the graph, on the same nodes, and which edges it has kept, bool ``[M]``. Its ``arc_pair`` maps the arcs of
    your input as before, −1 for self-loops and dropped edges, so ``to_arcs(weight)`` gives a weight for each of them.

    * ``score``: a name of ``tadropedge.SCORES`` or your own function, with its own ``settings``, as in
      :func:`tadropedge.edge_scores`; ``None`` treats all edges alike. What edges are chosen by is w_m · score_m, where
      w_m is the weight of the edge, 1 if the graph has none.
    * ``connected``: keep every component whole. The edges of the spanning forest of largest w_m · score_m are kept as
      they are; the others are sampled so that ``keep_ratio`` of all edges is expected. That must be more than the
      forest takes, the more the better: edges that are rarely kept weigh much.
    * ``rule``: from w_m · score_m to probabilities, see :func:`tadropedge.keep_probabilities`.
    * ``seed``: of the coins. Scores that are estimated use a seed of their own, so that many sparsifiers of one graph
      share them.
    * ``cache_dir``, ``progress``, ``device``: as in :func:`tadropedge.edge_scores`.

    A score of 0 is refused where it makes a probability of 0: an edge that is never kept cannot be made up for by any
    weight. How close the result is, :func:`tadropedge.certify` measures.

    >>> graph = Graph.from_edge_index([[0, 0, 0, 1, 1, 2, 3, 4, 4, 5], [1, 2, 3, 2, 3, 3, 4, 5, 6, 6]])
    >>> thinned, kept = sparsify(graph, keep_ratio=0.8, seed=1)  # two cliques, joined by a bridge
    >>> thinned, thinned.components.count
    (Graph(num_nodes=7, num_edges=8, weighted), 1)
    >>> thinned.weight.round(decimals=2).tolist()  # six are the forest; of the four others, two were expected
    [1.0, 1.0, 1.0, 2.17, 1.0, 1.0, 1.0, 1.62]
    """
    check_graph(graph)
    ratio, seed = check_number("keep_ratio", keep_ratio, 0, 1), check_seed(seed)
    forest = _checked_forest(graph, ratio) if connected else None
    if score is None:
        if settings:
            raise TadropedgeError(f"score=None has no setting {next(iter(settings))!r}; it has none", argument="score")
        importance, rule = torch.ones(graph.num_edges, dtype=torch.float64, device=graph.device), "uniform"
    else:
        importance = edge_scores(graph, score, cache_dir=cache_dir, progress=progress, device=device, **settings)
        importance = importance if graph.weight is None else importance * graph.weight
    prob = _checked_prob(graph, _probabilities(importance, rule, ratio, forest))
    kept = sample_edges(prob, seed=seed, graph=graph)
    return _thinned(graph, kept, prob), kept


def _checked_forest(graph: Graph, ratio: float) -> Forest:
    """The forests of a graph, after a look at whether they leave anything of the budget to the other edges."""
    forest = Forest(graph)
    if forest.size < ratio * graph.num_edges or ratio == 1:
        return forest
    least = (math.floor(forest.size / graph.num_edges * 1e6) + 1) / 1e6  # rounded up: it is to suffice
    raise TadropedgeError(
        f"keep_ratio={ratio:g} is too small to keep the graph connected: its spanning forest has {forest.size} of "
        f"{graph.num_edges} edges; keep at least {min(least, 1):g}, or give connected=False",
        argument="keep_ratio",
    )


def _probabilities(importance: Tensor, rule: str | Rule, ratio: float, forest: Forest | None) -> Tensor:
    """The probability of keeping each edge ``[M]``: 1 for those of the forest of largest importance."""
    prob = torch.ones_like(importance)
    rest = torch.ones_like(importance, dtype=torch.bool) if forest is None else ~forest.smallest(-importance)
    count = int(rest.sum())
    if count == 0:
        return prob
    share = max(0.0, 1 - (1 - ratio) * len(prob) / count)  # of the edges beside the forest
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", EqualScoresWarning)  # the best of them are in the forest
        try:
            prob[rest] = keep_probabilities(importance[rest], rule=rule, keep_ratio=share)
        except BudgetError as error:
            where = "" if forest is None else "of the edges beside the spanning forest, "
            raise TadropedgeError(f"{where}{error}", argument="keep_ratio") from None
    return torch.where(prob > 1 - ROUNDING, 1.0, prob)  # with keep_ratio=1 the graph comes back to the last digit


def _checked_prob(graph: Graph, prob: Tensor) -> Tensor:
    """Return the probabilities if no edge that weighs anything is never kept."""
    never = prob == 0 if graph.weight is None else (prob == 0) & (graph.weight > 0)
    if count := int(never.sum()):
        raise TadropedgeError(
            f"{count} of {graph.num_edges} edges have a keep probability of 0, and no weight can make up for an edge "
            "that is never kept: choose a score that is positive everywhere, such as effective or degree"
        )
    return prob


def _thinned(graph: Graph, kept: Tensor, prob: Tensor) -> Graph:
    """The graph of the kept edges, with the weights w / p."""
    thinned = graph.subgraph(kept)
    weight = (1 if thinned.weight is None else thinned.weight) / prob[kept]
    return replace(thinned, weight=None if bool((weight == 1).all()) else weight)
