"""The modes (lowest eigenvectors) of each component: solvers are tried in turn until one gives a good answer."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tadropedge._support.memory import check_memory, within_memory
from tadropedge.errors import ConvergenceError, NotEnoughMemoryError
from tadropedge.spectrum.blocks import EPSILON, Block, Flags, Floats, Integers
from tadropedge.spectrum.plan import DENSE_FALLBACK, Step
from tadropedge.spectrum.request import ROUNDING, ModeRequest, cluster_counts
from tadropedge.spectrum.solvers import SOLVERS
from tadropedge.spectrum.target import ROUNDING_STEPS, Eigenpairs, Target
from tadropedge.spectrum.twins import System

MOST_PAIRS = 512  # eigenpairs after which nobody looks any further for the end of a repeated eigenvalue
UNDECIDED = 1e-6  # residual, relative to the eigenvalue, that is enough to see that it is repeated
CAREFUL = 0.5  # solvers aim at this share of the residual that the check allows
NEIGHBOURS = 0.01  # residual of the pairs above the modes, relative to the gap between them and the modes
SKEW = 1e-8  # the largest ‖Vᵀ V − I‖ of vectors that count as orthonormal

log = logging.getLogger("tadropedge")


@dataclass(frozen=True, kw_only=True)
class Subspaces:
    """The modes of the B components of a block.

    * ``values [B, k]``: the lowest eigenvalues, some more than those of the modes;
    * ``counts [B]``: how many modes are used; ``widened [B]``: where q fell inside a repeated eigenvalue, so that these
      are more than q;
    * ``vectors [B, n, r]``: the modes, with zero columns in components that use fewer than r;
    * ``error [B]``: a bound on the sine of the angle by which each subspace may be wrong;
    * ``twin_group [B, n]``: a number for each node, equal for twins (see :mod:`tadropedge.spectrum.twins`);
      ``local [B, n]``: modes that only tell twins apart are known and not among the ``vectors``; this is what they add
      to the diagonal of the projector, P_ii = Σ_ℓ u_ℓ[i]² + local[i];
    * ``solver``: the name of the solver that found them.
    """

    block: Block
    laplacian: str
    values: Floats
    vectors: Floats
    counts: Integers
    error: Floats
    widened: Flags
    local: Floats
    twin_group: Integers
    solver: str

    @property
    def floor(self) -> Floats:
        """The mean score that the error of a subspace can give to edges whose score is zero, ``[B]``.

        Scores below this floor mean nothing. With r the residual and θ the approximate eigenvalue, the error of a mode
        is Σ_j ⟨r, u_j⟩ / (λ_j − θ) u_j over the eigenvectors that are not used. Its energy xᵀLx is at most
        λ ‖r‖² / gap² = λ · error², where λ is the lowest eigenvalue that is not used. Spread over all edges that is
        λ · error² / Σw; in the normalised Laplacian entries grow with √degree, and it is 2 λ · error² / n.
        """
        block = self.block
        above = np.pad(self.values, ((0, 0), (0, 1)))[np.arange(block.count), self.counts]  # 0 where all are used
        total = np.bincount(block.member, weights=block.weight, minlength=block.count)
        per_edge = 2 / block.size if self.laplacian == "normalized" else 1 / total
        rounding = 8 * EPSILON**2 / block.size  # of the entries themselves
        return np.maximum(above * self.error**2 * per_edge, rounding)


@dataclass(frozen=True)
class Check:
    """The test of a solver's answer: its residual and its gap must bound the error of every score by ``tolerance``.

    A score is ω = dᵀ P d with ‖d‖² = 2 and P the projector on the modes, so |Δω| ≤ 2 ‖ΔP‖ and the subspace may turn by
    ``tolerance / 2``. By Davis and Kahan it turns by at most ‖L V − V Λ‖ / (gap above q). A residual at the level of
    rounding always passes: where the gap is so small that rounding alone turns the subspace by more, no float64 solver
    does better.
    """

    step: Step
    system: System

    @cached_property
    def norm(self) -> float:
        """An upper bound of the largest eigenvalue."""
        return float(self.step.block.norms(self.step.request.laplacian)[0])

    def count(self, values: Floats) -> tuple[Floats, int, bool]:
        """The known eigenvalues of the component, how many of its modes are used, and whether these were widened.

        ``values`` are those of the matrix in which twins are merged; here the eigenvalues of twins are put back. The
        number is 0 if the last known eigenvalue may be repeated, so that more must be found to tell.
        """
        seen = self.system.twins.between(values)
        counts, widened = cluster_counts(seen[None], self.step.block.size, np.array([self.norm]), self.step.request)
        return seen, int(counts[0]), bool(widened[0])

    def required(self, values: Floats) -> tuple[int, float, float]:
        """How many of the pairs are used, the gap above them, and the largest residual that they may have together."""
        seen, count, _ = self.count(values)
        used, gap = len(values), np.inf
        if 0 < count < len(seen):
            used, gap = int((values <= seen[count - 1]).sum()), float(seen[count] - seen[count - 1])
        rounding = ROUNDING_STEPS * self.norm * np.sqrt(used)
        if count == 0:  # more pairs will be asked for: these need only show that the eigenspace goes on
            return used, gap, max(rounding, UNDECIDED * float(values[-1]))
        return used, gap, max(rounding, self.step.request.tolerance / 2 * gap if np.isfinite(gap) else rounding)

    def limits(self, values: Floats, norm: float) -> Floats:
        """The residual that a solver should reach for each of its pairs ``[k]``: ``limits`` of a :class:`Target`."""
        used, gap, limit = self.required(values)
        mine = np.full(len(values), max(NEIGHBOURS * gap if np.isfinite(gap) else 0.0, limit))
        mine[:used] = CAREFUL * limit / np.sqrt(used)
        return mine

    def cut(self, values: Floats) -> float:
        """The eigenvalue up to which no copy of an eigenvalue may be missed.

        If q is given, that is the middle of the gap above the modes: a missed one in its upper half would make the true
        gap half as large at worst, and ``CAREFUL`` leaves room for that. If q is chosen by the gaps, a missed one
        anywhere could change the choice.
        """
        seen, count, _ = self.count(values)
        if self.step.request.q is None or not 0 < count < len(seen):
            return float(values[-1])
        return float(min(values[-1], 0.5 * (seen[count - 1] + seen[count])))

    def judge(self, found: Eigenpairs, name: str) -> tuple[Subspaces | None, str | None]:
        """The subspace if the answer is good, otherwise the reason why it is not; neither if more pairs are needed."""
        values, vectors = found
        if not (np.isfinite(values).all() and np.isfinite(vectors).all()):
            return None, "the solver returned NaN"
        seen, count, widened = self.count(values)
        used, gap, limit = self.required(values)
        V = vectors[:, :used]
        residual = float(np.linalg.norm(self.system.L @ V - V * values[:used]))
        skew = float(np.linalg.norm(V.T @ V - np.eye(used)))
        if residual > limit or skew > SKEW:
            return None, f"residual {residual:.1e} above {limit:.1e}" if residual > limit else "vectors not orthogonal"
        if count == 0:
            return None, None
        whole = count == self.step.block.size
        subspace = Subspaces(
            block=self.step.block,
            laplacian=self.step.request.laplacian,
            values=seen[None],
            vectors=(V if self.system.twins.plain else self.system.twins.spread() @ V)[None],
            counts=np.array([count]),
            error=np.array([0.0 if whole else (residual + 4 * EPSILON * self.norm) / gap]),
            widened=np.array([widened]),
            local=self.system.twins.used(float(seen[count - 1]))[None],
            twin_group=self.system.twins.group[None],
            solver=name,
        )
        return subspace, None


def execute(step: Step, report: Callable[[float], None] = lambda share: None) -> Subspaces:
    """Carry out a step of the plan; ``report`` is called with the share of its work that is done."""
    if step.system is None:
        return _dense_batch(step.block, step.request)
    return try_solvers(Check(step, step.system), report)


def _dense_batch(block: Block, request: ModeRequest) -> Subspaces:
    """All components of a block at once, by LAPACK."""
    laplacian = request.laplacian
    norms = block.norms(laplacian)
    L = block.dense_laplacian(laplacian)
    values, vectors = np.linalg.eigh(L)
    residual = np.linalg.norm(L @ vectors - vectors * values[:, None, :], axis=(1, 2))
    if not (residual <= ROUNDING * block.size * norms).all():  # NaN fails too
        raise ConvergenceError(
            f"the dense eigensolver failed on a component of {block.size} nodes (residual {residual.max():.1e}); "
            "its edge weights may span too many orders of magnitude"
        )
    counts, widened = cluster_counts(values, block.size, norms, request)
    used = np.arange(block.size) < counts[:, None]
    rows = np.arange(block.count)
    gap = np.pad(values, ((0, 0), (0, 1)), constant_values=np.inf)[rows, counts] - values[rows, counts - 1]
    return Subspaces(
        block=block,
        laplacian=laplacian,
        values=values,
        vectors=np.where(used[:, None, :], vectors, 0.0)[:, :, : counts.max()],
        counts=counts,
        error=8 * EPSILON * norms / gap,
        widened=widened,
        local=np.zeros(block.nodes.shape),
        twin_group=np.broadcast_to(np.arange(block.size), block.nodes.shape),
        solver="dense",
    )


def try_solvers(check: Check, report: Callable[[float], None] = lambda share: None) -> Subspaces:
    """Find the modes of one component, with the first solver of its step whose answer passes the check."""
    step, request = check.step, check.step.request
    component = f"component of {step.block.size} nodes and {len(step.block.edges)} edges"
    log.info("%s: %s", component, ", ".join(step.solvers))
    target = Target(step.device, check.limits, report, check.cut)
    reasons: list[str] = []
    for name in step.solvers:
        subspace, reason = _try_one(name, check, target)
        if subspace is not None:
            error = float(subspace.error[0])
            log.info("%s: solved by %s, angle below %.1e", component, subspace.solver, error)
            if 2 * error > request.tolerance:
                log.warning(
                    "%s: its eigenvalues lie so close that float64 bounds errors of its edge scores by %.1e only, "
                    "not by the tolerance %g",
                    *(component, 2 * error, request.tolerance),
                )
            return subspace
        reasons.append(f"{name}: {reason}")
        log.info("%s: %s", component, reasons[-1])
    if all("memory" in reason for reason in reasons):
        raise NotEnoughMemoryError(f"a {component} does not fit: {'; '.join(reasons)}")
    raise ConvergenceError(
        f"no solver found the low spectrum of a {component} ({'; '.join(reasons)}); choose another q, a larger "
        f"tolerance than {request.tolerance:g}, or a solver from {', '.join(SOLVERS)}"
    )


def _try_one(name: str, check: Check, target: Target) -> tuple[Subspaces | None, str]:
    """The answer of one solver, or why there is none.

    As long as its last pair lies inside an eigenspace, it is asked for more pairs.
    """
    system, survey, k = check.system, check.step.survey, check.step.pairs
    n = survey.nodes
    while True:
        name = "dense" if survey.wants_many(k) else name  # k may have grown too large for the others
        try:
            device = target.device if name == "davidson" else "cpu"
            check_memory(survey.memory(name, k), f"{k} pairs", device=device)
            with warnings.catch_warnings(), within_memory(f"{k} pairs", device=device):
                warnings.simplefilter("ignore")  # of singular or stalled iterations: the check below decides
                found = SOLVERS[name](system.L, system.null, k, target)
        except (RuntimeError, ArithmeticError, MemoryError, np.linalg.LinAlgError, ValueError) as error:
            return None, str(error).strip() or type(error).__name__
        subspace, reason = check.judge(found, name)
        if subspace is not None or reason is not None:
            return subspace, reason or ""
        if check.step.request.solver == "auto" and name != "dense" and n <= DENSE_FALLBACK:
            name, k = "dense", n  # small enough to find all pairs at once
        elif name != "dense" and k >= MOST_PAIRS:
            return None, f"the eigenvalue {found[0][-1]:.6g} is repeated too often"
        else:
            k = n if name == "dense" else min(n, 2 * k)
