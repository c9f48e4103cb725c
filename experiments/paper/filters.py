"""Graph filters of Theorem 1: trained ones, their constants, and how far subgraphs move their outputs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache

import numpy as np
import torch
from torch import Tensor

import tadropedge as tde
from experiments.frame import Row
from experiments.paper.signals import SignalTrial, Task, fit_signals
from experiments.paper.theory import ErrorModel, dense, misalignment, rank_correlation, spectral_norm


@cache
def trained(task: Task, layers: int, normalization: str, epochs: int, seed: int) -> tuple[list[Tensor], float]:
    """The taps of an order-K GCNN that was trained without dropping, and its test accuracy."""
    (fitted,) = fit_signals(task, [SignalTrial(normalization=normalization, seed=seed)], epochs=epochs, layers=layers)
    return fitted.taps, fitted.test_accuracy


def filtered(layer: Tensor, h: Tensor, shifts: Tensor) -> Tensor:
    """Σ_k S^k H B_k of signals ``h [..., N, F]`` for operators ``[..., N, N]``, ``[..., N, F']``: no nonlinearity."""
    power, out = h, h @ layer[:, :, 0].T
    for k in range(1, layer.shape[-1]):
        power = shifts @ power
        out = out + power @ layer[:, :, k].T
    return out


def features(taps: Sequence[Tensor], x: Tensor, shifts: Tensor) -> Tensor:
    """Φ(X; S) of signals ``x [B, N, F]`` for operators ``[D, N, N]``, ``[D, B, N, F_L]``: σ = ReLU, no biases."""
    h = x[None]
    for layer in taps:
        h = filtered(layer, h, shifts[:, None]).relu()
    return h


def movement(taps: Sequence[Tensor], graph: tde.Graph, signals: Tensor, keep: Tensor, normalization: str) -> Row:
    """Scale every layer to |h| ≤ 1 on the spectra at hand, as the theorem asks, then measure and bound.

    Norms of signals are those of the proof: sums over features of ‖·‖₂. ``change`` is the mean over signals, and the
    bound must hold for the largest.
    """
    whole, others = dense(graph, normalization), dense(graph, normalization, keep)
    spectra = torch.linalg.eigvalsh(torch.cat((whole[None], others)))
    low, high = float(spectra.min()), float(spectra.max())
    fitted = [layer / float(response_bound(layer, low, high).max()) for layer in taps]
    C_L = max(float(lipschitz(layer, low, high).max()) for layer in fitted)
    by_pairs = max(float(divided_lipschitz(layer, spectra[0]).max()) for layer in fitted)
    steps = torch.arange(taps[0].shape[-1], dtype=torch.float64)
    by_slope = max(float((layer * steps @ spectra[0] ** steps[:, None]).abs().max()) for layer in fitted)
    model = ErrorModel(whole)
    found = model.of(others)
    delta = misalignment(found.matrix, model.vectors)
    moved = features(fitted, signals, others) - features(fitted, signals, whole[None])
    change = moved.norm(dim=-2).sum(dim=-1) / signals.norm(dim=-2).sum(dim=-1)  # [D, B]
    widths = [layer.shape[0] for layer in fitted]
    constants = [theorem_constant(C_L, widths, graph.num_nodes, float(each)) for each in delta]
    bound = found.norm * found.norm.new_tensor(constants)
    ratio = bound / change.amax(dim=1).clamp_min(np.finfo(float).eps)  # outputs of dead units do not change at all
    return {
        "C_L": C_L,
        "definition_over_slope": by_pairs / by_slope,
        "delta": float(delta.mean()),
        "error_norm": float(found.norm.median()),
        "below_one": float((found.norm < 1).double().mean()),
        "change": float(change.mean()),
        "largest_change": float(change.max()),
        "bound": float(bound.median()),
        "least_ratio": float(ratio.min()),
        "median_ratio": float(ratio.median()),
        "informative": float((bound < 2.0 * math.prod(widths)).double().mean()),  # below what no change exceeds
        "rank_correlation": rank_correlation(found.norm, change.mean(dim=1)),
        "rank_correlation_plain": rank_correlation(spectral_norm(whole - others), change.mean(dim=1)),
    }


# -- the constants of Theorem 1 -----------------------------------------------------------------------------


def lipschitz(taps: Tensor, low: float, high: float) -> Tensor:
    """C_L = sup |λ h'(λ)| over [low, high], for h = Σ_k b_k λ^k with taps b ``[..., K + 1]``.

    On all of ℝ no polynomial but a constant has one.

    >>> lipschitz(torch.tensor([0.0, 1.0, -1.0]), 0.0, 1.0).item()  # |λ − 2 λ²| at λ = 1
    1.0
    """
    return _supremum(taps * torch.arange(taps.shape[-1]), low, high)


def response_bound(taps: Tensor, low: float, high: float) -> Tensor:
    """The largest |h(λ)| on [low, high]; Theorem 1 assumes that it is at most 1.

    >>> response_bound(torch.tensor([0.0, 1.0, -1.0]), 0.0, 1.0).item()  # λ − λ² at λ = 1/2
    0.25
    """
    return _supremum(taps, low, high)


def divided_lipschitz(taps: Tensor, values: Tensor) -> Tensor:
    """The constant of Definition 1 on a spectrum: max |h(λ_i) − h(λ_j)| · |λ_i + λ_j| / (2 |λ_i − λ_j|).

    The paper calls |λ h'| ≤ C_L equivalent to it, but that only follows from it: h = ln λ has |λ h'| = 1 and a larger
    constant here. The quotient is Σ_k b_k Σ_a λ_i^a λ_j^(k−1−a), which needs no division.

    >>> divided_lipschitz(torch.tensor([0.0, 0.0, 1.0]), torch.tensor([1.0, 3.0])).item()  # h = λ²: (λ_i + λ_j)² / 2
    18.0
    """
    left, right = values[:, None].double(), values[None, :].double()
    powers = torch.stack([sum((left**a * right ** (k - 1 - a) for a in range(k)), torch.zeros_like(left * right))
                          for k in range(taps.shape[-1])])  # fmt: skip
    quotients = torch.einsum("...k,kij->...ij", taps.double(), powers)
    return (quotients.abs() * (left + right).abs() / 2).amax(dim=(-2, -1))


def theorem_constant(C_L: float, widths: Sequence[int], nodes: int, delta: float) -> float:
    """C = 2 C_L (1 + δ √N) L Π F_ℓ, at the end of the proof of Theorem 1; ``widths`` are F_1 … F_L.

    >>> theorem_constant(0.5, [32], nodes=49, delta=1.0)
    256.0
    """
    return 2 * C_L * (1 + delta * math.sqrt(nodes)) * len(widths) * math.prod(widths)


def _supremum(taps: Tensor, low: float, high: float) -> Tensor:
    """The largest |Σ_k c_k λ^k| on [low, high]: at an end, or where the derivative has a root."""
    rows, most = taps.double().reshape(-1, taps.shape[-1]).numpy(), []
    for row in rows:
        slope = row[1:] * np.arange(1, len(row))
        roots = np.roots(np.where(np.abs(slope) > 1e-100 * np.abs(slope).max(initial=0.0), slope, 0.0)[::-1])
        places = np.concatenate(([low, high], np.clip(roots.real, low, high)))
        most.append(float(np.abs(np.polynomial.polynomial.polyval(places, row)).max()))
    return torch.tensor(most, dtype=torch.float64).reshape(taps.shape[:-1])
