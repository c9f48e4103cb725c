"""Other calls for the lowest eigenvectors: each ``(L, degrees, q, normalized) -> vectors [n, q]``.

First those that people make, then the same solvers at the best settings that are known to us: a looser tolerance and a
larger basis for Lanczos, an ordering for symmetric matrices, plain aggregation on graphs with hubs.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import LinearOperator, eigsh, lobpcg, splu

SHIFT = -1e-5  # L itself is singular, so a shift-invert needs a small one


def smallest(L, degrees, q, normalized):
    """SciPy's Lanczos for the smallest algebraic eigenvalues."""
    return eigsh(L, k=q, which="SA")[1]


def smallest_tuned(L, degrees, q, normalized):
    """The same with a basis of 40 vectors, which restarts less often, and as accurate as a score needs."""
    return eigsh(L, k=q, which="SA", tol=1e-6, ncv=40)[1]


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
    return _lobpcg(L, degrees, q, normalized)


def plain_aggregation(L, degrees, q, normalized):
    """The same with plain aggregation, whose coarse matrices stay sparse where nodes have many neighbours."""
    return _lobpcg(L, degrees, q, normalized, smooth=None)


def _lobpcg(L, degrees, q, normalized, **settings):
    import pyamg

    shift = 1e-5 * sp.identity(L.shape[0])
    levels = pyamg.smoothed_aggregation_solver((L + shift).tocsr(), **settings)
    start = np.random.default_rng(0).standard_normal((L.shape[0], q))
    start[:, 0] = np.sqrt(degrees) if normalized else 1.0
    return lobpcg(L, start, M=levels.aspreconditioner(), tol=1e-5, largest=False)[1]


PEERS = {
    "eigsh SA": smallest,
    "eigsh SA, tol 1e-6, ncv 40": smallest_tuned,
    "eigsh sigma": shifted,
    "eigsh sigma, symmetric": shifted_symmetric,
    "lobpcg, smoothed AMG": like_sklearn,
    "lobpcg, plain AMG": plain_aggregation,
}
