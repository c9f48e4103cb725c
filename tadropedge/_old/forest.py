"""Spanning forests of least priority: Borůvka's algorithm on tensors, for many rows of priorities at once.

In each round every tree takes the first edge that leaves it, and trees that are joined become one. Edges are put in
order first, so that "first" is the smallest place in a list of integers: the answer is the same on every device, and
equal priorities are settled by the number of the edge. A forest of the smallest places is unique.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from tadropedge._old.graph import Graph

LIGHT = 2  # the lightest edges that are tried first, per node: they join nearly all that can be joined


@dataclass(frozen=True, eq=False)
class ForestPlan:
    """What is looked up once in a graph whose forests are drawn often.

    ``size`` is the number of edges of every spanning forest, N − components; ``largest`` counts the nodes of the
    largest component, which bounds the number of rounds.

    >>> plan = ForestPlan.of(Graph.from_edge_index([[0, 1, 2], [1, 2, 0]], num_nodes=5))
    >>> plan.size, plan.largest
    (2, 3)
    """

    pairs: Tensor
    num_nodes: int
    size: int
    largest: int

    @classmethod
    def of(cls, graph: Graph) -> ForestPlan:
        """The plan of a graph, on its device."""
        parts = graph.components
        return cls(graph.pairs, graph.num_nodes, graph.num_nodes - parts.count, parts.largest)

    def forest(self, priority: Tensor, *, fixed: bool = False) -> Tensor:
        """:func:`spanning_forest` of the plan's graph; ``fixed``: no value is looked at on the host.

        On a GPU none ever is: waiting for the host costs more there than rounds of fixed shapes.
        """
        without_looking = fixed or priority.is_cuda
        return spanning_forest(self.pairs, self.num_nodes, priority, largest=self.largest if without_looking else None)


def spanning_forest(pairs: Tensor, num_nodes: int, priority: Tensor, *, largest: int | None = None) -> Tensor:
    """Mark the spanning forest of least ``priority``, bool ``[..., M]``: one forest for each row of ``[..., M]``.

    The edges ``pairs [2, M]`` are ordered by priority (real or infinite, not NaN), equal ones by their number. An edge
    is in the forest when no path of earlier edges joins its two nodes.

    * Without ``largest``, edges inside a tree are thrown away after each round and the rounds end when none is left.
      Where a graph has many more edges than nodes, the lightest go first: most of the others are then inside a tree.
    * With ``largest``, a bound on the number of nodes of a component, there are ⌊log₂ largest⌋ rounds of fixed shapes,
      after which every component is a tree. Nothing depends on values, so a CUDA graph can record it.

    Cost: O(M log M) for the order, and O((M + N) log N) work in O(log² N) steps for the rounds, per row.

    >>> triangle = torch.tensor([[0, 0, 1], [1, 2, 2]])
    >>> spanning_forest(triangle, 3, torch.tensor([[0.1, 0.2, 0.3], [0.5, 0.5, 0.5], [3, 2, 1]])).tolist()
    [[True, True, False], [True, True, False], [False, True, True]]
    """
    if priority.numel() == 0:
        return torch.zeros_like(priority, dtype=torch.bool)
    rows = priority.reshape(-1, priority.shape[-1])
    if largest is None:
        return _lightest_first(pairs, num_nodes, rows).view(priority.shape)
    order = rows.argsort(dim=-1, stable=True)
    first_node = torch.arange(rows.shape[0], device=rows.device)[:, None] * num_nodes
    ends = [(nodes[order] + first_node).view(-1) for nodes in pairs]
    chosen = _boruvka(ends[0], ends[1], rows.shape[0] * num_nodes, largest)[0].view_as(rows)
    return torch.empty_like(chosen).scatter_(1, order, chosen).view(priority.shape)


def _lightest_first(pairs: Tensor, num_nodes: int, rows: Tensor) -> Tensor:
    """The forests of all rows, as one forest of a graph that holds a copy of the nodes for each row.

    An edge that joins two nodes of a tree of lighter edges is in no forest. So heavy edges are looked at once, after
    the forest of the light ones: this is the filter of Osipov, Sanders and Singler (ALENEX 2009).
    """
    priority, nodes = rows.reshape(-1), rows.shape[0] * num_nodes
    label = torch.arange(nodes, device=rows.device)
    keep = torch.zeros_like(priority, dtype=torch.bool)
    for edges in _stages(priority, LIGHT * nodes):
        row, pair = edges.div(rows.shape[1], rounding_mode="floor"), edges % rows.shape[1]
        a, b = (pick(label, pick(ends, pair) + row * num_nodes) for ends in pairs)
        outside = (a != b).nonzero()[:, 0]
        order = pick(outside, pick(priority, pick(edges, outside)).argsort(stable=True))
        chosen, joined = _boruvka(pick(a, order), pick(b, order), nodes)
        keep[pick(edges, order[chosen])] = True
        label = pick(joined, label)
    return keep


def _stages(priority: Tensor, light: int) -> Iterator[Tensor]:
    """The numbers of the ``light`` lightest edges and of all others, where there are enough of these."""
    if 2 * priority.shape[0] < 3 * light:
        yield torch.arange(priority.shape[0], device=priority.device)
        return
    early = priority <= priority.kthvalue(light).values
    yield early.nonzero()[:, 0]
    yield (~early).nonzero()[:, 0]


def _boruvka(a: Tensor, b: Tensor, nodes: int, largest: int | None = None) -> tuple[Tensor, Tensor]:
    """The forest of edges ``a [E]``, ``b [E]`` in their order, bool ``[E]``, and the tree ``[nodes]`` of each node.

    a and b become the trees at both ends of the edges. A tree is named by one of its nodes; without ``largest``, edges
    inside a tree are left out after each round and trees are numbered anew, so that the arrays shrink.
    """
    chosen = torch.zeros(a.shape[0] + 1, dtype=torch.bool, device=a.device)  # the last place stands for no edge
    tree, place, starts = torch.arange(nodes, device=a.device), torch.arange(chosen.shape[0], device=a.device), (a, b)
    for trees in _bounds(nodes if largest is None else largest):
        if largest is None:
            outside = (a != b).nonzero()[:, 0]
            if outside.shape[0] == 0:
                break
            a, b, place = pick(a, outside), pick(b, outside), torch.cat((pick(place, outside), place[-1:]))
            starts = (a, b)
        first = _first_outside(a, b, starts, nodes)
        chosen.index_fill_(0, pick(place, first), True)
        parent = _joined(a, b, first, None if largest is None else trees - 1)
        if largest is None:
            number = (parent == torch.arange(nodes, device=a.device)).cumsum(0) - 1
            parent, nodes = pick(number, parent), int(number[-1]) + 1
        tree, a, b = pick(parent, tree), pick(parent, a), pick(parent, b)
    return chosen[:-1], tree


def _bounds(largest: int) -> Iterator[int]:
    """The most trees that a component can have before each round: every one finds a partner, so they halve."""
    while largest > 1:
        yield largest
        largest //= 2


def _first_outside(a: Tensor, b: Tensor, starts: tuple[Tensor, Tensor], nodes: int) -> Tensor:
    """The first edge that leaves each tree, ``[nodes]``; E where there is none."""
    end = a.shape[0]
    inside = a == b
    place = torch.arange(end, device=a.device).masked_fill_(inside, end)
    first = torch.full((nodes,), end, device=a.device)
    for tree, start in zip((a, b), starts, strict=True):
        # Edges inside a tree say nothing. They say it at their own nodes: a GPU would queue them all up at the tree.
        first.scatter_reduce_(0, torch.where(inside, start, tree), place, "amin")
    return first


def _joined(a: Tensor, b: Tensor, first: Tensor, depth: int | None) -> Tensor:
    """The new tree of each tree ``[nodes]``: all that are joined by their first edges get one name.

    Each tree points to the one at the other end of its first edge. Following the pointers, edges come ever earlier, so
    that each chain ends in two trees that chose the same edge; the lower one becomes the root. Pointers are doubled
    until they reach it: as often as ``depth`` needs, or until nothing changes.
    """
    end, own = a.shape[0], torch.arange(first.shape[0], device=a.device)
    at = first.clamp_max(end - 1)
    parent = torch.where(first < end, pick(a, at) + pick(b, at) - own, own)
    parent = torch.where((pick(parent, parent) == own) & (own < parent), own, parent)
    if depth is not None:
        for _ in range((depth - 1).bit_length()):
            parent = pick(parent, parent)
        return parent
    while True:
        above = pick(parent, parent)
        if torch.equal(above, parent):
            return parent
        parent = above


def pick(values: Tensor, places: Tensor) -> Tensor:
    """``values[places]`` for vectors, in half of the time on a CPU."""
    return values.index_select(0, places)
