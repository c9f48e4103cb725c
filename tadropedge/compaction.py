"""The shift operator of the kept edges alone: its cost falls with them.

A mask of a fixed pattern makes a batch of subgraphs one program, but a dropped edge costs as much as a kept one: a zero
is multiplied too. One subgraph on a large graph is better off with a pattern of its own. Building it takes O(M) for a
look at the mask and O(kept + N) for the rest; products and their gradients then take O(kept + N). Zeros add nothing to
a sum, so both operators give the same results, bit for bit.
"""

from __future__ import annotations

import torch
from torch import Tensor

from tadropedge.checks import check_device, check_tensor
from tadropedge.errors import TadropedgeError, lookup
from tadropedge.graph import Graph, check_graph
from tadropedge.memory import within_memory
from tadropedge.pattern import Pattern
from tadropedge.shift import NORMALIZATIONS, ShiftOperator, placed


@within_memory("the shift operator of a subgraph", "keep fewer edges")
def compact_operator(
    graph: Graph,
    keep: Tensor,
    *,
    normalization: str = "gcn",
    dtype: torch.dtype = torch.float32,
) -> ShiftOperator:
    """:func:`tadropedge.shift_operator` of one mask ``keep [M]``, without the entries of dropped edges.

    Its pattern has ``E = 2 kept + N`` entries, sorted as always; ``pattern.pairs [2, kept]`` are the kept edges.

    >>> graph = Graph.from_edge_index([[0, 1, 2], [1, 2, 3]])
    >>> shift = compact_operator(graph, torch.tensor([True, False, False]))
    >>> shift
    ShiftOperator(nodes=4, entries=6, batch=())
    >>> (shift @ torch.tensor([[2.0], [4.0], [6.0], [8.0]])).round(decimals=4).tolist()
    [[3.0], [3.0], [6.0], [8.0]]
    """
    normalize = lookup("normalization", normalization, NORMALIZATIONS)
    edges = _check_mask(check_graph(graph), keep).nonzero().squeeze(-1)
    pattern = Pattern.of_sorted(graph.pairs.index_select(1, edges), graph.num_nodes)
    if graph.weight is None:
        kept = torch.ones(len(edges), dtype=dtype, device=graph.device)
    else:
        kept = graph.weight.index_select(0, edges).to(dtype)
    return placed(pattern, *normalize(kept, pattern))


def _check_mask(graph: Graph, keep: object) -> Tensor:
    """Return the mask of one subgraph."""
    mask, m = check_tensor("keep", keep), graph.num_edges
    if mask.dtype != torch.bool or mask.shape != (m,):
        raise TadropedgeError(f"keep must be one bool mask [{m}] of edges, got {mask.dtype} {list(mask.shape)}")
    check_device("keep", mask, graph.device, "the graph")
    return mask
