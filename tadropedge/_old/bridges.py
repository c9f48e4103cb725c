"""Bridges: the edges without which their component falls apart."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
import torch
from scipy.sparse.csgraph import breadth_first_order
from torch import Tensor

from tadropedge._old.graph import Graph


def bridges(graph: Graph) -> Tensor:
    """Mark the bridges of the graph, bool ``[M]``.

    An edge is a bridge when no cycle runs through it. Every edge outside a spanning forest gets a random
    64-bit word; a forest edge gets the XOR of the words of all edges that leave the subtree below it. Edges
    inside the subtree cancel, so the XOR is zero exactly for bridges (up to a chance of 2⁻⁶⁴ per edge).

    >>> graph = Graph.from_edge_index([[0, 1, 2, 2], [1, 2, 0, 3]])  # a triangle with a tail
    >>> graph.pairs[:, bridges(graph)].tolist()
    [[2], [3]]
    """
    order, parent = _forest(graph)
    low, high = graph.pairs.cpu().numpy()
    in_forest = (parent[low] == high) | (parent[high] == low)
    words = np.random.default_rng(0).integers(1, 2**63, size=len(low), dtype=np.int64)
    words[in_forest] = 0
    leaving = np.zeros(graph.num_nodes, dtype=np.int64)
    np.bitwise_xor.at(leaving, low, words)
    np.bitwise_xor.at(leaving, high, words)
    below = leaving.tolist()  # plain integers: the sweep from the leaves up is a scalar loop
    for node, above in zip(order[::-1].tolist(), parent[order[::-1]].tolist(), strict=True):
        if above >= 0:
            below[above] ^= below[node]
    child = np.where(parent[low] == high, low, high)
    cut = in_forest & (np.array(below, dtype=np.int64)[child] == 0)
    return torch.from_numpy(cut).to(graph.device)


def _forest(graph: Graph) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """A breadth-first order ``[N]`` of all nodes and their parents ``[N]`` (negative for the roots).

    One extra node joins all components, so that one sweep visits them all.
    """
    labels = graph.components.labels.cpu().numpy()
    roots = np.unique(labels, return_index=True)[1]
    n, low, high = graph.num_nodes, *graph.pairs.cpu().numpy()
    rows, cols = np.concatenate((low, high, np.full(len(roots), n))), np.concatenate((high, low, roots))
    joined = sp.csr_matrix((np.ones(len(rows)), (rows, cols)), shape=(n + 1, n + 1))
    order, parent = breadth_first_order(joined, n, directed=True)
    parent = parent[:n].copy()
    parent[roots] = -1
    return order[1:], parent
