"""Triangles: how many run through each edge."""

from __future__ import annotations

import torch
from torch import Tensor

from tadropedge.graph import Graph
from tadropedge.operators.kernels import kernels


def triangles(graph: Graph) -> Tensor:
    """The number of triangles through each edge, int64 ``[M]``: the neighbours that its two ends share.

    Every edge leaves its end of lower degree. Then no node has more than √(2 M) edges that leave it, hubs included, and
    each triangle is found once, where two of its edges leave the same node. O(M √M) at worst, near O(M) on most graphs;
    the memory is that of a few arrays per edge. The numbers are the same on every device.

    * Source: Chiba and Nishizeki, *Arboricity and subgraph listing algorithms* (SIAM J. Comput. 1985).

    >>> triangles(Graph.from_edge_index([[0, 1, 2, 2], [1, 2, 0, 3]])).tolist()  # a triangle with a tail
    [1, 1, 1, 0]
    """
    if graph.num_edges == 0:
        return torch.zeros(0, dtype=torch.int64, device=graph.device)
    found: Tensor = kernels(torch.empty(0, device=graph.device)).triangles(graph.pairs, graph.num_nodes)
    return found
