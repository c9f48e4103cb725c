"""LAPACK on the full matrix."""

from __future__ import annotations

import scipy.linalg
import scipy.sparse as sp

from tadropedge.spectrum.aim import EXACT, Aim, Eigenpairs, Floats


def dense(L: sp.csr_matrix, null: Floats, k: int, aim: Aim = EXACT) -> Eigenpairs:
    """All of it at once: the reference, O(n³) time and O(n²) memory."""
    values, vectors = scipy.linalg.eigh(L.toarray(), subset_by_index=(0, k - 1))
    return values, vectors
