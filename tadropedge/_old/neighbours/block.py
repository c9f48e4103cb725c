"""One layer of a mini-batch: the rows it computes, the nodes it reads, and the entries between them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from tadropedge._old.errors import TadropedgeError, lookup
from tadropedge._old.pattern import Pattern
from tadropedge._old.shift import NORMALIZATIONS
from tadropedge._old.sparse import Csr

# Normalisations that look at the degree of the row alone: those of the other ends need not be found.
OF_ROWS = ("random-walk", "neighbour-mean", "adjacency", "laplacian")


@dataclass(frozen=True, kw_only=True, eq=False)
class LayerBlock:
    """The first ``num_rows`` nodes of a mini-batch look at its first ``num_cols``, which contain them.

    * ``row``, ``col [K]``: the ends of each entry, places in the mini-batch, sorted by row; each row has its diagonal.
    * ``entry [K]``: the number of the entry in the pattern of the whole graph. ``edge [K]``: not on the diagonal.
    * ``weight [K]``: those of the graph, else ones. ``degrees [num_cols]`` are sums of weights in the graph that this
      layer sees, thinned but not sampled; with the option ``unbiased`` in the whole graph.
    * ``share [num_rows]``: by what an entry stands for others, kept neighbours of the row over sampled ones.
    * ``factor [K]``: one over the keep probability with the option ``unbiased``, 0 where an edge is dropped and still
      seen; None: 1.
    """

    num_rows: int
    num_cols: int
    row: Tensor
    col: Tensor
    entry: Tensor
    edge: Tensor
    degrees: Tensor
    weight: Tensor | None = None
    share: Tensor | None = None
    factor: Tensor | None = None

    @cached_property
    def places(self) -> Csr:
        """The entries as places of a matrix ``[num_rows, num_cols]``."""
        return self._places(self.num_rows)

    @cached_property
    def square(self) -> Csr:
        """The same in a matrix ``[num_cols, num_cols]``, whose last rows are empty."""
        return self._places(self.num_cols)

    def _places(self, rows: int) -> Csr:
        crow = torch.zeros(rows + 1, dtype=torch.int32, device=self.row.device)
        crow[1:] = torch.bincount(self.row, minlength=rows).cumsum(0)
        return Csr(crow, self.col.to(torch.int32), self.num_cols)

    def values(self, normalization: str) -> Tensor:
        """The entries of S at ``places``, float32 ``[K]``.

        They are the rows of S in the thinned graph, where S is as in :func:`tadropedge.shift_operator`. Where
        neighbours are sampled, theirs are multiplied by ``share``, so that ``S h`` is right on average.
        """
        normalize = lookup("normalization", normalization, NORMALIZATIONS)
        if normalization == "spectral":
            raise TadropedgeError(
                "normalization 'spectral' divides by an eigenvalue of the whole subgraph, which a mini-batch does not "
                "see: choose another"
            )
        ends = torch.stack((self.row, self.col))
        ones = torch.ones(self.row.shape, device=self.row.device) if self.weight is None else self.weight
        # Every entry as a pair of its own, of which the direction from row to column counts.
        none = self.row.new_zeros(0)
        pattern = Pattern(ends, self.num_cols, none, none, source=none, summed=(ones, self.degrees))
        edges, diagonal = normalize(ones, pattern)
        values = edges[: len(ones)]
        if self.share is not None:
            values = values * self.share.index_select(0, self.row)
        if self.factor is not None:
            values = values * self.factor
        return torch.where(self.edge, values, diagonal.index_select(0, self.row))
