"""Lipschitz constants of polynomial graph filters h(λ) = Σ_k b_k λ^k, and the constant of Theorem 1.

The paper asks for constants that hold on all of ℝ. A polynomial that is not constant has none: |h| and |λ h'| grow
without bound. What a graph sees of a filter is its spectrum, so the functions here take an interval [low, high].
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from tadropedge._old.checks import check_integer, check_list, check_number, check_numbers, check_tensor
from tadropedge._old.errors import TadropedgeError, show
from tadropedge._old.memory import within_memory

Array = npt.NDArray[np.float64]

NEGLIGIBLE = 1e-100  # a coefficient below this share of the largest is none: dividing by it overflows


def lipschitz(taps: Tensor | Sequence[float], low: float, high: float) -> Tensor:
    """C_L = sup |λ h'(λ)| over [low, high], float64 ``[...]`` for taps b_0 … b_K ``[..., K + 1]``.

    Exact: the supremum lies at an end or where (λ h')' = 0, and those places are roots of a polynomial.

    >>> lipschitz([0.0, 1.0, -1.0], 0.0, 1.0).item()  # |λ − 2 λ²| at λ = 1
    1.0
    """
    b = _taps(taps)
    return _supremum(b * np.arange(b.shape[-1]), low, high)


def response_bound(taps: Tensor | Sequence[float], low: float, high: float) -> Tensor:
    """The largest |h(λ)| on [low, high], ``[...]``. Theorem 1 assumes that it is at most 1.

    >>> response_bound([0.0, 1.0, -1.0], 0.0, 1.0).item()  # λ − λ² at λ = 1/2
    0.25
    """
    return _supremum(_taps(taps), low, high)


@within_memory("all pairs of eigenvalues", "take a smaller graph")
def divided_lipschitz(taps: Tensor | Sequence[float], values: Tensor) -> Tensor:
    """The constant of Definition 1 on a spectrum: max |h(λ_i) − h(λ_j)| · |λ_i + λ_j| / (2 |λ_i − λ_j|), ``[...]``.

    Where λ_i = λ_j the quotient is |λ_i h'(λ_i)|. The paper calls |λ h'| ≤ C_L equivalent to this definition. It
    follows from it, but not the other way round: h = ln λ has |λ h'| = 1 and a larger constant here, because
    |ln λ_1 − ln λ_2| > 2 |λ_1 − λ_2| / (λ_1 + λ_2). This is the constant that bounds the first-order change of the
    filter, entry by entry: [Vᵀ dH V]_ij = ± 2 · quotient_ij · [Vᵀ E V]_ij.

    The divided difference is Σ_k b_k Σ_a λ_i^a λ_j^(k−1−a), which needs no division. O(N² K²) for each filter.

    >>> divided_lipschitz([0.0, 0.0, 1.0], torch.tensor([1.0, 3.0])).item()  # h = λ²: (λ_i + λ_j)² / 2
    18.0
    """
    b, points = _taps(taps), check_tensor("values", values).detach().cpu().to(torch.float64).numpy()
    if points.ndim != 1 or not points.size or values.dtype == torch.bool or not np.isfinite(points).all():
        raise TadropedgeError(f"values must be finite eigenvalues [N], got {show(values)}")
    left, right = points[:, None], points[None, :]
    order = b.shape[-1] - 1
    powers = [
        sum((left**a * right ** (k - 1 - a) for a in range(k)), np.zeros_like(left * right)) for k in range(order + 1)
    ]
    weights = np.abs(left + right) / 2
    flat = b.reshape(-1, order + 1)
    most = [float((np.abs(sum(c * p for c, p in zip(row, powers, strict=True))) * weights).max()) for row in flat]
    return torch.tensor(most, dtype=torch.float64).reshape(b.shape[:-1])


def theorem_constant(C_L: float, widths: Sequence[int], nodes: int, delta: float, C_sigma: float = 1.0) -> float:
    """C = 2 C_L (1 + δ √N) L C_σ^L Π F_ℓ, the constant at the end of the proof of Theorem 1.

    ``widths`` are the numbers of features F_1 … F_L; the proof prints σ for δ = (‖U − V‖₂ + 1)² − 1
    (:func:`tadropedge._old.diagnostics.misalignment`). Norms of signals are sums over features of ‖·‖₂.

    >>> theorem_constant(0.5, [32], nodes=49, delta=1.0)
    256.0
    """
    C_L, delta, C_sigma = (
        check_number(name, value, low=0) for name, value in (("C_L", C_L), ("delta", delta), ("C_sigma", C_sigma))
    )
    features = [check_integer("each of widths", width, least=1) for width in check_list("widths", widths, "widths")]
    layers = check_integer("the number of widths", len(features), least=1)
    nodes = check_integer("nodes", nodes, least=1)
    try:
        return 2 * C_L * (1 + delta * math.sqrt(nodes)) * layers * C_sigma**layers * math.prod(features)
    except OverflowError:
        return math.inf


def _taps(taps: Tensor | Sequence[float]) -> Array:
    """Taps as float64 ``[..., K + 1]``, finite."""
    b: Array = check_numbers("taps", taps).detach().cpu().to(torch.float64).numpy()
    if b.ndim == 0 or b.shape[-1] == 0 or not np.isfinite(b).all():
        raise TadropedgeError(f"taps must be finite numbers b_0 … b_K along the last axis, got {show(taps)}")
    return b


def _supremum(coefficients: Array, low: float, high: float) -> Tensor:
    """The largest |Σ_k c_k λ^k| on [low, high] for each row of ``coefficients [..., K + 1]``."""
    low, high = check_number("low", low), check_number("high", high)
    if low > high:
        raise TadropedgeError(f"the interval must be finite with low <= high, got low={low} and high={high}")
    rows = coefficients.reshape(-1, coefficients.shape[-1])
    with np.errstate(over="ignore", invalid="ignore"):
        most = [float(np.abs(np.polynomial.polynomial.polyval(_candidates(row, low, high), row)).max()) for row in rows]
    if not np.isfinite(most).all():
        raise TadropedgeError(f"the filter exceeds what a float holds on [low, high] = [{low:g}, {high:g}]")
    return torch.tensor(most, dtype=torch.float64).reshape(coefficients.shape[:-1])


def _candidates(row: Array, low: float, high: float) -> Array:
    """Both ends and the stationary points. Points beside them do no harm, so no root must be told to be real."""
    slope = row[1:] * np.arange(1, len(row))
    scale = np.abs(slope).max(initial=0.0)
    shares = slope / scale if scale > 0 else slope
    roots = np.roots(np.where(np.abs(shares) > NEGLIGIBLE, shares, 0.0)[::-1])
    return np.concatenate(([low, high], np.clip(roots.real, low, high)))
