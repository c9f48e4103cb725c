"""Algebraic multigrid by plain aggregation, in torch alone: what makes Laplacians of social graphs easy to solve.

Nodes are gathered around roots that lie at least three steps apart, and an aggregate is one node of the next, smaller
graph, whose edges are the sums of the edges between aggregates. Nothing is smoothed in between, so coarse graphs stay
sparse on power-law graphs. One cycle applies to a whole block of vectors, on any device, in float32: it only guides
iterations that are themselves in float64.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from tadropedge._old.blocks import Floats
from tadropedge._old.sparse import Csr, multiply

COARSEST = 800  # nodes of the last level, which is solved densely
SWEEPS = 3  # Chebyshev steps before and after the coarse correction
SMOOTHED = (0.49, 1.96)  # the part of the spectrum of D⁻¹ L, which ends at 2, that the smoother takes care of
MOST_LEVELS = 40
STRONG = 0.1  # of the heaviest edge


@dataclass(frozen=True, eq=False, kw_only=True)
class Level:
    """One graph: L x = degree · x − A x, the way down to the next one and back; ``factor`` on the last level."""

    places: Csr
    values: Tensor
    degree: Tensor
    ones: Tensor
    down: Csr | None
    parent: Tensor | None
    factor: Tensor | None

    def residual(self, b: Tensor, x: Tensor) -> Tensor:
        """``b − L x``."""
        return multiply(self.places, self.values, x).addcmul_(self.degree, x, value=-1).add_(b)

    def smooth(self, b: Tensor) -> Tensor:
        """A Chebyshev polynomial in D⁻¹ L, applied to b: about L⁻¹ b for everything that varies fast."""
        low, high = SMOOTHED
        centre, radius = (high + low) / 2, (high - low) / 2
        step = b / (centre * self.degree)
        x, rho = step.clone(), radius / centre
        for _ in range(SWEEPS - 1):
            following = 1 / (2 * centre / radius - rho)
            step.mul_(following * rho).addcdiv_(self.residual(b, x), self.degree, value=2 * following / radius)
            rho = following
            x.add_(step)
        return x


class Multigrid:
    """A preconditioner for the Laplacian ``L`` of one component with the positive null vector ``null [n]``.

    With N = diag(null), N L N is the Laplacian D − A of a weighted graph, whichever kind L is. So one hierarchy
    serves the combinatorial and the normalised Laplacian.

    >>> L = sp.csr_matrix([[1.0, -1, 0], [-1, 2, -1], [0, -1, 1]])
    >>> x = Multigrid(L, np.full(3, 3**-0.5))(torch.tensor([[1.0], [1.0], [-2.0]]))
    >>> x.flatten().mul(3).round(decimals=3).tolist()
    [4.0, 1.0, -5.0]
    """

    def __init__(self, L: sp.csr_matrix, null: Floats, device: torch.device | str = "cpu") -> None:
        n = L.shape[0]
        scale = torch.from_numpy(null * np.sqrt(n)).to(device)
        self.scale = scale[:, None].float()
        entries = L.tocsr()
        row = torch.from_numpy(np.repeat(np.arange(n), np.diff(entries.indptr))).to(device)
        col = torch.from_numpy(entries.indices.astype(np.int64)).to(device)
        weight = -torch.from_numpy(entries.data).to(device)
        off = row != col
        row, col, weight = row[off], col[off], weight[off]
        weight = weight * scale[row] * scale[col]
        self.unit = float(weight.mean())  # float32 knows no weights of 1e-42
        weight = weight / self.unit
        self.levels: list[Level] = []
        while n > COARSEST and len(self.levels) < MOST_LEVELS:
            parent, count = aggregates(*_strong(row, col, weight, n), n)
            self.levels.append(_level(row, col, weight, n, parent, count))
            up, across = parent[row], parent[col]
            between = up != across
            row, col, weight = _merged(up[between], across[between], weight[between], count)
            n = count
        self.levels.append(_level(row, col, weight, n))

    def __call__(self, r: Tensor) -> Tensor:
        """About ``L⁺ r`` for a float64 block ``[n, k]``; columns are scaled, so that none is lost in float32."""
        size = torch.linalg.vector_norm(r, dim=0).clamp(min=torch.finfo(r.dtype).tiny)
        x: Tensor = self.scale * self._cycle(0, self.scale * (r / size).float())
        return x.to(r.dtype).mul_(size / self.unit)

    def _cycle(self, place: int, b: Tensor) -> Tensor:
        level = self.levels[place]
        if level.down is None or level.parent is None:
            return torch.cholesky_solve(b, level.factor) if level.factor is not None else level.smooth(b)
        x = level.smooth(b)
        coarse = multiply(level.down, level.ones, level.residual(b, x))
        x += self._cycle(place + 1, coarse).index_select(0, level.parent)
        return x.add_(level.smooth(level.residual(b, x)))


def on_device(L: sp.csr_matrix, device: torch.device | str) -> tuple[Csr, Tensor]:
    """The places and the entries of a matrix, for products in float64."""
    crow, col = (torch.from_numpy(part).to(device) for part in (L.indptr, L.indices))
    return Csr(crow, col, L.shape[1]), torch.from_numpy(L.data).to(device)


def aggregates(row: Tensor, col: Tensor, weight: Tensor, n: int) -> tuple[Tensor, int]:
    """The aggregate of each node ``[n]`` and their number; edges are sorted by row, and no row is empty.

    Roots are a maximal set of nodes three steps apart, by Luby's rule with fixed random ranks; the others join the
    neighbour with the heaviest edge, first those next to a root.
    """
    rank = torch.randperm(n, generator=torch.Generator().manual_seed(n)).to(row.device) + 1
    if n < torch.iinfo(torch.int32).max:
        rank, col = rank.int(), col.int()  # half the memory to go through
    largest = RowMaximum(row, n)

    def widest(x: Tensor) -> Tensor:
        return torch.maximum(x, largest(x[col]))

    candidate, root = rank.clone(), torch.zeros_like(rank)
    while bool(candidate.any()):
        chosen = ((candidate > 0) & (widest(widest(candidate)) == candidate)).to(rank.dtype)
        root |= chosen
        candidate = torch.where(widest(widest(chosen)) > 0, 0, candidate)
    aggregate = torch.where(root > 0, root.cumsum(0, dtype=rank.dtype), 0)
    while not bool(aggregate.all()):
        there = aggregate[col]
        open_weight = torch.where(there > 0, weight, 0)
        best = largest(torch.where((open_weight > 0) & (open_weight == largest(open_weight)[row]), there, 0))
        aggregate = torch.where(aggregate > 0, aggregate, best)
    return aggregate.long() - 1, int(aggregate.max())


class RowMaximum:
    """The largest of the values ``[E]`` of each row, ``[n]``, for entries that are sorted by row, one or more in each.

    >>> RowMaximum(torch.tensor([0, 0, 1]), 2)(torch.tensor([3, 5, 4])).tolist()
    [5, 4]
    """

    def __init__(self, row: Tensor, n: int) -> None:
        self.row, self.n = row, n
        self.starts = None if row.is_cuda else np.searchsorted(row.numpy(), np.arange(n))

    def __call__(self, values: Tensor) -> Tensor:
        """A sweep from left to right on a CPU, where scattered writes take several times as long."""
        if self.starts is not None:
            return torch.from_numpy(np.maximum.reduceat(values.numpy(), self.starts))
        return values.new_zeros(self.n).scatter_reduce(0, self.row, values, "amax", include_self=False)


def _strong(row: Tensor, col: Tensor, weight: Tensor, n: int) -> tuple[Tensor, Tensor, Tensor]:
    """The edges that are not much weaker than the heaviest at either end: others must not hold aggregates together."""
    heaviest = RowMaximum(row, n)(weight)
    strong = weight >= STRONG * torch.minimum(heaviest[row], heaviest[col])
    return row[strong], col[strong], weight[strong]


def _merged(row: Tensor, col: Tensor, weight: Tensor, n: int) -> tuple[Tensor, Tensor, Tensor]:
    """Parallel edges as one, sorted by row and column; sums in a fixed order, so that devices and runs agree."""
    key, order = torch.sort(row * n + col, stable=True)
    key, count = torch.unique_consecutive(key, return_counts=True)
    starts = torch.cat((count.new_zeros(1), count.cumsum(0)))
    total = multiply(Csr(starts, order, len(order)), torch.ones_like(weight), weight[:, None])[:, 0]
    return key // n, key % n, total


def _level(row: Tensor, col: Tensor, weight: Tensor, n: int, parent: Tensor | None = None, count: int = 0) -> Level:
    """Put one graph into the form that cycles use: float32, int32."""
    places = _csr(row, col, n, n)
    degree = multiply(places, weight, weight.new_ones(n, 1))
    down = factor = None
    if parent is not None:
        order = torch.argsort(parent, stable=True)
        down = _csr(parent[order], order, count, n)
    elif n <= COARSEST:
        L = torch.diag(degree[:, 0])
        L[row, col] -= weight
        shift = degree.max() / n if n > 1 else 1.0  # c J makes L definite and moves constants alone
        factor = torch.linalg.cholesky(L + shift).float()
    return Level(
        places=places,
        values=weight.float(),
        degree=degree.float(),
        ones=torch.ones(n, device=weight.device),
        down=down,
        parent=parent,
        factor=factor,
    )


def _csr(row: Tensor, col: Tensor, rows: int, cols: int) -> Csr:
    """The places of entries that are sorted by row."""
    index = torch.int32 if max(len(col), rows, cols) <= torch.iinfo(torch.int32).max else torch.int64
    crow = torch.zeros(rows + 1, dtype=torch.int64, device=row.device)
    crow[1:] = torch.bincount(row, minlength=rows).cumsum(0)
    return Csr(crow.to(index), col.to(index), cols)
