"""The ladder: solvers are tried on a component, one after the other, until an answer passes the check."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
import torch

from tadropedge.errors import ConvergenceError, NotEnoughMemoryError
from tadropedge.spectrum.aim import CPU, Aim, Eigenpairs
from tadropedge.spectrum.clusters import Clusters, cluster_counts
from tadropedge.spectrum.memory import free_bytes, readable
from tadropedge.spectrum.solvers import SOLVERS
from tadropedge.spectrum.survey import DENSE_FALLBACK, Survey
from tadropedge.spectrum.twins import Twins

Floats = npt.NDArray[np.float64]

EPSILON = float(np.finfo(np.float64).eps)
MOST_PAIRS = 512  # eigenpairs beyond which a repeated eigenvalue of a large component is given up
UNDECIDED = 1e-6  # residual, as a share of the eigenvalue, that tells whether it is repeated
CAREFUL = 0.5  # solvers aim at this share of the residual that the check allows
NEIGHBOURS = 0.01  # residual of the pairs above the modes, as a share of the gap that they bound

log = logging.getLogger("tadropedge")


@dataclass(frozen=True)
class Subspace:
    """The lowest modes of one component and a bound on the angle by which their span may be wrong.

    ``values``: the lowest eigenvalues; ``count``: how many of them are used; ``vectors [n, r]``: modes, and
    ``local [n]`` the diagonal of the rest of their projector, the differences of twin leaves:
    P_ii = Σ_ℓ u_ℓ[i]² + local[i].
    """

    values: Floats
    count: int
    vectors: Floats
    local: Floats
    error: float
    widened: bool
    solver: str


@dataclass(frozen=True)
class Check:
    """What an answer must show: the residual and the gap that bound the error of every weight by ``tolerance``.

    A weight is ω = dᵀ P d with ‖d‖² = 2 and P the projector on the modes, so |Δω| ≤ 2 ‖ΔP‖ and the subspace may turn by
    ``tolerance / 2``. By Davis and Kahan it turns by at most ‖L V − V Λ‖ / (gap above q). A residual at the level of
    rounding always passes: where the gap is so small that rounding alone turns the subspace by more, no float64 solver
    does better.
    """

    twins: Twins
    norm: float
    clusters: Clusters
    tolerance: float

    def count(self, values: Floats) -> tuple[Floats, int, bool]:
        """The eigenvalues of the component as far as seen, how many are used (0: see more), whether q was widened."""
        seen = self.twins.between(values)
        counts, widened = cluster_counts(seen[None], len(self.twins.place), np.array([self.norm]), self.clusters)
        return seen, int(counts[0]), bool(widened[0])

    def modes(self, values: Floats) -> tuple[int, float, float]:
        """How many of the pairs are used, the gap above them, and the residual that all of them may have together."""
        seen, count, _ = self.count(values)
        used, gap = len(values), np.inf
        if 0 < count < len(seen):
            used, gap = int((values <= seen[count - 1]).sum()), float(seen[count] - seen[count - 1])
        rounding = 200 * EPSILON * self.norm * np.sqrt(used)
        if count == 0:  # the end of an eigenspace is not in sight: enough to know that
            return used, gap, max(rounding, UNDECIDED * float(values[-1]))
        return used, gap, max(rounding, self.tolerance / 2 * gap if np.isfinite(gap) else rounding)

    def limits(self, values: Floats, norm: float) -> Floats:
        """The residual that a solver should reach for each of its pairs ``[k]``."""
        used, gap, limit = self.modes(values)
        mine = np.full(len(values), max(NEIGHBOURS * gap if np.isfinite(gap) else 0.0, limit))
        mine[:used] = CAREFUL * limit / np.sqrt(used)
        return mine

    def cut(self, values: Floats) -> float:
        """The eigenvalue up to which every copy must be found.

        Where q is given that is half the way to the first that is not used: one that hides between there and it would
        halve the gap, which solvers allow for (``CAREFUL``). Where q is chosen by the gaps, all of them decide.
        """
        seen, count, _ = self.count(values)
        if self.clusters.q is None or not 0 < count < len(seen):
            return float(values[-1])
        return float(min(values[-1], 0.5 * (seen[count - 1] + seen[count])))

    def judge(self, L: sp.csr_matrix, found: Eigenpairs, name: str) -> tuple[Subspace | None, str | None]:
        """Return the subspace if it is good, else the reason why not; neither when more pairs are needed."""
        values, vectors = found
        if not (np.isfinite(values).all() and np.isfinite(vectors).all()):
            return None, "the solver returned NaN"
        seen, count, widened = self.count(values)
        used, gap, limit = self.modes(values)
        V = vectors[:, :used]
        size = float(np.linalg.norm(L @ V - V * values[:used]))
        skew = float(np.linalg.norm(V.T @ V - np.eye(used)))
        if size > limit or skew > 1e-8:
            return None, f"residual {size:.1e} above {limit:.1e}" if size > limit else "vectors not orthogonal"
        if count == 0:
            return None, None
        whole = count == len(self.twins.place)
        error = 0.0 if whole else (size + 4 * EPSILON * self.norm) / gap
        local = self.twins.used(float(seen[count - 1]))
        V = V if self.twins.merged == 0 else self.twins.spread() @ V
        return Subspace(seen, count, V, local, error, widened, name), None


def climb(
    L: sp.csr_matrix,
    null: Floats,
    norm: float,
    clusters: Clusters,
    solver: str,
    tolerance: float,
    device: torch.device = CPU,
    report: Callable[[float], None] = lambda share: None,
) -> Subspace:
    """Find the modes that ``clusters`` asks for, with the first solver whose answer passes the check.

    ``tolerance`` bounds the absolute error of every weight; ``report`` hears how much of the work is done.
    """
    n, edges = L.shape[0], (L.nnz - L.shape[0]) // 2
    twins = Twins.of(L)
    if twins.merged:
        spread = twins.spread()
        L, null = (spread.T @ L @ spread).tocsr(), spread.T @ null
        L.sort_indices()
    check = Check(twins, norm, clusters, tolerance)
    survey = Survey.of(L)
    k = min(L.shape[0], clusters.pairs_needed)
    rungs = survey.rungs(solver, k, device)
    log.info("component of %d nodes, %d edges: %s; %s", n, edges, ", ".join(rungs), survey.reason(solver, k))
    aim = Aim(device, check.limits, report, check.cut)
    reasons: list[str] = []
    for rung in rungs:
        subspace, reason = _try(rung, L, null, check, aim, survey, alone=solver != "auto")
        if subspace is not None:
            log.info("component of %d nodes: solved by %s, angle below %.1e", n, subspace.solver, subspace.error)
            if 2 * subspace.error > tolerance:
                log.warning(
                    "component of %d nodes: its eigenvalues lie so close that float64 bounds errors of its weights "
                    "by %.1e only, not by the tolerance %g",
                    *(n, 2 * subspace.error, tolerance),
                )
            return subspace
        reasons.append(f"{rung}: {reason}")
        log.info("component of %d nodes: %s", n, reasons[-1])
    if all("needs about" in reason for reason in reasons):
        raise NotEnoughMemoryError(f"a component of {n} nodes and {edges} edges does not fit: {'; '.join(reasons)}")
    raise ConvergenceError(
        f"no solver found the low spectrum of a component of {n} nodes and {edges} edges "
        f"({'; '.join(reasons)}); choose another q, a larger tolerance than {tolerance:g}, "
        f"or a solver from {', '.join(SOLVERS)}"
    )


def _try(
    name: str, L: sp.csr_matrix, null: Floats, check: Check, aim: Aim, survey: Survey, alone: bool
) -> tuple[Subspace | None, str]:
    """One rung: more pairs are asked for while they end inside an eigenspace."""
    n = L.shape[0]
    k = min(n, check.clusters.pairs_needed)
    while True:
        name = "dense" if survey.wants_many(k) else name
        need, free = survey.memory(name, k), free_bytes(aim.device if name == "davidson" else "cpu")
        if free is not None and need > free:
            return None, f"needs about {readable(need)} of memory, {readable(free)} are free"
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of singular or stalled iterations: the check below decides
                found = SOLVERS[name](L, null, k, aim)
        except (RuntimeError, ArithmeticError, MemoryError, np.linalg.LinAlgError, ValueError) as error:
            return None, str(error).strip() or type(error).__name__
        subspace, reason = check.judge(L, found, name)
        if subspace is not None or reason is not None:
            return subspace, reason or ""
        if not alone and name != "dense" and n <= DENSE_FALLBACK:
            name, k = "dense", n  # q fell into an eigenspace: all of it at once
        elif name != "dense" and k >= MOST_PAIRS:
            return None, f"the eigenvalue {found[0][-1]:.6g} is repeated too often"
        else:
            k = n if name == "dense" else min(n, 2 * k)
