"""Shared neighbours: the Jaccard index of two neighbourhoods, and the overlap with the smaller of them."""

from __future__ import annotations

import torch
from torch import Tensor

from tadropedge.graph import Graph, at_both_ends
from tadropedge.scores._triangles import triangles
from tadropedge.scores.degree import degrees


def jaccard(graph: Graph) -> Tensor:
    """|N(u) ∩ N(v)| / |N(u) ∪ N(v)| for every edge (u, v), float64 ``[M]``: 0 without a shared neighbour, below 1.

    The neighbourhoods are open: v is in N(u), u is not. With t triangles through the edge it is t / (d_u + d_v − t).
    Edge weights do not enter.

    * Source: Jaccard (1901); for the defence of networks, GCN-Jaccard (Wu et al., IJCAI 2019), with features there.
    * Cost: that of counting triangles, near O(M).
    * Good for: noisy graphs with clusters. Edges that were added at random seldom share a neighbour. Not for trees,
      grids and bipartite graphs, where all scores are 0; and the bridges between clusters score lowest.

    >>> graph = Graph.from_edge_index([[0, 1, 2, 2], [1, 2, 0, 3]])  # a triangle with a tail
    >>> jaccard(graph).round(decimals=4).tolist()
    [0.3333, 0.25, 0.25, 0.0]
    """
    shared = triangles(graph)
    return similarity(graph, shared)


def similarity(graph: Graph, shared: Tensor) -> Tensor:
    """The Jaccard index of every edge from its number of triangles ``shared [M]``.

    Quotients of whole numbers below 2²⁶ are equal exactly where the fractions are, so ties are ties on every device.
    """
    union = at_both_ends(graph, degrees(graph)).sub_(shared)
    return shared.to(torch.float64).div_(union)


def common_neighbours(graph: Graph) -> Tensor:
    """|N(u) ∩ N(v)| / min(d_u, d_v) for every edge (u, v), float64 ``[M]``: the share of the smaller neighbourhood.

    Edge weights do not enter.

    * Source: the overlap coefficient of Szymkiewicz and Simpson; the topological overlap of Ravasz et al. (Science
      2002) without its added one.
    * Cost: that of counting triangles, near O(M).
    * Good for: what Jaccard is good for, where degrees differ much: an edge between a hub and a small node that is well
      inside the hub's cluster scores high here and low there.

    >>> graph = Graph.from_edge_index([[0, 1, 2, 2], [1, 2, 0, 3]])  # a triangle with a tail
    >>> common_neighbours(graph).round(decimals=4).tolist()
    [0.5, 0.5, 0.5, 0.0]
    """
    smaller = degrees(graph)[graph.pairs].amin(0)
    return triangles(graph).to(torch.float64) / smaller.to(torch.float64)
