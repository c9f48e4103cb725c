"""The solvers by name: each finds the k lowest eigenpairs of the Laplacian of one connected component.

A solver is a function ``(L, null, k, aim) -> (values [k], vectors [n, k])``, where ``L`` is the sparse Laplacian,
``null [n]`` its known unit null vector and ``aim`` says where to run and how good is good enough. A solver may raise,
and may return poor vectors: the ladder checks them. All starting vectors are fixed, so that the same graph gives the
same scores.
"""

from __future__ import annotations

from collections.abc import Callable
from inspect import signature

import numpy as np
import scipy.linalg
import scipy.sparse as sp
import torch
from scipy.sparse.linalg import LinearOperator, eigsh, splu
from torch import Tensor

from tadropedge._old.blocks import Floats
from tadropedge._old.sparse import hush_beta_warning
from tadropedge._old.spectrum.aim import EXACT, Aim, Eigenpairs, Solver, largest_bound, with_null
from tadropedge._old.spectrum.certified import Flipped, Inverse, lowest
from tadropedge._old.spectrum.davidson import davidson
from tadropedge._old.spectrum.machine import few_threads
from tadropedge._old.spectrum.mpi.solver import slepc

TOO_FAR = 2  # shift-invert aims at half the residual that the check allows
TO_ROUNDING = 0.0  # ARPACK's tolerance, relative to each value
PROBE_TOLERANCE = 1e-2  # a missed eigenvalue shows itself long before it has converged
SHORT = 8  # vectors that a probe keeps
MISSED = 1e-7
MOST_MISSED = 64
SEEDED = "rng" in signature(eigsh).parameters  # since SciPy 1.17: what follows an invariant subspace


def dense(L: sp.csr_matrix, null: Floats, k: int, aim: Aim = EXACT) -> Eigenpairs:
    """LAPACK on the full matrix: the reference, O(n³) time and O(n²) memory."""
    values, vectors = scipy.linalg.eigh(L.toarray(), subset_by_index=(0, k - 1))
    return values, vectors


def shift_invert(L: sp.csr_matrix, null: Floats, k: int, aim: Aim = EXACT) -> Eigenpairs:
    """Lanczos on L⁺, through one sparse factorisation of L with its hub removed.

    The null vector is known, so no shift is needed: with one node grounded the rest of L is positive
    definite, and projecting the null vector out of the solution gives L⁺ b exactly. The lowest eigenvalues
    of L are the largest of L⁺, which Lanczos finds in a few steps.
    """
    inverse = grounded_inverse(L, null)
    with few_threads(L.shape[0]):
        values, vectors = lowest(Inverse(L, lambda b: torch.from_numpy(inverse(b.numpy()))), null, k, aim)
    residual = np.linalg.norm(L @ vectors - vectors * values, axis=0)
    if (residual[1:] > TOO_FAR * aim.limits(values, largest_bound(L))[1:]).any():
        return _polished(L, inverse, null, vectors[:, 1:])
    return values, vectors


def _polished(L: sp.csr_matrix, inverse: Callable[[Floats], Floats], null: Floats, vectors: Floats) -> Eigenpairs:
    """One more inverse iteration, with iterative refinement, and Rayleigh and Ritz in what it gives.

    The rows of a solution are off by rounding, and all of it adds up in the row of the grounded node: on long thin
    graphs that is √n times too much. A correction leaves errors that do not all have the same sign.
    """
    refined = inverse(vectors)
    refined += inverse(vectors - L @ refined)
    basis = np.linalg.qr(refined)[0]
    values, turn = np.linalg.eigh(basis.T @ (L @ basis))
    return with_null(values, basis @ turn, null)


def grounded_inverse(L: sp.csr_matrix, null: Floats) -> Callable[[Floats], Floats]:
    """Return the map b ↦ L⁺ b for one right-hand side ``[n]`` or many ``[n, k]``."""
    hub = int(np.argmax(np.diff(L.indptr)))  # grounding the largest hub also removes its fill
    factor = splu(
        _grounded(L, hub),
        permc_spec="MMD_AT_PLUS_A",
        diag_pivot_thresh=0.0,
        panel_size=1,  # most columns have few entries to share with the next
        options={"SymmetricMode": True},
    )

    def inverse(b: Floats) -> Floats:
        b = b - np.multiply.outer(null, _along(null, b))
        b[hub] = 0.0
        x: Floats = factor.solve(b)
        x -= np.multiply.outer(null, _along(null, x))
        return x

    return inverse


def _along(null: Floats, b: Floats) -> Floats:
    """nullᵀ b. The threads that NumPy starts for one long product get in the way of torch's, so there is none."""
    product: Floats = np.add.reduce(null * b) if b.ndim == 1 else null @ b
    return product


def _grounded(L: sp.csr_matrix, hub: int) -> sp.csc_matrix:
    """L with the edges of the hub cut: its row and column are those of the identity."""
    rows = np.repeat(np.arange(L.shape[0]), np.diff(L.indptr))
    inside = (rows != hub) & (L.indices != hub) | (rows == L.indices)
    data = np.where((rows == hub) & inside, 1.0, L.data)[inside]
    indptr = np.concatenate(([0], np.cumsum(inside)))[L.indptr].astype(L.indices.dtype)
    return sp.csc_matrix((data, L.indices[inside], indptr), shape=L.shape)  # L is symmetric: rows are columns


def short_lanczos(L: sp.csr_matrix, null: Floats, k: int, aim: Aim = EXACT) -> Eigenpairs:
    """Lanczos on c I − L without restarts; gives up early where the low eigenvalues turn out to lie close together.

    Where the degrees are all alike, as in a normalised Laplacian, and a random walk mixes fast, the low eigenvalues are
    well apart from the others, and some tens of products find them: nothing else is as cheap.
    """
    top = largest_bound(L)
    hush_beta_warning()
    crow, col, entries = (torch.from_numpy(part) for part in (L.indptr, L.indices, L.data))
    matrix = torch.sparse_csr_tensor(crow, col, entries, L.shape, check_invariants=False)

    def flipped(x: Tensor) -> Tensor:
        return torch.addmv(x, matrix, x, beta=top, alpha=-1)

    with few_threads(L.shape[0]):
        return lowest(Flipped(L, flipped, top), null, k, aim)


def lanczos(L: sp.csr_matrix, null: Floats, k: int, aim: Aim = EXACT) -> Eigenpairs:
    """Lanczos on c I − L by ARPACK: products with L alone; fast when the low eigenvalues are well separated.

    Lanczos started from one vector sees one vector of each eigenspace and finds further copies by rounding only. So the
    found vectors are projected out and the rest is probed: an eigenvalue that should have been among the first is
    added, until there is none.
    """
    n, wanted, top = L.shape[0], k - 1, largest_bound(L)

    def flipped(x: Floats) -> Floats:
        x = x.ravel()
        x = x - null * (null @ x)
        return top * x - L @ x  # type: ignore[no-any-return]

    if wanted == 0:
        return with_null(np.empty(0), np.empty((n, 0)), null)
    operator = LinearOperator((n, n), matvec=flipped, dtype=np.float64)
    raised, vectors = _largest(operator, null, wanted, TO_ROUNDING, seed=0)
    for attempt in range(MOST_MISSED):
        if wanted + vectors.shape[1] >= n - 1:
            break
        rest, last = _without(operator, vectors), float(raised[wanted - 1])
        matters = abs(top - last)  # differences count by the size of the eigenvalue of L
        missed = _largest(rest, null, 1, PROBE_TOLERANCE * matters / last, seed=attempt + 1)[0]
        if missed[0] <= last + MISSED * matters:
            break
        vector = _largest(rest, null, 1, TO_ROUNDING, seed=attempt + 1)[1]
        basis = np.linalg.qr(np.column_stack((vectors, vector)))[0]
        image = np.column_stack([operator.matvec(column) for column in basis.T])
        raised, turn = _descending(*np.linalg.eigh(basis.T @ image))
        vectors = basis @ turn
    else:
        raise RuntimeError(f"an eigenvalue is repeated more than {MOST_MISSED} times")
    return with_null(top - raised[:wanted], vectors[:, :wanted], null)


def _largest(operator: LinearOperator, null: Floats, k: int, tolerance: float, seed: int) -> Eigenpairs:
    """The k largest eigenpairs that one run of ARPACK finds, in decreasing order."""
    n = operator.shape[0]
    start = np.random.default_rng(seed).standard_normal(n)
    start -= null * (null @ start)
    steps = min(n, max(2 * k + 1, SHORT if tolerance >= PROBE_TOLERANCE / 2 else 20))
    fixed = {"rng": np.random.default_rng(seed)} if SEEDED else {}
    return _descending(*eigsh(operator, k=k, which="LA", v0=start, tol=tolerance, ncv=steps, maxiter=3000, **fixed))


def _descending(values: Floats, vectors: Floats) -> Eigenpairs:
    order = np.argsort(values)[::-1]
    return values[order], vectors[:, order]


def _without(operator: LinearOperator, vectors: Floats) -> LinearOperator:
    """The operator on the complement of ``vectors``."""

    def apply(x: Floats) -> Floats:
        x = x.ravel()
        y = operator.matvec(x - vectors @ (vectors.T @ x))
        return y - vectors @ (vectors.T @ y)  # type: ignore[no-any-return]

    return LinearOperator(operator.shape, matvec=apply, dtype=np.float64)


SOLVERS: dict[str, Solver] = {
    "dense": dense,
    "shift-invert": shift_invert,
    "davidson": davidson,
    "lanczos": lanczos,
    "short-lanczos": short_lanczos,
    "slepc": slepc,
}
