"""The ladder: which solvers are tried on a component, in which order, and the check that each must pass."""

from __future__ import annotations

import logging
import warnings
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from tadropedge.blocks import DENSE_NODES
from tadropedge.errors import ConvergenceError, lookup
from tadropedge.spectrum.clusters import Clusters, cluster_counts
from tadropedge.spectrum.solvers import SOLVERS, Eigenpairs

Floats = npt.NDArray[np.float64]

EPSILON = float(np.finfo(np.float64).eps)
DENSE_FALLBACK = 6_000  # nodes up to which the dense solver may end a ladder: 300 MB, about a minute
FACTOR_CYCLES = 400_000  # independent cycles (M − N + 1) up to which a factorisation is tried unasked
DENSE_SHARE = 10  # iterative solvers are for k well below n
MOST_PAIRS = 512  # eigenpairs beyond which a repeated eigenvalue of a large component is given up

log = logging.getLogger("tadropedge")


@dataclass(frozen=True)
class Subspace:
    """The q lowest modes of one component: ``vectors [n, q]`` and the bound ``error`` on their subspace's angle."""

    values: Floats
    vectors: Floats
    error: float
    widened: bool
    solver: str


def rungs(n: int, num_edges: int, solver: str) -> list[str]:
    """The names of the solvers to try, in order.

    A solver asked for by name is the only one tried. ``auto`` looks at the component: dense when small; a
    sparse factorisation when there are few independent cycles (citation, road and mail graphs); else
    preconditioned and plain iterations.

    >>> rungs(100, 300, "auto"), rungs(20_000, 44_000, "auto")
    (['dense'], ['shift-invert', 'lobpcg', 'lanczos'])
    >>> rungs(300_000, 1_000_000, "auto")
    ['lobpcg', 'lanczos']
    """
    if solver != "auto":
        lookup("solver", solver, {"auto": None, **SOLVERS})
        return [solver]
    if n <= DENSE_NODES:
        return ["dense"]
    names = ["lobpcg", "lanczos"]
    if num_edges - n + 1 <= FACTOR_CYCLES:
        names.insert(0, "shift-invert")
    if n <= DENSE_FALLBACK:
        names.append("dense")
    return names


def climb(L: sp.csr_matrix, null: Floats, norm: float, clusters: Clusters, solver: str, tolerance: float) -> Subspace:
    """Find the modes that ``clusters`` asks for, with the first solver whose answer passes the check.

    ``tolerance`` bounds the absolute error of every weight. A weight is ω = dᵀ P d with ‖d‖² = 2 and P the
    projector on the modes, so |Δω| ≤ 2 ‖ΔP‖ and the subspace may turn by ``tolerance / 2``. By Davis and
    Kahan it turns by at most ‖L V − V Λ‖ / (gap above q). A residual at the level of rounding always passes: where
    the gap is so small that rounding alone turns the subspace by more, no float64 solver does better.
    """
    n, edges = L.shape[0], (L.nnz - L.shape[0]) // 2
    k = min(n, clusters.pairs_needed + 1)
    reasons: list[str] = []
    for rung in rungs(n, edges, solver):
        name, pairs = rung, k
        while True:
            log.debug("component of %d nodes: %s, %d eigenpairs", n, name, pairs)
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")  # of singular or stalled iterations: the check below decides
                    found = _solve(name, L, null, pairs)
            except (RuntimeError, ArithmeticError, MemoryError, np.linalg.LinAlgError, ValueError) as error:
                reasons.append(f"{name}: {str(error).strip() or type(error).__name__}")
                break
            subspace, reason = _checked(L, found, norm, clusters, tolerance, name)
            if subspace is not None:
                return subspace
            if reason is not None:
                reasons.append(f"{name}: {reason}")
                break
            if solver == "auto" and name != "dense" and n <= DENSE_FALLBACK:
                name, pairs = "dense", n  # q fell into an eigenspace: all of it at once
                continue
            if name != "dense" and pairs >= MOST_PAIRS:
                reasons.append(f"{name}: the eigenvalue {found[0][-1]:.6g} is repeated too often")
                break
            pairs = n if name == "dense" else min(n, 2 * pairs)
        log.info("component of %d nodes: %s", n, reasons[-1])
    raise ConvergenceError(
        f"no solver found the low spectrum of a component of {n} nodes and {edges} edges "
        f"({'; '.join(reasons)}); choose another q, a larger tolerance than {tolerance:g}, "
        f"or a solver from {', '.join(SOLVERS)}"
    )


def _solve(name: str, L: sp.csr_matrix, null: Floats, k: int) -> Eigenpairs:
    """Call a solver; where a large share of all pairs is wanted the dense one answers for it."""
    if L.shape[0] <= DENSE_SHARE * k:
        name = "dense"
    return SOLVERS[name](L, null, k)


def _checked(
    L: sp.csr_matrix, found: Eigenpairs, norm: float, clusters: Clusters, tolerance: float, name: str
) -> tuple[Subspace | None, str | None]:
    """Return the subspace if it is good, else the reason why not; neither when more pairs are needed."""
    values, vectors = found
    if not (np.isfinite(values).all() and np.isfinite(vectors).all()):
        return None, "the solver returned NaN"
    n = L.shape[0]
    counts, widened = cluster_counts(values[None], n, np.array([norm]), clusters)
    count = int(counts[0])
    residual = L @ vectors - vectors * values
    # While the end of the eigenspace is not in sight the last pairs need not be good yet.
    used = count or len(values)
    size = float(np.linalg.norm(residual[:, :used]))
    skew = float(np.linalg.norm(vectors[:, :used].T @ vectors[:, :used] - np.eye(used)))
    gap = float(values[count] - values[count - 1]) if 0 < count < len(values) else np.inf
    rounding = 200 * EPSILON * norm * np.sqrt(used)
    limit = max(rounding, tolerance / 2 * gap if np.isfinite(gap) else rounding)
    if size > limit or skew > 1e-8:
        return None, f"residual {size:.1e} above {limit:.1e}" if size > limit else "vectors not orthogonal"
    if count == 0:
        return None, None
    error = 0.0 if count == n else (size + 4 * EPSILON * norm) / gap
    return Subspace(values, vectors[:, :count], error, bool(widened[0]), name), None
