"""Adjacency matrices as PyTorch Geometric's layers take them, read as arcs and thinned: sparse tensors, ``EdgeIndex``.

Layers take the transposed matrix ``adj_t``: the entry in row i and column j is the arc from j to i.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import torch
from torch import Tensor
from torch_geometric import EdgeIndex
from torch_geometric.typing import SparseTensor

from tadropedge._old.errors import TadropedgeError, show
from tadropedge._old.pyg.known import Known
from tadropedge._old.pyg.taking import places, take, take_arcs

T = TypeVar("T")
MADE = Known[Any](most=64)  # what was made of tensors; a new tensor in each call would hide that a graph is known
COMPRESSED = (torch.sparse_csr, torch.sparse_csc)


@dataclass(frozen=True, kw_only=True, eq=False)
class MatrixArcs:
    """The arcs of an adjacency matrix ``edge_index [2, A]``, in the order in which it stores them, and its values.

    ``num_nodes`` is a pair (sources, targets) where the matrix is not square.
    """

    edge_index: Tensor
    values: Tensor | None
    num_nodes: int | tuple[int, int]

    @property
    def weight(self) -> Tensor | None:
        """The values, where there is one per arc."""
        return self.values if self.values is not None and self.values.dim() == 1 else None


def remembered(make: Callable[..., T], *sources: Any) -> T:
    """``make(*sources)``, the same object as before where the sources are, unchanged.

    >>> arcs = torch.tensor([[0, 1], [1, 2]])
    >>> remembered(torch.clone, arcs) is remembered(torch.clone, arcs)
    True
    """
    found: T | None = MADE.find((make, *sources))
    if found is None:
        found = make(*sources)
        MADE.keep((make, *sources), found)
    return found


def is_adjacency(value: object) -> bool:
    """Whether a value is a sparse matrix, of torch or of torch_sparse.

    >>> is_adjacency(torch.eye(2).to_sparse_csr()), is_adjacency(torch.eye(2))
    (True, False)
    """
    return (isinstance(value, Tensor) and value.layout is not torch.strided) or isinstance(value, SparseTensor)


def entries(adj_t: Any, name: str = "adj_t") -> MatrixArcs:
    """Read an adjacency matrix as arcs.

    >>> found = entries(torch.tensor([[0.0, 5.0, 0.0], [0.0, 0.0, 7.0]]).to_sparse_csr())
    >>> found.edge_index.tolist(), found.values.tolist(), found.num_nodes  # from node 1 to node 0, and from 2 to 1
    ([[1, 2], [0, 1]], [5.0, 7.0], (3, 2))
    """
    if isinstance(adj_t, SparseTensor):
        row, col, values = adj_t.coo()
        arcs, (targets, sources) = remembered(_stacked, col, row), adj_t.sparse_sizes()
    else:
        _check_layout(adj_t, name)
        arcs, (targets, sources) = remembered(_arcs_of, adj_t), adj_t.shape[:2]
        values = _values(adj_t) if adj_t.requires_grad else remembered(_values, adj_t)
    return MatrixArcs(edge_index=arcs, values=values, num_nodes=targets if targets == sources else (sources, targets))


def thinned(adj_t: Any, mask: Tensor, values: Tensor | None) -> Any:
    """The matrix of the entries in ``mask [A]`` with their ``values [A']``, in the layout of ``adj_t``.

    >>> adj_t = torch.tensor([[0.0, 5.0], [6.0, 7.0]]).to_sparse_csr()
    >>> thinned(adj_t, torch.tensor([True, False, True]), torch.tensor([50.0, 70.0])).to_dense().tolist()
    [[0.0, 50.0], [0.0, 70.0]]
    """
    if isinstance(adj_t, SparseTensor):
        row, col, _ = adj_t.coo()
        sizes = adj_t.sparse_sizes()
        return type(adj_t)(row=row[mask], col=col[mask], value=values, sparse_sizes=sizes, is_sorted=True)
    assert values is not None
    if adj_t.layout is torch.sparse_coo:
        # Whether a matrix lists an entry twice can only become better, and need not be looked at again.
        whole = True if adj_t.is_coalesced() else None
        return torch.sparse_coo_tensor(
            adj_t._indices()[:, mask], values, adj_t.shape, is_coalesced=whole, check_invariants=False
        )
    starts, others = _compressed(adj_t)
    chosen = mask.nonzero().view(-1) if (found := places(mask)).dtype == torch.bool else found
    starts = torch.searchsorted(chosen, starts.to(torch.int64)).to(starts.dtype)  # kept entries before each line
    return torch.sparse_compressed_tensor(
        starts, take(others, chosen), values, adj_t.shape, layout=adj_t.layout, check_invariants=False
    )


def _compressed(adj_t: Tensor) -> tuple[Tensor, Tensor]:
    """Where the rows of a CSR matrix begin, and its columns; of a CSC matrix the columns, and its rows."""
    if adj_t.layout is torch.sparse_csr:
        return adj_t.crow_indices(), adj_t.col_indices()
    return adj_t.ccol_indices(), adj_t.row_indices()


def _arcs_of(adj_t: Tensor) -> Tensor:
    """The arcs ``[2, A]`` of a sparse tensor of torch, sources first."""
    if adj_t.layout is torch.sparse_coo:
        return adj_t._indices().flip(0)
    starts, others = _compressed(adj_t.detach())
    counts = starts.diff().to(torch.int64)
    lines = torch.arange(counts.shape[0], device=counts.device).repeat_interleave(counts)
    by_target = adj_t.layout is torch.sparse_csr
    return torch.stack((others.to(torch.int64), lines) if by_target else (lines, others.to(torch.int64)))


def _values(adj_t: Tensor) -> Tensor:
    # Those of a matrix that may list entries twice cannot be had with their gradient.
    return adj_t._values() if adj_t.layout is torch.sparse_coo and not adj_t.is_coalesced() else adj_t.values()


def _stacked(first: Tensor, second: Tensor) -> Tensor:
    return torch.stack((first, second))


def _check_layout(adj_t: Tensor, name: str) -> None:
    """Refuse sparse tensors that are no matrix, or cannot be thinned entry by entry."""
    if adj_t.layout not in (torch.sparse_coo, *COMPRESSED):
        raise TadropedgeError(f"{name} has the layout {adj_t.layout}: convert it with {name}.to_sparse_csr()")
    whole = adj_t.is_meta or adj_t.is_complex()
    matrix = adj_t.sparse_dim() == 2 and (adj_t.layout is torch.sparse_coo or _compressed(adj_t)[0].dim() == 1)
    if whole or not matrix:
        raise TadropedgeError(f"{name} must be a sparse matrix of real numbers, one per arc or a row per arc, got "
                              f"{adj_t.dtype} of shape {list(adj_t.shape)} on {adj_t.device}")  # fmt: skip
    if adj_t.layout is torch.sparse_coo and adj_t.requires_grad and not adj_t.is_coalesced():
        raise TadropedgeError(f"{name} needs a gradient but is not coalesced: give {name}.coalesce()")


# -- EdgeIndex ----------------------------------------------------------------------------------------------


def plain_arcs(edge_index: Tensor) -> Tensor:
    """The tensor in an ``EdgeIndex``; every other is returned as it is."""
    return edge_index.as_tensor() if isinstance(edge_index, EdgeIndex) else edge_index


def known_size(edge_index: object, num_nodes: Any) -> Any:
    """``num_nodes``, or where that is None what an ``EdgeIndex`` says: a number, or a pair where it is not square.

    >>> known_size(EdgeIndex([[0, 1], [2, 0]], sparse_size=(2, 3)), None)
    (2, 3)
    """
    if num_nodes is not None or not isinstance(edge_index, EdgeIndex):
        return num_nodes
    sources, targets = edge_index.sparse_size()
    if sources is None or targets is None:
        return None
    return sources if sources == targets else (sources, targets)


def kept_arcs(edge_index: Tensor, chosen: Tensor, *, paired: bool) -> Tensor:
    """The arcs ``[2, A']`` at ``chosen``, which are places or a mask; an ``EdgeIndex`` stays one.

    Its size and order still hold, and it stays undirected where both arcs of an edge are ``paired``: have one fate.
    What it had computed of itself was about all arcs, and is left behind.
    """
    if not isinstance(edge_index, EdgeIndex):
        return take_arcs(edge_index, chosen)
    kept: Tensor = EdgeIndex(
        take_arcs(edge_index.as_tensor(), chosen),
        sparse_size=edge_index.sparse_size(),
        sort_order=edge_index.sort_order,
        is_undirected=edge_index.is_undirected and paired,
    )
    return kept


def place_sides(edge_index: Tensor, sizes: tuple[int, int]) -> Tensor:
    """Arcs between two sets of nodes as those of one graph, in which targets come after all sources.

    >>> place_sides(torch.tensor([[0, 4], [0, 1]]), (5, 2)).tolist()
    [[0, 4], [5, 6]]
    """
    return torch.stack((edge_index[0], edge_index[1] + sizes[0]))


def matrix_size(found: MatrixArcs, num_nodes: object) -> int | tuple[int, int]:
    """The number of nodes of a matrix; ``num_nodes=(N, N)`` says that a square one is about two sets of nodes."""
    sizes = found.num_nodes if isinstance(found.num_nodes, tuple) else (found.num_nodes, found.num_nodes)
    if num_nodes is None or num_nodes == found.num_nodes:
        return found.num_nodes
    if isinstance(num_nodes, tuple | list) and tuple(num_nodes) == sizes:
        return sizes
    raise TadropedgeError(
        f"num_nodes={show(num_nodes, typed=False)}, but the sparse matrix has {sizes[0]} sources (columns) and "
        f"{sizes[1]} targets (rows): leave num_nodes out"
    )
