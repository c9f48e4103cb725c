"""Lanczos on the pseudo-inverse, through a sparse factorisation."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import splu

from tadropedge.spectrum.aim import EXACT, Aim, Eigenpairs, Floats
from tadropedge.spectrum.certified import lowest


def shift_invert(L: sp.csr_matrix, null: Floats, k: int, aim: Aim = EXACT) -> Eigenpairs:
    """Lanczos on L⁺, through one sparse factorisation of L with its hub removed.

    The null vector is known, so no shift is needed: with one node grounded the rest of L is positive
    definite, and projecting the null vector out of the solution gives L⁺ b exactly. The lowest eigenvalues
    of L are the largest of L⁺, which Lanczos finds in a few steps.
    """
    return lowest(L, grounded_inverse(L, null), null, k, aim)


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
        b = b - np.multiply.outer(null, null @ b)
        b[hub] = 0.0
        x: Floats = factor.solve(b)
        x -= np.multiply.outer(null, null @ x)
        return x

    return inverse


def _grounded(L: sp.csr_matrix, hub: int) -> sp.csc_matrix:
    """L with the edges of the hub cut: its row and column are those of the identity."""
    rows = np.repeat(np.arange(L.shape[0]), np.diff(L.indptr))
    inside = (rows != hub) & (L.indices != hub) | (rows == L.indices)
    data = np.where((rows == hub) & inside, 1.0, L.data)[inside]
    indptr = np.concatenate(([0], np.cumsum(inside)))[L.indptr].astype(L.indices.dtype)
    return sp.csc_matrix((data, L.indices[inside], indptr), shape=L.shape)  # L is symmetric: rows are columns
