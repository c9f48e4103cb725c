"""The fixed sparsity pattern of a graph: where the entries of every shift operator stand.

A subgraph is a mask, not a new graph. The pattern is built once; an epoch changes only the values.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import torch
from torch import Tensor

INT32_LIMIT = 2**31 - 1


@dataclass(frozen=True, eq=False)
class Csr:
    """The places of the entries of a ``[rows, cols]`` matrix: ``crow [rows + 1]`` and ``col [E]``.

    Both are int32 where that is enough: sparse products are then up to three times faster.
    """

    crow: Tensor
    col: Tensor
    num_cols: int
    in_order: ClassVar[bool] = False  # whether products must add the entries of a row one after the other

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


@dataclass(frozen=True, eq=False)
class Pattern(Csr):
    """The places of ``A + I``: ``E = 2 M + N`` entries, sorted by row, then column.

    ``source [E]`` says where an entry's value comes from: ``m`` or ``M + m`` is pair ``m`` read forwards or backwards,
    ``2 M + i`` is the diagonal entry of node i. An edge is dropped by a zero in its two entries, which must leave the
    sums of the other edges as they are, to the bit: so products add the entries of a row in order.
    """

    pairs: Tensor
    source: Tensor
    in_order: ClassVar[bool] = True

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
        return torch.where(self.source < self.num_pairs, self.source, self.source - self.num_pairs)

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
