"""The ladder: solvers are tried on a component until an answer, the subspace of its lowest modes, passes the check."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch

from tadropedge._old.blocks import EPSILON, Block, Flags, Floats, Integers, blocks
from tadropedge._old.checks import check_kind, check_progress, check_runs_on
from tadropedge._old.errors import ConvergenceError, NotEnoughMemoryError
from tadropedge._old.graph import Graph, check_graph
from tadropedge._old.memory import not_enough, ran_out, shortage
from tadropedge._old.progress import Progress, Show
from tadropedge._old.spectrum.aim import ROUNDING_STEPS, Aim, Eigenpairs
from tadropedge._old.spectrum.clusters import ROUNDING, Clusters, cluster_counts
from tadropedge._old.spectrum.plan import DENSE_FALLBACK, Step, Wish, plan
from tadropedge._old.spectrum.solvers import SOLVERS
from tadropedge._old.spectrum.twins import System

MOST_PAIRS = 512  # eigenpairs beyond which a repeated eigenvalue of a large component is given up
UNDECIDED = 1e-6  # residual, as a share of the eigenvalue, that tells whether it is repeated
CAREFUL = 0.5  # solvers aim at this share of the residual that the check allows
NEIGHBOURS = 0.01  # residual of the pairs above the modes, as a share of the gap that they bound

log = logging.getLogger("tadropedge")


@dataclass(frozen=True, kw_only=True)
class Subspaces:
    """The modes of the B components of a block.

    ``values [B, k]``: the lowest eigenvalues, more than were asked for; ``vectors [B, n, r]``: the modes that
    are used, zero columns after the first ``counts [B]``; ``error [B]``: a bound on the sine of the angle by
    which each subspace may be wrong; ``widened [B]``: where q fell inside a repeated eigenvalue; ``local [B, n]``: what
    modes that differ between twins alone add to the diagonal of the projector, P_ii = Σ_ℓ u_ℓ[i]² + local[i];
    ``kin [B, n]``: twins have one number; ``solver``: who found them.
    """

    block: Block
    laplacian: str
    values: Floats
    vectors: Floats
    counts: Integers
    error: Floats
    widened: Flags
    local: Floats
    kin: Integers
    solver: str

    @property
    def floor(self) -> Floats:
        """The mean score that a wrong subspace would give to edges of score zero, ``[B]``: less is nothing.

        With r the residual, what is wrong is Σ_j ⟨r, u_j⟩ / (λ_j − θ) u_j over the modes that are not used. Its energy
        is at most λ ‖r‖² / gap² = λ · error², where λ is the lowest eigenvalue that is not used: slow modes are smooth.
        Spread over all edges that is λ · error² / Σw; in the normalised Laplacian entries grow with √degree.
        """
        block = self.block
        above = np.pad(self.values, ((0, 0), (0, 1)))[np.arange(block.count), self.counts]  # 0 where all are used
        total = np.bincount(block.member, weights=block.weight, minlength=block.count)
        each = 2 / block.size if self.laplacian == "normalized" else 1 / total
        rounding = 8 * EPSILON**2 / block.size  # of the entries themselves
        return np.maximum(above * self.error**2 * each, rounding)


@dataclass(frozen=True)
class Check:
    """What an answer must show: the residual and the gap that bound the error of every score by ``tolerance``.

    A score is ω = dᵀ P d with ‖d‖² = 2 and P the projector on the modes, so |Δω| ≤ 2 ‖ΔP‖ and the subspace may turn by
    ``tolerance / 2``. By Davis and Kahan it turns by at most ‖L V − V Λ‖ / (gap above q). A residual at the level of
    rounding always passes: where the gap is so small that rounding alone turns the subspace by more, no float64 solver
    does better.
    """

    step: Step
    system: System

    @cached_property
    def norm(self) -> float:
        """A bound on the largest eigenvalue."""
        return float(self.step.block.norms(self.step.wish.laplacian)[0])

    def count(self, values: Floats) -> tuple[Floats, int, bool]:
        """The eigenvalues of the component as far as seen, how many are used (0: see more), whether q was widened."""
        seen = self.system.twins.between(values)
        counts, widened = cluster_counts(seen[None], self.step.nodes, np.array([self.norm]), self.step.wish)
        return seen, int(counts[0]), bool(widened[0])

    def modes(self, values: Floats) -> tuple[int, float, float]:
        """How many of the pairs are used, the gap above them, and the residual that all of them may have together."""
        seen, count, _ = self.count(values)
        used, gap = len(values), np.inf
        if 0 < count < len(seen):
            used, gap = int((values <= seen[count - 1]).sum()), float(seen[count] - seen[count - 1])
        rounding = ROUNDING_STEPS * self.norm * np.sqrt(used)
        if count == 0:  # the end of an eigenspace is not in sight: enough to know that
            return used, gap, max(rounding, UNDECIDED * float(values[-1]))
        return used, gap, max(rounding, self.step.wish.tolerance / 2 * gap if np.isfinite(gap) else rounding)

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
        if self.step.wish.q is None or not 0 < count < len(seen):
            return float(values[-1])
        return float(min(values[-1], 0.5 * (seen[count - 1] + seen[count])))

    def judge(self, found: Eigenpairs, name: str) -> tuple[Subspaces | None, str | None]:
        """Return the subspace if it is good, else the reason why not; neither when more pairs are needed."""
        values, vectors = found
        if not (np.isfinite(values).all() and np.isfinite(vectors).all()):
            return None, "the solver returned NaN"
        seen, count, widened = self.count(values)
        used, gap, limit = self.modes(values)
        V = vectors[:, :used]
        size = float(np.linalg.norm(self.system.L @ V - V * values[:used]))
        skew = float(np.linalg.norm(V.T @ V - np.eye(used)))
        if size > limit or skew > 1e-8:
            return None, f"residual {size:.1e} above {limit:.1e}" if size > limit else "vectors not orthogonal"
        if count == 0:
            return None, None
        whole = count == self.step.nodes
        subspace = Subspaces(
            block=self.step.block,
            laplacian=self.step.wish.laplacian,
            values=seen[None],
            vectors=(V if self.system.twins.plain else self.system.twins.spread() @ V)[None],
            counts=np.array([count]),
            error=np.array([0.0 if whole else (size + 4 * EPSILON * self.norm) / gap]),
            widened=np.array([widened]),
            local=self.system.twins.used(float(seen[count - 1]))[None],
            kin=self.system.twins.place[None],
            solver=name,
        )
        return subspace, None


def cluster_subspaces(
    graph: Graph,
    clusters: Clusters,
    laplacian: str = "combinatorial",
    solver: str = "auto",
    tolerance: float = 1e-8,
    progress: Show = None,
    device: torch.device | str = "cpu",
    ranks: int | None = None,
) -> Iterator[Subspaces]:
    """Yield the subspaces of the lowest modes of every component that has enough nodes.

    >>> graph = Graph.from_edge_index([[0, 1, 2], [1, 2, 3]])
    >>> (path,) = cluster_subspaces(graph, Clusters(q=2))
    >>> path.values[0, 1:].round(4).tolist(), path.vectors.shape
    ([0.5858, 2.0, 3.4142], (1, 4, 2))
    """
    check_graph(graph)
    check_kind("clusters", clusters, Clusters)
    wish = Wish(
        clusters.q, clusters.desired_clusters, laplacian=laplacian, solver=solver, tolerance=tolerance, ranks=ranks
    )
    where = check_runs_on(device)
    with Progress("eigenvectors", graph.num_nodes, check_progress(progress)) as bar:
        for step in plan(blocks(graph, clusters.least_nodes), wish, where):
            bar.note(f"{step.count} × {step.nodes} nodes")
            with bar.step(step.block.nodes.size) as report:
                found = execute(step, report)
            yield found


def execute(step: Step, report: Callable[[float], None] = lambda share: None) -> Subspaces:
    """Do what a step of the plan says; ``report`` hears the share of the work that is done."""
    if step.system is None:
        return _dense_batch(step.block, step.wish, step.wish.laplacian)
    return _climb(Check(step, step.system), report)


def _dense_batch(block: Block, clusters: Clusters, laplacian: str) -> Subspaces:
    """All components of a block at once, by LAPACK."""
    norms = block.norms(laplacian)
    L = block.dense_laplacian(laplacian)
    values, vectors = np.linalg.eigh(L)
    residual = np.linalg.norm(L @ vectors - vectors * values[:, None, :], axis=(1, 2))
    if not (residual <= ROUNDING * block.size * norms).all():  # NaN fails too
        raise ConvergenceError(
            f"the dense eigensolver failed on a component of {block.size} nodes (residual {residual.max():.1e}); "
            "its edge weights may span too many orders of magnitude"
        )
    counts, widened = cluster_counts(values, block.size, norms, clusters)
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
        kin=np.broadcast_to(np.arange(block.size), block.nodes.shape),
        solver="dense",
    )


def _climb(check: Check, report: Callable[[float], None]) -> Subspaces:
    """Find the modes of one component, with the first rung whose answer passes the check."""
    step, wish, component = check.step, check.step.wish, f"component of {check.step.nodes} nodes"
    log.info("%s, %d edges: %s; %s", component, step.edges, ", ".join(step.rungs), step.reason)
    aim = Aim(step.runs_on, check.limits, report, check.cut, ranks=wish.processes)
    reasons: list[str] = []
    for rung in step.rungs:
        subspace, reason = _try(rung, check, aim)
        if subspace is not None:
            error = float(subspace.error[0])
            log.info("%s: solved by %s, angle below %.1e", component, subspace.solver, error)
            if 2 * error > wish.tolerance:
                log.warning(
                    "%s: its eigenvalues lie so close that float64 bounds errors of its edge scores by %.1e only, "
                    "not by the tolerance %g",
                    *(component, 2 * error, wish.tolerance),
                )
            return subspace
        reasons.append(f"{rung}: {reason}")
        log.info("%s: %s", component, reasons[-1])
    if all("memory" in reason for reason in reasons):
        raise NotEnoughMemoryError(f"a {component} and {step.edges} edges does not fit: {'; '.join(reasons)}")
    raise ConvergenceError(
        f"no solver found the low spectrum of a {component} and {step.edges} edges "
        f"({'; '.join(reasons)}); choose another q, a larger tolerance than {wish.tolerance:g}, "
        f"or a solver from {', '.join(SOLVERS)}"
    )


def _try(name: str, check: Check, aim: Aim) -> tuple[Subspaces | None, str]:
    """One rung: more pairs are asked for while they end inside an eigenspace."""
    system, survey, k = check.system, check.step.survey, check.step.pairs
    n = survey.nodes
    while True:
        name = "dense" if survey.wants_many(k) else name
        there = survey.matrix if name == "short-lanczos" else 0  # which works on the matrix as it is
        missing = shortage(survey.memory(name, k) - there, aim.device if name == "davidson" else "cpu")
        if missing:
            return None, missing
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of singular or stalled iterations: the check below decides
                found = SOLVERS[name](system.L, system.null, k, aim)
        except (RuntimeError, ArithmeticError, MemoryError, np.linalg.LinAlgError, ValueError) as error:
            told = not_enough(error, f"{k} pairs") if ran_out(error) else error
            return None, str(told).strip() or type(error).__name__
        subspace, reason = check.judge(found, name)
        if subspace is not None or reason is not None:
            return subspace, reason or ""
        if check.step.wish.solver == "auto" and name != "dense" and n <= DENSE_FALLBACK:
            name, k = "dense", n  # q fell into an eigenspace: all of it at once
        elif name != "dense" and k >= MOST_PAIRS:
            return None, f"the eigenvalue {found[0][-1]:.6g} is repeated too often"
        else:
            k = n if name == "dense" else min(n, 2 * k)
