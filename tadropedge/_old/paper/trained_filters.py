"""Trained graph filters, made to fit Theorem 1, and how far subgraphs move their outputs beside its bound."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np
import torch
from scipy.stats import spearmanr
from torch import Tensor

from tadropedge._old.data.dataset import Dataset
from tadropedge._old.diagnostics import (
    ErrorModel,
    divided_lipschitz,
    lipschitz,
    misalignment,
    response_bound,
    theorem_constant,
)
from tadropedge._old.diagnostics.relative_error import spectral_norm
from tadropedge._old.nn.filters import filter_taps
from tadropedge._old.paper.item import Bench
from tadropedge._old.paper.judge import Array
from tadropedge._old.paper.rows import WITHOUT_NAME, Row
from tadropedge._old.paper.trainings import laboratory
from tadropedge._old.sampling import sample_edges
from tadropedge._old.shift import shift_operator
from tadropedge._old.training.config import Trial

Taps = list[Tensor]  # of each layer [F_ℓ, F_(ℓ−1), K + 1]


@dataclass(frozen=True, kw_only=True)
class Constants:
    """What the theorem's constant is made of, for filters scaled to |h| ≤ 1 on the spectra at hand."""

    C_L: float
    definition_over_slope: float
    delta: float
    largest_response: float
    lowest: float
    highest: float


@dataclass(frozen=True, kw_only=True)
class Moved:
    """The bound beside what is measured over the draws, and whether ‖E‖ ranks the subgraphs."""

    error_norm: float
    below_one: float
    change: float
    largest_change: float
    bound: float
    least_ratio: float
    median_ratio: float
    informative: float
    rank_correlation: float
    rank_correlation_plain: float


@dataclass(frozen=True, kw_only=True)
class Filters(Row):
    """Trained filters of one graph, and how far the subgraphs of one way of dropping move their outputs."""

    part: Literal["network"] = "network"
    family: str = "source-localization"
    graph: int
    nodes: int
    normalization: str
    keep_prob: float
    draws: int
    layers: int
    method: str
    kept_share: float
    accuracy: float
    C_sigma: float = 1.0
    constants: Annotated[Constants, WITHOUT_NAME]
    moved: Annotated[Moved, WITHOUT_NAME]


def trained_taps(
    bench: Bench, dataset: Dataset, layers: int, settings: Mapping[str, Any]
) -> list[tuple[str, Taps, float]]:
    """Train one order-K GCNN for each normalisation: its name, the taps, float64, and the test accuracy.

    ``settings`` are ``hidden``, ``order`` and ``normalizations``.
    """
    sizes = {name: settings[name] for name in ("hidden", "order")}
    here = laboratory(bench, dataset, "gcnn", layers=layers, **sizes)
    kinds = settings["normalizations"]
    trials = [Trial.of("original", normalization=kind, dropout=0.0, seed=bench.seed) for kind in kinds]
    found = []
    for kind, outcome in zip(kinds, here.train(trials, keep_state=True), strict=True):
        state = {name: torch.from_numpy(value).double() for name, value in (outcome.state or {}).items()}
        taps = [one.to(dataset.device) for one in filter_taps(state, layers, settings["order"])]
        found.append((kind, taps, outcome.kept["test_accuracy"]))
    return found


def filtered(layer: Tensor, h: Tensor, shifts: Tensor) -> Tensor:
    """Σ_k S^k H B_k of signals ``h [..., N, F]`` for operators ``[..., N, N]``, ``[..., N, F']``: no nonlinearity."""
    power, out = h, h @ layer[:, :, 0].T
    for k in range(1, layer.shape[-1]):
        power = shifts @ power
        out = out + power @ layer[:, :, k].T
    return out


def features(taps: Taps, x: Tensor, shifts: Tensor) -> Tensor:
    """Φ(X; S) of signals ``x [B, N, F]`` for operators ``[D, N, N]``, ``[D, B, N, F_L]``: σ = ReLU, no biases."""
    h = x[None]
    for layer in taps:
        h = filtered(layer, h, shifts[:, None]).relu()
    return h


def feature_norm(x: Tensor) -> Tensor:
    """The proof's norm: Σ_f ‖[X]_f‖₂, over signals ``[..., N, F]``."""
    norm: Tensor = x.norm(dim=-2).sum(dim=-1)
    return norm


@dataclass(frozen=True, eq=False, kw_only=True)
class Movement:
    """For each draw ``[D]``: ‖E‖₂, ‖S − S'‖₂, the change of the output over ‖X‖, and the theorem's bound on it.

    ``change`` is the mean over signals and ``most`` the largest, which is what a bound must hold for.
    ``trivial`` is 2 Π F_ℓ, which no change exceeds when |h| ≤ 1.
    """

    error: Tensor
    plain: Tensor
    change: Tensor
    most: Tensor
    bound: Tensor
    trivial: float
    constants: Constants

    @property
    def summary(self) -> Moved:
        """What a row holds of it."""
        measured = (self.error, self.plain, self.change, self.most, self.bound)
        error, plain, change, most, bound = (value.cpu().numpy() for value in measured)
        # Of the signal that moves most in each draw; outputs of dead units do not change at all.
        ratio = bound / np.maximum(most, np.finfo(float).eps)
        return Moved(
            error_norm=float(np.median(error)),
            below_one=float((error < 1).mean()),
            change=float(change.mean()),
            largest_change=float(most.max()),
            bound=float(np.median(bound)),
            least_ratio=float(ratio.min()),
            median_ratio=float(np.median(ratio)),
            informative=float((bound < self.trivial).mean()),
            rank_correlation=rank_correlation(error, change),
            rank_correlation_plain=rank_correlation(plain, change),
        )


def movement(
    taps: Taps, dataset: Dataset, signals: Tensor, prob: Tensor, normalization: str, draws: Sequence[int]
) -> Movement:
    """Scale every layer to |h| ≤ 1 on the spectra at hand, as the theorem asks, then measure and bound."""
    graph = dataset.graph
    whole = shift_operator(graph, normalization=normalization, dtype=torch.float64).to_dense()
    keep = sample_edges(prob, seed=list(draws))
    others = shift_operator(graph, keep, normalization=normalization, dtype=torch.float64).to_dense()
    spectra = torch.linalg.eigvalsh(torch.cat((whole[None], others)))
    low, high = float(spectra.min()), float(spectra.max())
    largest = [float(response_bound(layer, low, high).max()) for layer in taps]
    fitted = [layer / size for layer, size in zip(taps, largest, strict=True)]
    C_L = max(float(lipschitz(layer, low, high).max()) for layer in fitted)
    by_pairs = max(float(divided_lipschitz(layer, spectra[0]).max()) for layer in fitted)
    by_slope = max(_slopes(layer, spectra[0]) for layer in fitted)
    model = ErrorModel(whole)
    found = model.of(others)
    delta = misalignment(found.matrix, model.vectors)
    moved = feature_norm(features(fitted, signals, others) - features(fitted, signals, whole[None]))
    widths = [layer.shape[0] for layer in fitted]
    bound = [theorem_constant(C_L, widths, graph.num_nodes, float(each)) for each in delta]
    constants = Constants(
        C_L=C_L,
        definition_over_slope=by_pairs / by_slope,
        delta=float(delta.mean()),
        largest_response=max(largest),
        lowest=low,
        highest=high,
    )
    change = moved / feature_norm(signals)  # [D, B]
    return Movement(
        error=found.norm,
        plain=spectral_norm(whole - others),
        change=change.mean(dim=1),
        most=change.amax(dim=1),
        bound=found.norm * found.norm.new_tensor(bound),
        trivial=2.0 * math.prod(widths),
        constants=constants,
    )


def _slopes(taps: Tensor, values: Tensor) -> float:
    """The largest |λ h'(λ)| of any filter at the eigenvalues themselves."""
    k = torch.arange(taps.shape[-1], dtype=torch.float64, device=taps.device)
    return float((taps * k @ values ** k[:, None]).abs().max())


def rank_correlation(first: Array, second: Array) -> float:
    """Spearman's; zero where one of the two is constant."""
    return 0.0 if np.ptp(first) == 0 or np.ptp(second) == 0 else float(spearmanr(first, second).statistic)
