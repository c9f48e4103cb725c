"""The extreme eigenvalues of L' x = λ L x, where L' is the Laplacian of the same graph with other weights, some of 0.

Small components are solved densely. In large ones λ_max is the largest eigenvalue of L⁺ L', which is symmetric in the
inner product of L: Lanczos finds it, with one solve per step. λ_min is found as 1 / λ_max of the pair (L, L').

Whatever happens, four facts hold without solving. The quotient xᵀL'x / xᵀLx of a single node is its degree after over
its degree before, so λ_min ≤ least d'/d and λ_max ≥ largest d'/d; and λ_min ≥ least w'/w, λ_max ≤ largest w'/w.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp
import torch
from scipy.linalg import eigh_tridiagonal

from tadropedge._old.blocks import DENSE_NODES, EPSILON, Block, Flags, Floats, Integers
from tadropedge._old.electrical import WIDEST, laplacian_solver
from tadropedge._old.errors import ConvergenceError
from tadropedge._old.memory import check_memory

Report = Callable[[float], None]
Solve = Callable[[Floats], Floats]

TOLERANCE = 1e-3  # of the error of an eigenvalue, as a share of it
SOLVED = 1e-5  # relative residual of a solve; what is found is checked, so a few digits do
CHANCE = 1e-6  # that an eigenvalue lies beyond the range that is given
SPREAD = 0.1  # how far the end of that range may lie from the eigenvalue, as a share of it
MOST_STEPS = 150
ROOM = 60  # steps that most runs need; memory that is not written to is not taken
EXHAUSTED = 1e-12  # what is new in a vector, as a share of the eigenvalue, when there is nothing more to see


@dataclass(frozen=True, kw_only=True)
class Extreme:
    """An extreme eigenvalue of L' x = λ L x.

    * ``value``: the quotient xᵀL'x / xᵀLx of a vector that was found, so it is attained; NaN where none was found;
    * ``error``: an eigenvalue lies within this distance of ``value`` (the residual ‖L'x − λLx‖ in the norm of L⁺);
      infinite where there is no value;
    * ``low``, ``high``: the extreme eigenvalue lies in this range, but for a chance of one in a million.
    """

    value: float
    error: float
    low: float
    high: float

    @property
    def converged(self) -> bool:
        """Whether the error is at most one part in a thousand of the value."""
        return self.error <= TOLERANCE * self.value


UNKNOWN = Extreme(value=np.nan, error=np.inf, low=0.0, high=np.inf)
ZERO = Extreme(value=0.0, error=0.0, low=0.0, high=0.0)


def smallest(found: list[Extreme]) -> Extreme:
    """The smallest of several: of all components of a graph."""
    value, error = _best(found, min)
    return Extreme(value=value, error=error, low=min(one.low for one in found), high=min(one.high for one in found))


def largest(found: list[Extreme]) -> Extreme:
    """The largest of several.

    >>> largest([Extreme(value=2.0, error=0.1, low=2.0, high=2.2), Extreme(value=1.0, error=0.0, low=1.0, high=1.0)])
    Extreme(value=2.0, error=0.1, low=2.0, high=2.2)
    """
    value, error = _best(found, max)
    return Extreme(value=value, error=error, low=max(one.low for one in found), high=max(one.high for one in found))


def _best(found: list[Extreme], best: Callable[..., Extreme]) -> tuple[float, float]:
    """The extreme value and its error; a part without a value might hold the extreme one, so there is no error then."""
    known = [one for one in found if not np.isnan(one.value)]
    if not known:
        return UNKNOWN.value, UNKNOWN.error
    chosen = best(known, key=lambda one: one.value)
    return chosen.value, chosen.error if len(known) == len(found) else UNKNOWN.error


def extremes(
    block: Block, weight: Floats, pieces: Integers, device: torch.device, report: Report
) -> tuple[Extreme, Extreme]:
    """λ_min and λ_max over the components of a block, whose edges get the weights ``weight [M]``, at least 0.

    ``pieces [B, n]`` numbers what each component falls into. Where one falls apart, λ_min is exactly 0.
    """
    whole: Flags = (pieces == pieces[:, :1]).all(axis=1)
    if block.size <= DENSE_NODES:
        small, large = _dense(block, weight)
    else:
        small, large = _iterated(block, weight, bool(whole[0]), device, report)
    least, most = _free_bounds(block, weight)
    small = [_within(one, *ends) if kept else ZERO for one, kept, *ends in zip(small, whole, *least, strict=True)]
    large = [_within(one, *ends) for one, *ends in zip(large, *most, strict=True)]
    return smallest(small), largest(large)


def _free_bounds(block: Block, weight: Floats) -> tuple[tuple[Floats, Floats], tuple[Floats, Floats]]:
    """Between what λ_min and λ_max of each component lie, ``[B]`` each, without solving: see the head of this file."""
    degree = replace(block, weight=weight).degrees() / block.degrees()
    share = weight / block.weight
    lowest, highest = np.full(block.count, np.inf), np.zeros(block.count)
    np.minimum.at(lowest, block.member, share)
    np.maximum.at(highest, block.member, share)
    return (lowest, degree.min(axis=1)), (degree.max(axis=1), highest)


def _within(one: Extreme, least: float, most: float) -> Extreme:
    """What is known by solving, and without."""
    value, low, high = (float(np.clip(each, least, most)) for each in (one.value, one.low, one.high))
    return Extreme(value=value, error=one.error, low=low, high=high)


def _dense(block: Block, weight: Floats) -> tuple[list[Extreme], list[Extreme]]:
    """All eigenvalues of C⁻¹ L' C⁻ᵀ with C Cᵀ = L + c J, among which constants have the eigenvalue 0."""
    before, after = (replace(block, weight=each).dense_laplacian("combinatorial") for each in (block.weight, weight))
    try:
        C = np.linalg.cholesky(before + block.norms("combinatorial")[:, None, None] / block.size)
        half = np.linalg.solve(C, after)
        values, vectors = np.linalg.eigh(np.linalg.solve(C, half.transpose(0, 2, 1)))
    except np.linalg.LinAlgError:
        return [UNKNOWN] * block.count, [UNKNOWN] * block.count
    found = []
    for place in (1, -1):
        x = np.linalg.solve(C.transpose(0, 2, 1), vectors[:, :, place, None])
        energy = (x * (before @ x)).sum(axis=(1, 2))
        value = (x * (after @ x)).sum(axis=(1, 2)) / energy
        residual = np.linalg.solve(C, after @ x - value[:, None, None] * (before @ x))
        error = np.linalg.norm(residual, axis=(1, 2)) / np.sqrt(energy) + block.size * EPSILON * values[:, -1]
        rows = np.stack((value, error, value - error, value + error), axis=1).tolist()
        found.append([Extreme(value=row[0], error=row[1], low=row[2], high=row[3]) for row in rows])
    return found[0], found[1]


def _iterated(
    block: Block, weight: Floats, whole: bool, device: torch.device, report: Report
) -> tuple[list[Extreme], list[Extreme]]:
    """The extreme eigenvalues of one large component; the smallest is searched only where it is not 0."""
    what = f"the eigenvalues of a part of {block.size} nodes"
    check_memory(8 * block.size * ROOM, what, "certificate=False does without")
    there: Flags = weight > 0
    parts = {name: getattr(block, name)[there] for name in ("edges", "member", "low", "high")}
    kept = replace(block, weight=weight[there], **parts)
    share = 0.5 if whole else 1.0
    large = _top(kept, block, device, lambda done: report(share * done))
    if not whole:
        return [ZERO], [large]
    turned = _top(block, kept, device, lambda done: report(share + share * done))
    if np.isnan(turned.value):
        return [UNKNOWN], [large]
    value = 1 / turned.value
    return [Extreme(value=value, error=turned.error * value**2, low=1 / turned.high, high=value)], [large]


def _top(upper: Block, lower: Block, device: torch.device, report: Report) -> Extreme:
    """The largest eigenvalue of U x = λ L x of two weightings of one component, the lower one connected."""
    if not len(upper.edges):
        return ZERO
    if lower.weight.max() / lower.weight.min() > WIDEST:  # no solve could be trusted
        return UNKNOWN
    U, L = upper.sparse_laplacian("combinatorial"), lower.sparse_laplacian("combinatorial")
    try:
        solve = laplacian_solver(L, device, SOLVED)
        return lanczos(U, L, lambda b: solve(b[:, None])[:, 0], _start(lower), report)
    except ConvergenceError:
        return UNKNOWN


def _start(block: Block) -> Floats:
    """The sum b = Dᵀ W^½ g of random g; then L⁺ b has the covariance L⁺."""
    g = np.sqrt(block.weight) * np.random.default_rng(0).standard_normal(len(block.weight))
    b = np.zeros(block.size)
    np.add.at(b, block.low, g)
    np.subtract.at(b, block.high, g)
    return b


def lanczos(U: sp.csr_matrix, L: sp.csr_matrix, solve: Solve, start: Floats, report: Report) -> Extreme:
    """The largest eigenvalue of U x = λ L x, by Lanczos with L⁺ U in the inner product of L; ``solve`` applies L⁺.

    ``start`` is b of a start L⁺ b ~ N(0, L⁺), which is spread evenly over all eigenvectors. So after k steps the
    largest Ritz value θ misses λ_max by more than ε λ_max with a chance of at most 1.648 √n exp(−√ε (2 k − 1))
    (Kuczyński and Woźniakowski 1992, Theorem 4.1): ``high`` is where that chance is one in a million. ``value`` and
    ``error`` are computed afresh from the vector that was found, so they do not rest on how exactly ``solve`` solves.
    """
    n = len(start)
    V, diagonal, beside = np.empty((min(MOST_STEPS, n), n)), np.empty(MOST_STEPS), np.empty(MOST_STEPS)
    w = solve(start)
    v = w / np.sqrt(w @ (L @ w))
    for k in range(len(V)):
        V[k], done = v, slice(k + 1)
        image = U @ v
        diagonal[k], w = v @ image, solve(image)
        for _ in range(2):  # once is not enough
            w -= V[done].T @ (V[done] @ (L @ w))
        w -= w.mean()  # constants have no energy, so the inner product does not see them grow
        beside[k] = np.sqrt(max(w @ (L @ w), 0.0))
        values, vectors = eigh_tridiagonal(diagonal[done], beside[:k])
        over = beside[k] <= EXHAUSTED * values[-1]
        missed = 0.0 if over else missed_share(k + 1, n)
        if over or (missed <= SPREAD and beside[k] * abs(vectors[-1, -1]) <= TOLERANCE * values[-1]):
            break
        report((k + 1) / len(V))
        v = w / beside[k]
    return _checked(U, L, solve, V[done].T @ vectors[:, -1], missed)


def missed_share(steps: int, n: int) -> float:
    """The share ε of the largest eigenvalue that so many steps may miss with a chance of one in a million.

    >>> round(missed_share(50, 1000), 3), missed_share(5, 1000)
    (0.032, 1.0)
    """
    return float(min(1.0, (np.log(1.648 * np.sqrt(n) / CHANCE) / (2 * steps - 1)) ** 2))


def _checked(U: sp.csr_matrix, L: sp.csr_matrix, solve: Solve, x: Floats, missed: float) -> Extreme:
    """The quotient of a vector, its residual in the norm of L⁺, and the range."""
    upper, lower = U @ x, L @ x
    energy = x @ lower
    value = float(x @ upper / energy)
    residual = upper - value * lower
    error = float(np.sqrt(max(residual @ solve(residual), 0.0) / energy)) + len(x) ** 0.5 * EPSILON * value
    high = max(value + error, value / (1 - missed)) if missed < 1 else np.inf
    return Extreme(value=value, error=error, low=value, high=high)
