"""The fixed sparsity pattern of a graph: where the entries of every shift operator stand.

A subgraph is a mask, not a new graph. The pattern is built once; an epoch changes only the values.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

if TYPE_CHECKING:
    import scipy.sparse as sp

INT32_LIMIT = 2**31 - 1


@dataclass(frozen=True, eq=False)
class Csr:
    """The places of the entries of a ``[rows, cols]`` matrix: ``crow [rows + 1]`` and ``col [E]``.

    Both are int32 where that is enough: half as much is read.
    """

    crow: Tensor
    col: Tensor
    num_cols: int

    @property
    def num_rows(self) -> int:
        """The number of rows."""
        return self.crow.shape[0] - 1

    @property
    def num_entries(self) -> int:
        """E, the number of entries."""
        return self.col.shape[0]

    @cached_property
    def row(self) -> Tensor:
        """The row of each entry, ``[E]`` int64."""
        counts = self.crow.diff().to(torch.int64)
        rows = torch.arange(self.num_rows, device=self.col.device)
        return torch.repeat_interleave(rows, counts, output_size=self.num_entries)

    @cached_property
    def turned(self) -> tuple[Csr, Tensor]:
        """The places of the transpose, and the permutation ``[E]`` that brings values there."""
        order = torch.argsort(self.col.to(torch.int64), stable=True)
        crow = _starts(self.col, self.num_cols)
        return Csr(crow.to(self.crow.dtype), self.row[order].to(self.col.dtype), self.num_rows), order

    # -- for those who compute --------------------------------------------------------------------------

    @cached_property
    def arrays(self) -> tuple[np.ndarray[Any, Any], ...]:
        """``crow`` and ``col`` as NumPy's arrays of the same memory, for compiled kernels."""
        return self.crow.numpy(), self.col.numpy()

    def as_scipy(self, values: Tensor) -> sp.csr_matrix:
        """The matrix with these ``values [E]``, of the same memory."""
        from scipy.sparse import csr_matrix

        shape = (self.num_rows, self.num_cols)
        return csr_matrix((values.detach().numpy(), self.col.numpy(), self.crow.numpy()), shape=shape, copy=False)

    def as_torch(self, values: Tensor) -> Tensor:
        """The matrices with ``values [..., E]`` as a torch CSR tensor ``[..., rows, cols]``."""
        _hush_beta_warning()
        batch = values.shape[:-1]
        crow, col = self.crow.expand(*batch, -1), self.col.expand(*batch, -1)
        size = (*batch, self.num_rows, self.num_cols)
        return torch.sparse_csr_tensor(crow, col, values, size, check_invariants=False)


@dataclass(frozen=True, eq=False)
class Pattern(Csr):
    """The places of ``A + I``: ``E = 2 M + N`` entries, sorted by row, then column.

    ``source [E]`` says where an entry's value comes from: ``m`` or ``M + m`` is pair ``m`` read forwards or backwards,
    ``2 M + i`` is the diagonal entry of node i. An edge is dropped by leaving out its two entries.
    """

    pairs: Tensor
    source: Tensor

    @classmethod
    def of(cls, pairs: Tensor, num_nodes: int) -> Pattern:
        """Build the pattern of the undirected ``pairs [2, M]``.

        >>> Pattern.of(torch.tensor([[0, 1], [2, 2]]), 3).col.tolist()
        [0, 2, 1, 2, 0, 1, 2]
        """
        nodes = torch.arange(num_nodes, device=pairs.device)
        row = torch.cat((pairs[0], pairs[1], nodes))
        col = torch.cat((pairs[1], pairs[0], nodes))
        order = torch.argsort(row * num_nodes + col)
        index = torch.int32 if row.shape[0] <= INT32_LIMIT else torch.int64
        return cls(_starts(row, num_nodes).to(index), col[order].to(index), num_nodes, pairs, order)

    @property
    def num_nodes(self) -> int:
        """N, the number of rows and of columns."""
        return self.num_cols

    @property
    def num_pairs(self) -> int:
        """M, the number of undirected edges."""
        return self.pairs.shape[1]

    @cached_property
    def pair_source(self) -> Tensor:
        """``source`` for values that both directions share: ``m`` for pair m, ``M + i`` for node i."""
        found = torch.where(self.source < self.num_pairs, self.source, self.source - self.num_pairs)
        return found.to(self.col.dtype)

    @cached_property
    def arrays(self) -> tuple[np.ndarray[Any, Any], ...]:
        """``crow``, ``col`` and ``pair_source``, for compiled kernels."""
        return *super().arrays, self.pair_source.numpy()

    @cached_property
    def ends(self) -> np.ndarray[Any, Any]:
        """``pairs [2, M]``, as narrow as the other places."""
        return self.pairs.to(self.col.dtype).numpy()

    @cached_property
    def entry(self) -> Tensor:
        """The entry that takes its value from each source: the inverse of ``source``, ``[E]`` int64."""
        entries = torch.arange(self.num_entries, device=self.source.device)
        return torch.empty_like(entries).index_copy_(0, self.source, entries)

    @cached_property
    def turned(self) -> tuple[Csr, Tensor]:
        """The transpose has the same places: the two directions of each pair change places, without a sort."""
        m = self.num_pairs
        other = torch.where(self.source < m, self.source + m, self.source - m)
        return self, self.entry.index_select(0, torch.where(self.source < 2 * m, other, self.source))


def _starts(row: Tensor, num_rows: int) -> Tensor:
    """Where each row begins among entries sorted by their ``row [E]``, int64 ``[num_rows + 1]``."""
    counts = torch.bincount(row, minlength=num_rows)
    return torch.cat((counts.new_zeros(1), counts.cumsum(0)))


@cache
def _hush_beta_warning() -> None:
    """Torch says once per process that CSR tensors are in beta and unchecked; users here need not hear it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        one = torch.ones(1, dtype=torch.int64)
        torch.sparse_csr_tensor(torch.tensor([0, 1]), one - 1, one.float(), (1, 1), check_invariants=False)


class Scales(NamedTuple):
    """What makes an operator of weighted edges W: ``S = diag(d) + diag(l) W diag(r)``; each part is ``[..., N]``.

    Every normalisation has this form. ``symmetric``: whether S equals its transpose, ``l_i r_j = l_j r_i``.
    """

    left: Tensor
    right: Tensor
    diagonal: Tensor
    symmetric: bool = True
