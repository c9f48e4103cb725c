"""Lanczos with products alone."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import LinearOperator

from tadropedge.spectrum.aim import EXACT, Aim, Eigenpairs, Floats, largest_diagonal, with_null
from tadropedge.spectrum.krylov import all_largest


def lanczos(L: sp.csr_matrix, null: Floats, k: int, aim: Aim = EXACT) -> Eigenpairs:
    """Lanczos on c I − L: products with L alone; fast when the low eigenvalues are well separated."""
    n = L.shape[0]
    top = 2.0 * largest_diagonal(L)

    def flipped(x: Floats) -> Floats:
        x = x.ravel()
        x = x - null * (null @ x)
        return top * x - L @ x  # type: ignore[no-any-return]

    operator = LinearOperator((n, n), matvec=flipped, dtype=np.float64)
    raised, vectors = all_largest(operator, null, k - 1, lambda value: top - value)
    return with_null(top - raised, vectors, null)
