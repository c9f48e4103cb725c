"""The variance of the outputs of an untrained GCN over sampled subgraphs, at the same p and at the same budget."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Annotated

import torch
from torch import Tensor

from tadropedge._old.data.dataset import Dataset
from tadropedge._old.diagnostics import output_variance
from tadropedge._old.nn.backbones import GCN
from tadropedge._old.nn.layers import Sparse
from tadropedge._old.paper.figures import theory as figures
from tadropedge._old.paper.item import Bench, Item, Verdict
from tadropedge._old.paper.journal import Journal
from tadropedge._old.paper.judge import CLEAR, HOW, Array, judged, mean_and_error
from tadropedge._old.paper.recipe import Recipe
from tadropedge._old.paper.rows import INLINED, Measured, Number, Row, grouped, title
from tadropedge._old.publish.wording import listed
from tadropedge._old.scores.aggregate import aggregate_resistance
from tadropedge._old.shift import ShiftOperator
from tadropedge._old.strategies import keep_probabilities
from tadropedge._old.training.config import Architecture, Trial
from tadropedge._old.training.laboratory import data_fingerprints, make_task

WORDS = {"variance": "output variance", "deviation": "mean squared distance from the output on the whole graph"}
Terms = Callable[[Tensor], tuple[Array, Array]]  # of the variance and of the deviation, one for each subgraph
NEAR = 0.05  # how far a reduction may lie from the printed one
TREND = 3  # as many p at least that a range has of which a trend is told
AT_ONCE = {"cpu": 2**25, "cuda": 2**28}  # numbers of a hidden layer of a batch of subgraphs


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
Of = Callable[[Spread], Measured]
Find = Callable[[Mapping[str, Sequence[Spread]]], tuple[bool | str, str]]  # rows by dataset: where it holds, and words


def run(bench: Bench) -> Item:
    """Measure every dataset, normalisation, p, Laplacian and strategy."""
    recipe, journal = bench.recipe, Journal(bench)
    total = len(recipe["datasets"]) * len(recipe["normalizations"]) * len(recipe["keep_probs"])
    rows: list[Spread] = []
    done = 0
    for name in recipe["datasets"]:
        dataset = bench.dataset(name)
        data = data_fingerprints(dataset)
        scores = cache(partial(_scores, bench, dataset))  # computed when they are needed
        for normalization in recipe["normalizations"]:
            terms = meter(bench, dataset, normalization)
            measured = partial(measure, recipe, dataset, normalization, scores, terms)
            for p in recipe["keep_probs"]:
                bench.report(f"{name}, {normalization}", done, total)
                rows += journal.rows(f"{name}/{normalization}/{p:g}", data, Spread, partial(measured, p))
                done += 1
    cdf = [row for row in rows if row.strategy == "cdf"]
    pictures = {
        "levels": figures.variances(cdf, recipe["scripts"]),
        **{what: figures.reductions(cdf, what, words, recipe["scripts"]) for what, words in WORDS.items()},
    }
    return Item(rows, judge(rows, recipe), pictures, recipe.said(scripts=[{"used": used(recipe)}]), run=journal.run)


def _scores(bench: Bench, dataset: Dataset) -> dict[str, Tensor]:
    """The scores of the edges with each Laplacian; they are kept on disk."""
    q, kinds = dataset.num_classes, bench.recipe["laplacians"]
    return {kind: aggregate_resistance(dataset.graph, q, laplacian=kind, cache_dir=bench.cache_dir) for kind in kinds}


def meter(bench: Bench, dataset: Dataset, normalization: str) -> Terms:
    """A function from keep probabilities ``[M]`` to the terms of both quantities, averaged over untrained networks."""
    recipe, task = bench.recipe, make_task(dataset)
    features = task.inputs()
    network = task.network(Architecture("gcn", recipe["layers"], recipe["hidden"]), [Trial()])
    assert isinstance(network, GCN)
    starts = range(bench.seed, bench.seed + recipe["starts"])
    untrained = [network.initial([start], dataset.device) for start in starts]
    at_once = AT_ONCE[dataset.device.type] // (dataset.graph.num_nodes * recipe["hidden"])

    def outputs(shift: ShiftOperator) -> Tensor:
        # One set of parameters and one X W for all subgraphs: the trials axis is that of the operators. The starts
        # stand side by side as features, over which a variance is averaged.
        operator = Sparse(shift.pattern.places, shift.values, shift.symmetric)
        return torch.cat([network.logits(parameters, features, [operator]) for parameters in untrained], dim=-1)

    def terms(prob: Tensor) -> tuple[Array, Array]:
        found = output_variance(
            outputs,
            dataset.graph,
            prob,
            samples=recipe["samples"],
            seed=bench.seed,
            normalization=normalization,
            batch=max(1, at_once),
        )
        return found.terms.numpy(), found.deviations.numpy()

    return terms


def measure(
    recipe: Recipe,
    dataset: Dataset,
    normalization: str,
    scores: Callable[[], Mapping[str, Tensor]],
    terms: Terms,
    p: float,
) -> list[Spread]:
    """One row for each Laplacian and strategy at p, beside DropEdge at p and DropEdge with the same budget."""
    by_laplacian = scores()
    dropedge = terms(torch.full_like(next(iter(by_laplacian.values())), p))
    gamma: float | str = "auto" if dataset.gamma is None else dataset.gamma
    rows = []
    for laplacian, strategy in itertools.product(by_laplacian, recipe["strategies"]):
        prob = keep_probabilities(by_laplacian[laplacian], keep_prob=p, strategy=strategy, gamma=gamma)
        kept = float(prob.mean())
        all_terms = zip(terms(prob), dropedge, terms(torch.full_like(prob, kept)), strict=True)
        variance, deviation = (Quantity.of(*each) for each in all_terms)
        rows.append(
            Spread(
                dataset=dataset.name,
                normalization=normalization,
                laplacian=laplacian,
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


def used(recipe: Recipe) -> str:
    """Which normalisation DropEdge's scripts have on each dataset."""
    kinds = grouped(recipe["scripts"].items(), lambda pair: pair[1])
    return ", ".join(f"{kind} on {listed(title(name) for name, _ in pairs)}" for kind, pairs in kinds.items())


def judge(rows: Sequence[Spread], recipe: Recipe) -> list[Verdict]:
    """The paper's strategy is cdf, its quantity the variance, its normalisation that of DropEdge's scripts.

    The same with one normalisation on all datasets, the same budget, and the distance from the output on the whole
    graph are questions of our own.
    """
    cdf = [row for row in rows if row.strategy == "cdf"]
    paper = [row for row in cdf if row.normalization == recipe["scripts"][row.dataset]]
    verdicts = _claims(paper, recipe, "", used(recipe))
    verdicts += [_printed(paper, name, recipe) for name in recipe.published]
    for kind, mine in grouped(cdf, lambda row: row.normalization).items():
        verdicts += [
            *_claims(mine, recipe, " elsewhere", kind),
            _reduces(mine, "variance", "same_budget", recipe, "reduces elsewhere", kind),
            *(_reduces(mine, "deviation", how, recipe, "reduces elsewhere", kind) for how in HOW),
        ]
    return verdicts


def _claims(rows: Sequence[Spread], recipe: Recipe, suffix: str, normalization: str) -> list[Verdict]:
    """What the paper says of the variance at the same p, of rows of some normalisation."""
    return [
        _rises(rows, recipe, f"rises{suffix}", normalization),
        _reduces(rows, "variance", "same_p", recipe, f"reduces{suffix}", normalization),
        _grows(rows, recipe, f"grows{suffix}", normalization),
    ]


def by_dataset(rows: Sequence[Spread]) -> dict[str, list[Spread]]:
    """The rows of each dataset, p rising."""
    return grouped(sorted(rows, key=lambda row: row.keep_prob), lambda row: title(row.dataset))


def falls(rows: Sequence[Spread], of: Of) -> bool:
    """Whether a quantity falls with p, rising here: clearly from end to end, and never clearly up in between."""

    def clearly_above(one: Spread, other: Spread) -> bool:
        return of(one).value - of(other).value > CLEAR * math.hypot(of(one).error, of(other).error)

    return clearly_above(rows[0], rows[-1]) and not any(clearly_above(b, a) for a, b in itertools.combinations(rows, 2))


def longest(rows: Sequence[Spread], holds: Callable[[Sequence[Spread]], bool], least: int) -> list[Spread]:
    """The longest run of neighbours, of at least so many, for which something holds; the last of equal ones."""
    for size in range(len(rows), least - 1, -1):
        for start in range(len(rows) - size, -1, -1):
            if holds(run := rows[start : start + size]):
                return list(run)
    return []


def where(groups: Mapping[str, Sequence[Spread]], found: Mapping[str, Sequence[Spread]]) -> bool | str:
    """True if everything was found everywhere, False if nothing was, else the datasets and the p.

    >>> from types import SimpleNamespace
    >>> rows = [SimpleNamespace(keep_prob=p) for p in (0.1, 0.5, 0.9)]
    >>> where({"Cora": rows, "PubMed": rows}, {"Cora": rows, "PubMed": rows[1:]})
    'Cora, PubMed at p = 0.5 to 0.9'
    """
    if all(len(found[name]) == len(mine) for name, mine in groups.items()):
        return True
    said = []
    for name, mine in groups.items():
        values = [row.keep_prob for row in found[name]]
        at = " and ".join(_runs(values, [row.keep_prob for row in mine]))
        said += [name if len(values) == len(mine) else f"{name} at p = {at}"] if values else []
    return ", ".join(said) or False


def _runs(values: Sequence[float], of: Sequence[float]) -> list[str]:
    """Some of the numbers, neighbours together."""
    kept = itertools.groupby(of, lambda value: value in values)
    runs = [list(run) for inside, run in kept if inside]
    return [" to ".join(dict.fromkeys(f"{end:g}" for end in (run[0], run[-1]))) for run in runs]


def with_each_laplacian(rows: Sequence[Spread], find: Find) -> tuple[bool | str, str]:
    """Where something holds with both Laplacians, and what is said of each: the paper names none."""
    kinds = {kind: find(by_dataset(mine)) for kind, mine in grouped(rows, lambda row: row.laplacian).items()}
    places = {kind: holds for kind, (holds, _) in kinds.items()}
    said = "; ".join(f"{kind} Laplacian: {words}" for kind, (_, words) in kinds.items())
    if len(set(places.values())) == 1:
        return next(iter(places.values())), said
    told = {f"{kind} Laplacian": holds for kind, holds in places.items() if holds}
    return "; ".join(kind if holds is True else f"{kind}: {holds}" for kind, holds in told.items()), said


def _rises(rows: Sequence[Spread], recipe: Recipe, claim: str, normalization: str) -> Verdict:
    """Whether DropEdge's variance falls with p, by more than its errors; no weights are in it."""

    def of(row: Spread) -> Measured:
        return row.variance.dropedge_same_p

    groups = by_dataset([row for row in rows if row.laplacian == rows[0].laplacian])
    said = []
    for name, mine in groups.items():
        top = max(mine, key=lambda row: of(row).value)
        three = dict.fromkeys(f"{of(row).value:.3g} at p = {row.keep_prob:g}" for row in (mine[0], top, mine[-1]))
        said.append(f"{name} {', '.join(three)}")
    holds = where(groups, _trends(groups, of))
    return judged(recipe, claim, holds, said="; ".join(said), normalization=normalization)


def _trends(groups: Mapping[str, Sequence[Spread]], of: Of) -> dict[str, list[Spread]]:
    """The longest range of p in which a quantity falls with p, of each dataset."""
    return {
        name: longest(mine, lambda run: falls(run, of), least=min(TREND, len(mine))) for name, mine in groups.items()
    }


def _reduces(rows: Sequence[Spread], what: str, how: str, recipe: Recipe, claim: str, normalization: str) -> Verdict:
    """Where cdf has less of it than DropEdge, by more than its errors."""

    def of(row: Spread) -> Measured:
        return row.quantity(what).reduction(how)

    def find(groups: Mapping[str, Sequence[Spread]]) -> tuple[bool | str, str]:
        less = {name: [row for row in mine if of(row).above(CLEAR)] for name, mine in groups.items()}
        spans = (f"{n} {min(of(r).value for r in mine):+.1%} to {max(of(r).value for r in mine):+.1%}"
                 for n, mine in groups.items())  # fmt: skip
        return where(groups, less), ", ".join(spans)

    holds, said = with_each_laplacian(rows, find)
    numbers = {
        "less": sum(of(row).above(CLEAR) for row in rows),
        "more": sum(of(row).below(CLEAR) for row in rows),
        "count": len(rows),
        "clear": CLEAR,
    }
    words = {"what": WORDS[what], "how": HOW[how], "said": said, "normalization": normalization}
    return judged(recipe, claim, holds, **numbers, **words)


def _printed(rows: Sequence[Spread], name: str, recipe: Recipe) -> Verdict:
    """Whether the largest reduction at the same p is the printed one."""
    printed = recipe.published[name]

    def find(groups: Mapping[str, Sequence[Spread]]) -> tuple[bool | str, str]:
        best = max(groups[name], key=lambda row: row.variance.reduction_same_p.value)
        less, level = best.variance.reduction_same_p, best.variance.reduction_same_budget
        said = (
            f"{less.value:+.1%} ± {less.error:.1%} at p = {best.keep_prob:g}, where cdf keeps {best.kept_share:.2f} of "
            f"the edges; beside DropEdge with that budget {level.value:+.1%} ± {level.error:.1%}"
        )
        return abs(less.value - printed) <= NEAR, said

    holds, said = with_each_laplacian(rows, find)
    kind = recipe["scripts"][next(row.dataset for row in rows if title(row.dataset) == name)]
    return judged(recipe, "printed", holds, name=name, printed=printed, near=100 * NEAR, said=said, normalization=kind)


def _grows(rows: Sequence[Spread], recipe: Recipe, claim: str, normalization: str) -> Verdict:
    """Whether the reduction at the same p falls with p, by more than its errors."""

    def of(row: Spread) -> Measured:
        return row.variance.reduction_same_p

    def shown(row: Spread) -> str:
        return f"{of(row).value:+.1%} ± {of(row).error:.1%} at p = {row.keep_prob:g}"

    def find(groups: Mapping[str, Sequence[Spread]]) -> tuple[bool | str, str]:
        said = (f"{name} {shown(mine[0])} and {shown(mine[-1])}" for name, mine in groups.items())
        return where(groups, _trends(groups, of)), ", ".join(said)

    holds, said = with_each_laplacian(rows, find)
    return judged(recipe, claim, holds, said=said, normalization=normalization)
