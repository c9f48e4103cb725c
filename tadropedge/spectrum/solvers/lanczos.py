"""Lanczos with products alone: ARPACK, with a search for every copy of a repeated eigenvalue."""

from __future__ import annotations

from collections.abc import Callable
from inspect import signature

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import LinearOperator, eigsh

from tadropedge.spectrum.aim import EXACT, Aim, Eigenpairs, Floats, largest_diagonal, with_null

TO_ROUNDING = 0.0  # ARPACK's tolerance, relative to each value
PROBE_TOLERANCE = 1e-2  # a missed eigenvalue shows itself long before it has converged
SHORT = 8  # vectors that a probe keeps
MISSED = 1e-7
MOST_MISSED = 64
SEEDED = "rng" in signature(eigsh).parameters  # since SciPy 1.17: what follows an invariant subspace


def lanczos(L: sp.csr_matrix, null: Floats, k: int, aim: Aim = EXACT) -> Eigenpairs:
    """Lanczos on c I − L: products with L alone; fast when the low eigenvalues are well separated."""
    n = L.shape[0]
    top = 2.0 * largest_diagonal(L)

    def flipped(x: Floats) -> Floats:
        x = x.ravel()
        x = x - null * (null @ x)
        return top * x - L @ x  # type: ignore[no-any-return]

    operator = LinearOperator((n, n), matvec=flipped, dtype=np.float64)
    raised, vectors = _all_largest(operator, null, k - 1, lambda value: top - value)
    return with_null(top - raised, vectors, null)


def _all_largest(operator: LinearOperator, null: Floats, k: int, scale: Callable[[float], float]) -> Eigenpairs:
    """The k largest eigenpairs of ``operator``, in decreasing order, with every copy of a repeated one.

    Lanczos started from one vector sees one vector of each eigenspace and finds further copies by rounding
    only. So the found vectors are projected out and the rest is probed: an eigenvalue that should have been
    among the first k is added, until there is none. ``scale`` says which differences count near a value.
    """
    n = operator.shape[0]
    if k == 0:
        return np.empty(0), np.empty((n, 0))
    values, vectors = _lanczos_largest(operator, null, k, TO_ROUNDING, seed=0)
    for attempt in range(MOST_MISSED):
        if k + vectors.shape[1] >= n - 1:
            break
        rest, last = _without(operator, vectors), float(values[k - 1])
        matters = abs(scale(last))
        missed = _lanczos_largest(rest, null, 1, PROBE_TOLERANCE * matters / last, seed=attempt + 1)[0]
        if missed[0] <= last + MISSED * matters:
            break
        vector = _lanczos_largest(rest, null, 1, TO_ROUNDING, seed=attempt + 1)[1]
        values, vectors = _rayleigh_ritz(operator, np.column_stack((vectors, vector)))
    else:
        raise RuntimeError(f"an eigenvalue is repeated more than {MOST_MISSED} times")
    return values[:k], vectors[:, :k]


def _lanczos_largest(operator: LinearOperator, null: Floats, k: int, tolerance: float, seed: int) -> Eigenpairs:
    n = operator.shape[0]
    start = np.random.default_rng(seed).standard_normal(n)
    start -= null * (null @ start)
    steps = min(n, max(2 * k + 1, SHORT if tolerance >= PROBE_TOLERANCE / 2 else 20))
    fixed = {"rng": np.random.default_rng(seed)} if SEEDED else {}
    values, vectors = eigsh(operator, k=k, which="LA", v0=start, tol=tolerance, ncv=steps, maxiter=3000, **fixed)
    order = np.argsort(values)[::-1]
    return values[order], vectors[:, order]


def _without(operator: LinearOperator, vectors: Floats) -> LinearOperator:
    """The operator on the complement of ``vectors``."""

    def apply(x: Floats) -> Floats:
        x = x.ravel()
        y = operator.matvec(x - vectors @ (vectors.T @ x))
        return y - vectors @ (vectors.T @ y)  # type: ignore[no-any-return]

    return LinearOperator(operator.shape, matvec=apply, dtype=np.float64)


def _rayleigh_ritz(operator: LinearOperator, vectors: Floats) -> Eigenpairs:
    basis = np.linalg.qr(vectors)[0]
    image = np.column_stack([operator.matvec(column) for column in basis.T])
    values, turn = np.linalg.eigh(basis.T @ image)
    order = np.argsort(values)[::-1]
    return values[order], basis @ turn[:, order]
