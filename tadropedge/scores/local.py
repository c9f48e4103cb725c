"""Local scores: how high an edge ranks among the edges of its ends, by degree or by similarity."""

from __future__ import annotations

import torch
from torch import Tensor

from tadropedge.graph import Graph
from tadropedge.scores._triangles import triangles
from tadropedge.scores.degree import degrees
from tadropedge.scores.jaccard import similarity


def local_degree(graph: Graph) -> Tensor:
    """1 − log(rank) / log(d), the larger of both ends, float64 ``[M]``, by rank of the neighbour's degree.

    Seen from a node u of degree d, a neighbour v has rank 1 + (number of neighbours of u of higher degree than v). The
    edge to the neighbour of highest degree scores 1, and so does every edge of a node of degree 1: with the edges that
    score at least 1 − e, a node keeps d^e of its edges or more, those to its largest neighbours. Neighbours of the same
    degree share the best rank. networkit's ``LocalDegreeScore`` ranks them one after the other in the order that its
    sort leaves them in, and has the same numbers where no degrees are equal. Edge weights do not enter.

    * Source: Hamann, Lindner, Meyerhenke, Staudt and Wagner, *Structure-preserving sparsification methods for social
      networks* (SNAM 2016).
    * Cost: O(M log M), one sort of all arcs.
    * Good for: short paths and few components at small budgets: it keeps the skeleton of hubs.

    >>> graph = Graph.from_edge_index([[0, 1, 2, 2], [1, 2, 0, 3]])  # a triangle with a tail
    >>> local_degree(graph).tolist()
    [0.0, 1.0, 1.0, 1.0]
    """
    count = degrees(graph)
    low, high = count[graph.pairs]
    return _best_rank(graph, torch.cat((high, low)), int(count.max()) + 1)


def local_similarity(graph: Graph) -> Tensor:
    """1 − log(rank) / log(d), the larger of both ends, float64 ``[M]``, by rank of the edge's Jaccard index.

    Seen from a node u of degree d, an edge has rank 1 + (number of edges of u with a higher Jaccard index). Edges of a
    node that are equally similar share the best rank, as in :func:`local_degree`; networkit's
    ``LocalSimilarityScore`` breaks ties by the number of the neighbour, which would make scores depend on the names of
    nodes, and has the same numbers elsewhere. Edge weights do not enter.

    * Source: Satuluri, Parthasarathy and Ruan, *Local graph sparsification for scalable clustering* (SIGMOD 2011).
    * Cost: that of counting triangles and two sorts, O(M log M).
    * Good for: clusters of different density. Every node keeps its most similar neighbours, so a sparse cluster is not
      emptied before a dense one is thinned out, as a cut by Jaccard alone would do.

    >>> graph = Graph.from_edge_index([[0, 0, 1, 2, 3, 3, 4], [1, 2, 2, 3, 4, 5, 5]])  # two triangles, joined
    >>> local_similarity(graph).tolist()
    [1.0, 1.0, 1.0, 0.0, 1.0, 1.0, 1.0]
    """
    different, level = torch.unique(similarity(graph, triangles(graph)), return_inverse=True)
    return _best_rank(graph, level.repeat(2), len(different))


def _best_rank(graph: Graph, value: Tensor, levels: int) -> Tensor:
    """1 − log(rank) / log(d) of each edge, the better of its ends.

    ``value [2 M]``, whole numbers below ``levels``, stands for what each edge is worth to its low end, then to its high
    end; the rank of an edge is one more than the number of the end's edges of higher value.
    """
    count = degrees(graph)
    end = graph.pairs.flatten()
    keys, order = torch.sort(end * levels + (levels - 1 - value))
    place = torch.arange(len(keys), device=graph.device)
    begins = torch.ones_like(keys, dtype=torch.bool)
    begins[1:] = keys[1:] != keys[:-1]
    best = torch.where(begins, place, 0).cummax(0).values  # where those of the same value begin
    rank = torch.empty_like(place)
    rank[order] = best
    rank -= (count.cumsum(0) - count)[end]  # from 0
    # The logarithms of a CPU for all devices: those of a GPU differ in the last bit.
    log = torch.arange(1, int(count.max()) + 1, dtype=torch.float64).log().to(graph.device)
    score = torch.where(count[end] > 1, 1 - log[rank] / log[count[end] - 1], 1.0)
    return torch.maximum(*score.view(2, -1))
