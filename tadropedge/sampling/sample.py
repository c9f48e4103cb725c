"""``sample_edges``: the mask of an epoch from the probabilities of its edges."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from tadropedge._support.checks import (
    as_integer,
    check_device,
    check_flag,
    check_integer,
    check_length,
    check_probability,
    check_seed,
    check_tensor,
)
from tadropedge._support.memory import check_memory, within_memory
from tadropedge.errors import TadropedgeError, show
from tadropedge.graph import Graph, check_graph
from tadropedge.operators.kernels.words import MASK, Seed, pair_keys, signed
from tadropedge.options import connected as keep_connected
from tadropedge.options import exact as keep_exactly
from tadropedge.sampling.coins import numbered_keys
from tadropedge.sampling.plan import Option, Plan
from tadropedge.uses import dropped

COIN_BYTES = 17  # a word, a probability and the answer
ORDER_BYTES = 40  # the same where edges are put in order


@within_memory("coins", "take fewer seeds at once")
def sample_edges(
    prob: Tensor,
    seed: int | Sequence[int] | Tensor = 0,
    epoch: int = 0,
    *,
    graph: Graph | None = None,
    pairs: Tensor | None = None,
    connected: bool = False,
    exact: bool = False,
) -> Tensor:
    """Keep each edge with its probability: bool ``[M]``, or ``[T, M]`` for T seeds or ``prob [T, M]``.

    With the ``graph`` whose edges these are, an edge is identified by its two node ids; so it is with ``pairs [2, M]``
    of node ids, in either order, for instance the arcs of a mini-batch whose nodes keep their ids. Without either it is
    identified by its place in ``prob``.

    ``connected`` keeps every component of the ``graph`` whole, ``exact`` keeps exactly Σ p edges: see
    :mod:`tadropedge.options`.

    >>> prob = torch.tensor([0.0, 0.5, 0.5, 1.0])
    >>> sample_edges(prob, seed=0, epoch=3).tolist()
    [False, False, True, True]
    >>> many = sample_edges(prob, seed=[0, 1, 2], epoch=3)
    >>> many.shape, bool((many[0] == sample_edges(prob, seed=0, epoch=3)).all())
    (torch.Size([3, 4]), True)
    >>> sample_edges(prob, seed=[0, 1, 2], epoch=3, exact=True).sum(dim=1).tolist()
    [2, 2, 2]
    >>> square = Graph.from_edge_index([[0, 1, 2, 3], [1, 2, 3, 0]])
    >>> sample_edges(torch.full((4,), 0.75), seed=0, epoch=3, graph=square, connected=True).sum().item()
    3
    """
    if check_tensor("prob", prob).dim() not in (1, 2):
        raise TadropedgeError(f"prob must have shape [M] or [T, M], got {list(prob.shape)}", argument="prob")
    prob = check_probability("prob", prob).detach()
    seeds = _checked_seeds(seed, prob)
    epoch = check_integer("epoch", epoch, least=-(2**63))
    connected, exact = check_flag("connected", connected), check_flag("exact", exact)
    each = ORDER_BYTES if connected or exact else COIN_BYTES
    rows = max(seeds.numel() if isinstance(seeds, Tensor) else 1, prob[..., :1].numel())
    check_memory(each * rows * prob.shape[-1], f"{rows} × {prob.shape[-1]} coins", "take fewer seeds", prob.device)
    keys = _keys(prob, graph, pairs)
    wanted: dict[Option, bool] = {keep_connected: connected, keep_exactly: exact}
    options = tuple(option for option, chosen in wanted.items() if chosen)
    return Plan(graph, keys, prob, use=dropped, options=options).sample(seeds, epoch)


def _keys(prob: Tensor, graph: Graph | None, pairs: Tensor | None) -> Tensor:
    """The identity of each edge."""
    if graph is not None:
        if pairs is not None:
            raise TadropedgeError("graph= has pairs of its own: leave pairs= out", argument="pairs")
        check_length("prob", prob, check_graph(graph).num_edges, "edge of the graph")
        check_device("graph", graph.pairs, prob.device, "prob")
        return graph.keys
    if pairs is None:
        return numbered_keys(prob.shape[-1], prob.device)
    check_length("pairs", pairs, prob.shape[-1], "probability")
    check_device("pairs", pairs, prob.device, "prob")
    return pair_keys(pairs)


def _checked_seeds(seed: Any, prob: Tensor) -> Seed:
    """One seed as a number, or T seeds as int64 ``[T]``."""
    if as_integer(seed) is not None:
        return check_seed(as_integer(seed))
    listed = seed.tolist() if hasattr(seed, "tolist") else seed
    if not isinstance(listed, list | tuple | range) or not listed:
        got = show(seed, typed=False)
        raise TadropedgeError(f"seed must be a whole number or a list of them, got {got}", argument="seed")
    if prob.dim() == 2 and prob.shape[0] not in (1, len(listed)):
        raise TadropedgeError(f"prob has {prob.shape[0]} rows, but there are {len(listed)} seeds", argument="seed")
    return torch.tensor([signed(check_seed(each) & MASK) for each in listed], device=prob.device)
