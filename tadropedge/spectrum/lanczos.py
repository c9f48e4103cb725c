"""Every copy of the lowest eigenvalues of a Laplacian, by Lanczos on an operator that has them on top, no restarts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp
import torch
from scipy.linalg import eigh_tridiagonal
from torch import Tensor

from tadropedge.spectrum.blocks import Floats
from tadropedge.spectrum.target import EXACT, Eigenpairs, Target, largest_bound, with_null

CHANCE = 1e-6  # that a run ends before an eigenvector shows itself
MISSED = 1e-7  # an eigenvalue of L⁺ that is larger by this share was missed
MOST_RUNS = 128  # two for each copy
MOST_STEPS = 20  # with L⁺, for each pair
SHORT_STEPS = 120  # with c I − L
LOOK = 60  # steps with c I − L after which the first pair must be
NEAR = 1e-4  # so good, as a share of c, or the rest takes too long
ROOM = 160  # vectors that most runs need at most; memory that is not written to is not taken
MANY_NODES = 1 << 20  # from so many on, memory counts more than steps
MORE = 40  # vectors that room is made for where that is not enough
EXHAUSTED = 1e-13  # what is new in a vector, as a share of the largest eigenvalue, when it leads nowhere


@dataclass(frozen=True)
class Inverse:
    """L⁺: ``apply`` is b ↦ L⁺ b."""

    L: sp.csr_matrix
    apply: Callable[[Tensor], Tensor]
    most_steps: int = 0  # 0: as many as the wanted pairs may need

    def swapped(self, values: Floats) -> Floats:
        """From eigenvalues of L⁺ to those of L, and back."""
        return 1 / values

    def good(self, run: LanczosRun, new: Tensor, limit: Floats) -> bool:
        """Whether the first pairs of a run are pairs of L with residuals below the limits.

        L⁺ v − θ v is a multiple of the new vector; times −L / θ it is the residual of the pair (1 / θ, v) of L.
        """
        ritz = run.values[: len(limit)]
        share = run.last[: len(limit)] / ritz
        at_least = share * run.off_diagonal[-1] / ritz  # the new vector is made of modes above the pair's
        if (at_least > limit).any():
            return False
        size = float(torch.linalg.vector_norm(torch.from_numpy(self.L @ new.numpy())))
        return bool((share * size <= limit).all())


@dataclass(frozen=True)
class Flipped:
    """c I − L: ``apply`` is b ↦ c b − L b, with c ≥ ‖L‖."""

    L: sp.csr_matrix
    apply: Callable[[Tensor], Tensor]
    top: float
    most_steps: int = SHORT_STEPS

    def swapped(self, values: Floats) -> Floats:
        """From eigenvalues of c I − L to those of L, and back."""
        return self.top - values

    def good(self, run: LanczosRun, new: Tensor, limit: Floats) -> bool:
        """Whether the first pairs of a run have residuals below the limits: the same for L as for c I − L."""
        residual = run.last[: len(limit)] * run.off_diagonal[-1]
        # On the largest graphs what would come next takes more memory than there may be, and six equal clusters more
        # steps than LOOK.
        early = len(run.diagonal) == LOOK and len(new) < MANY_NODES
        if early and residual[0] > NEAR * self.top:
            raise RuntimeError(f"the lowest eigenvalues are not in sight after {LOOK} steps")
        return bool((residual <= limit).all())


def lowest(operator: Inverse | Flipped, null: Floats, k: int, target: Target) -> Eigenpairs:
    """The k lowest eigenpairs of L, with every copy of a repeated one below ``target.cut``.

    Lanczos started from one vector sees one vector of each eigenspace; the other copies are orthogonal to all that it
    builds. So a run from a random vector orthogonal to everything before looks for them, a few steps long where there
    are none (see :meth:`LanczosRun.chance`). Where there is one, the next run starts from what has converged alone.

    >>> cycle = sp.diags([-1.0, -1.0, 2.0, -1.0, -1.0], [-8, -1, 0, 1, 8], shape=(9, 9)).tocsr()
    >>> dense = torch.from_numpy(cycle.toarray())
    >>> inverse, flipped = torch.linalg.pinv(dense), 4 * torch.eye(9) - dense
    >>> for operator in (Inverse(cycle, lambda b: inverse @ b), Flipped(cycle, lambda b: flipped @ b, 4.0)):
    ...     values, _ = lowest(operator, np.full(9, 1 / 3), 5, Target())
    ...     values.round(4).tolist()
    [0.0, 0.4679, 0.4679, 1.6527, 1.6527]
    [0.0, 0.4679, 0.4679, 1.6527, 1.6527]
    """
    n, wanted, zero = len(null), k - 1, torch.from_numpy(null)
    values, vectors = np.empty(0), zero.new_empty(n, 0)  # the pairs found so far
    # Runs take turns: one that finds pairs is followed by one that looks for copies of them (looking), and where that
    # sees one, by a run that finds it. Once all that are wanted are known, only values above the floor count as new.
    basis, looking = Basis(zero, vectors), False
    for seed in range(MOST_RUNS):
        if wanted == 0 or basis.size == n:
            break
        run = LanczosRun(basis, operator, seed)
        floor = 0.0
        if len(values) == wanted:
            cut = target.cut(np.concatenate(([0.0], operator.swapped(values))))
            floor = float(operator.swapped(np.array(cut))) * (1 + MISSED)
        found = _follow(run, target, values, wanted, floor, looking)
        if not found and floor:
            break
        if floor and target.limits is not EXACT.limits:
            # Copies change the gaps: what was good enough may not be.
            return lowest(operator, null, k, replace(EXACT, cut=target.cut))
        if looking:
            basis, looking = Basis(zero, vectors), False  # late vectors of a run hold traces of the copies
            continue
        merged = np.concatenate((values, run.values[:found]))
        order = np.argsort(-merged, kind="stable")[:wanted]
        values, vectors = merged[order], torch.cat((vectors, run.vectors(found)), dim=1)[:, order]
        looking = True
        if n >= MANY_NODES:  # a copy is as well found among all that is orthogonal to the pairs alone
            del run
            basis = Basis(zero, vectors)
    else:
        raise RuntimeError(f"an eigenvalue is repeated more than {MOST_RUNS // 2} times")
    return with_null(operator.swapped(values), vectors.numpy(), null)


def _follow(run: LanczosRun, target: Target, known: Floats, wanted: int, floor: float, looking: bool) -> int:
    """Go on until the first values of the run have converged; return how many of them are among the ``wanted`` largest.

    The ``known`` values are among those, too; new ones lie above ``floor``. ``looking``: one new value is enough,
    converged or not.
    """
    operator, norm = run.operator, largest_bound(run.operator.L)
    while True:
        new = run.step()
        ritz = run.values
        merged = np.sort(np.concatenate((known, ritz[ritz > floor])))[::-1][:wanted]
        found = int(((ritz > floor) & (ritz >= merged[-1])).sum())
        if run.exhausted or (looking and found) or (not found and run.chance(floor) <= CHANCE):
            return found
        if len(merged) < wanted:
            continue
        if len(run.diagonal) > (operator.most_steps or MOST_STEPS * (wanted + 10)):
            raise RuntimeError(f"no convergence in {len(run.diagonal)} steps")
        limits = target.limits(np.concatenate(([0.0], operator.swapped(merged))), norm)[1:]
        top = max(found, 1)  # where none is found, that the largest has converged to less will do
        if operator.good(run, new, limits[np.minimum(np.searchsorted(-merged, -ritz[:top]), wanted - 1)]):
            return found


class Basis:
    """Orthonormal rows: the null vector, then others."""

    def __init__(self, null: Tensor, vectors: Tensor) -> None:
        self.size = 1 + vectors.shape[1]
        self.rows = null.new_empty(self.size + ROOM, len(null))
        self.rows[0], self.rows[1 : self.size] = null, vectors.T

    def add(self, row: Tensor) -> None:
        """Append a vector that is orthogonal to the others already."""
        if self.size == len(self.rows):
            self.rows = torch.cat((self.rows, torch.empty_like(self.rows[:MORE])))
        self.rows[self.size] = row
        self.size += 1

    def reject(self, vector: Tensor) -> Tensor:
        """What is new in a vector."""
        rows = self.rows[: self.size]
        return torch.addmv(vector, rows.T, rows @ vector, alpha=-1)


class LanczosRun:
    """Lanczos from a random vector orthogonal to a basis, which it extends, with L⁺ or c I − L.

    ``values``: the Ritz values, largest first; ``last``: the last entry of each Ritz vector; ``exhausted``: whether the
    vectors of the run span an invariant subspace.
    """

    def __init__(self, basis: Basis, operator: Inverse | Flipped, seed: int) -> None:
        self.basis, self.operator, self.first = basis, operator, basis.size
        self.diagonal: list[float] = []
        self.off_diagonal: list[float] = []
        self.exhausted = False
        new = torch.from_numpy(np.random.default_rng(seed).standard_normal(basis.rows.shape[1]))
        for _ in range(2):
            new = basis.reject(new)
            new /= torch.linalg.vector_norm(new)
        self.new = new

    def step(self) -> Tensor:
        """One product with the operator; returns the part of it that is new."""
        self.basis.add(self.new)
        q = self.basis.rows[self.basis.size - 1]
        w = self.operator.apply(q)
        self.diagonal.append(float(q @ w))
        w = w - self.diagonal[-1] * q
        if self.off_diagonal:
            w -= self.off_diagonal[-1] * self.basis.rows[self.basis.size - 2]
        w = self.basis.reject(w)
        size = float(torch.linalg.vector_norm(w))
        values, self.turn = eigh_tridiagonal(self.diagonal, self.off_diagonal)
        self.values, self.turn = values[::-1], self.turn[:, ::-1]
        self.last = abs(self.turn[-1])
        self.exhausted = size <= EXHAUSTED * self.values[0] or self.basis.size == len(w)
        self.off_diagonal.append(size)
        self.new = w / size if size else w
        return w

    def vectors(self, count: int) -> Tensor:
        """The first Ritz vectors ``[n, count]``."""
        turn = torch.from_numpy(self.turn[:, :count].copy())
        rows = self.basis.rows[self.first : self.basis.size]
        if rows.shape[1] < MANY_NODES:
            return rows.T @ turn
        found = rows.new_empty(rows.shape[1], turn.shape[1])
        for first in range(0, len(found), MANY_NODES):  # the product of all would copy some of them
            found[first : first + MANY_NODES] = rows[:, first : first + MANY_NODES].T @ turn
        return found

    def chance(self, floor: float) -> float:
        """How likely it is that an eigenvalue above ``floor`` is still hidden from the run.

        The j-th Lanczos vector is p_j(operator) x, so an eigenvector u of value θ has ⟨x, u⟩² Σ_j p_j(θ)² ≤ 1, and p_j
        grows beyond the Ritz values. A random x is that close to orthogonal to u with the probability returned.
        """
        if self.values[0] >= floor:
            return 1.0
        before, now, total = 0.0, 1.0, 1.0
        below = [0.0, *self.off_diagonal]
        for j, diagonal in enumerate(self.diagonal):
            before, now = now, ((floor - diagonal) * now - below[j] * before) / below[j + 1]
            total += now**2
        return float(np.sqrt(2 / np.pi * len(self.new) / total))
