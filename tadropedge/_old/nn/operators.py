"""The shift operators of a batch of trials, each with its own normalisation."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from math import ceil, inf

import torch
from torch import Tensor

from tadropedge._old.compaction import compact_operator, compact_reweighted
from tadropedge._old.graph import Graph
from tadropedge._old.neighbours.block import OF_ROWS, LayerBlock
from tadropedge._old.nn.layers import Operator, Sparse
from tadropedge._old.shift import ShiftOperator, reweighted, shift_operator

DENSE_NODES = 128  # below this a dense batched product beats a sparse one
# A subgraph gets a pattern of its own where a product is spared this many numbers, which pays for building it.
WORTH_COMPACTING = {"cpu": 2**24, "cuda": 2**27}
RECORDED = ("cuda",)  # where epochs are recorded, so that the number of kept edges cannot be read
DEVIATIONS = 10  # above the mean number of kept edges: there is room for that many, and no mask has more


class Operators:
    """S of T trials, from the edges that each keeps, without moving values to the host."""

    def __init__(self, graph: Graph, normalizations: Sequence[str]) -> None:
        self.graph, self.trials = graph, len(normalizations)
        self.rows = {
            name: torch.tensor([i for i, other in enumerate(normalizations) if other == name], device=graph.device)
            for name in sorted(set(normalizations))
        }
        self.compact = False
        self.capacity: int | None = None

    def expect(self, shares: Sequence[float], width: int) -> None:
        """Decide by the shares of the edges that masks keep on average, and the ``width`` of the signals.

        A single training on a large graph that drops many edges is better off with operators of the kept edges alone.
        A batch is not: the masks of its trials differ, and one pattern serves all.
        """
        edges, device = self.graph.num_edges, self.graph.device.type
        spared = (1 - sum(shares) / len(shares)) * 2 * edges * width
        self.compact = self.trials == 1 and spared >= WORTH_COMPACTING.get(device, inf)
        most = max(shares) * edges
        self.capacity = min(edges, ceil(most + DEVIATIONS * most**0.5) + 64) if device in RECORDED else None

    @property
    def recordable(self) -> bool:
        """False with ``spectral``: its largest eigenvalue is found on the host, which a CUDA graph cannot record."""
        return "spectral" not in self.rows

    @cached_property
    def whole(self) -> Operator:
        """The operators of the whole graph."""
        return self._operator(self._whole)

    def soften(self, weights: Tensor) -> None:
        """Let ``whole`` be the operators of the graph whose edges have ``weights [T, M]`` in [0, 1]."""
        self.whole = self._operator(self._of(weights))

    def of(self, keep: Tensor | None, factors: Tensor | None = None) -> Operator:
        """The operators of the edges in the mask ``keep [T, M]``, or of all.

        With ``factors [T, M]``, the operators of the whole graph with the entries of each edge times its factor.
        """
        if self.compact and keep is not None:
            return self._operator(self._compact(keep[0], factors))
        if factors is not None:
            return self._operator(reweighted(self._whole, factors))
        return self.whole if keep is None else self._operator(self._of(keep))

    @property
    def of_rows(self) -> bool:
        """Whether S looks at the degrees of rows alone."""
        return all(name in OF_ROWS for name in self.rows)

    def on_block(self, block: LayerBlock) -> Operator:
        """The rows of S that a layer of a mini-batch computes; of one trial."""
        return Sparse(block.places, block.values(next(iter(self.rows)))[None])

    @cached_property
    def _whole(self) -> ShiftOperator:
        shape = (self.trials, self.graph.num_edges)
        return self._of(torch.ones(shape, dtype=torch.bool, device=self.graph.device))

    def _of(self, keep: Tensor) -> ShiftOperator:
        pattern = self.graph.pattern
        if len(self.rows) == 1:
            return self._made(keep, next(iter(self.rows)))
        values = torch.empty((keep.shape[0], pattern.num_entries), dtype=torch.float32, device=keep.device)
        symmetric = True
        for name, rows in self.rows.items():
            shift = self._made(keep.index_select(0, rows), name)
            values.index_copy_(0, rows, shift.values)
            symmetric = symmetric and shift.symmetric
        return ShiftOperator(pattern, values, symmetric)

    def _made(self, keep: Tensor, normalization: str) -> ShiftOperator:
        """The operators of one normalisation."""
        return shift_operator(self.graph, keep, normalization=normalization)

    def _compact(self, keep: Tensor, factors: Tensor | None) -> ShiftOperator:
        if factors is not None:
            return compact_reweighted(self._whole, keep, factors[0], self.capacity)
        shift = compact_operator(self.graph, keep, normalization=next(iter(self.rows)), capacity=self.capacity)
        return shift.with_values(shift.values[None], shift.symmetric)

    def _operator(self, shift: ShiftOperator) -> Operator:
        if self.graph.num_nodes <= DENSE_NODES:
            return shift.to_dense()
        return Sparse(shift.pattern.places, shift.values, shift.symmetric)
