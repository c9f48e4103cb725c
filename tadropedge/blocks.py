"""Components as batches: 100,000 components of one size are one array, not 100,000 Python iterations."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from tadropedge.fingerprint import fingerprint
from tadropedge.graph import Graph

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
EPSILON = float(np.finfo(np.float64).eps)

BATCH_ENTRIES = 4_000_000  # at most this many matrix entries (32 MB) in one dense batch
DENSE_NODES = 512  # components up to this size are solved as dense batches


@dataclass(frozen=True, kw_only=True)
class Block:
    """B components of n nodes each. Edges are given by their place in ``graph.pairs`` and by local node numbers.

    ``nodes [B, n]``; for each of the block's edges: ``edges`` (place), ``member`` (which component, < B),
    ``low`` and ``high`` (local endpoints, < n), ``weight``.
    """

    nodes: Integers
    edges: Integers
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
        places = np.concatenate((self.member * self.size + self.low, self.member * self.size + self.high))
        total = np.zeros(self.nodes.size)
        np.add.at(total, places, np.tile(self.weight, 2))
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
        """The Laplacian of a block of one component as CSR ``[n, n]``."""
        rows, cols = np.concatenate((self.low, self.high)), np.concatenate((self.high, self.low))
        A = sp.csr_matrix((np.tile(self.weight, 2), (rows, cols)), shape=(self.size, self.size))
        degrees = self.degrees()[0]
        if laplacian == "normalized":
            scale = sp.diags(1 / np.sqrt(degrees))
            return (sp.identity(self.size) - scale @ A @ scale).tocsr()
        return (sp.diags(degrees) - A).tocsr()


def blocks(graph: Graph, least: int = 2) -> Iterator[Block]:
    """Cut the components of at least ``max(least, 2)`` nodes into blocks, small ones first.

    Components of up to 512 nodes come in batches of equal size, larger ones alone.
    """
    labels = graph.components.labels.cpu().numpy()
    sizes = graph.components.sizes.cpu().numpy()
    low, high = graph.pairs.cpu().numpy()
    weight = np.ones(graph.num_edges) if graph.weight is None else graph.weight.cpu().numpy()

    by_size = np.argsort(sizes, kind="stable")  # the components, small ones first
    rank = np.empty_like(by_size)
    rank[by_size] = np.arange(len(by_size))
    starts = np.concatenate(([0], np.cumsum(sizes[by_size])))
    node_order = np.argsort(rank[labels], kind="stable")
    local = np.empty_like(node_order)
    local[node_order] = np.arange(len(node_order)) - starts[rank[labels[node_order]]]
    edge_rank = rank[labels[low]]
    edge_order = np.argsort(edge_rank, kind="stable")
    edge_rank = edge_rank[edge_order]

    first = int(np.searchsorted(sizes[by_size], max(least, 2)))
    while first < len(by_size):
        n = int(sizes[by_size[first]])
        same = int(np.searchsorted(sizes[by_size], n, side="right"))
        batch = max(1, BATCH_ENTRIES // n**2) if n <= DENSE_NODES else 1
        last = min(same, first + batch)
        begin, end = np.searchsorted(edge_rank, (first, last))
        edges = edge_order[begin:end]
        yield Block(
            nodes=node_order[starts[first] : starts[last]].reshape(last - first, n),
            edges=edges,
            member=edge_rank[begin:end] - first,
            low=local[low[edges]],
            high=local[high[edges]],
            weight=weight[edges],
        )
        first = last
