"""Values on the entries of the fixed pattern: read from their two nodes, summed, normalised and ranked row by row.

The gradient of reading a signal at the ends of all entries is a sum over the entries of each node. It is done as a
sparse product, in a fixed order and so the same in every run, which scattered additions on a GPU are not.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from tadropedge._old.graph import Graph
from tadropedge._old.neighbours.block import LayerBlock
from tadropedge._old.nn.finish import Noise
from tadropedge._old.nn.layers import Sparse
from tadropedge._old.sparse import Csr, multiply, sparse_product

KEY_BITS = 33  # of the keys that entries are ranked by


class Entries:
    """The E = 2 M + N entries (i, j) of the pattern of a graph, sorted by row i; node i has an entry (i, i)."""

    def __init__(self, graph: Graph) -> None:
        self.places = places = graph.pattern.places
        self.row, self.col = places.row, places.col.to(torch.int64)
        self.pair_source = graph.pattern.pair_source
        self.count, self.num_nodes = self.col.shape[0], graph.num_nodes
        self.edge = self.row != self.col  # bool [E]: the entries of A
        turned, order = places.turned
        each = torch.arange(self.count, dtype=places.col.dtype, device=graph.device)
        self.of_rows = Csr(places.crow, each, self.count)  # [N, E]: ones at the entries of each row
        self.of_cols = Csr(turned.crow, order.to(places.col.dtype), self.count)

    def spread(self, keep: Tensor) -> Tensor:
        """A mask of edges ``[T, M]`` as a mask of entries ``[T, E]``, without the diagonal."""
        padded = torch.nn.functional.pad(keep, (0, self.num_nodes))
        return padded.index_select(1, self.pair_source)

    def everywhere(self, x: Tensor) -> Tensor:
        """``x [T, N, ...]`` at every node that some entry names; here all of them are in ``x`` already."""
        return x

    def at_rows(self, x: Tensor) -> Tensor:
        """``x_i`` for each entry (i, j): ``[T, E, K]`` from ``[T, N, K]``."""
        read: Tensor = _Read.apply(x, self.row, self.of_rows)  # type: ignore[no-untyped-call]
        return read

    def at_cols(self, x: Tensor) -> Tensor:
        """``x_j`` for each entry (i, j): ``[T, E, K]`` from ``[T, N, K]``."""
        read: Tensor = _Read.apply(x, self.col, self.of_cols)  # type: ignore[no-untyped-call]
        return read

    def row_sums(self, values: Tensor) -> Tensor:
        """``Σ_j values_ij``, ``[T, N]``."""
        ones = torch.ones((self.num_nodes, 1), dtype=values.dtype, device=values.device)
        return sparse_product(self.places, values, ones)[..., 0]

    def row_softmax(self, scores: Tensor) -> Tensor:
        """The softmax of ``scores [T, E]`` over the neighbours of each node; 0 on the diagonal."""
        scores = torch.where(self.edge, scores, -torch.inf)
        with torch.no_grad():
            lowest = scores.new_full((len(scores), self.num_nodes), -torch.inf)
            top = lowest.scatter_reduce_(1, self.row.expand_as(scores), scores, "amax")
            top = torch.where(top > -torch.inf, top, 0.0)  # a node without neighbours
        powers = (scores - top.index_select(1, self.row)).exp()
        sums = self.row_sums(powers)
        sums = torch.where(sums > 0, sums, 1.0)
        return powers / self.at_rows(sums[..., None])[..., 0]

    def normalized(self, values: Tensor) -> Sparse:
        """``D^-1/2 (V + I) D^-1/2`` of edge values V ``[T, E]``, symmetric or not; D holds the row sums of V + I."""
        with_loops = torch.where(self.edge, values, 1.0)
        scale = self.row_sums(with_loops).rsqrt()[..., None]
        both = self.at_rows(scale)[..., 0] * self.at_cols(scale)[..., 0]
        return Sparse(self.places, with_loops * both)


class BlockEntries(Entries):
    """The entries of one layer of a mini-batch, among the nodes it reads: rows that it does not compute are empty."""

    def __init__(self, block: LayerBlock) -> None:
        self.block, self.num_rows = block, block.num_rows
        self.places = places = block.square
        self.row, self.col, self.edge = block.row, block.col, block.edge
        self.count, self.num_nodes = len(block.col), block.num_cols
        turned, order = places.turned
        each = torch.arange(self.count, dtype=places.col.dtype, device=places.col.device)
        self.of_rows = Csr(places.crow, each, self.count)
        self.of_cols = Csr(turned.crow, order.to(places.col.dtype), self.count)

    def noise(self, noise: Noise, rates: Tensor) -> Noise:
        """Dropout of these entries, by their numbers in the whole graph."""
        return noise.of(self.block.entry).at(rates)


class _Read(torch.autograd.Function):
    """``x [T, N, K]`` at ``index [E]``; the gradient is summed over the entries of each node, ``owned [N, E]``."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, index: Tensor, owned: Csr) -> Tensor:
        ctx.owned = owned
        return x.index_select(1, index)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        ones = torch.ones(ctx.owned.num_cols, dtype=gradient.dtype, device=gradient.device)
        return multiply(ctx.owned, ones, gradient.contiguous()), None, None


class Ranking:
    """The entries of lowest key in each row, up to a given number; only rows with more than ``least`` are sorted."""

    def __init__(self, entries: Entries, least: int) -> None:
        self.edge = entries.edge
        degrees = torch.bincount(entries.row[entries.edge], minlength=entries.num_nodes)
        self.long = torch.nonzero(entries.edge & (degrees > least)[entries.row])[:, 0]
        self.rows = entries.row[self.long]  # sorted
        starts = torch.searchsorted(self.rows, self.rows)
        self.ranks = torch.arange(len(self.rows), device=self.rows.device) - starts

    def lowest(self, keys: Tensor, most: Tensor) -> Tensor:
        """A mask ``[T, E]`` of the ``most [T]`` edges of lowest key in each row; keys int64 ``[T, E]`` in [0, 2³³)."""
        mask = self.edge.repeat(len(keys), 1)
        if not len(self.long):
            return mask
        order = (keys.index_select(1, self.long) + (self.rows << KEY_BITS)).sort(dim=1, stable=True).indices
        among = (self.ranks < most[:, None]).to(torch.uint8)  # in sorted order: rows stay where they are
        return mask.index_copy_(1, self.long, torch.zeros_like(among).scatter_(1, order, among).to(torch.bool))
