"""Triangles: how many run through each edge."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from tadropedge._old.graph import Graph

Integers = npt.NDArray[np.signedinteger[Any]]

# Wedges that are looked at together: on a CPU about half as many as there are edges, within these limits, so that what
# is done once per chunk costs less than the chunk.
FEWEST, MOST = 1 << 20, 1 << 23
INT32_LIMIT = 2**31 - 1


def triangles(graph: Graph) -> Tensor:
    """The number of triangles through each edge, int64 ``[M]``: the neighbours that its two ends share.

    Every edge leaves its end of lower degree (ties: the lower number). Then no node has more than √(2 M) edges that
    leave it, hubs included, and each triangle is found once: two edges that leave the same node are a wedge, and a
    triangle where an edge joins their other ends, which a binary search among the edges tells. O(M √M log M) at worst,
    near O(M) on most graphs; the memory is that of a few arrays per edge. The numbers are the same on every device.

    >>> triangles(Graph.from_edge_index([[0, 1, 2, 2], [1, 2, 0, 3]])).tolist()  # a triangle with a tail
    [1, 1, 1, 0]
    """
    if graph.device.type == "cpu":
        return torch.from_numpy(by_rows(graph))
    return by_keys(graph)


def by_rows(graph: Graph) -> npt.NDArray[np.int64]:
    """Triangles on one core: the edge that closes a wedge is searched for in its row of the adjacency matrix."""
    from scipy.sparse import coo_matrix, csr_matrix

    nodes, edges = graph.num_nodes, graph.num_edges
    whole = np.int32 if max(nodes, edges) < INT32_LIMIT else np.int64  # half the memory is half the time
    low, high = graph.pairs.numpy()
    higher = np.bincount(low, minlength=nodes)
    degrees = (higher + np.bincount(high, minlength=nodes)).astype(whole)
    tail, head = np.empty(edges, dtype=whole), np.empty(edges, dtype=whole)
    for first in range(0, edges, MOST):
        some = slice(first, first + MOST)
        forth = degrees[low[some]] <= degrees[high[some]]
        tail[some], head[some] = np.where(forth, low[some], high[some]), np.where(forth, high[some], low[some])
    # One pass sorts the edges by their tails, and by their heads too, because the pairs are sorted.
    leaving = coo_matrix((np.arange(edges, dtype=whole), (tail, head)), shape=(nodes, nodes)).tocsr()
    del tail, head
    starts = np.concatenate(([0], np.cumsum(higher))).astype(whole)
    number = csr_matrix((np.arange(1, edges + 1, dtype=whole), high.astype(whole), starts), shape=(nodes, nodes))
    number.has_sorted_indices = number.has_canonical_format = True
    later = np.repeat(leaving.indptr[1:], np.diff(leaving.indptr)) - np.arange(1, edges + 1, dtype=whole)
    before = np.concatenate(([0], np.cumsum(later, dtype=np.int64)))
    here, counts = np.zeros(edges, dtype=np.int64), np.zeros(edges, dtype=np.int64)
    for begin, end in chunks(before, min(MOST, max(FEWEST, edges // 2))):
        count = later[begin:end]
        one = np.repeat(np.arange(begin, end, dtype=whole), count)
        other = np.repeat((np.arange(begin + 1, end + 1) - before[begin:end] + before[begin]).astype(whole), count)
        other += np.arange(len(other), dtype=whole)
        found = np.asarray(number[np.repeat(leaving.indices[begin:end], count), leaving.indices[other]]).ravel()
        closed = np.flatnonzero(found)
        one, other = one[closed] - begin, other[closed] - begin  # edges of the same nodes: a short range
        reach = max(int(other.max()) + 1 if len(other) else 0, end - begin)
        here[begin : begin + reach] += np.bincount(one, minlength=reach) + np.bincount(other, minlength=reach)
        np.add.at(counts, found[closed] - 1, 1)
    for first in range(0, edges, MOST):
        some = slice(first, first + MOST)
        counts[leaving.data[some]] += here[some]
    return counts


def by_keys(graph: Graph) -> Tensor:
    """Triangles on a GPU: the edge that closes a wedge is searched for among all edges as one sorted list of keys."""
    nodes, edges, (low, high) = graph.num_nodes, graph.num_edges, graph.pairs
    degrees = torch.bincount(graph.pairs.flatten(), minlength=nodes)
    tail = torch.where(degrees[low] <= degrees[high], low, high)
    tail, order = torch.sort(tail, stable=True)
    head = (low + high)[order] - tail
    number = torch.arange(edges, device=graph.device)
    later = torch.bincount(tail, minlength=nodes).cumsum(0)[tail] - number - 1
    before = torch.cat((later.new_zeros(1), later.cumsum(0)))
    keys = low * nodes + high
    here, closing = torch.zeros_like(keys), torch.zeros_like(keys)
    for begin, end in chunks(before.cpu().numpy(), MOST):
        one = torch.repeat_interleave(number[begin:end], later[begin:end])
        other = torch.arange(len(one), device=graph.device) + (number + 1 - before[:-1] + before[begin])[one]
        wanted = head[one] * nodes + head[other]
        place = torch.searchsorted(keys, wanted).clamp_(max=edges - 1)
        closed = (keys[place] == wanted).to(torch.int64)
        for counts, edge in ((here, one), (here, other), (closing, place)):
            counts.index_add_(0, edge, closed)  # whole numbers: the order in which a GPU adds them does not matter
    return closing.index_add_(0, order, here)


def chunks(before: npt.NDArray[np.int64], wedges: int) -> list[tuple[int, int]]:
    """Ranges of edges with about that many wedges each; ``before [M + 1]`` counts the wedges before each edge."""
    marks = np.searchsorted(before, np.arange(wedges, before[-1], wedges))
    cuts = [0, *marks.tolist(), len(before) - 1]
    return [(begin, end) for begin, end in pairwise(cuts) if before[begin] < before[end]]
