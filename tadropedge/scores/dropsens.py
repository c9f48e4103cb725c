"""DropSens: keep probabilities by degree, at which every node still feels its neighbours.

A node of degree d that averages itself and its neighbours gives each of them the weight 1 / (d + 1). If each arc into
it is dropped with probability x, the expected weight of a neighbour is (1 − (1 − x^(d+1)) / ((d + 1) (1 − x))) / d.
The share c of it is left where d (1 − c)(1 − x) − x + x^(d+1) = 0. Divided by 1 − x, this says that the mean of
x, x², …, x^d is 1 − c: one root, which bisection finds.
"""

from __future__ import annotations

import torch
from torch import Tensor

from tadropedge._support.checks import check_number
from tadropedge.graph import Graph, at_both_ends

HALVINGS = 60  # more than a number in [0, 1] has bits


def dropsens(graph: Graph, sensitivity: float = 0.9) -> Tensor:
    """1 − (x_u + x_v) / 2 for every edge (u, v), float64 ``[M]`` in [0, 1]: the probability to keep it.

    x_u is the probability of dropping an arc into u at which u keeps the share ``sensitivity`` (c in the paper) of
    its sensitivity to a neighbour: 1 − c for a node of degree 1, near 1 for hubs. Edge weights do not enter.

    It is used with the rule ``floor``: the probability to keep an edge is max(p, score). The authors cap the drop
    probability of each arc at 1 − p and then average both arcs; the two differ where the cap binds at one end of an
    edge alone, and there ``floor`` keeps less.

    * Source: DropSens (arXiv 2502.07364, NeurIPS 2025).
    * Cost: O(M).
    * Good for: dropping as much as can be dropped between hubs without cutting off nodes of few edges.

    >>> dropsens(Graph.from_edge_index([[0, 0, 0], [1, 2, 3]]), sensitivity=0.5).round(decimals=4).tolist()
    [0.4043, 0.4043, 0.4043]
    """
    sensitivity = check_number("sensitivity", sensitivity, 0, 1)
    # Each degree once, and on the CPU: powers may differ in their last bit elsewhere.
    degrees = torch.bincount(graph.pairs.flatten().cpu(), minlength=graph.num_nodes)
    different, place = degrees.unique(return_inverse=True)
    rates = drop_rates(different.clamp_min(1), sensitivity)[place].to(graph.device)
    return 1 - at_both_ends(graph, rates) / 2


def drop_rates(degrees: Tensor, sensitivity: float) -> Tensor:
    """The x of each degree, float64, for c = ``sensitivity``; 1 − c for nodes of degree 1, and 1 where c is 0.

    >>> drop_rates(torch.tensor([1, 2, 100]), 0.5).round(decimals=4).tolist()
    [0.5, 0.618, 0.9844]
    """
    degrees = degrees.to(torch.float64)
    low, high = torch.zeros_like(degrees), torch.ones_like(degrees)
    for _ in range(HALVINGS):
        x = (low + high) / 2
        powers = x * -torch.expm1(degrees * torch.log(x)) / (1 - x)  # x + x² + … + x^d
        small = powers <= degrees * (1 - sensitivity)
        low, high = torch.where(small, x, low), torch.where(small, high, x)
    return high if sensitivity < 1 else low
