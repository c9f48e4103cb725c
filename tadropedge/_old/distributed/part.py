"""The part of a graph that one process holds: its own nodes, the pairs that touch them, and the neighbours elsewhere.

A pair between two processes is held by both. Both know its number in the whole graph, by which its coin is tossed, so
they agree on what is kept without a word. The neighbours that belong to others are the boundary: their rows are asked
for in every product, and who sends what to whom follows from the part alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from tadropedge._old.graph import Graph

NAMES = ("pairs", "weight", "nodes", "owner", "numbers", "first")


@dataclass(frozen=True, eq=False, kw_only=True)
class SpreadPart:
    """The part of process ``rank`` among ``size``.

    * ``graph``: its n own nodes and h others that are their neighbours, in the order of the whole graph, with the pairs
      that touch an own node;
    * ``nodes [n + h]``, ``owner [n + h]``: the number of each in the whole graph, and the process it belongs to;
    * ``numbers [m]``: the number of each pair in the whole graph;
    * ``first [n]``: where the row of each own node begins in the pattern of the whole graph;
    * ``num_nodes``, ``num_edges``: of the whole graph.

    >>> path = Graph.from_edge_index([[0, 1, 2], [1, 2, 3]])
    >>> part = SpreadPart.of(path, torch.tensor([0, 0, 1, 1]), rank=1, size=2)
    >>> part.nodes.tolist(), part.own.tolist(), part.numbers.tolist(), part.graph.pairs.tolist()
    ([1, 2, 3], [1, 2], [1, 2], [[0, 1], [1, 2]])
    """

    rank: int
    size: int
    graph: Graph
    nodes: Tensor
    owner: Tensor
    numbers: Tensor
    first: Tensor
    num_nodes: int
    num_edges: int

    @classmethod
    def of(cls, graph: Graph, owner: Tensor, rank: int, size: int) -> SpreadPart:
        """The part of one process, where ``owner [N]`` names the process of each node."""
        low, high = graph.pairs
        mine = owner == rank
        numbers = (mine[low] | mine[high]).nonzero()[:, 0]
        pairs = graph.pairs[:, numbers]
        here = mine.clone()
        here[pairs.flatten()] = True
        nodes = here.nonzero()[:, 0]
        place = torch.empty(graph.num_nodes, dtype=torch.int64, device=graph.device)
        place[nodes] = torch.arange(len(nodes), device=graph.device)
        # Order is kept, so that pairs stay sorted and every row of the pattern is summed in the same order.
        local = Graph(place[pairs], len(nodes), None if graph.weight is None else graph.weight[numbers])
        degrees = torch.bincount(graph.pairs.flatten(), minlength=graph.num_nodes)
        begins = (degrees + 1).cumsum(0) - degrees - 1
        return cls(
            rank=rank,
            size=size,
            graph=local,
            nodes=nodes,
            owner=owner[nodes],
            numbers=numbers,
            first=begins[mine],
            num_nodes=graph.num_nodes,
            num_edges=graph.num_edges,
        )

    @property
    def device(self) -> torch.device:
        """Where it lies."""
        return self.graph.device

    def tensors(self) -> dict[str, Tensor]:
        """What another process needs to make it again, besides four numbers: see :meth:`made`."""
        held = {"pairs": self.graph.pairs, "nodes": self.nodes, "owner": self.owner}
        held |= {"numbers": self.numbers, "first": self.first}
        counts = torch.tensor([self.rank, self.size, self.num_nodes, self.num_edges])
        weight = {} if self.graph.weight is None else {"weight": self.graph.weight}
        return {**held, **weight, "counts": counts}

    @classmethod
    def made(cls, tensors: dict[str, Tensor], device: torch.device) -> SpreadPart:
        """A part from its tensors, on a device."""
        rank, size, num_nodes, num_edges = tensors["counts"].tolist()
        here = {name: tensors[name].to(device) for name in NAMES if name in tensors}
        graph = Graph(here.pop("pairs"), len(here["nodes"]), here.pop("weight", None))
        return cls(rank=rank, size=size, graph=graph, num_nodes=num_nodes, num_edges=num_edges, **here)

    @cached_property
    def own(self) -> Tensor:
        """The places of its own nodes among all that it holds, ``[n]``."""
        return self.is_own.nonzero()[:, 0]

    @property
    def num_own(self) -> int:
        """How many nodes are its own, n."""
        return len(self.own)

    @cached_property
    def is_own(self) -> Tensor:
        """The same as a mask ``[n + h]``."""
        return self.owner == self.rank

    @cached_property
    def own_place(self) -> Tensor:
        """The place of each node among its own ones ``[n + h]``; of others it means nothing."""
        return self.is_own.cumsum(0) - 1

    @cached_property
    def cut(self) -> tuple[Tensor, Tensor, Tensor]:
        """The pairs between this process and others: their places among its pairs, their own ends, the other ends."""
        low, high = self.graph.pairs
        crossing = (self.is_own[low] != self.is_own[high]).nonzero()[:, 0]
        low, high = low[crossing], high[crossing]
        mine = self.is_own[low]
        return crossing, torch.where(mine, low, high), torch.where(mine, high, low)
