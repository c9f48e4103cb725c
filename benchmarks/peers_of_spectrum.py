"""The calls people make for the lowest eigenvectors: each ``(L, degrees, q, normalized) -> vectors [n, q]``."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import LinearOperator, eigsh, lobpcg, splu

SHIFT = -1e-5  # L itself is singular, so a shift-invert needs a small one


def smallest(L, degrees, q, normalized):
    """SciPy's Lanczos for the smallest algebraic eigenvalues."""
    return eigsh(L, k=q, which="SA")[1]


def shifted(L, degrees, q, normalized):
    """SciPy's shift-invert mode as it comes."""
    return eigsh(L, k=q, sigma=SHIFT, which="LM")[1]


def shifted_symmetric(L, degrees, q, normalized):
    """The same with a factorisation that knows that L is symmetric."""
    factor = splu(
        (L - SHIFT * sp.identity(L.shape[0])).tocsc(),
        permc_spec="MMD_AT_PLUS_A",
        diag_pivot_thresh=0.0,
        options={"SymmetricMode": True},
    )
    inverse = LinearOperator(L.shape, matvec=factor.solve, dtype=np.float64)
    return eigsh(L, k=q, sigma=SHIFT, which="LM", OPinv=inverse)[1]


def like_sklearn(L, degrees, q, normalized):
    """LOBPCG with smoothed-aggregation multigrid, the way scikit-learn's spectral_embedding calls it."""
    import pyamg

    shift = 1e-5 * sp.identity(L.shape[0])
    levels = pyamg.smoothed_aggregation_solver((L + shift).tocsr())
    start = np.random.default_rng(0).standard_normal((L.shape[0], q))
    start[:, 0] = np.sqrt(degrees) if normalized else 1.0
    return lobpcg(L, start, M=levels.aspreconditioner(), tol=1e-5, largest=False)[1]


PEERS = {
    "eigsh SA": smallest,
    "eigsh sigma": shifted,
    "eigsh sigma, symmetric": shifted_symmetric,
    "lobpcg, smoothed AMG": like_sklearn,
}
