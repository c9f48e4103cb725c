"""The solvers: each finds the k lowest eigenpairs of the Laplacian of one connected component.

A solver is a function ``(L, null, k) -> (values [k], vectors [n, k])``, where ``L`` is the sparse Laplacian and
``null [n]`` its known unit null vector. A solver may raise, and may return poor vectors: the ladder checks them.
All starting vectors are fixed, so that the same graph gives the same weights.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import scipy.linalg
import scipy.sparse as sp
from scipy.sparse.linalg import LinearOperator, eigsh, lobpcg, splu

Floats = npt.NDArray[np.float64]
Eigenpairs = tuple[Floats, Floats]
Solver = Callable[[sp.csr_matrix, Floats, int], Eigenpairs]

PROBE_TOLERANCE = 1e-2  # a missed eigenvalue shows itself long before it has converged
MISSED = 1e-7
MOST_MISSED = 64


def dense(L: sp.csr_matrix, null: Floats, k: int) -> Eigenpairs:
    """LAPACK on the full matrix: the reference, O(n³) time and O(n²) memory."""
    values, vectors = scipy.linalg.eigh(L.toarray(), subset_by_index=(0, k - 1))
    return values, vectors


def shift_invert(L: sp.csr_matrix, null: Floats, k: int) -> Eigenpairs:
    """Lanczos on the pseudo-inverse, through one sparse factorisation of L with its hub removed.

    The null vector is known, so no shift is needed: with one node grounded the rest of L is positive
    definite, and projecting the null vector out of the solution gives L⁺ b exactly. The lowest eigenvalues
    of L are the largest of L⁺, which Lanczos finds in a few steps, to machine precision.
    """
    n = L.shape[0]
    inverse = grounded_inverse(L, null)
    operator = LinearOperator((n, n), matvec=inverse, dtype=np.float64)
    inverted, vectors = _all_largest(operator, null, k - 1, lambda value: value)
    return _with_null(1 / inverted, vectors, null)


def lanczos(L: sp.csr_matrix, null: Floats, k: int) -> Eigenpairs:
    """Lanczos on c I − L: products with L alone; fast when the low eigenvalues are well separated."""
    n = L.shape[0]
    top = 2.0 * float(abs(L.diagonal()).max())

    def flipped(x: Floats) -> Floats:
        x = x.ravel()
        x = x - null * (null @ x)
        return top * x - L @ x  # type: ignore[no-any-return]

    operator = LinearOperator((n, n), matvec=flipped, dtype=np.float64)
    raised, vectors = _all_largest(operator, null, k - 1, lambda value: top - value)
    return _with_null(top - raised, vectors, null)


def lobpcg_amg(L: sp.csr_matrix, null: Floats, k: int) -> Eigenpairs:
    """LOBPCG preconditioned by plain-aggregation algebraic multigrid (pyamg): needs no factorisation."""
    try:
        import pyamg
    except ImportError as error:
        raise RuntimeError("pyamg is not installed: pip install 'tadropedge[lab]'") from error
    n = L.shape[0]
    # A positive definite neighbour of L; plain aggregation keeps coarse levels sparse on power-law graphs.
    scale = float(L.diagonal().mean())
    levels = pyamg.smoothed_aggregation_solver(
        (L + 1e-6 * scale * sp.identity(n)).tocsr(), B=null[:, None], smooth=None, symmetry="symmetric"
    )
    block = k + max(4, k // 2)  # guard vectors: the last wanted pair converges like the first
    start = np.random.default_rng(0).standard_normal((n, block))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # that it stopped short: the ladder measures it
        values, vectors = lobpcg(
            L,
            start,
            M=levels.aspreconditioner(),
            Y=null[:, None],
            tol=1e-13 * scale,
            maxiter=300,
            largest=False,
        )
    order = np.argsort(values)[: k - 1]
    return _with_null(values[order], vectors[:, order], null)


SOLVERS: dict[str, Solver] = {
    "dense": dense,
    "shift-invert": shift_invert,
    "lobpcg": lobpcg_amg,
    "lanczos": lanczos,
}


def grounded_inverse(L: sp.csr_matrix, null: Floats) -> Callable[[Floats], Floats]:
    """Return the map b ↦ L⁺ b for one right-hand side ``[n]`` or many ``[n, k]``."""
    n = L.shape[0]
    hub = int(np.argmax(np.diff(L.indptr)))  # grounding the largest hub also removes its fill
    rest = np.delete(np.arange(n), hub)
    factor = splu(
        L[rest][:, rest].tocsc(),
        permc_spec="MMD_AT_PLUS_A",
        diag_pivot_thresh=0.0,
        options={"SymmetricMode": True},
    )

    def inverse(b: Floats) -> Floats:
        b = b - np.multiply.outer(null, null @ b)
        x = np.zeros_like(b)
        x[rest] = factor.solve(np.ascontiguousarray(b[rest]))
        return x - np.multiply.outer(null, null @ x)

    return inverse


def _with_null(values: Floats, vectors: Floats, null: Floats) -> Eigenpairs:
    """Put the exactly known pair (0, null) in front."""
    return np.concatenate(([0.0], values)), np.column_stack((null, vectors))


def _all_largest(operator: LinearOperator, null: Floats, k: int, scale: Callable[[float], float]) -> Eigenpairs:
    """The k largest eigenpairs of ``operator``, in decreasing order, with every copy of a repeated one.

    Lanczos started from one vector sees one vector of each eigenspace and finds further copies by rounding
    only. So the found vectors are projected out and the rest is probed: an eigenvalue that should have been
    among the first k is added, until there is none. ``scale`` says which differences count near a value.
    """
    n = operator.shape[0]
    if k == 0:
        return np.empty(0), np.empty((n, 0))
    values, vectors = _lanczos_largest(operator, null, k, tolerance=0.0, seed=0)
    for attempt in range(MOST_MISSED):
        if k + vectors.shape[1] >= n - 1:
            break
        rest, last = _without(operator, vectors), float(values[k - 1])
        matters = abs(scale(last))
        missed = _lanczos_largest(rest, null, 1, PROBE_TOLERANCE * matters / last, seed=attempt + 1)[0]
        if missed[0] <= last + MISSED * matters:
            break
        vector = _lanczos_largest(rest, null, 1, tolerance=0.0, seed=attempt + 1)[1]
        values, vectors = _rayleigh_ritz(operator, np.column_stack((vectors, vector)))
    else:
        raise RuntimeError(f"an eigenvalue is repeated more than {MOST_MISSED} times")
    return values[:k], vectors[:, :k]


def _lanczos_largest(operator: LinearOperator, null: Floats, k: int, tolerance: float, seed: int) -> Eigenpairs:
    n = operator.shape[0]
    start = np.random.default_rng(seed).standard_normal(n)
    start -= null * (null @ start)
    steps = min(n, max(2 * k + 1, 20))
    values, vectors = eigsh(operator, k=k, which="LA", v0=start, tol=tolerance, ncv=steps, maxiter=3000)
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
