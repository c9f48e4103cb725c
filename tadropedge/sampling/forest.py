"""Spanning forests of least priority, which keep every component whole.

Edges are ordered by priority, equal ones by their number, so that a forest is unique: an edge is in it when no path of
earlier edges joins its two nodes. On a CPU this is SciPy's Kruskal; on a GPU Borůvka's algorithm with rounds of fixed
shapes, in which no value is looked at on the host, so that a CUDA graph can record it.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from tadropedge.graph import Graph


class Forest:
    """The spanning forests of a graph: each has ``size`` edges, N − components.

    >>> triangle = Forest(Graph.from_edge_index([[0, 0, 1], [1, 2, 2]], num_nodes=5))
    >>> triangle.size
    2
    >>> triangle.smallest(torch.tensor([[0.1, 0.2, 0.3], [0.5, 0.5, 0.5], [3, 2, 1]])).tolist()
    [[True, True, False], [True, True, False], [False, True, True]]
    """

    def __init__(self, graph: Graph) -> None:
        self.pairs, self.num_nodes = graph.pairs, graph.num_nodes
        self.size = graph.num_nodes - graph.components.count
        self._largest = graph.components.largest

    def smallest(self, priority: Tensor) -> Tensor:
        """The forest of least ``priority [..., M]`` (real or infinite, not NaN), bool ``[..., M]``, per row."""
        if priority.numel() == 0:
            return torch.zeros_like(priority, dtype=torch.bool)
        rows = priority.reshape(-1, priority.shape[-1])
        if priority.is_cuda:
            chosen = boruvka(self.pairs, self.num_nodes, rows.argsort(dim=-1, stable=True), self._largest)
        else:
            chosen = torch.stack([kruskal(self.pairs, self.num_nodes, _order(row)) for row in rows])
        return chosen.view(priority.shape)


def _order(priority: Tensor) -> Tensor:
    """The edges by priority ``[M]``, equal ones by their number.

    NumPy sorts six times faster where equal ones may come in any order, and coins are hardly ever equal.
    """
    values = priority.numpy()
    order = np.argsort(values)
    ascending = values[order]
    if bool((ascending[1:] == ascending[:-1]).any()):
        order = np.argsort(values, kind="stable")
    return torch.from_numpy(order)


def kruskal(pairs: Tensor, num_nodes: int, order: Tensor) -> Tensor:
    """The forest of edges taken in their ``order [M]``, bool ``[M]``, by SciPy: O(M log M)."""
    from scipy.sparse import csr_matrix
    from scipy.sparse.csgraph import minimum_spanning_tree

    low, high = pairs.numpy()
    place = np.empty(len(order))
    place[order.numpy()] = np.arange(1, len(order) + 1)  # from 1: SciPy takes a weight of 0 for no edge
    starts = np.searchsorted(low, np.arange(num_nodes + 1))  # pairs are sorted by their first node
    tree = minimum_spanning_tree(csr_matrix((place, high, starts), shape=(num_nodes, num_nodes)))
    chosen = torch.zeros(len(order), dtype=torch.bool)
    chosen[order[torch.from_numpy(tree.data.astype(np.int64) - 1)]] = True
    return chosen


def boruvka(pairs: Tensor, num_nodes: int, order: Tensor, largest: int) -> Tensor:
    """The forests of edges taken in their ``order [T, M]``, bool ``[T, M]``, in ⌊log₂ largest⌋ rounds of fixed shapes.

    In each round every tree takes the first edge that leaves it, and trees that are joined become one. ``largest``
    bounds the nodes of a component: every tree finds a partner, so their number is at least halved in a round.
    """
    rows, edges = order.shape
    first_node = torch.arange(rows, device=order.device)[:, None] * num_nodes
    a, b = ((ends[order] + first_node).view(-1) for ends in pairs)
    starts, nodes, end = (a, b), rows * num_nodes, a.shape[0]
    chosen = torch.zeros(end + 1, dtype=torch.bool, device=order.device)  # the last place stands for no edge
    places, own = torch.arange(end, device=order.device), torch.arange(nodes, device=order.device)
    trees = largest
    while trees > 1:
        inside = a == b
        first = torch.full((nodes,), end, device=order.device)
        for tree, start in zip((a, b), starts, strict=True):
            # Edges inside a tree say nothing. They say it at their own nodes: at the tree they would queue up.
            place = places.masked_fill(inside, end)
            first.scatter_reduce_(0, torch.where(inside, start, tree), place, "amin")
        chosen.index_fill_(0, first, True)
        parent = _joined(a, b, first, own, trees)
        a, b = parent[a], parent[b]
        trees //= 2
    return torch.empty_like(order, dtype=torch.bool).scatter_(1, order, chosen[:-1].view(rows, edges))


def _joined(a: Tensor, b: Tensor, first: Tensor, own: Tensor, trees: int) -> Tensor:
    """The new tree of each tree: all that are joined by their ``first`` edges get one name.

    Each tree points to the one at the other end of its first edge. Following the pointers, edges come ever earlier, so
    that each chain ends in two trees that chose the same edge; the lower one becomes the root. Pointers are doubled
    until they reach it.
    """
    at = first.clamp_max(a.shape[0] - 1)
    parent = torch.where(first < a.shape[0], a[at] + b[at] - own, own)
    parent = torch.where((parent[parent] == own) & (own < parent), own, parent)
    for _ in range((trees - 2).bit_length()):
        parent = parent[parent]
    return parent
