"""The variance of the outputs of an untrained GCN over sampled subgraphs, at the same p and at the same budget."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from tadropedge.data.dataset import Dataset
from tadropedge.data.planetoid import NAMES
from tadropedge.diagnostics import output_variance
from tadropedge.nn.backbones import GCN
from tadropedge.nn.layers import Sparse
from tadropedge.paper.clustered import resistance
from tadropedge.paper.figures import variance as figures
from tadropedge.paper.item import Bench, Item, Verdict
from tadropedge.paper.judge import CLEAR, HOW, judged, mean_and_error
from tadropedge.paper.pieces import Pieces
from tadropedge.shift import ShiftOperator
from tadropedge.strategies import keep_probabilities
from tadropedge.training.config import Architecture, Trial
from tadropedge.training.laboratory import make_task

Terms = npt.NDArray[np.float64]  # what a mean is taken of, one term for each subgraph

Row = Mapping[str, Any]

QUANTITIES = ("variance", "deviation")
WORDS = {"variance": "output variance", "deviation": "mean squared distance from the output on the whole graph"}
NEAR = 0.05  # how far a reduction may lie from the printed one


def run(bench: Bench) -> Item:
    """Measure every dataset, normalisation, p and strategy."""
    recipe = bench.recipe
    total = len(recipe["datasets"]) * len(recipe["normalizations"]) * len(recipe["keep_probs"])
    pieces = Pieces(bench)
    rows: list[dict[str, Any]] = []
    done = 0
    for name in recipe["datasets"]:
        dataset = bench.dataset(name)
        weights = resistance(dataset.graph, dataset.num_classes, recipe["laplacian"], bench.cache_dir)
        for normalization in recipe["normalizations"]:
            meter = Meter(bench, dataset, normalization)
            for p in recipe["keep_probs"]:
                bench.report(f"{name}, {normalization}", done, total)
                rows += pieces.rows(f"{name}/{normalization}/{p:g}", partial(meter.rows, p, weights))
                done += 1
    pictures = {what: figures.variances(rows, what, WORDS[what]) for what in QUANTITIES}
    notes = [
        "At the same p an adaptive strategy keeps more edges than DropEdge; at the same budget DropEdge keeps as many.",
        f"{recipe['samples']} subgraphs, {recipe['starts']} random starts of a GCN with {recipe['layers']} layers of "
        f"{recipe['hidden']}; all methods see the same coins; weights from the {recipe['laplacian']} Laplacian.",
    ]
    return Item(rows, judge(rows, recipe.published), pictures, notes, run=pieces.run)


class Meter:
    """Measures the output variance of untrained networks on one dataset."""

    def __init__(self, bench: Bench, dataset: Dataset, normalization: str) -> None:
        self.bench, self.dataset, self.normalization = bench, dataset, normalization
        recipe = bench.recipe
        starts = range(bench.seed, bench.seed + recipe["starts"])
        task = make_task(dataset)
        self.features = task.inputs()
        network = task.network(Architecture("gcn", recipe["layers"], recipe["hidden"]), [Trial()])
        assert isinstance(network, GCN)
        self.network = network
        self.parameters = [self.network.initial([start], dataset.device) for start in starts]

    def terms(self, prob: Tensor) -> tuple[Terms, Terms]:
        """The terms of the variance and of the deviation from the whole graph, averaged over the starts."""
        found = []
        for parameters in self.parameters:

            def outputs(shift: ShiftOperator, parameters: dict[str, Tensor] = parameters) -> Tensor:
                # One set of parameters and one X W for all subgraphs: the trials axis is that of the operators.
                operator = Sparse(shift.pattern.places, shift.values, shift.symmetric)
                return self.network.logits(parameters, self.features, [operator])

            recipe = self.bench.recipe
            found.append(
                output_variance(
                    outputs,
                    self.dataset.graph,
                    prob,
                    samples=recipe["samples"],
                    seed=self.bench.seed,
                    normalization=self.normalization,
                    batch=recipe["batch"],
                )
            )
        variance = torch.stack([each.terms for each in found]).mean(dim=0)
        deviation = torch.stack([each.deviations for each in found]).mean(dim=0)
        return variance.numpy(), deviation.numpy()

    def rows(self, p: float, weights: Tensor) -> list[dict[str, Any]]:
        """One row for each strategy at p, beside DropEdge at p and DropEdge with the same budget."""
        recipe = self.bench.recipe
        dropedge = self.terms(torch.full_like(weights, p))
        gamma: float | str = "auto" if self.dataset.gamma is None else self.dataset.gamma
        rows = []
        for strategy in recipe["strategies"]:
            prob = keep_probabilities(weights, keep_prob=p, strategy=strategy, gamma=gamma)
            kept = float(prob.mean())
            mine, level = self.terms(prob), self.terms(torch.full_like(prob, kept))
            row = {
                "dataset": self.dataset.name,
                "normalization": self.normalization,
                "laplacian": recipe["laplacian"],
                "strategy": strategy,
                "keep_prob": p,
                "kept_share": kept,
            }
            for what, ours, same_p, same_budget in zip(QUANTITIES, mine, dropedge, level, strict=True):
                row |= _columns(what, ours, same_p, same_budget)
            rows.append(row)
        return rows


def _columns(what: str, mine: Terms, same_p: Terms, same_budget: Terms) -> dict[str, float]:
    """The columns of one quantity: ours, DropEdge's, and by how much ours is less, with standard errors."""
    columns = dict(zip((what, f"{what}_error"), mean_and_error(mine), strict=True))
    for how, other in (("same_p", same_p), ("same_budget", same_budget)):
        less, error = reduction(mine, other)
        columns |= {
            f"{what}_dropedge_{how}": float(other.mean()),
            f"{what}_dropedge_{how}_error": mean_and_error(other)[1],
            f"{what}_reduction_{how}": less,
            f"{what}_reduction_{how}_error": error,
        }
    return columns


def reduction(mine: Terms, other: Terms) -> tuple[float, float]:
    """1 − mean(mine) / mean(other), and its standard error from the pairs.

    >>> reduction(np.array([1.0, 2.0]), np.array([2.0, 4.0]))
    (0.5, 0.0)
    """
    ratio = mine.mean() / other.mean()
    spread = (mine - ratio * other) / other.mean()
    return float(1 - ratio), float(spread.std(ddof=1) / len(spread) ** 0.5)


def judge(rows: Sequence[Row], published: Mapping[str, float]) -> list[Verdict]:
    """The printed strategy is cdf, and the printed quantity the variance; the others are beside it in the rows."""
    main = rows[0]["normalization"]
    cdf = [row for row in rows if row["strategy"] == "cdf" and row["normalization"] == main]
    verdicts = [_rises(cdf)]
    verdicts += [_reduces(cdf, what, how) for what in QUANTITIES for how in HOW]
    verdicts += [_printed(cdf, name, printed) for name, printed in published.items()]
    return [*verdicts, *(_grows(cdf, what) for what in QUANTITIES)]


def _ends(rows: Sequence[Row]) -> list[tuple[str, Row, Row]]:
    """Each dataset with its rows of the smallest and the largest p."""
    mine: dict[str, list[Row]] = {}
    for row in sorted(rows, key=lambda row: float(row["keep_prob"])):
        mine.setdefault(NAMES[row["dataset"]], []).append(row)
    return [(name, found[0], found[-1]) for name, found in mine.items()]


def falls(rows: Sequence[Row], key: str) -> bool:
    """Whether a quantity falls with p on every dataset: clearly from end to end, and never clearly up in between."""

    def clearly_above(one: Row, other: Row) -> bool:
        room = CLEAR * math.hypot(one[f"{key}_error"], other[f"{key}_error"])
        return bool(one[key] - other[key] > room)

    for name, low, high in _ends(rows):
        mine = sorted((row for row in rows if NAMES[row["dataset"]] == name), key=lambda row: float(row["keep_prob"]))
        if not clearly_above(low, high) or any(clearly_above(b, a) for a, b in itertools.combinations(mine, 2)):
            return False
    return True


def _rises(rows: Sequence[Row]) -> Verdict:
    """Whether DropEdge's variance falls with p, by more than its errors."""
    key = "variance_dropedge_same_p"
    tops = {}
    for name, *_ in _ends(rows):
        tops[name] = max((row for row in rows if NAMES[row["dataset"]] == name), key=lambda row: float(row[key]))
    said = ", ".join(
        f"{name} {low[key]:.3g} at p = {low['keep_prob']:g}, {tops[name][key]:.3g} at p = {tops[name]['keep_prob']:g}, "
        f"{high[key]:.3g} at p = {high['keep_prob']:g}"
        for name, low, high in _ends(rows)
    )
    return judged(
        "The variance of DropEdge increases as p decreases",
        falls(rows, key),
        f"smallest p, the p of the largest variance, largest p: {said}; with few edges left there is little to vary",
    )


def _reduces(rows: Sequence[Row], what: str, how: str) -> Verdict:
    """Whether cdf has less of it than DropEdge at every p of every dataset."""
    key = f"{what}_reduction_{how}"
    clear = [row for row in rows if row[key] > CLEAR * row[f"{key}_error"]]
    more = [row for row in rows if row[key] < -CLEAR * row[f"{key}_error"]]
    spans = []
    for name, *_ in _ends(rows):
        found = [row[key] for row in rows if NAMES[row["dataset"]] == name]
        spans.append(f"{name} {min(found):+.1%} to {max(found):+.1%}")
    return judged(
        f"TADropEdge-CDF reduces the {WORDS[what]}, beside DropEdge {HOW[how]}",
        len(clear) == len(rows),
        f"less in {len(clear)} and more in {len(more)} of {len(rows)} settings, by {CLEAR:g} standard errors; "
        f"reductions: {', '.join(spans)}",
    )


def _printed(rows: Sequence[Row], name: str, printed: float) -> Verdict:
    """Whether the reduction at the same p ends at the printed one."""
    key = "variance_reduction_same_p"
    mine = [row for row in rows if NAMES[row["dataset"]] == name]
    best, first = max(mine, key=lambda row: float(row[key])), min(mine, key=lambda row: float(row["keep_prob"]))
    return judged(
        f"At the same p the variance on {name} falls by more the smaller p is, by {printed:.0%} at most",
        best is first and abs(best[key] - printed) <= NEAR,
        f"{first[key]:+.1%} ± {first[f'{key}_error']:.1%} at the smallest p = {first['keep_prob']:g}, and at most "
        f"{best[key]:+.1%} ± {best[f'{key}_error']:.1%}, at p = {best['keep_prob']:g}, where cdf keeps "
        f"{best['kept_share']:.2f} of the edges; beside DropEdge with that budget "
        f"{best['variance_reduction_same_budget']:+.1%}",
    )


def _grows(rows: Sequence[Row], what: str) -> Verdict:
    """Whether the reduction at the same p falls with p, by more than its errors."""
    key = f"{what}_reduction_same_p"
    said = ", ".join(
        f"{name} {low[key]:.1%} ± {low[f'{key}_error']:.1%} at p = {low['keep_prob']:g} and "
        f"{high[key]:.1%} ± {high[f'{key}_error']:.1%} at p = {high['keep_prob']:g}"
        for name, low, high in _ends(rows)
    )
    return judged(
        f"The reduction of the {WORDS[what]} increases with decreasing p",
        falls(rows, key),
        said,
    )
