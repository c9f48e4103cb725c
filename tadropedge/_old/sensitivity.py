"""DropSens: drop probabilities by degree, so that every node still feels its neighbours.

A node of degree d that averages itself and its neighbours gives each of them the weight 1 / (d + 1). If each arc into
it is dropped with probability x, the expected weight of a neighbour is (1 − (1 − x^(d+1)) / ((d + 1) (1 − x))) / d.
DropSens (arXiv 2502.07364, NeurIPS 2025) takes the x that leaves the share c of it: d (1 − c)(1 − x) − x + x^(d+1) = 0.
Divided by 1 − x, this says that the mean of x, x², …, x^d is 1 − c: one root, which bisection finds.
"""

from __future__ import annotations

import torch
from torch import Tensor

from tadropedge._old.errors import TadropedgeError
from tadropedge._old.graph import Graph, at_both_ends

SENSITIVITY = 0.9  # the share c that is left where the user does not say
HALVINGS = 60  # more than a number in [0, 1] has bits


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


def dropped(graph: Graph, sensitivity: float, cap: float) -> Tensor:
    """The drop probability of each edge, float64 ``[M]``: the mean of its two arcs', each at most ``cap``."""
    return at_both_ends(graph, _node_rates(graph, sensitivity).clamp_max_(cap)).div_(2)


def dropped_at(graph: Graph, sensitivity: float, keep_ratio: float) -> Tensor:
    """The same with the cap at which the expected share ``keep_ratio`` of the edges is kept."""
    rates = _rates(graph, sensitivity)
    least = 1 - float(rates.mean())
    if keep_ratio < least - 1e-12:
        raise TadropedgeError(
            f"keep_ratio={keep_ratio:g} cannot be reached with dropsens at sensitivity={sensitivity:g}: the expected "
            f"kept share lies between {least:.6g} (at keep_prob = 0) and 1"
        )
    rising = rates.flatten().cpu().sort().values
    # With the cap at the k-th smallest rate, this is dropped in all.
    places = torch.arange(len(rising), 0, -1, dtype=torch.float64)
    below = rising.cumsum(0) - rising
    target = (1 - keep_ratio) * len(rising)
    place = int(torch.searchsorted(below + places * rising, target))
    if place == len(rising):
        return rates.mean(dim=0)
    return rates.clamp_max(float((target - below[place]) / places[place])).mean(dim=0)


def _rates(graph: Graph, sensitivity: float) -> Tensor:
    """The uncapped drop probability of each arc, ``[2, M]``: that of the node which it leads into."""
    return _node_rates(graph, sensitivity)[graph.pairs]


def _node_rates(graph: Graph, sensitivity: float) -> Tensor:
    """The uncapped drop probability of the arcs into each node, ``[N]``."""
    # Each degree once, and on the CPU: powers may differ in their last bit elsewhere.
    degrees = torch.bincount(graph.pairs.flatten().cpu(), minlength=graph.num_nodes)
    different, place = degrees.unique(return_inverse=True)
    return drop_rates(different.clamp_min(1), sensitivity)[place].to(graph.device)
