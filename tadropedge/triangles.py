"""Triangles: how many run through each edge."""

from __future__ import annotations

from itertools import pairwise

import torch
from torch import Tensor

from tadropedge.graph import Graph

WEDGES = 1 << 22  # looked at together: a few arrays of this length are held at a time


def triangles(graph: Graph) -> Tensor:
    """The number of triangles through each edge, int64 ``[M]``: the neighbours that its two ends share.

    Every edge points from the end of lower degree to that of higher degree (ties: to the higher number). Then no node
    has more than √(2 M) edges that leave it, hubs included, and each triangle is found once, from its lowest node: two
    edges that leave the same node are a wedge, and a triangle where an edge closes it. O(M √M) at worst, near O(M) on
    most graphs; the memory is that of a few arrays per edge. The numbers are the same bits on every device.

    >>> triangles(Graph.from_edge_index([[0, 1, 2, 2], [1, 2, 0, 3]])).tolist()  # a triangle with a tail
    [1, 1, 1, 0]
    """
    nodes, edges = graph.num_nodes, graph.num_edges
    degrees = torch.bincount(graph.pairs.flatten(), minlength=nodes)
    rank = torch.empty_like(degrees)
    rank[torch.argsort(degrees, stable=True)] = torch.arange(nodes, device=graph.device)
    ends = rank[graph.pairs]
    keys, order = torch.sort(ends.amin(0) * nodes + ends.amax(0))
    tail, head = keys.div(nodes, rounding_mode="floor"), keys.remainder(nodes)
    last = torch.bincount(tail, minlength=nodes).cumsum(0)[tail]
    number = torch.arange(edges, device=graph.device)
    later = last - number - 1  # edges that leave the same node, to nodes of higher rank
    before = later.cumsum(0)
    counts = torch.zeros_like(keys)
    for begin, end in _chunks(before):
        start = int(before[begin - 1]) if begin else 0
        total = int(before[end - 1]) - start
        one = torch.repeat_interleave(number[begin:end], later[begin:end], output_size=total)
        other = torch.arange(start, start + total, device=graph.device) - (before - later - number - 1)[one]
        wanted = head[one] * nodes + head[other]
        place = torch.searchsorted(keys, wanted).clamp_(max=edges - 1)
        closed = keys[place] == wanted
        for side in (one, other, place):
            counts += torch.bincount(side[closed], minlength=edges)
    found = torch.empty_like(counts)
    found[order] = counts
    return found


def _chunks(before: Tensor) -> list[tuple[int, int]]:
    """Ranges of edges with about ``WEDGES`` wedges each; ``before [M]`` counts those up to each edge."""
    total = int(before[-1])
    marks = torch.arange(0, total, WEDGES, device=before.device)[1:]
    cuts = [0, *torch.searchsorted(before, marks).tolist(), len(before)]
    return [(begin, end) for begin, end in pairwise(cuts) if begin < end]
