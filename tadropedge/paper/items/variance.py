"""The variance of the outputs of an untrained GCN over sampled subgraphs, at the same p and at the same budget."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated

import torch
from torch import Tensor

from tadropedge.data.dataset import Dataset
from tadropedge.diagnostics import output_variance
from tadropedge.nn.backbones import GCN
from tadropedge.nn.layers import Sparse
from tadropedge.paper.figures import theory as figures
from tadropedge.paper.item import Bench, Item, Verdict
from tadropedge.paper.journal import Journal
from tadropedge.paper.judge import CLEAR, HOW, Array, judged, mean_and_error
from tadropedge.paper.recipe import Recipe
from tadropedge.paper.rows import INLINED, Measured, Number, Row, grouped, title
from tadropedge.scores.aggregate import aggregate_resistance
from tadropedge.shift import ShiftOperator
from tadropedge.strategies import keep_probabilities
from tadropedge.training.config import Architecture, Trial
from tadropedge.training.laboratory import data_fingerprints, make_task

WORDS = {"variance": "output variance", "deviation": "mean squared distance from the output on the whole graph"}
Terms = Callable[[Tensor], tuple[Array, Array]]  # of the variance and of the deviation, one for each subgraph
NEAR = 0.05  # how far a reduction may lie from the printed one


@dataclass(frozen=True, kw_only=True)
class Quantity:
    """Ours, that of both kinds of DropEdge, and by how much ours is less than theirs, as a share."""

    value: Number
    dropedge_same_p: Number
    reduction_same_p: Number
    dropedge_same_budget: Number
    reduction_same_budget: Number

    def reduction(self, how: str) -> Measured:
        """By how much it is less than DropEdge's, ``"same_p"`` or ``"same_budget"``."""
        return self.reduction_same_p if how == "same_p" else self.reduction_same_budget

    @classmethod
    def of(cls, mine: Array, same_p: Array, same_budget: Array) -> Quantity:
        """From the terms of the three, one for each subgraph."""
        return cls(
            value=mean_and_error(mine),
            dropedge_same_p=mean_and_error(same_p),
            reduction_same_p=reduction(mine, same_p),
            dropedge_same_budget=mean_and_error(same_budget),
            reduction_same_budget=reduction(mine, same_budget),
        )


@dataclass(frozen=True, kw_only=True)
class Spread(Row):
    """How the outputs of one strategy at one p vary over its subgraphs."""

    dataset: str
    normalization: str
    laplacian: str
    strategy: str
    keep_prob: float
    kept_share: float
    variance: Annotated[Quantity, INLINED]
    deviation: Annotated[Quantity, INLINED]

    def quantity(self, what: str) -> Quantity:
        """The ``"variance"``, or the ``"deviation"`` from the output on the whole graph."""
        return self.variance if what == "variance" else self.deviation


ROWS = (Spread,)


def run(bench: Bench) -> Item:
    """Measure every dataset, normalisation, p and strategy."""
    recipe, journal = bench.recipe, Journal(bench)
    total = len(recipe["datasets"]) * len(recipe["normalizations"]) * len(recipe["keep_probs"])
    rows: list[Spread] = []
    done = 0
    for name in recipe["datasets"]:
        dataset = bench.dataset(name)
        data = data_fingerprints(dataset)
        scores = aggregate_resistance(
            dataset.graph, dataset.num_classes, laplacian=recipe["laplacian"], cache_dir=bench.cache_dir
        )
        for normalization in recipe["normalizations"]:
            terms = meter(bench, dataset, normalization)
            measured = partial(measure, recipe, dataset, normalization, scores, terms)
            for p in recipe["keep_probs"]:
                bench.report(f"{name}, {normalization}", done, total)
                rows += journal.rows(f"{name}/{normalization}/{p:g}", data, Spread, partial(measured, p))
                done += 1
    pictures = {what: figures.variances(rows, what, words) for what, words in WORDS.items()}
    return Item(rows, judge(rows, recipe), pictures, recipe.said(), run=journal.run)


def meter(bench: Bench, dataset: Dataset, normalization: str) -> Terms:
    """A function from keep probabilities ``[M]`` to the terms of both quantities, averaged over untrained networks."""
    recipe, task = bench.recipe, make_task(dataset)
    features = task.inputs()
    network = task.network(Architecture("gcn", recipe["layers"], recipe["hidden"]), [Trial()])
    assert isinstance(network, GCN)
    starts = range(bench.seed, bench.seed + recipe["starts"])
    untrained = [network.initial([start], dataset.device) for start in starts]
    settings = {
        "samples": recipe["samples"],
        "seed": bench.seed,
        "normalization": normalization,
        "batch": recipe["batch"],
    }

    def outputs(parameters: dict[str, Tensor], shift: ShiftOperator) -> Tensor:
        # One set of parameters and one X W for all subgraphs: the trials axis is that of the operators.
        operator = Sparse(shift.pattern.places, shift.values, shift.symmetric)
        return network.logits(parameters, features, [operator])

    def terms(prob: Tensor) -> tuple[Array, Array]:
        graph = dataset.graph
        found = [output_variance(partial(outputs, each), graph, prob, **settings) for each in untrained]
        variance = torch.stack([each.terms for each in found]).mean(dim=0)
        deviation = torch.stack([each.deviations for each in found]).mean(dim=0)
        return variance.numpy(), deviation.numpy()

    return terms


def measure(
    recipe: Recipe, dataset: Dataset, normalization: str, scores: Tensor, terms: Terms, p: float
) -> list[Spread]:
    """One row for each strategy at p, beside DropEdge at p and DropEdge with the same budget."""
    dropedge = terms(torch.full_like(scores, p))
    gamma: float | str = "auto" if dataset.gamma is None else dataset.gamma
    rows = []
    for strategy in recipe["strategies"]:
        prob = keep_probabilities(scores, keep_prob=p, strategy=strategy, gamma=gamma)
        kept = float(prob.mean())
        all_terms = zip(terms(prob), dropedge, terms(torch.full_like(prob, kept)), strict=True)
        variance, deviation = (Quantity.of(*each) for each in all_terms)
        rows.append(
            Spread(
                dataset=dataset.name,
                normalization=normalization,
                laplacian=recipe["laplacian"],
                strategy=strategy,
                keep_prob=p,
                kept_share=kept,
                variance=variance,
                deviation=deviation,
            )
        )
    return rows


def reduction(mine: Array, other: Array) -> Measured:
    """1 − mean(mine) / mean(other), and its standard error from the pairs.

    >>> import numpy as np
    >>> reduction(np.array([1.0, 2.0]), np.array([2.0, 4.0]))
    Measured(value=0.5, error=0.0)
    """
    ratio = mine.mean() / other.mean()
    spread = (mine - ratio * other) / other.mean()
    return Measured(float(1 - ratio), float(spread.std(ddof=1) / len(spread) ** 0.5))


def judge(rows: Sequence[Spread], recipe: Recipe) -> list[Verdict]:
    """The printed strategy is cdf, and the printed quantity the variance; the others are beside it in the rows."""
    cdf = [row for row in rows if row.strategy == "cdf" and row.normalization == rows[0].normalization]
    groups = by_dataset(cdf)
    return [
        _rises(groups, recipe),
        *(_reduces(groups, what, how, recipe) for what in WORDS for how in HOW),
        *(_printed(groups.get(name, []), name, recipe) for name in recipe.published),
        *(_grows(groups, what, recipe) for what in WORDS),
    ]


def by_dataset(rows: Sequence[Spread]) -> dict[str, list[Spread]]:
    """The rows of each dataset, p rising."""
    return grouped(sorted(rows, key=lambda row: row.keep_prob), lambda row: title(row.dataset))


def falls(groups: Mapping[str, Sequence[Spread]], of: Callable[[Spread], Measured]) -> bool:
    """Whether a quantity falls with p on every dataset: clearly from end to end, and never clearly up in between."""

    def clearly_above(one: Spread, other: Spread) -> bool:
        return of(one).value - of(other).value > CLEAR * math.hypot(of(one).error, of(other).error)

    return all(
        clearly_above(mine[0], mine[-1]) and not any(clearly_above(b, a) for a, b in itertools.combinations(mine, 2))
        for mine in groups.values()
    )


def _rises(groups: Mapping[str, Sequence[Spread]], recipe: Recipe) -> Verdict:
    """Whether DropEdge's variance falls with p, by more than its errors."""

    def of(row: Spread) -> Measured:
        return row.variance.dropedge_same_p

    said = []
    for name, mine in groups.items():
        top = max(mine, key=lambda row: of(row).value)
        three = (f"{of(row).value:.3g} at p = {row.keep_prob:g}" for row in (mine[0], top, mine[-1]))
        said.append(f"{name} {', '.join(three)}")
    return judged(recipe, "rises", falls(groups, of), said=", ".join(said))


def _reduces(groups: Mapping[str, Sequence[Spread]], what: str, how: str, recipe: Recipe) -> Verdict:
    """Whether cdf has less of it than DropEdge at every p of every dataset."""
    found = {name: [row.quantity(what).reduction(how) for row in mine] for name, mine in groups.items()}
    every = list(itertools.chain(*found.values()))
    less, more = sum(one.above(CLEAR) for one in every), sum(one.below(CLEAR) for one in every)
    spans = [f"{n} {min(r.value for r in mine):+.1%} to {max(r.value for r in mine):+.1%}" for n, mine in found.items()]
    numbers = {"what": WORDS[what], "how": HOW[how], "less": less, "more": more, "clear": CLEAR}
    return judged(recipe, "reduces", less == len(every), count=len(every), said=", ".join(spans), **numbers)


def _printed(mine: Sequence[Spread], name: str, recipe: Recipe) -> Verdict:
    """Whether the reduction at the same p ends at the printed one."""
    first, best = mine[0], max(mine, key=lambda row: row.variance.reduction_same_p.value)
    printed = recipe.published[name]
    holds = best is first and abs(best.variance.reduction_same_p.value - printed) <= NEAR
    return judged(recipe, "printed", holds, name=name, printed=printed, first=first, best=best)


def _grows(groups: Mapping[str, Sequence[Spread]], what: str, recipe: Recipe) -> Verdict:
    """Whether the reduction at the same p falls with p, by more than its errors."""

    def of(row: Spread) -> Measured:
        return row.quantity(what).reduction_same_p

    def shown(row: Spread) -> str:
        return f"{of(row).value:.1%} ± {of(row).error:.1%} at p = {row.keep_prob:g}"

    said = ", ".join(f"{name} {shown(mine[0])} and {shown(mine[-1])}" for name, mine in groups.items())
    return judged(recipe, "grows", falls(groups, of), what=WORDS[what], said=said)
