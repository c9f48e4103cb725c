"""Components as batches: 100,000 components of one size are one array, not 100,000 Python iterations."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from tadropedge._old.fingerprint import fingerprint
from tadropedge._old.graph import PIECE, Graph

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
EPSILON = float(np.finfo(np.float64).eps)

BATCH_ENTRIES = 4_000_000  # at most this many matrix entries (32 MB) in one dense batch
INT32_LIMIT = 2**31 - 1
DENSE_NODES = 512  # components up to this size are solved as dense batches


@dataclass(frozen=True, kw_only=True)
class Block:
    """B components of n nodes each. Edges are given by their place in ``graph.pairs`` and by local node numbers.

    ``nodes [B, n]``; for each of the block's edges: ``edges`` (place, int32 where that is enough), ``member`` (which
    component, < B), ``low`` and ``high`` (local endpoints, < n), ``weight``.
    """

    nodes: Integers
    edges: npt.NDArray[np.signedinteger[Any]]
    member: Integers
    low: Integers
    high: Integers
    weight: Floats

    @property
    def count(self) -> int:
        """B, the number of components."""
        return len(self.nodes)

    @property
    def size(self) -> int:
        """n, the number of nodes of each component."""
        return int(self.nodes.shape[1])

    @property
    def fingerprint(self) -> str:
        """A hash of edges and weights, wherever they stand in the graph."""
        places = {"member": self.member, "low": self.low, "high": self.high}
        return fingerprint(shape=self.nodes.shape, **places, weight=self.weight)

    def some(self, edges: slice) -> Block:
        """The same components with some of the edges alone."""
        parts = {name: getattr(self, name)[edges] for name in ("edges", "member", "low", "high", "weight")}
        return Block(nodes=self.nodes, **parts)

    def one(self, member: int) -> Block:
        """One component as its own block."""
        begin, end = np.searchsorted(self.member, (member, member + 1))  # edges come sorted by component
        mine = slice(begin, end)
        return Block(
            nodes=self.nodes[member : member + 1],
            edges=self.edges[mine],
            member=np.zeros(end - begin, dtype=np.int64),
            low=self.low[mine],
            high=self.high[mine],
            weight=self.weight[mine],
        )

    def degrees(self) -> Floats:
        """Weighted degrees ``[B, n]``."""
        total = np.zeros(self.nodes.size)
        for end in (self.low, self.high):
            np.add.at(total, end if self.count == 1 else self.member * self.size + end, self.weight)
        return total.reshape(self.nodes.shape)

    def norms(self, laplacian: str) -> Floats:
        """An upper bound of the largest eigenvalue of each Laplacian, ``[B]`` (Gershgorin)."""
        if laplacian == "normalized":
            return np.full(self.count, 2.0)
        bounds: Floats = 2 * self.degrees().max(axis=1)
        return bounds

    def dense_laplacian(self, laplacian: str) -> Floats:
        """The Laplacians as one batch ``[B, n, n]``: ``D − A``, or ``I − D^-1/2 A D^-1/2``."""
        L = np.zeros((self.count, self.size, self.size))
        L[self.member, self.low, self.high] = -self.weight
        L[self.member, self.high, self.low] = -self.weight
        degrees = self.degrees()
        diagonal = np.arange(self.size)
        L[:, diagonal, diagonal] = degrees
        if laplacian == "normalized":
            scale = 1 / np.sqrt(degrees)
            L *= scale[:, :, None] * scale[:, None, :]
        return L

    def sparse_laplacian(self, laplacian: str) -> sp.csr_matrix:
        """The Laplacian of a block of one component as CSR ``[n, n]``, columns in order.

        A row holds its lower neighbours, the diagonal and its higher neighbours. The edges, sorted by their ends, are
        the higher neighbours; their transpose, the lower ones. So nothing is held beside the result but these.
        """
        degrees, n = self.degrees()[0], self.size
        scale = 1 / np.sqrt(degrees) if laplacian == "normalized" else None
        upper = self._upper()
        halves = (upper.T.tocsr(), upper)
        lower, higher = (np.diff(half.indptr) for half in halves)
        entries = 2 * len(self.low) + n
        L = sp.csr_matrix((n, n))
        L.indptr = np.concatenate(([0], np.cumsum(lower + higher + 1))).astype(upper.indptr.dtype)
        L.indices, L.data = np.empty(entries, dtype=upper.indices.dtype), np.empty(entries)
        diagonal = L.indptr[:-1] + lower
        L.indices[diagonal], L.data[diagonal] = np.arange(n), degrees if scale is None else 1.0
        for half, starts in zip(halves, (L.indptr[:-1], diagonal + 1), strict=True):
            shift = starts - half.indptr[:-1]
            for rows, some in row_pieces(half.indptr):
                row = np.repeat(np.arange(rows.start, rows.stop), np.diff(half.indptr[rows.start : rows.stop + 1]))
                place = np.arange(some.start, some.stop) + shift[row]
                col, weight = half.indices[some], self.weight[half.data[some]]
                L.indices[place] = col
                L.data[place] = -weight if scale is None else -(scale[row] * weight * scale[col])
        L.eliminate_zeros()  # what is too small for a float64
        return L

    def _upper(self) -> sp.csr_matrix:
        """The places of the edges of one component above the diagonal, in order; the values are their numbers."""
        n, edges = self.size, len(self.low)
        whole = np.int32 if 2 * edges + n < INT32_LIMIT else np.int64
        number = np.arange(edges, dtype=whole)
        shape = (n, n)
        if (
            (self.low[1:] > self.low[:-1]) | ((self.low[1:] == self.low[:-1]) & (self.high[1:] > self.high[:-1]))
        ).all():
            starts = np.concatenate(([0], np.cumsum(np.bincount(self.low, minlength=n))))
            return sp.csr_matrix((number, self.high.astype(whole), starts.astype(whole)), shape=shape)
        upper = sp.coo_matrix((number, (np.minimum(self.low, self.high), np.maximum(self.low, self.high))), shape)
        upper = upper.tocsr()
        upper.sort_indices()
        return upper


def row_pieces(indptr: npt.NDArray[np.integer[Any]]) -> Iterator[tuple[slice, slice]]:
    """Rows of a CSR matrix that are looked at together, and their entries: about ``PIECE`` of them.

    >>> [(rows.stop, some.stop) for rows, some in row_pieces(np.array([0, PIECE, PIECE + 1, PIECE + 2]))]
    [(1, 4194304), (3, 4194306)]
    """
    first, last = 0, len(indptr) - 1
    while first < last:
        end = int(np.searchsorted(indptr, indptr[first] + PIECE, side="right")) - 1
        end = min(max(end, first + 1), last)
        yield slice(first, end), slice(int(indptr[first]), int(indptr[end]))
        first = end


def blocks(graph: Graph, least: int = 2) -> Iterator[Block]:
    """Cut the components of at least ``max(least, 2)`` nodes into blocks, small ones first.

    Components of up to 512 nodes come in batches of equal size, larger ones alone.
    """
    labels = graph.components.labels.cpu().numpy()
    sizes = graph.components.sizes.cpu().numpy()
    low, high = graph.pairs.cpu().numpy()
    weight = None if graph.weight is None else graph.weight.cpu().numpy()

    by_size = np.argsort(sizes, kind="stable")  # the components, small ones first
    rank = np.empty_like(by_size)
    rank[by_size] = np.arange(len(by_size))
    starts = np.concatenate(([0], np.cumsum(sizes[by_size])))
    node_order = np.argsort(rank[labels], kind="stable")
    local = np.empty_like(node_order)
    local[node_order] = np.arange(len(node_order)) - starts[rank[labels[node_order]]]
    ranks = rank[labels]  # of the nodes
    edge_starts = np.concatenate(([0], np.cumsum(np.bincount(ranks[low], minlength=len(by_size)))))
    narrow = np.int32 if max(graph.num_nodes, graph.num_edges) < INT32_LIMIT else np.int64
    edge_order = np.argsort(ranks.astype(narrow)[low], kind="stable").astype(narrow)

    first = int(np.searchsorted(sizes[by_size], max(least, 2)))
    while first < len(by_size):
        n = int(sizes[by_size[first]])
        same = int(np.searchsorted(sizes[by_size], n, side="right"))
        batch = max(1, BATCH_ENTRIES // n**2) if n <= DENSE_NODES else 1
        last = min(same, first + batch)
        edges = edge_order[edge_starts[first] : edge_starts[last]]
        # One number for all edges takes no memory.
        alone, ones = np.broadcast_to(np.int64(0), len(edges)), np.broadcast_to(np.float64(1), len(edges))
        yield Block(
            nodes=node_order[starts[first] : starts[last]].reshape(last - first, n),
            edges=edges,
            member=alone if last - first == 1 else ranks[low[edges]] - first,
            low=local[low[edges]],
            high=local[high[edges]],
            weight=ones if weight is None else weight[edges],
        )
        first = last
