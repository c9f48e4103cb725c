"""The CSR pattern of the kept edges, taken out of that of the whole graph: what stays keeps its order.

Edges and entries are filtered in the same three steps: count in blocks, sum the counts, write each block to its place.
Blocks are of equal size whatever the rows are, so a hub is nothing special. Nothing is sorted, and nothing is read on
the host.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor

BLOCK = 2048


class Whole(NamedTuple):
    """The pattern of the whole graph, as in ``tadropedge._old.pattern.Pattern``, all but ``pairs [2, M]`` in int32.

    ``begun [N + 1]``: how many pairs begin before each node.
    """

    pairs: Tensor
    col: Tensor
    source: Tensor
    begun: Tensor


class Kept(NamedTuple):
    """The numbers of the kept edges and ones for them (0 where missing), their pattern, the sums of ones at nodes.

    Sums are exact as long as the dtype of the ones can count that far.
    """

    edges: Tensor
    ones: Tensor
    pairs: Tensor
    crow: Tensor
    col: Tensor
    source: Tensor
    pair_source: Tensor
    degrees: Tensor


@triton.jit  # type: ignore[untyped-decorator]
def _count_edges(keep, counts, last, edges, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    """How many edges of a block are kept; there is room for all, unless the next kernel finds one without."""
    tl.store(last, edges, mask=tl.program_id(0) == 0)
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    kept = tl.load(keep + place, mask=place < edges, other=0).to(tl.int32)
    tl.store(counts + tl.program_id(0), tl.sum(kept, axis=0))


@triton.jit  # type: ignore[untyped-decorator]
def _write_edges(  # type: ignore[no-untyped-def]
    keep, sums, pairs, rank, last, numbers, ones, ends, edges, capacity, BLOCK: tl.constexpr
):
    """The rank of each edge of a block among the kept ones; those for which there is room, with their ends."""
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = place < edges
    kept = tl.load(keep + place, mask=inside, other=0).to(tl.int32)
    mine = tl.load(sums + tl.program_id(0)) - tl.sum(kept, axis=0) + tl.cumsum(kept, axis=0) - kept
    tl.store(rank + place, mine, mask=inside)
    tl.store(last + place * 0, place, mask=(kept != 0) & (mine == capacity))  # the first that there is no room for
    fits = (kept != 0) & (mine < capacity)
    tl.store(numbers + mine, place.to(tl.int64), mask=fits)
    wide = place.to(tl.int64)
    tl.store(ends + mine, tl.load(pairs + wide, mask=fits, other=0), mask=fits)
    tl.store(ends + capacity + mine, tl.load(pairs + edges + wide, mask=fits, other=0), mask=fits)
    all_fit = tl.load(sums + tl.num_programs(0) - 1) <= capacity
    one = tl.where(all_fit, 1.0, float("nan"))  # never a subgraph that is only half there
    tl.store(ones + mine, place * 0 + one, mask=fits)


@triton.jit  # type: ignore[untyped-decorator]
def _count_entries(keep, source, last, stays, counts, edges, entries, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    """Which entries of a block stay, and how many: those of kept edges and the diagonal."""
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = place < entries
    origin = tl.load(source + place, mask=inside, other=0)
    pair = tl.where(origin < edges, origin, origin - edges)
    of_pair = inside & (pair < edges)
    kept = tl.load(keep + pair, mask=of_pair & (pair < tl.load(last)), other=0)
    stay = tl.where(of_pair, kept.to(tl.int32), inside.to(tl.int32))
    tl.store(stays + place, stay.to(tl.uint8), mask=inside)
    tl.store(counts + tl.program_id(0), tl.sum(stay, axis=0))


@triton.jit  # type: ignore[untyped-decorator]
def _write_entries(  # type: ignore[no-untyped-def]
    stays, sums, rank, col, source, new_col, new_source, pair_source, diagonal, edges, entries, capacity,
    BLOCK: tl.constexpr,
):  # fmt: skip
    """The entries of a block that stay, and where the diagonal ones among them stand."""
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    stay = tl.load(stays + place, mask=place < entries, other=0).to(tl.int32)
    there = stay != 0
    target = tl.load(sums + tl.program_id(0)) - tl.sum(stay, axis=0) + tl.cumsum(stay, axis=0) - stay
    origin = tl.load(source + place, mask=there, other=0)
    pair = tl.where(origin < edges, origin, origin - edges)
    of_pair = pair < edges
    mine = tl.load(rank + pair, mask=there & of_pair, other=0)
    node = pair - edges
    number = tl.where(of_pair, mine, node + capacity)
    tl.store(pair_source + target, number, mask=there)
    tl.store(new_source + target, tl.where(origin < edges, number, number + capacity), mask=there)
    tl.store(new_col + target, tl.load(col + place, mask=there, other=0), mask=there)
    tl.store(diagonal + node, target, mask=there & (pair >= edges))


@triton.jit
def row_end(row, rank, begun, diagonal, kept, nodes, edges, capacity):  # type: ignore[no-untyped-def]
    """Where rows end: as many entries behind their diagonal one as kept pairs begin there. 0 for the row before all."""
    there = (row >= 0) & (row < nodes)
    first = tl.load(begun + row, mask=there, other=0)
    behind = tl.load(begun + row + 1, mask=there, other=0)
    low = tl.load(rank + first, mask=there & (first < edges), other=0)
    low = tl.where(first < edges, tl.minimum(low, capacity), kept)
    high = tl.load(rank + behind, mask=there & (behind < edges), other=0)
    high = tl.where(behind < edges, tl.minimum(high, capacity), kept)
    return tl.where(there, tl.load(diagonal + row, mask=there, other=0) + 1 + high - low, 0)


@triton.jit  # type: ignore[untyped-decorator]
def _write_frame(  # type: ignore[no-untyped-def]
    rank, total, begun, diagonal, numbers, ones, ends, crow, col, source, pair_source, degrees,
    nodes, edges, entries, capacity, BLOCK: tl.constexpr,
):  # fmt: skip
    """Where rows begin, the sums of their ones, and what is missing."""
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    all_kept = tl.load(total)
    kept = tl.minimum(all_kept, capacity)
    begin = row_end(place - 1, rank, begun, diagonal, kept, nodes, edges, capacity)
    end = row_end(place, rank, begun, diagonal, kept, nodes, edges, capacity)
    tl.store(crow + place, begin, mask=place <= nodes)
    degree = end - begin - 1
    cut = (all_kept > capacity) & (degree > 0)
    tl.store(degrees + place, tl.where(cut, float("nan"), degree.to(tl.float32)), mask=place < nodes)
    absent = (place >= kept) & (place < capacity)
    tl.store(numbers + place, place * 0, mask=absent)
    tl.store(ones + place, place * 0.0, mask=absent)
    tl.store(ends + place, place * 0, mask=absent)
    tl.store(ends + capacity + place, place * 0, mask=absent)
    missing = (place >= 2 * kept + nodes) & (place < entries)
    forwards = place < kept + capacity + nodes
    number = place - nodes - tl.where(forwards, kept, capacity)
    tl.store(col + place, place * 0 + nodes, mask=missing)
    tl.store(pair_source + place, number, mask=missing)
    tl.store(source + place, tl.where(forwards, number, number + capacity), mask=missing)


def compact(whole: Whole, keep: Tensor, capacity: int, dtype: torch.dtype) -> Kept:
    """The kept edges, ``keep [M]`` with M > 0, in room for ``capacity`` of them; all ones are NaN if that is too small.

    Edges for which there is no room are left out; missing ones are placed as by ``Pattern.of_sorted``.
    """
    edges, nodes = keep.shape[0], whole.begun.shape[0] - 1
    entries, room = whole.col.shape[0], 2 * capacity + nodes
    mask, pairs = keep.contiguous().view(torch.uint8), whole.pairs.contiguous()

    def integers(size: int) -> Tensor:
        return torch.empty(size, dtype=torch.int32, device=keep.device)

    rank, diagonal = integers(edges), integers(nodes)
    stays = torch.empty(entries, dtype=torch.uint8, device=keep.device)
    last, ends, numbers = integers(1), pairs.new_empty((2, capacity)), pairs.new_empty(capacity)
    ones, degrees = (torch.empty(size, dtype=dtype, device=keep.device) for size in (capacity, nodes))
    crow, col, source, pair_source = integers(nodes + 1), integers(room), integers(room), integers(room)
    edge_blocks, entry_blocks = triton.cdiv(edges, BLOCK), triton.cdiv(entries, BLOCK)
    with torch.cuda.device_of(keep):
        counts = integers(edge_blocks)
        _count_edges[(edge_blocks,)](mask, counts, last, edges, BLOCK=BLOCK)
        sums = counts.cumsum(0, dtype=torch.int32)
        _write_edges[(edge_blocks,)](
            mask, sums, pairs, rank, last, numbers, ones, ends, edges, capacity, BLOCK=BLOCK
        )  # fmt: skip
        counts = integers(entry_blocks)
        _count_entries[(entry_blocks,)](mask, whole.source, last, stays, counts, edges, entries, BLOCK=BLOCK)
        places = counts.cumsum(0, dtype=torch.int32)
        _write_entries[(entry_blocks,)](
            stays, places, rank, whole.col, whole.source, col, source, pair_source, diagonal, edges, entries, capacity,
            BLOCK=BLOCK,
        )  # fmt: skip
        _write_frame[(triton.cdiv(room + 1, BLOCK),)](  # crow has one more than nodes
            rank, sums[-1:], whole.begun, diagonal, numbers, ones, ends, crow, col, source, pair_source, degrees,
            nodes, edges, room, capacity, BLOCK=BLOCK,
        )  # fmt: skip
    return Kept(numbers, ones, ends, crow, col, source, pair_source, degrees)
