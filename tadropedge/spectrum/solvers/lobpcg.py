"""LOBPCG with pyamg's multigrid."""

from __future__ import annotations

import warnings

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import lobpcg

from tadropedge.spectrum.aim import EXACT, Aim, Eigenpairs, Floats, with_null


def lobpcg_amg(L: sp.csr_matrix, null: Floats, k: int, aim: Aim = EXACT) -> Eigenpairs:
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
    block = k + max(6, k // 2)  # guard vectors: the last wanted pair converges like the first
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
    return with_null(values[order], vectors[:, order], null)
