"""Every kind of adjacency as arcs, and back: ``edge_index``, ``EdgeIndex``, sparse matrices of torch and torch_sparse.

Matrices are transposed, as PyG's layers expect them: the entry in row i and column j is the arc from j to i.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch_geometric import EdgeIndex
from torch_geometric.typing import SparseTensor

from tadropedge._support.checks import check_probability, check_tensor
from tadropedge.errors import TadropedgeError, show
from tadropedge.graph import Graph
from tadropedge.operators.kernels import kernels
from tadropedge.operators.kernels.words import pair_keys
from tadropedge.pyg.model_checks import SUMMED

LAYOUTS = (torch.sparse_coo, torch.sparse_csr, torch.sparse_csc)


@dataclass(frozen=True, kw_only=True, eq=False)
class Link:
    """An adjacency (not a single edge), with the tensors that belong to its arcs and nodes.

    If arcs lead from one kind of nodes to another (``two_kinds``), ``num_nodes``, ``node_id`` and ``x`` are pairs,
    sources first. ``turned``: it is the reverse ``rev_…`` of another relation, so its arcs are read backwards.
    ``place`` is the number of its relation in a ``HeteroData``, which it shares with its reverse alone: its coins
    depend on it.
    """

    adjacency: Any
    weight: Tensor | None = None
    num_nodes: Any = None
    node_id: Any = None
    x: Any = None
    prob: Tensor | None = None
    column: Tensor | None = None
    exclude: Tensor | None = None
    two_kinds: bool = False
    turned: bool = False
    place: int = 0

    @property
    def num_arcs(self) -> int:
        """A, the number of arcs."""
        if isinstance(self.adjacency, SparseTensor):
            return int(self.adjacency.nnz())
        return int(self.adjacency._nnz() if is_matrix(self.adjacency) else self.adjacency.shape[1])

    @property
    def device(self) -> torch.device:
        """The device of the adjacency."""
        found = self.adjacency.device
        device: torch.device = found() if callable(found) else found
        return device

    @property
    def owner(self) -> Tensor:
        """A tensor of the user's that lives as long as the adjacency does: what plans are cached by."""
        if isinstance(self.adjacency, SparseTensor):
            column: Tensor = self.adjacency.storage.col()
            return column
        tensor: Tensor = plain(self.adjacency)
        return tensor

    @property
    def has_weights(self) -> bool:
        """Whether there is one weight for each arc; a matrix may have vectors as values, or none."""
        return self.weight is not None and self.weight.numel() == self.num_arcs

    def sources(self, *, weighted: bool, x: Any) -> tuple[object, ...]:
        """What the plan of an :attr:`owner` depends on: while all of it is the :func:`same`, a cached plan is valid."""
        weight: object = self.weight if weighted else None
        if isinstance(weight, Tensor) and is_matrix(self.adjacency):
            weight = _version(weight)  # values() makes a new tensor at each call, but all share one version counter
        rows = self.adjacency.storage.rowptr() if isinstance(self.adjacency, SparseTensor) else None
        kind = (self.num_nodes, self.turned, self.two_kinds, self.node_id)
        return _versions(_version(self.owner), rows, weight, *kind, self.prob, self.column, x)

    def arcs(self) -> Tensor:
        """The arcs ``[2, A]``, sources first; those of a ``turned`` relation in the direction of the original one."""
        found = _entries(self.adjacency) if is_matrix(self.adjacency) else plain(self.adjacency)
        return found.flip(0) if self.turned else found

    def graph(self, weighted: bool) -> tuple[Graph, Tensor | None]:
        """The graph of these arcs, and the keys of its pairs; ``None`` if its own node ids say who they are."""
        arcs, weight = self.arcs(), self.weight if weighted else None
        if not self.two_kinds:
            graph = Graph.from_edge_index(arcs, self.num_nodes, weight)
            return graph, None if self.node_id is None else pair_keys(self.named(graph.pairs))
        sizes = self._sizes(arcs)
        offset = torch.tensor([[0], [sizes[0]]], device=arcs.device)  # targets are numbered after all sources
        graph = Graph.from_edge_index(arcs + offset, sum(sizes), weight)
        return graph, pair_keys(self.named(graph.pairs - offset), ordered=True)

    def named(self, ends: Tensor) -> Tensor:
        """The same pairs of nodes ``[2, M]``, by their ids in the whole graph."""
        ids = self.node_id if isinstance(self.node_id, tuple) else (self.node_id, self.node_id)
        for side, name in zip(ends, ids, strict=True):
            if name is not None and side.numel() and int(side.max()) >= len(name):
                raise TadropedgeError(
                    f"node_id names {len(name)} nodes, but edge_index holds the node {int(side.max())}"
                )
        return torch.stack([side if name is None else name[side] for side, name in zip(ends, ids, strict=True)])

    def _sizes(self, arcs: Tensor) -> list[int]:
        """The numbers of sources and of targets; where they are not known, the largest id in the arcs plus one."""
        seen = (arcs.amax(1) + 1).tolist()
        known = self.num_nodes or (None, None)
        for name, most, size in zip(("source", "target"), seen, known, strict=True):
            if size is not None and most > size:
                raise TadropedgeError(f"edge_index holds the {name} {most - 1}, but there are {size} {name}s")
        return [most if size is None else int(size) for most, size in zip(seen, known, strict=True)]


# -- reading ---------------------------------------------------------------------------------------------


def link_of(adjacency: Any, weight: Any = None, num_nodes: Any = None, **beside: Any) -> Link:
    """Read an ``edge_index``, an ``EdgeIndex`` or a sparse matrix; ``beside`` are further fields of the :class:`Link`.

    >>> link = link_of(torch.tensor([[0.0, 5.0, 0.0], [0.0, 0.0, 7.0]]).to_sparse_csr())
    >>> link.arcs().tolist(), link.weight.tolist(), link.num_nodes  # from node 1 to node 0, and from 2 to 1
    ([[1, 2], [0, 1]], [5.0, 7.0], (3, 2))
    """
    size: Any = None
    if is_matrix(adjacency):
        if weight is not None:
            raise TadropedgeError("a sparse matrix has its weights as values: leave edge_weight out")
        weight, shape = (
            values_of(adjacency),
            adjacency.sizes() if isinstance(adjacency, SparseTensor) else adjacency.shape,
        )
        size = (shape[1], shape[0])  # sources are columns, targets rows
    else:
        arcs = check_pairs("edge_index", plain(adjacency))
        weight = None if weight is None else check_arcs("edge_weight", weight, arcs.shape[1])
        size = adjacency.sparse_size() if isinstance(adjacency, EdgeIndex) else None
        size = None if size is None or None in size else size
    if size is not None and size[0] == size[1] and not isinstance(num_nodes, tuple):
        size = size[0]
    num_nodes = size if num_nodes is None else num_nodes
    if num_nodes is None and isinstance(x := beside.get("x"), Tensor):
        num_nodes = len(x)  # more than the arcs show, if the last nodes have no edges
    return Link(
        adjacency=adjacency, weight=weight, num_nodes=num_nodes, two_kinds=isinstance(num_nodes, tuple), **beside
    )


def is_matrix(adjacency: object) -> bool:
    """Whether it is a sparse matrix, of torch or of torch_sparse.

    >>> is_matrix(torch.eye(2).to_sparse_csr()), is_matrix(torch.eye(2))
    (True, False)
    """
    return (isinstance(adjacency, Tensor) and adjacency.layout is not torch.strided) or isinstance(
        adjacency, SparseTensor
    )


def plain(edge_index: Any) -> Any:
    """The tensor in an ``EdgeIndex``; all else is returned as it is."""
    return edge_index.as_tensor() if isinstance(edge_index, EdgeIndex) else edge_index


def values_of(matrix: Any) -> Tensor | None:
    """The values of the entries ``[A]``; ``None`` if the matrix has none."""
    values: Tensor | None
    if isinstance(matrix, SparseTensor):
        values = matrix.storage.value()
        return values
    if matrix.layout not in LAYOUTS or matrix.dim() - matrix.dense_dim() != 2:
        shape = list(matrix.shape)
        raise TadropedgeError(f"expected a COO, CSR or CSC matrix, got {matrix.layout} of shape {shape}: convert it "
                              "with adj_t.to_sparse_csr()")  # fmt: skip
    if matrix.layout is torch.sparse_coo and not matrix.is_coalesced():
        if matrix.requires_grad:
            raise TadropedgeError("adj_t needs a gradient but is not coalesced: give adj_t.coalesce()")
        values = matrix._values()
    else:
        values = matrix.values()
    return values


def _entries(matrix: Any) -> Tensor:
    """The arcs ``[2, A]`` of a matrix, in the order in which it stores them."""
    if isinstance(matrix, SparseTensor):
        row, col, _ = matrix.coo()
        return torch.stack((col, row))
    if matrix.layout is torch.sparse_coo:
        indices: Tensor = matrix._indices()
        return indices.flip(0)
    starts, others = _compressed(matrix.detach())
    lines = torch.arange(len(starts) - 1, device=starts.device).repeat_interleave(starts.diff())
    ends = (others.to(torch.int64), lines) if matrix.layout is torch.sparse_csr else (lines, others.to(torch.int64))
    return torch.stack(ends)


def _compressed(matrix: Tensor) -> tuple[Tensor, Tensor]:
    """Of a CSR matrix where its rows begin, and the column of each entry; of a CSC matrix rows and columns swapped."""
    if matrix.layout is torch.sparse_csr:
        return matrix.crow_indices(), matrix.col_indices()
    return matrix.ccol_indices(), matrix.row_indices()


def check_arcs(name: str, values: object, count: int) -> Tensor:
    """Return ``values`` if there is one for each arc, ``[A]`` or ``[A, 1]``."""
    found = check_tensor(name, values)
    if found.dtype == torch.bool:
        raise TadropedgeError(f"{name} must be numbers, got a mask of True and False", argument=name)
    if found.shape[:1] != (count,) or found.numel() != count:
        hint = ": what adds arcs (AddSelfLoops, ToUndirected) comes before what scores them"
        if found.shape[:1] == (count,):
            hint = "; attributes of several columns travel in a Data, and weight=None looks at no weights"
        shape = list(found.shape)
        raise TadropedgeError(
            f"{name} has shape {shape}, expected one number for each of the {count} arcs{hint}", argument=name
        )
    return found


def joined(x: Any) -> Tensor | None:
    """The features of all nodes; those of two kinds one after the other, sources first."""
    if x is None or isinstance(x, Tensor):
        return x
    if not isinstance(x, tuple) or not all(isinstance(each, Tensor | None) for each in x):
        raise TadropedgeError(f"features must be a tensor with one row for each node, got {show(x)}", argument="x")
    if any(each is None for each in x):
        return None
    if x[0].shape[1] != x[1].shape[1]:
        raise TadropedgeError(
            f"the score compares features, but sources have {x[0].shape[1]} and targets {x[1].shape[1]}: use one that "
            "looks at the graph alone"
        )
    return torch.cat((x[0], x[1].to(x[0].dtype)))


def check_given(prob: Tensor) -> Tensor:
    """Return the user's probabilities if they are some; if one is above 1, the error names the likely cause."""
    try:
        return check_probability("keep_prob", prob).detach()
    except TadropedgeError as error:
        if prob.is_floating_point() and bool((prob > 1).any()):
            raise TadropedgeError(f"{error}; {SUMMED}", argument="keep_prob") from None
        raise


def other_arcs(link: Link, by_id: bool) -> Tensor:
    """The mask ``[A]`` of the arcs that are not to be excluded.

    ``by_id``: the pairs to exclude name nodes by their ids in the whole graph, otherwise by those of the arcs.
    """
    arcs, pairs = link.arcs(), check_pairs("exclude", link.exclude).to(link.device)
    keys = pair_keys(link.named(arcs) if by_id else arcs, ordered=link.two_kinds)
    others = ~torch.isin(keys, pair_keys(pairs, ordered=link.two_kinds))
    if link.num_arcs and not bool(others.any()):
        warnings.warn(
            "exclude= names every edge, so no messages are left: supervise a part of the edges in each step, such as "
            "those that RandomLinkSplit(disjoint_train_ratio=…) sets apart",
            stacklevel=2,
        )
    return others


def check_pairs(name: str, pairs: object) -> Tensor:
    """Return ``pairs`` if they are node ids ``[2, S]``; for ``[S, 2]``, as in OGB's splits, say to transpose them.

    >>> check_pairs("supervision", torch.zeros(5, 2, dtype=torch.int64))
    Traceback (most recent call last):
    tadropedge.errors.TadropedgeError: supervision must be node ids [2, S], got shape [5, 2]: give supervision.t()
    """
    if not isinstance(pairs, Tensor) or is_matrix(pairs) or pairs.is_floating_point() or pairs.dtype == torch.bool:
        raise TadropedgeError(
            f"{name} must be a tensor of whole numbers, node ids [2, S], got {show(pairs)}", argument=name
        )
    if pairs.dim() != 2 or pairs.shape[0] != 2:
        turn = f": give {name}.t()" if pairs.dim() == 2 and pairs.shape[1] == 2 else ""
        raise TadropedgeError(f"{name} must be node ids [2, S], got shape {list(pairs.shape)}{turn}", argument=name)
    return pairs


def _versions(*values: Any) -> tuple[object, ...]:
    """The values, nested tuples unpacked, each tensor followed by its version."""
    found: list[object] = []
    for value in values:
        if isinstance(value, tuple):
            found += [len(value), *_versions(*value)]
        else:
            found += [value, _version(value)] if isinstance(value, Tensor) else [value]
    return tuple(found)


def _version(tensor: Tensor) -> object:
    """How often a tensor was written to; where torch does not count that, an object that equals no other."""
    uncounted = tensor.is_inference() or tensor.requires_grad  # fused optimisers write into parameters uncounted
    return object() if uncounted else tensor._version


def same(before: tuple[object, ...], now: tuple[object, ...]) -> bool:
    """Whether two results of :meth:`Link.sources` agree: numbers are equal, and tensors are the very same objects."""
    return len(before) == len(now) and all(
        one is other or (not isinstance(one, Tensor) and not isinstance(other, Tensor) and one == other)
        for one, other in zip(before, now, strict=True)
    )


# -- writing ---------------------------------------------------------------------------------------------


def taken(adjacency: Any, mask: Tensor | None, weight: Tensor | None) -> Any:
    """The same kind of adjacency with the arcs in ``mask [A]`` alone (``None``: all), a matrix with values ``weight``.

    >>> adj_t = torch.tensor([[0.0, 5.0], [6.0, 7.0]]).to_sparse_csr()
    >>> taken(adj_t, torch.tensor([True, False, True]), adj_t.values() * 10).to_dense().tolist()
    [[0.0, 50.0], [0.0, 70.0]]
    """
    if mask is None and (weight is None or not is_matrix(adjacency)):
        return adjacency
    if not is_matrix(adjacency):
        arcs = plain(adjacency) if mask is None else kernels(mask).kept_arcs(plain(adjacency), mask)
        if not isinstance(adjacency, EdgeIndex):
            return arcs
        # Size and order still hold, and so does being undirected: both directions of an edge are kept, or none.
        size, order = adjacency.sparse_size(), adjacency.sort_order
        return EdgeIndex(arcs, sparse_size=size, sort_order=order, is_undirected=adjacency.is_undirected)
    chosen = None if mask is None else places(mask)
    values = None if weight is None else take(weight, chosen)
    if isinstance(adjacency, SparseTensor):
        row, col, _ = adjacency.coo()
        sizes = adjacency.sparse_sizes()
        return type(adjacency)(row=take(row, chosen), col=take(col, chosen), value=values, sparse_sizes=sizes,
                               is_sorted=True)  # fmt: skip
    assert values is not None
    if adjacency.layout is torch.sparse_coo:
        indices, whole = take(adjacency._indices(), chosen, 1), adjacency.is_coalesced() or None
        return torch.sparse_coo_tensor(indices, values, adjacency.shape, is_coalesced=whole, check_invariants=False)
    starts, others = _compressed(adjacency)
    if chosen is not None:
        starts = torch.searchsorted(chosen, starts.to(torch.int64)).to(starts.dtype)  # kept entries before each line
    return torch.sparse_compressed_tensor(
        starts, take(others, chosen), values, adjacency.shape, layout=adjacency.layout, check_invariants=False
    )


def places(mask: Tensor) -> Tensor:
    """Where a mask ``[A]`` is True, int64 ``[A']``: found once, then used for the arcs and all their attributes."""
    if mask.is_cuda:
        return mask.nonzero().view(-1)
    return torch.from_numpy(np.flatnonzero(mask.numpy()))  # a seventh of torch's time


def take(values: Tensor, chosen: Tensor | None, dim: int = 0) -> Tensor:
    """The rows, or with ``dim=1`` the columns, at ``chosen``; ``None`` stands for all."""
    if chosen is None:
        return values
    if dim == 1 and not values.is_cuda:
        return torch.from_numpy(values.numpy().take(chosen.numpy(), axis=1))  # a third of torch's time
    return values.index_select(dim, chosen)
