"""Values on the entries of the fixed pattern: read from their two nodes, summed, normalised and ranked row by row.

Reading ``x`` at the ends of all entries is the product with an incidence matrix, so its gradient is one too: sums in a
fixed order, the same in every run, where scattered additions on a GPU are not.
"""

from __future__ import annotations

from functools import cached_property

import torch
from torch import Tensor

from tadropedge.graph import Graph
from tadropedge.nn.layers import Sparse
from tadropedge.sparse import Csr, sparse_product

KEY_BITS = 33  # of the keys that entries are ranked by


class Entries:
    """The E = 2 M + N entries (i, j) of the pattern of a graph, sorted by row i; node i has an entry (i, i)."""

    def __init__(self, graph: Graph) -> None:
        self.places = places = graph.pattern.places
        self.row, self.col = places.row, places.col.to(torch.int64)
        self.pair_source = graph.pattern.pair_source
        self.count, self.num_nodes = self.col.shape[0], graph.num_nodes
        self.edge = self.row != self.col  # bool [E]: the entries of A
        each = torch.arange(self.count + 1, dtype=places.crow.dtype, device=graph.device)
        self.row_ends = Csr(each, self.row.to(places.col.dtype), self.num_nodes)
        self.col_ends = Csr(each, places.col, self.num_nodes)

    @cached_property
    def _ones(self) -> Tensor:
        return torch.ones(self.count, device=self.row.device)

    def spread(self, keep: Tensor) -> Tensor:
        """A mask of edges ``[T, M]`` as a mask of entries ``[T, E]``, without the diagonal."""
        padded = torch.nn.functional.pad(keep, (0, self.num_nodes))
        return padded.index_select(1, self.pair_source)

    def at_rows(self, x: Tensor) -> Tensor:
        """``x_i`` for each entry (i, j): ``[T, E, K]`` from ``[T, N, K]``."""
        return sparse_product(self.row_ends, self._ones.to(x.dtype), x)

    def at_cols(self, x: Tensor) -> Tensor:
        """``x_j`` for each entry (i, j): ``[T, E, K]`` from ``[T, N, K]``."""
        return sparse_product(self.col_ends, self._ones.to(x.dtype), x)

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


class Ranking:
    """The entries of lowest key in each row, at most so many: a sort over the rows that have more than ``least``."""

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
