"""The shift operator of the kept edges alone: its cost falls with them.

A mask of a fixed pattern makes a batch of subgraphs one program, but a dropped edge costs as much as a kept one: a zero
is multiplied too. One subgraph on a large graph is better off with a pattern of its own. Building it takes O(M) for a
look at the mask and O(kept + N) for the rest; products and their gradients then take O(kept + N). Zeros add nothing to
a sum, so both operators give the same results, bit for bit.

How many edges are kept is known only when they are counted, and a CUDA graph cannot wait for that. With a ``capacity``
nothing is read on the host: there is room for that many edges, and missing ones have value 0.
"""

from __future__ import annotations

import torch
from torch import Tensor

from tadropedge._old.checks import check_device, check_length, check_tensor
from tadropedge._old.errors import TadropedgeError, lookup, show
from tadropedge._old.graph import Graph
from tadropedge._old.memory import within_memory
from tadropedge._old.pattern import Pattern
from tadropedge._old.shift import (
    NORMALIZATIONS,
    ShiftOperator,
    check_dtype,
    check_positive_probability,
    placed,
    shift_operator,
)
from tadropedge._old.sparse import runs_kernels

MOST_ENTRIES = 2**30  # of a pattern that kernels are given: they count in int32
MOST_COUNTED = 2**24  # nodes: up to here, ones are added in float32 without rounding, in whatever order


@within_memory("the shift operator of a subgraph", "keep fewer edges")
def compact_operator(
    graph: Graph,
    keep: Tensor,
    *,
    normalization: str = "gcn",
    dtype: torch.dtype = torch.float32,
    unbiased: Tensor | None = None,
    capacity: int | None = None,
) -> ShiftOperator:
    """:func:`tadropedge.shift_operator` of one mask ``keep [M]``, without the entries of dropped edges.

    Its pattern has ``E = 2 kept + N`` entries, sorted as always; ``pattern.pairs [2, kept]`` are the kept edges.
    With ``capacity``, there is room for that many edges instead; if more are kept, all values are NaN.

    >>> graph = Graph.from_edge_index([[0, 1, 2], [1, 2, 3]])
    >>> shift = compact_operator(graph, torch.tensor([True, False, False]))
    >>> shift
    ShiftOperator(nodes=4, entries=6, batch=())
    >>> (shift @ torch.tensor([[2.0], [4.0], [6.0], [8.0]])).round(decimals=4).tolist()
    [[3.0], [3.0], [6.0], [8.0]]
    """
    if unbiased is not None:
        whole = shift_operator(graph, normalization=normalization, dtype=dtype)
        check_length("unbiased", unbiased, graph.num_edges, "edge")
        check_device("unbiased", unbiased, graph.device, "the graph")
        factors = 1 / check_positive_probability("unbiased", unbiased).to(dtype)
        return compact_reweighted(whole, keep, factors, capacity)
    if not isinstance(graph, Graph):
        raise TadropedgeError(f"expected a tadropedge.Graph, got {show(graph)}")
    normalize = lookup("normalization", normalization, NORMALIZATIONS)
    check_dtype(dtype)
    _check_mask(keep, graph.num_edges, graph.device)
    edges, kept, pattern = _selected(keep, graph, dtype, capacity)
    if graph.weight is not None:
        kept = kept * graph.weight.index_select(0, edges).to(dtype)
    return placed(pattern, *normalize(kept, pattern))


def compact_reweighted(
    whole: ShiftOperator, keep: Tensor, factors: Tensor, capacity: int | None = None
) -> ShiftOperator:
    """The entries of ``whole`` at the edges in the mask ``keep [M]``, times ``factors [M]``; the diagonal as it is.

    For those who draw from one operator again and again: what belongs to the whole graph is computed once.

    >>> graph = Graph.from_edge_index([[0, 1], [1, 2]])
    >>> whole = shift_operator(graph, normalization="adjacency")
    >>> compact_reweighted(whole, torch.tensor([True, False]), torch.tensor([2.0, 1.25])).to_dense().tolist()
    [[0.0, 2.0, 0.0], [2.0, 0.0, 0.0], [0.0, 0.0, 0.0]]
    """
    full = whole.pattern
    _check_mask(keep, full.num_pairs, whole.values.device)
    edges, kept, pattern = _selected(keep, full, whole.values.dtype, capacity)
    mine = kept * factors.index_select(-1, edges)
    directions = (edges,) if whole.symmetric else (edges, edges + full.num_pairs)
    entries = [whole.values.index_select(-1, full.entry.index_select(0, each)) * mine for each in directions]
    diagonal = whole.values.index_select(-1, full.entry[2 * full.num_pairs :])
    return placed(pattern, torch.cat(entries, dim=-1), diagonal)


def _selected(
    keep: Tensor, whole: Graph | Pattern, dtype: torch.dtype, capacity: int | None
) -> tuple[Tensor, Tensor, Pattern]:
    """The numbers of the kept edges, ones for them, and their pattern; zeros where there are fewer than expected."""
    pairs, num_nodes = whole.pairs, whole.num_nodes
    if capacity is None:
        edges = keep.nonzero().squeeze(-1)  # their count is read on the host
        ones = torch.ones(len(edges), dtype=dtype, device=keep.device)
        return edges, ones, Pattern.of_sorted(pairs.index_select(1, edges), num_nodes)
    if runs_kernels(keep) and len(keep) and 2 * max(len(keep), capacity) + num_nodes <= MOST_ENTRIES:
        # Whoever gives a capacity draws again and again, so that the pattern of the whole graph is worth building.
        return _taken_out(keep, whole.pattern if isinstance(whole, Graph) else whole, dtype, capacity)
    edges = torch.nonzero_static(keep, size=capacity).squeeze(-1)  # −1 where there are no more
    there = edges >= 0
    edges = edges.clamp_min(0)
    ends = torch.where(there, pairs.index_select(1, edges), num_nodes)
    kept = torch.where(keep.sum() <= capacity, there.to(dtype), torch.nan)  # never a subgraph that is only half there
    return edges, kept, Pattern.of_sorted(ends, num_nodes)


def _taken_out(keep: Tensor, full: Pattern, dtype: torch.dtype, capacity: int) -> tuple[Tensor, Tensor, Pattern]:
    """The same, bit for bit, taken out of the pattern of the whole graph by kernels."""
    from tadropedge._old.kernels import Whole, compact

    whole = Whole(full.pairs, full.col, full.narrow_source, full.begun)
    found = compact(whole, keep, capacity, dtype)
    exact = dtype in (torch.float32, torch.float64) and full.num_nodes <= MOST_COUNTED
    summed = (found.ones, found.degrees) if exact else None
    pattern = Pattern(found.pairs, full.num_nodes, found.crow, found.col, source=found.source, summed=summed)
    vars(pattern)["pair_source"] = found.pair_source  # known already, and needed at once
    return found.edges, found.ones, pattern


def _check_mask(keep: object, edges: int, device: torch.device) -> None:
    """Refuse what is not the mask of one subgraph."""
    mask = check_tensor("keep", keep)
    if mask.dtype != torch.bool or mask.shape != (edges,):
        raise TadropedgeError(f"keep must be one bool mask [{edges}] of edges, got {mask.dtype} {list(mask.shape)}")
    check_device("keep", mask, device, "the graph")
