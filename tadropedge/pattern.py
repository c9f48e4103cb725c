"""The fixed sparsity pattern of a graph: where the entries of every shift operator stand.

A subgraph is a mask, not a new graph. The pattern is built once; an epoch changes only the values.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from functools import cached_property

import torch
from torch import Tensor

from tadropedge.sparse import Csr

INT32_LIMIT = 2**31 - 1


@dataclass(frozen=True, eq=False)
class Pattern:
    """CSR places of ``A + I``: ``E = 2 M + N`` entries, sorted by row, then column.

    ``crow [N + 1]`` and ``col [E]`` are the usual CSR arrays, in int32 where that is enough because sparse
    products are up to three times faster with it. ``source [E]`` says where an entry's value comes from:
    ``m`` or ``M + m`` is pair ``m`` read forwards or backwards, ``2 M + i`` is the diagonal entry of node i.
    """

    pairs: Tensor
    num_nodes: int
    crow: Tensor
    col: Tensor
    _: KW_ONLY
    source: Tensor

    @classmethod
    def of(cls, pairs: Tensor, num_nodes: int) -> Pattern:
        """Build the pattern of the undirected ``pairs [2, M]``."""
        nodes = torch.arange(num_nodes, device=pairs.device)
        row = torch.cat((pairs[0], pairs[1], nodes))
        col = torch.cat((pairs[1], pairs[0], nodes))
        order = torch.argsort(row * num_nodes + col)
        crow = torch.zeros(num_nodes + 1, dtype=torch.int64, device=pairs.device)
        crow[1:] = torch.bincount(row, minlength=num_nodes).cumsum(0)
        index = torch.int32 if row.numel() <= INT32_LIMIT else torch.int64
        return cls(pairs, num_nodes, crow.to(index), col[order].to(index), source=order)

    @property
    def num_pairs(self) -> int:
        """M, the number of undirected edges."""
        return self.pairs.shape[1]

    @property
    def num_entries(self) -> int:
        """E = 2 M + N."""
        return self.col.shape[0]

    @cached_property
    def pair_source(self) -> Tensor:
        """``source`` for values that both directions share: ``m`` for pair m, ``M + i`` for node i."""
        size = self.num_pairs
        return torch.where(self.source < size, self.source, self.source - size)

    @cached_property
    def places(self) -> Csr:
        """The same places for sparse products."""
        return Csr(self.crow, self.col, self.num_nodes)

    @property
    def row(self) -> Tensor:
        """The row of each entry, ``[E]`` int64."""
        return self.places.row
