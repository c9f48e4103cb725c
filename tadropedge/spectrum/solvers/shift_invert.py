"""Lanczos on the pseudo-inverse, through a sparse factorisation."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import LinearOperator, splu

from tadropedge.spectrum.aim import EXACT, Aim, Eigenpairs, Floats, with_null
from tadropedge.spectrum.krylov import all_largest

RELATIVE = 1e-12  # residual of each pair of L⁺, as a share of its value


def shift_invert(L: sp.csr_matrix, null: Floats, k: int, aim: Aim = EXACT) -> Eigenpairs:
    """Lanczos on L⁺, through one sparse factorisation of L with its hub removed.

    The null vector is known, so no shift is needed: with one node grounded the rest of L is positive
    definite, and projecting the null vector out of the solution gives L⁺ b exactly. The lowest eigenvalues
    of L are the largest of L⁺, which Lanczos finds in a few steps, to machine precision.
    """
    n = L.shape[0]
    inverse = grounded_inverse(L, null)
    operator = LinearOperator((n, n), matvec=inverse, dtype=np.float64)
    inverted, vectors = all_largest(operator, null, k - 1, lambda value: value, RELATIVE)
    return with_null(1 / inverted, vectors, null)


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
