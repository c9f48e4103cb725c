"""The fixed sparsity pattern of a graph: where the entries of every shift operator stand.

A subgraph is a mask, not a new graph. The pattern is built once; an epoch changes only the values.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from typing import ClassVar

import torch
from torch import Tensor

from tadropedge._old.sparse import Csr

INT32_LIMIT = 2**31 - 1


@dataclass(frozen=True, eq=False)
class Pattern:
    """CSR places of ``A + I``: ``E = 2 M + N`` entries, sorted by row, then column.

    ``crow [N + 1]`` and ``col [E]`` are the usual CSR arrays, in int32 where that is enough because sparse
    products are up to three times faster with it. ``source [E]`` says where an entry's value comes from:
    ``m`` or ``M + m`` is pair ``m`` read forwards or backwards, ``2 M + i`` is the diagonal entry of node i.
    ``summed`` are values ``[M]`` of pairs and their sums ``[N]`` at the nodes, where somebody has them already.
    """

    pairs: Tensor
    num_nodes: int
    crow: Tensor
    col: Tensor
    _: KW_ONLY
    source: Tensor
    summed: tuple[Tensor, Tensor] | None = None

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

    @classmethod
    def of_sorted(cls, pairs: Tensor, num_nodes: int) -> Pattern:
        """The same of pairs in the order of ``graph.pairs``, in O(M + N) and without reading values on the host.

        Row i holds its lower neighbours, itself, its higher neighbours. The pairs are the higher neighbours of their
        first ends in order; sorted stably by their second ends (a radix sort: linear) they are the lower neighbours.
        With ``u_i`` pairs that begin and ``d_i`` that end before node i, row i begins at ``u_i + d_i + i``. So the
        k-th higher neighbour stands, in row i, at ``k + d_(i+1) + i + 1``, the k-th lower one at ``k + u_i + i``, and
        the diagonal at ``u_i + d_(i+1) + i``.

        Pairs at the end may be missing, which is said by ``num_nodes`` for both of their ends: their entries stand
        behind the last row, where no product looks, and their place in ``pairs`` is taken by node 0.

        >>> Pattern.of_sorted(torch.tensor([[0, 1], [2, 2]]), 3).col.tolist()
        [0, 2, 1, 2, 0, 1, 2]
        """
        count, entries = pairs.shape[1], 2 * pairs.shape[1] + num_nodes
        index = torch.int32 if entries <= INT32_LIMIT else torch.int64
        low, high = pairs.to(index)
        ends, order = high.sort(stable=True)
        order = order.to(index)
        numbers = torch.arange(max(count, num_nodes) + 1, dtype=index, device=pairs.device)
        nodes, ranks = numbers[:num_nodes], numbers[:count]
        begun, ended = (
            torch.searchsorted(side, numbers[: num_nodes + 1], out_int32=index == torch.int32)
            for side in (low.contiguous(), ends)
        )
        until = ended[1:] + nodes  # entries before the diagonal one that are not higher neighbours
        after_diagonal = torch.cat((until + 1, ended[-1:] + num_nodes))  # the last one is for missing pairs
        before_diagonal = torch.cat((begun[:-1] + nodes, numbers.new_full((1,), count + num_nodes)))
        higher = ranks + after_diagonal.index_select(0, low)
        lower = ranks + before_diagonal.index_select(0, ends)
        place = torch.cat((higher, lower, until + begun[:-1])).to(torch.int64)
        col = torch.cat((high, low.index_select(0, order), nodes))
        source = torch.cat((ranks, order + count, nodes + 2 * count))
        return cls(
            torch.where(pairs < num_nodes, pairs, 0),
            num_nodes,
            begun + ended + numbers[: num_nodes + 1],
            torch.empty_like(col).index_copy_(0, place, col),
            source=torch.empty_like(source).index_copy_(0, place, source),
        )

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
    def narrow_source(self) -> Tensor:
        """``source`` in the type of ``col``: half as much to read."""
        return self.source.to(self.col.dtype)

    @cached_property
    def begun(self) -> Tensor:
        """How many pairs begin before each node, ``[N + 1]`` in the type of ``col``, for pairs as in ``graph.pairs``.

        >>> Pattern.of(torch.tensor([[0, 1], [2, 2]]), 3).begun.tolist()
        [0, 1, 2, 2]
        """
        nodes = torch.arange(self.num_nodes + 1, device=self.pairs.device)
        return torch.searchsorted(self.pairs[0].contiguous(), nodes).to(self.col.dtype)

    @cached_property
    def entry(self) -> Tensor:
        """The entry that takes its value from each source: the inverse of ``source``, ``[E]`` int64."""
        entries = torch.arange(self.num_entries, device=self.source.device)
        return torch.empty_like(entries).index_copy_(0, self.source.to(torch.int64), entries)

    @cached_property
    def places(self) -> Csr:
        """The same places for sparse products."""
        return _Mirrored(self.crow, self.col, self.num_nodes, self)

    @property
    def row(self) -> Tensor:
        """The row of each entry, ``[E]`` int64."""
        return self.places.row


@dataclass(frozen=True, eq=False)
class _Mirrored(Csr):
    """Places that equal their transpose: turned around they stay, and the two directions of a pair change places.

    A dropped edge is a zero, which must leave the sums of the other edges as they are, to the bit.
    """

    pattern: Pattern
    in_order: ClassVar[bool] = True

    @cached_property
    def turned(self) -> tuple[Csr, Tensor]:
        """These places, and the permutation ``[E]`` that brings values there, without a sort."""
        source, size = self.pattern.source.to(torch.int64), self.pattern.num_pairs
        other = torch.where(source < size, source + size, torch.where(source < 2 * size, source - size, source))
        return self, self.pattern.entry.index_select(0, other)
