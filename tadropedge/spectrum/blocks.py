"""Components as batches: 100,000 components of one size are one array, not 100,000 Python iterations."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from tadropedge._support.fingerprint import fingerprint
from tadropedge.graph import Graph

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
EPSILON = float(np.finfo(np.float64).eps)

BATCH_ENTRIES = 4_000_000  # at most this many matrix entries (32 MB) in one dense batch
INT32_LIMIT = 2**31 - 1
DENSE_NODES = 512  # components up to this size are solved as dense batches


@dataclass(frozen=True, kw_only=True)
class Block:
    """B components of n nodes each, as arrays.

    ``nodes [B, n]`` are the nodes of each component, in order. For each edge of the block, sorted by component, then as
    in ``graph.pairs``: ``edges``, its index there (int32 where that is enough); ``member``, which component it belongs
    to (< B); ``low`` and ``high``, its ends as local numbers (< n); ``weight``.
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
        ends = {"member": self.member, "low": self.low, "high": self.high}
        return fingerprint(shape=self.nodes.shape, **ends, weight=self.weight)

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
        for end in self._ends():
            np.add.at(total, end, self.weight)
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
        """The Laplacians as one block-diagonal CSR matrix ``[B n, B n]``, columns in order."""
        (low, high), n, degrees = self._ends(), self.nodes.size, self.degrees().ravel()
        starts = np.concatenate(([0], np.cumsum(np.bincount(low, minlength=n))))
        upper = sp.csr_matrix((self.weight, high, starts), shape=(n, n))  # edges are sorted by their ends
        A = upper + upper.T.tocsr()
        if laplacian == "normalized":
            scale = 1 / np.sqrt(degrees)
            A.data *= np.repeat(scale, np.diff(A.indptr))
            A.data *= scale[A.indices]
            degrees = np.ones(n)
        return sp.diags(degrees, format="csr") - A

    def _ends(self) -> tuple[Integers, Integers]:
        """The ends of the edges, numbered through all components."""
        if self.count == 1:
            return self.low, self.high
        first = self.member * self.size
        return first + self.low, first + self.high


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
    edge_order: npt.NDArray[np.signedinteger[Any]] = np.argsort(ranks.astype(narrow)[low], kind="stable").astype(narrow)

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
