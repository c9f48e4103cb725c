"""Every copy of the lowest eigenvalues of a Laplacian, by Lanczos on its pseudo-inverse, without restarts."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import scipy.sparse as sp
from scipy.linalg import eigh_tridiagonal

from tadropedge.spectrum.aim import EXACT, Aim, Eigenpairs, Floats, largest_diagonal, with_null

CHANCE = 1e-6  # that a run ends before an eigenvector shows itself
MISSED = 1e-7  # an eigenvalue of L⁺ that is larger by this share was missed
MOST_RUNS = 128  # two for each copy
MOST_STEPS = 20  # for each pair
ROOM = 40  # vectors that most runs need at most
EXHAUSTED = 1e-13  # what is new in a vector, as a share of the largest eigenvalue, when it leads nowhere


def lowest(L: sp.csr_matrix, inverse: Callable[[Floats], Floats], null: Floats, k: int, aim: Aim) -> Eigenpairs:
    """The k lowest eigenpairs of L, with every copy of a repeated one, where ``inverse`` is b ↦ L⁺ b.

    Lanczos started from one vector sees one vector of each eigenspace; the other copies are orthogonal to all that it
    builds. So a run from a random vector orthogonal to everything before looks for them, a few steps long where there
    are none (see :meth:`Run.chance`). Where there is one, the next run starts from what has converged alone.

    >>> cycle = sp.diags([-1.0, -1.0, 2.0, -1.0, -1.0], [-8, -1, 0, 1, 8], shape=(9, 9)).tocsr()
    >>> values, _ = lowest(cycle, lambda b: np.linalg.pinv(cycle.toarray()) @ b, np.full(9, 1 / 3), 5, Aim())
    >>> values.round(4).tolist()
    [0.0, 0.4679, 0.4679, 1.6527, 1.6527]
    """
    n, wanted = L.shape[0], k - 1
    values, vectors = np.empty(0), np.empty((n, 0))
    basis, looking = Basis(null, vectors), False
    for seed in range(MOST_RUNS):
        if wanted == 0 or basis.size == n:
            break
        run = Run(basis, inverse, seed)
        floor = values[-1] * (1 + MISSED) if len(values) == wanted else 0.0
        found = _follow(run, L, values, floor, wanted, aim, looking)
        if not found and floor:
            break
        if floor and aim.limits is not EXACT.limits:
            return lowest(L, inverse, null, k, EXACT)  # copies change the gaps: what was good enough may not be
        if looking:
            basis, looking = Basis(null, vectors), False  # late vectors of a run hold traces of the copies
            continue
        merged = np.concatenate((values, run.values[:found]))
        order = np.argsort(-merged, kind="stable")[:wanted]
        values, vectors = merged[order], np.column_stack((vectors, run.vectors(found)))[:, order]
        looking = True
    else:
        raise RuntimeError(f"an eigenvalue is repeated more than {MOST_RUNS // 2} times")
    return with_null(1 / values, vectors, null)


def _follow(run: Run, L: sp.csr_matrix, values: Floats, floor: float, wanted: int, aim: Aim, looking: bool) -> int:
    """Go on until the first values of the run have converged; return how many belong to the ``wanted`` largest of all.

    Where it is ``looking`` for values above the floor, one is enough, converged or not.
    """
    norm = 2 * largest_diagonal(L)
    while True:
        new = run.step()
        ritz = run.values
        merged = np.sort(np.concatenate((values, ritz[ritz > floor])))[::-1][:wanted]
        found = int(((ritz > floor) & (ritz >= merged[-1])).sum())
        if run.exhausted or (looking and found) or (not found and run.chance(floor) <= CHANCE):
            return found
        if len(merged) < wanted:
            continue
        if len(run.diagonal) > MOST_STEPS * (wanted + 10):
            raise RuntimeError(f"no convergence in {len(run.diagonal)} steps")
        # L⁺ v − θ v is a multiple of the new vector; times −L / θ it is the residual of the pair (1 / θ, v) of L.
        limits = aim.limits(np.concatenate(([0.0], 1 / merged)), norm)[1:]
        top = max(found, 1)  # where none is found, that the largest has converged to less will do
        limit = limits[np.minimum(np.searchsorted(-merged, -ritz[:top]), wanted - 1)]
        share = run.last[:top] / ritz[:top]
        at_least = share * run.beside[-1] / ritz[:top]  # the new vector is made of modes above the pair's
        if (at_least <= limit).all() and (share * np.linalg.norm(L @ new) <= limit).all():
            return found


class Basis:
    """Orthonormal rows: the null vector, then others."""

    def __init__(self, null: Floats, vectors: Floats) -> None:
        self.size = 1 + vectors.shape[1]
        self.rows = np.empty((self.size + ROOM, len(null)))
        self.rows[: self.size] = np.vstack((null, vectors.T))

    def add(self, row: Floats) -> None:
        """Append a vector that is orthogonal to the others already."""
        if self.size == len(self.rows):
            self.rows = np.concatenate((self.rows, np.empty_like(self.rows)))
        self.rows[self.size] = row
        self.size += 1

    def reject(self, vector: Floats) -> Floats:
        """What is new in a vector."""
        rows = self.rows[: self.size]
        return vector - (rows @ vector) @ rows


class Run:
    """Lanczos from a random vector orthogonal to a basis, which it extends.

    ``values``: the Ritz values, largest first; ``last``: the last entry of each Ritz vector; ``exhausted``: whether the
    vectors of the run span an invariant subspace.
    """

    def __init__(self, basis: Basis, inverse: Callable[[Floats], Floats], seed: int) -> None:
        self.basis, self.inverse, self.first = basis, inverse, basis.size
        self.diagonal: list[float] = []
        self.beside: list[float] = []
        self.exhausted = False
        new = np.random.default_rng(seed).standard_normal(basis.rows.shape[1])
        for _ in range(2):
            new = basis.reject(new)
            new /= np.linalg.norm(new)
        self.new = new

    def step(self) -> Floats:
        """One product with L⁺; returns the part of it that is new."""
        self.basis.add(self.new)
        q = self.basis.rows[self.basis.size - 1]
        w = self.inverse(q)
        self.diagonal.append(float(q @ w))
        w -= self.diagonal[-1] * q
        if self.beside:
            w -= self.beside[-1] * self.basis.rows[self.basis.size - 2]
        w = self.basis.reject(w)
        size = float(np.linalg.norm(w))
        values, self.turn = eigh_tridiagonal(self.diagonal, self.beside)
        self.values, self.turn = values[::-1], self.turn[:, ::-1]
        self.last = abs(self.turn[-1])
        self.exhausted = size <= EXHAUSTED * self.values[0] or self.basis.size == len(w)
        self.beside.append(size)
        self.new = w / size if size else w
        return w

    def vectors(self, count: int) -> Floats:
        """The first Ritz vectors ``[n, count]``."""
        found: Floats = self.basis.rows[self.first : self.basis.size].T @ self.turn[:, :count]
        return found

    def chance(self, floor: float) -> float:
        """How likely it is that an eigenvalue above ``floor`` is still hidden from the run.

        The j-th Lanczos vector is p_j(L⁺) x, so an eigenvector u of value θ has ⟨x, u⟩² Σ_j p_j(θ)² ≤ 1, and p_j grows
        beyond the Ritz values. A random x is that close to orthogonal to u with the probability returned.
        """
        if self.values[0] >= floor:
            return 1.0
        before, now, total = 0.0, 1.0, 1.0
        below = [0.0, *self.beside]
        for j, diagonal in enumerate(self.diagonal):
            before, now = now, ((floor - diagonal) * now - below[j] * before) / below[j + 1]
            total += now**2
        return float(np.sqrt(2 / np.pi * len(self.new) / total))
