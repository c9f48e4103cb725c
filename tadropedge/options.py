"""Options: how a mask is drawn, or weighted, beyond a coin for each edge.

An option is a function ``option(draw) -> draw``; adding it to :data:`tadropedge.OPTIONS` makes it usable everywhere, as
``METHOD:NAME``. Options are applied in the order of the dictionary. Masks are made of sorting, integer sums and single
float64 operations that IEEE 754 rounds in one way, so they are equal bit for bit on every device and in every batch.
"""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from tadropedge.errors import TadropedgeError
from tadropedge.sampling.coins import FOREST, uniform
from tadropedge.sampling.plan import Draw

LARGEST = torch.finfo(torch.float64).max
LEAST = 2.0**-53  # coins are multiples of it, so smaller keep probabilities cannot be told from 0

# Uses and options that exclude each other, and why.
EXCLUSIVE = {
    ("unbiased", "connected"): "a spanning forest is kept whatever the keep probabilities of its edges, so dividing by "
    "them would not be unbiased",
    ("unbiased", "exact"): "with a fixed number of edges, each is kept with only about its keep probability, so "
    "dividing by it would not be unbiased",
    ("expected", "unbiased"): "without bias the expected graph is the whole one, on which models are evaluated anyway",
    ("expected", "connected"): "a spanning forest is kept whatever the keep probabilities of its edges, so these are "
    "not the weights that training saw",
    **{
        (use, option): f"nothing is drawn where edges are {use}"
        for use in ("weighted", "pruned")
        for option in ("connected", "exact", "unbiased")
    },
}


def connected(draw: Draw) -> Draw:
    """Every mask contains a spanning forest F, that of the smallest v / p.

    v is a second coin of the edge and p its keep probability: F is random, and likely edges are likely to be in it.
    Every other edge is kept by its ordinary coin with probability c · p,

        c = (Σ p − |F|) / Σ_(m not in F) p_m ≤ 1,

    so that the expected number of kept edges is still Σ p, which must be at least |F| = N − components. Over many draws
    edges that are often in F are kept more often than p says, the others less often; an edge with p = 0 is kept only
    where nothing else connects its ends.

    * Source: the forest is that of Kruskal (1956); the correction of the others is ours.
    * Cost: a spanning forest per step, O(M log M).
    """
    tree = draw.plan.forest.smallest(_order(draw, FOREST))
    units, one = _fixed_point(draw.prob)
    total = units.sum(dim=-1, keepdim=True)
    rest = total - torch.where(tree, units, 0).sum(dim=-1, keepdim=True)
    needed = (total - tree.sum(dim=-1, keepdim=True) * one).clamp_min(0)  # kept edges outside of the forest, expected
    prob = draw.prob * (needed.to(torch.float64) / rest.clamp_min(1).to(torch.float64))
    kept = draw.sample(prob)
    return replace(draw, always=tree, kept=kept | tree)


def exact(draw: Draw) -> Draw:
    """Exactly Σ p edges are kept, rounded to the nearest whole number: those of the smallest u / p, u the coin.

    This is sequential Poisson sampling: an edge is kept with
    probability p only approximately, with p = 1 almost always and with p = 0 never. What ``connected`` keeps comes
    first.

    * Source: Ohlsson, *Sequential Poisson sampling* (Journal of Official Statistics, 1998).
    * Cost: a sort per step.
    """
    return replace(draw, kept=first_of(_order(draw), draw.prob, draw.always))


def unbiased(draw: Draw) -> Draw:
    """The weights of kept edges are divided by p, so that their mean over all draws is that of the whole graph.

    * Source: Horvitz and Thompson (1952), as in inverted dropout.
    * Cost: that of a mask, and a larger variance.
    """
    low = float(draw.prob.min()) if draw.prob.numel() else 1.0
    if low < LEAST:
        raise TadropedgeError(
            f"unbiased needs keep probabilities above 0, got {low:g}: an edge that is never kept cannot be made up for "
            "by dividing; use a larger budget, or a rule or score that gives every edge a chance"
        )
    return replace(draw, factor=draw.prob.reciprocal())


def first_of(order: Tensor, prob: Tensor, always: Tensor | None = None) -> Tensor:
    """The mask of the Σ p edges, rounded half up, that come first by ``order [..., M]`` ≥ 0.

    Those in ``always`` come before all others; ties are broken by the order of ``graph.pairs``.

    >>> first_of(torch.tensor([0.3, 0.1, 0.2]), torch.full((3,), 0.5)).tolist()
    [False, True, True]
    """
    units, one = _fixed_point(prob)
    # A millionth below a half counts as a half: ten edges at a ratio of 0.75 may sum to 7.499999999999999.
    half = one // 2 + (one >> 20)
    count = (units.sum(dim=-1, keepdim=True) + half).div(one, rounding_mode="floor")
    if always is not None:
        order = torch.where(always, -1.0, order)
        count = torch.maximum(count, always.sum(dim=-1, keepdim=True))
    last = _value_at(order, count.expand(*order.shape[:-1], 1))
    below, equal = order < last, order == last
    return below | (equal & (equal.cumsum(dim=-1) <= count - below.sum(dim=-1, keepdim=True)))


def _order(draw: Draw, stream: int = 0) -> Tensor:
    """Coin / p of each edge, float64 ``[..., M]``: at least 0, and infinite only where p = 0.

    ``stream`` selects other coins than those of the draw itself.
    """
    coins = uniform(draw.plan.keys, draw.seed, draw.epoch, draw.stream + stream)
    return torch.where(draw.prob > 0, (coins / draw.prob).clamp_max(LARGEST), torch.inf)


def _fixed_point(prob: Tensor) -> tuple[Tensor, int]:
    """Probabilities as int64 multiples of 1 / one, and ``one``: sums of integers are the same in every order.

    ``one`` is a power of two, small enough that the sum of all M cannot overflow.
    """
    one = 2 ** min(53, 62 - prob.shape[-1].bit_length())
    return (prob * one).round().to(torch.int64), one


def _value_at(order: Tensor, count: Tensor) -> Tensor:
    """The ``count``-th smallest value of each row of ``order``, ``[..., 1]``."""
    if order.numel() == 0:
        return order.new_zeros(count.shape)
    if count.numel() > 1 or order.is_cuda:  # where kthvalue takes longer than a sort, or takes no tensor of counts
        return order.sort(dim=-1).values.gather(-1, (count - 1).clamp_min(0))
    return order.kthvalue(max(1, int(count)), dim=-1, keepdim=True).values
