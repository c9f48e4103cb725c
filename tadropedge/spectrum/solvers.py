"""The solvers by name: each finds the k lowest eigenpairs of the Laplacian of one connected component.

A solver is a function ``(L, null, k, target) -> (values [k], vectors [n, k])``, where ``L`` is the sparse Laplacian,
``null [n]`` its known unit null vector and ``target`` says where to run and how good is good enough. A solver may
raise, and may return poor vectors: they are checked. All starting vectors are fixed, so that the same graph gives the
same scores.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import scipy.linalg
import scipy.sparse as sp
import torch
from scipy.sparse.linalg import splu
from torch import Tensor

from tadropedge.spectrum.blocks import Floats
from tadropedge.spectrum.davidson import davidson
from tadropedge.spectrum.lanczos import Flipped, Inverse, lowest
from tadropedge.spectrum.matrix import SparseMatrix
from tadropedge.spectrum.target import EXACT, Eigenpairs, Solver, Target, few_threads, largest_bound, with_null

TOO_FAR = 2  # shift-invert aims at half the residual that the check allows


def dense(L: sp.csr_matrix, null: Floats, k: int, target: Target = EXACT) -> Eigenpairs:
    """LAPACK on the full matrix: the reference, O(n³) time and O(n²) memory."""
    values, vectors = scipy.linalg.eigh(L.toarray(), subset_by_index=(0, k - 1))
    return values, vectors


def shift_invert(L: sp.csr_matrix, null: Floats, k: int, target: Target = EXACT) -> Eigenpairs:
    """Lanczos on L⁺, through one sparse factorisation of L with its hub removed.

    The null vector is known, so no shift is needed: with one node grounded the rest of L is positive
    definite, and projecting the null vector out of the solution gives L⁺ b exactly. The lowest eigenvalues
    of L are the largest of L⁺, which Lanczos finds in a few steps.
    """
    inverse = grounded_inverse(L, null)
    with few_threads(L.shape[0]):
        values, vectors = lowest(Inverse(L, lambda b: torch.from_numpy(inverse(b.numpy()))), null, k, target)
    residual = np.linalg.norm(L @ vectors - vectors * values, axis=0)
    if (residual[1:] > TOO_FAR * target.limits(values, largest_bound(L))[1:]).any():
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


def short_lanczos(L: sp.csr_matrix, null: Floats, k: int, target: Target = EXACT) -> Eigenpairs:
    """Lanczos on c I − L without restarts; gives up early where the low eigenvalues turn out to lie close together.

    Where the degrees are all alike, as in a normalised Laplacian, and a random walk mixes fast, the low eigenvalues are
    well apart from the others, and some tens of products find them: nothing else is as cheap.
    """
    with few_threads(L.shape[0]):
        return lowest(flipped(L), null, k, target)


def flipped(L: sp.csr_matrix) -> Flipped:
    """``c I − L`` with c ≥ ‖L‖, through products with L alone."""
    top, entries = largest_bound(L), SparseMatrix.of(L)
    matrix = entries.csr.as_torch(entries.values)

    def apply(x: Tensor) -> Tensor:
        return torch.addmv(x, matrix, x, beta=top, alpha=-1)

    return Flipped(L, apply, top)


SOLVERS: dict[str, Solver] = {
    "dense": dense,
    "shift-invert": shift_invert,
    "davidson": davidson,
    "short-lanczos": short_lanczos,
}
