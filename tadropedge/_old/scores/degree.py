"""The degree score: 1/d_u + 1/d_v, effective resistance for the price of one pass over the edges."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from tadropedge._old.graph import Graph, at_both_ends


def degree(graph: Graph) -> Tensor:
    """1/d_u + 1/d_v for every edge (u, v), float64 ``[M]``; d is the weighted degree where the graph has weights.

    * Source: Lovász, *Random walks on graphs: a survey* (1993): half of it bounds the effective resistance of the edge
      from below, and its product with 1/λ₂ of the normalised Laplacian from above; the score of DSpar (Liu et al., TMLR
      2023) and of GraphSAINT's edge sampler (Zeng et al., ICLR 2020).
    * Cost: O(M).
    * Good for: few kept edges. It keeps what nodes of few edges have and thins out hubs, as effective resistance does
      wherever the graph is an expander; on grids and roads the two differ. Any gain of a spectral score should be
      measured against it.

    >>> graph = Graph.from_edge_index([[0, 1, 2, 2], [1, 2, 0, 3]])  # a triangle with a tail
    >>> degree(graph).round(decimals=4).tolist()
    [1.0, 0.8333, 0.8333, 1.3333]
    """
    return at_both_ends(graph, 1 / weighted_degrees(graph))


def degrees(graph: Graph) -> Tensor:
    """The number of neighbours of each node, int64 ``[N]``."""
    return torch.bincount(graph.pairs.flatten(), minlength=graph.num_nodes)


def weighted_degrees(graph: Graph) -> Tensor:
    """The sum of the weights of each node's edges, float64 ``[N]``: the same bits on every device."""
    if graph.weight is None:
        return degrees(graph).to(torch.float64)
    # A GPU adds in any order, and the last bits would differ from run to run.
    ends, weight = graph.pairs.cpu().numpy().ravel(), np.tile(graph.weight.cpu().numpy(), 2)
    return torch.from_numpy(np.bincount(ends, weight, minlength=graph.num_nodes)).to(graph.device)
