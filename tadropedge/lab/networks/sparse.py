"""Sparse matrices of a batch, and values on the entries of the fixed pattern, read and summed row by row.

The gradient of reading a signal at the ends of all entries is a sum over the entries of each node. It is done as a
sparse product, in a fixed order and so the same in every run, which scattered additions on a GPU are not.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from tadropedge.graph import Graph
from tadropedge.operators.pattern import Csr
from tadropedge.operators.product import dense_product, multiply, sparse_product
from tadropedge.operators.shift import ShiftOperator


@dataclass(frozen=True, eq=False)
class Sparse:
    """A sparse matrix ``[T, rows, cols]``: shared places, values ``[T, E]``, or ``[E]`` where all trials share them."""

    places: Csr
    values: Tensor
    symmetric: bool = False

    def __matmul__(self, x: Tensor) -> Tensor:
        """The product with ``x [T, n, F]``, of whose rows the first ``cols`` count."""
        return sparse_product(self.places, self.values, first_rows(x, self.places.num_cols), symmetric=self.symmetric)

    def scaled(self, factor: Tensor) -> Sparse:
        """Every entry times the ``factor [T]`` of its trial."""
        return replace(self, values=self.values * factor[:, None])

    @property
    def squared(self) -> Sparse:
        """The matrix with every entry squared."""
        return replace(self, values=self.values.square())


@dataclass(frozen=True, eq=False)
class Dense:
    """A matrix ``[T, N, N]``, or ``[1, N, N]`` where all trials share it: the better choice for small graphs."""

    values: Tensor

    def __matmul__(self, x: Tensor) -> Tensor:
        """The product with ``x [T, N, F]``."""
        return dense_product(self.values, x)

    def scaled(self, factor: Tensor) -> Dense:
        """Every entry times the ``factor [T]`` of its trial."""
        return Dense(self.values * factor[:, None, None])


Operator = ShiftOperator | Sparse | Dense


def first_rows(x: Tensor, count: int) -> Tensor:
    """The first rows of ``x [T, n, F]``: in a mini-batch, layers compute fewer and fewer."""
    return x if x.shape[-2] == count else x[..., :count, :]


class Entries:
    """The E entries (i, j) of a square pattern sorted by row i, among them (i, i).

    ``row``, ``col`` and ``edge`` (not on the diagonal) are ``[E]``; ``pair_source [E]`` is the number of the edge in
    the graph, and M + i on the diagonal. In a mini-batch only the first ``num_rows`` rows have entries.

    >>> entries = Entries.of(Graph.from_edge_index(torch.tensor([[0], [1]])))
    >>> entries.at_cols(torch.tensor([[[5.0], [7.0]]]))[0, :, 0].tolist()
    [5.0, 7.0, 5.0, 7.0]
    """

    def __init__(self, places: Csr, edge: Tensor, pair_source: Tensor, num_rows: int | None = None) -> None:
        self.places, self.edge, self.pair_source = places, edge, pair_source
        self.num_rows = places.num_rows if num_rows is None else num_rows
        self.row, self.col = places.row, places.col.to(torch.int64)
        turned, order = places.turned
        each = torch.arange(self.count, dtype=places.col.dtype, device=places.col.device)
        self._of_rows = Csr(places.crow, each, self.count)  # [N, E]: ones at the entries of each row
        self._of_cols = Csr(turned.crow, order.to(places.col.dtype), self.count)

    @classmethod
    def of(cls, graph: Graph) -> Entries:
        """All entries of a graph."""
        pattern = graph.pattern
        return cls(pattern, pattern.source < 2 * pattern.num_pairs, pattern.pair_source)

    @property
    def count(self) -> int:
        """E."""
        return self.places.num_entries

    @property
    def num_nodes(self) -> int:
        """The number of rows and of columns."""
        return self.places.num_rows

    def spread(self, values: Tensor, diagonal: float = 1.0) -> Tensor:
        """Values of edges ``[T, M]`` as those of entries ``[T, E]``, with one number on the diagonal."""
        padded = torch.nn.functional.pad(values, (0, self.num_nodes), value=diagonal)
        return padded.index_select(1, self.pair_source)

    def at_rows(self, x: Tensor) -> Tensor:
        """``x_i`` for each entry (i, j): ``[T, E, K]`` from ``[T, N, K]``."""
        read: Tensor = _Read.apply(x, self.row, self._of_rows)  # type: ignore[no-untyped-call]
        return read

    def at_cols(self, x: Tensor) -> Tensor:
        """``x_j`` for each entry (i, j): ``[T, E, K]`` from ``[T, N, K]``."""
        read: Tensor = _Read.apply(x, self.col, self._of_cols)  # type: ignore[no-untyped-call]
        return read

    def row_sums(self, values: Tensor) -> Tensor:
        """``Σ_j values_ij``, ``[T, N]`` from ``[T, E]``."""
        ones = torch.ones((self.num_nodes, 1), dtype=values.dtype, device=values.device)
        return sparse_product(self.places, values, ones)[..., 0]

    def sums_at_rows(self, values: Tensor) -> Tensor:
        """``Σ_j values_ij`` at every entry of row i, ``[T, E, K]``, without gradients; the same order in every run."""
        ones = torch.ones(self.count, dtype=values.dtype, device=values.device)
        return multiply(self._of_rows, ones, values).index_select(1, self.row)

    def row_softmax(self, scores: Tensor) -> Tensor:
        """The softmax of ``scores [T, E, K]`` over the entries of each row; one of them must be finite.

        >>> entries = Entries.of(Graph.from_edge_index(torch.tensor([[0], [1]]), num_nodes=3))
        >>> entries.row_softmax(torch.zeros(1, 5, 1))[0, :, 0].tolist()
        [0.5, 0.5, 0.5, 0.5, 1.0]
        """
        soft: Tensor = _Softmax.apply(scores, self)  # type: ignore[no-untyped-call]
        return soft

    def normalized(self, values: Tensor) -> Sparse:
        """``D^-1/2 (V + I) D^-1/2`` of edge values V ``[T, E]``, symmetric or not; D holds the row sums of V + I."""
        with_loops = torch.where(self.edge, values, 1.0)
        scale = self.row_sums(with_loops).rsqrt()[..., None]
        both = self.at_rows(scale)[..., 0] * self.at_cols(scale)[..., 0]
        return Sparse(self.places, with_loops * both)


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


class _Softmax(torch.autograd.Function):
    """``α = e^s / Σ e^s`` row by row, with the gradient ``α (g − Σ α g)``; only α is kept for it."""

    @staticmethod
    def forward(ctx: Any, scores: Tensor, entries: Entries) -> Tensor:
        ends = entries.places.crow.to(torch.int64).expand(len(scores), -1)
        # Without checks, for which values would be read on the host.
        top = torch.segment_reduce(scores.contiguous(), "max", offsets=ends.contiguous(), axis=1, unsafe=True)
        powers = (scores - top.index_select(1, entries.row)).exp_()
        attention = powers.div_(entries.sums_at_rows(powers))
        ctx.save_for_backward(attention)
        ctx.entries = entries
        return attention

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        (attention,) = ctx.saved_tensors
        slope = attention * gradient
        return slope - attention * ctx.entries.sums_at_rows(slope), None
