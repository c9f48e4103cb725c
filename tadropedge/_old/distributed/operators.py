"""Shift operators of which a process holds its own rows: products fetch the boundary first.

Values are those of the whole graph. The degree of a node is the sum over its own pairs, which its process all holds;
degrees of the boundary are fetched like any other signal, so that a renormalised subgraph is exact. The gradient of
``S x`` is ``Sᵀ g``, whose rows are known here too, because both directions of a shared pair are: the gradient of the
output is fetched and multiplied in the same way, every sum in the order in which one process would add.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from math import inf
from typing import Any

import torch
from torch import Tensor

from tadropedge._old.compaction import compact_reweighted
from tadropedge._old.distributed.exchange import Exchange, all_sum
from tadropedge._old.distributed.group import Group
from tadropedge._old.distributed.part import SpreadPart
from tadropedge._old.nn import operators as single
from tadropedge._old.nn.entries import Entries
from tadropedge._old.nn.finish import Moments
from tadropedge._old.nn.layers import Features, Sparse
from tadropedge._old.nn.network import Problem
from tadropedge._old.nn.operators import Operators
from tadropedge._old.pattern import Pattern
from tadropedge._old.shift import NORMALIZATIONS, ShiftOperator, placed
from tadropedge._old.sparse import Csr, multiply


@dataclass(frozen=True, eq=False)
class SpreadSparse(Sparse):
    """Own rows of a sparse matrix; ``turned [T, E]`` are those of its transpose, None where it is symmetric."""

    _: KW_ONLY
    turned: Tensor | None = None
    exchange: Exchange | None = None

    def __matmul__(self, x: Tensor) -> Tensor:
        """The own rows of the product with ``x [T, n, F]``, of which this process has its own."""
        product: Tensor = _Product.apply(x, self)  # type: ignore[no-untyped-call]
        return product

    def scaled(self, factor: Tensor) -> SpreadSparse:
        """Every entry times the ``factor [T, 1]`` of its trial."""
        turned = None if self.turned is None else self.turned * factor
        return SpreadSparse(self.places, self.values * factor, self.symmetric, turned=turned, exchange=self.exchange)

    def narrows(self, x: Features, outputs: int) -> bool:
        """Never: all processes must fetch signals of the same width, whatever boundary each has; as in one process."""
        return False

    def times(self, x: Tensor, turned: bool = False) -> Tensor:
        """The product without gradients, by this matrix or its transpose."""
        assert self.exchange is not None
        values = self.turned if turned and self.turned is not None else self.values
        return multiply(self.places, values, self.exchange.fetched(x))


class _Product(torch.autograd.Function):
    """``S x``, with the gradient ``Sᵀ g`` for x."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, shift: SpreadSparse) -> Tensor:
        ctx.shift = shift
        return shift.times(x)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        return ctx.shift.times(gradient.contiguous(), turned=True), None


class SpreadOperators(Operators):
    """S of T trials, of which this process makes the rows of its own nodes."""

    def __init__(self, part: SpreadPart, exchange: Exchange, normalizations: Sequence[str]) -> None:
        super().__init__(part.graph, normalizations)
        self.part, self.exchange = part, exchange

    def expect(self, shares: Sequence[float], width: int) -> None:
        """As in one process, by the mean number of edges per process: all must decide alike."""
        spared = (1 - sum(shares) / len(shares)) * 2 * self.part.num_edges / self.part.size * width
        worth = single.WORTH_COMPACTING.get(self.graph.device.type, inf)
        self.compact = self.trials == 1 and spared >= worth

    @property
    def recordable(self) -> bool:
        """Messages between processes are not recorded."""
        return False

    def _made(self, keep: Tensor, normalization: str) -> ShiftOperator:
        kept = keep.to(torch.float32)
        if self.graph.weight is not None:
            kept = kept * self.graph.weight.to(torch.float32)
        return self._normalized(self.graph.pattern, kept, normalization)

    def _normalized(self, pattern: Pattern, kept: Tensor, normalization: str) -> ShiftOperator:
        """The operator of the values ``kept [..., M]`` of a pattern on the nodes of the part."""
        _ = pattern.pair_source, pattern.places  # computed once, and kept by the copy
        known = copy(pattern)
        vars(known)["summed"] = (kept, self._degrees(pattern, kept))
        return placed(known, *NORMALIZATIONS[normalization](kept, known))

    def _degrees(self, pattern: Pattern, kept: Tensor) -> Tensor:
        """Row sums ``[..., n + h]`` of the whole graph: own nodes have all their pairs here, the others are fetched."""
        sums = kept.new_zeros((*kept.shape[:-1], pattern.num_nodes))
        for ends in pattern.pairs:
            sums.scatter_add_(-1, ends.expand_as(kept), kept)
        mine = sums.reshape(-1, pattern.num_nodes)[:, self.part.own, None]
        return self.exchange.fetched(mine)[..., 0].view_as(sums)

    def _compact(self, keep: Tensor, factors: Tensor | None) -> ShiftOperator:
        if factors is not None:
            return compact_reweighted(self._whole, keep, factors[0])
        edges = keep.nonzero()[:, 0]
        pattern = Pattern.of_sorted(self.graph.pairs.index_select(1, edges), self.graph.num_nodes)
        kept = torch.ones((1, len(edges)), dtype=torch.float32, device=keep.device)
        if self.graph.weight is not None:
            kept = kept * self.graph.weight.index_select(0, edges).to(torch.float32)
        return self._normalized(pattern, kept, next(iter(self.rows)))

    def of(self, keep: Tensor | None, factors: Tensor | None = None) -> SpreadSparse:
        """As in one process; where only kept edges are multiplied, only rows that they ask for are fetched."""
        if self.compact and keep is not None:
            return self._operator(self._compact(keep[0], factors), self.exchange.thinned(keep[0]))
        found = super().of(keep, factors)
        assert isinstance(found, SpreadSparse)
        return found

    def _operator(self, shift: ShiftOperator, exchange: Exchange | None = None) -> SpreadSparse:
        places, mine = (
            self._whole_rows if shift.pattern.num_pairs == self.graph.num_edges else self._rows(shift.pattern)
        )
        turned = None
        if not shift.symmetric:
            order = shift.pattern.places.turned[1]
            turned = shift.values.index_select(-1, order if mine is None else order.index_select(0, mine))
        values = shift.values if mine is None else shift.values.index_select(-1, mine)
        return SpreadSparse(places, values, shift.symmetric, turned=turned, exchange=exchange or self.exchange)

    @cached_property
    def _whole_rows(self) -> tuple[Csr, Tensor | None]:
        return self._rows(self.graph.pattern)

    def _rows(self, pattern: Pattern) -> tuple[Csr, Tensor | None]:
        """The places in own rows, and which entries of the pattern they are; None: all."""
        return own_rows(self.part, pattern)


def own_rows(part: SpreadPart, pattern: Pattern) -> tuple[Csr, Tensor | None]:
    """The rows of a pattern on the nodes of a part that are its own, and which entries they are; None: all."""
    if part.num_own == part.graph.num_nodes:
        return pattern.places, None
    mine = part.is_own.index_select(0, pattern.places.row).nonzero()[:, 0]
    counts = pattern.crow.diff().index_select(0, part.own)
    crow = torch.nn.functional.pad(counts.cumsum(0), (1, 0)).to(pattern.crow.dtype)
    return Csr(crow, pattern.col.index_select(0, mine), pattern.num_nodes), mine


class SpreadEntries(Entries):
    """The entries (i, j) in the rows of own nodes: j may lie on the boundary."""

    def __init__(self, part: SpreadPart, exchange: Exchange) -> None:
        pattern = part.graph.pattern
        self.places, mine = own_rows(part, pattern)
        self.row, self.col = self.places.row, self.places.col.to(torch.int64)
        source = pattern.pair_source
        self.pair_source = source if mine is None else source.index_select(0, mine)
        self.count, self.num_nodes = self.col.shape[0], part.graph.num_nodes
        self.edge = part.own.index_select(0, self.row) != self.col
        turned, order = self.places.turned
        each = torch.arange(self.count, dtype=self.places.col.dtype, device=part.device)
        self.of_rows = Csr(self.places.crow, each, self.count)
        self.of_cols = Csr(turned.crow, order.to(self.places.col.dtype), self.count)
        self.exchange = exchange

    def everywhere(self, x: Tensor) -> Tensor:
        """With the rows of the boundary."""
        return self.exchange.everywhere(x)


@dataclass(frozen=True, kw_only=True, eq=False)
class SpreadProblem(Problem):
    """A problem of which this process holds one part; ``graph`` is that of the part."""

    part: SpreadPart
    exchange: Exchange

    @property
    def moments(self) -> Moments | None:
        """Mean and variance over the nodes of all processes."""
        group, count = self.exchange.group, self.part.num_nodes
        return None if group.size == 1 else lambda h: spread_moments(h, group, count)

    def operators(self, normalizations: Sequence[str]) -> SpreadOperators:
        """Those of the own rows."""
        return SpreadOperators(self.part, self.exchange, normalizations)

    @cached_property
    def entries(self) -> SpreadEntries:
        """Those of the own rows."""
        return SpreadEntries(self.part, self.exchange)


def spread_moments(h: Tensor, group: Group, count: int) -> tuple[Tensor, Tensor, int]:
    """Mean and variance ``[T, 1, F]`` of ``h [T, n, F]`` over the ``count`` nodes of all processes, with gradients."""
    mean = all_sum(h.sum(dim=1, keepdim=True), group) / count
    variance = all_sum((h - mean).square().sum(dim=1, keepdim=True), group) / count
    return mean, variance, count
