"""Triangles: how many run through each edge."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from tadropedge.graph import Graph

Search = Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]

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
    nodes, edges, (low, high) = graph.num_nodes, graph.num_edges, graph.pairs
    whole = torch.int32 if max(nodes, edges) < INT32_LIMIT else torch.int64  # half the memory is half the time
    search = search_rows(graph) if graph.device.type == "cpu" else search_keys(graph)
    degrees = torch.bincount(graph.pairs.flatten(), minlength=nodes).to(whole)
    forth = degrees.index_select(0, low) <= degrees.index_select(0, high)
    # A stable sort by tails sorts by heads, too, because the pairs are sorted: a wedge has its lower head first.
    tail, order = torch.sort(torch.where(forth, low, high).to(whole), stable=True)
    head = torch.where(forth, high, low).to(whole).index_select(0, order)
    leaving = torch.bincount(tail, minlength=nodes)
    later = torch.repeat_interleave(leaving.cumsum(0), leaving) - torch.arange(1, edges + 1, device=graph.device)
    before = torch.cat((later.new_zeros(1), later.cumsum(0)))
    here, closing = torch.zeros_like(later), torch.zeros_like(later)
    wedges = min(MOST, max(FEWEST, edges // 2)) if graph.device.type == "cpu" else MOST
    for begin, end in chunks(before.cpu().numpy(), wedges):
        count = later[begin:end]
        number = torch.arange(begin, end, dtype=whole, device=graph.device)
        one = torch.repeat_interleave(number, count)
        first = (number + 1 - before[begin:end] + before[begin]).to(whole)
        other = torch.repeat_interleave(first, count)
        other += torch.arange(len(other), dtype=whole, device=graph.device)
        closed, edge = search(torch.repeat_interleave(head[begin:end], count), head.index_select(0, other))
        for counts, found in ((here, one[closed]), (here, other[closed]), (closing, edge)):
            counts.index_add_(0, found, counts.new_ones(1).expand(len(found)))  # whole numbers: in any order
    return closing.index_add_(0, order, here)


def search_rows(graph: Graph) -> Search:
    """Which of the pairs (low, high) are edges, and their numbers: found by SciPy in the row of the lower end."""
    from scipy.sparse import csr_matrix

    nodes, edges = graph.num_nodes, graph.num_edges
    whole = np.int32 if max(nodes, edges) < INT32_LIMIT else np.int64
    low, high = graph.pairs.numpy()
    starts = np.concatenate(([0], np.cumsum(np.bincount(low, minlength=nodes)))).astype(whole)
    number = csr_matrix((np.arange(1, edges + 1, dtype=whole), high.astype(whole), starts), shape=(nodes, nodes))
    number.has_sorted_indices = number.has_canonical_format = True

    def search(low: Tensor, high: Tensor) -> tuple[Tensor, Tensor]:
        found = np.asarray(number[low.numpy().copy(), high.numpy().copy()]).ravel()
        closed = np.flatnonzero(found)
        return torch.from_numpy(closed), torch.from_numpy(found[closed] - 1)

    return search


def search_keys(graph: Graph) -> Search:
    """The same on any device, twice as slow on a CPU: found among all edges as one sorted list of keys."""
    keys = graph.pairs[0] * graph.num_nodes + graph.pairs[1]

    def search(low: Tensor, high: Tensor) -> tuple[Tensor, Tensor]:
        wanted = low.to(torch.int64) * graph.num_nodes + high
        place = torch.searchsorted(keys, wanted).clamp_(max=len(keys) - 1)
        closed = torch.nonzero(keys[place] == wanted).flatten()
        return closed, place[closed]

    return search


def chunks(before: npt.NDArray[np.int64], wedges: int) -> list[tuple[int, int]]:
    """Ranges of edges with about that many wedges each; ``before [M + 1]`` counts the wedges before each edge."""
    marks = np.searchsorted(before, np.arange(wedges, before[-1], wedges))
    cuts = [0, *marks.tolist(), len(before) - 1]
    return [(begin, end) for begin, end in pairwise(cuts) if before[begin] < before[end]]
