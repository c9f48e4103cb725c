"""Theorem 1 measured: the relative error of subgraphs, and the change of outputs beside the bound on it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache, partial
from typing import Any

import numpy as np
import torch

from tadropedge.paper.figures import theory as figures
from tadropedge.paper.item import Bench, Item, Verdict
from tadropedge.paper.journal import Journal
from tadropedge.paper.judge import CLEAR, HOW, judged, mean_and_error
from tadropedge.paper.perturbation import Case, Subgraphs, compare, largest_component
from tadropedge.paper.recipe import Recipe
from tadropedge.paper.rows import Measured, grouped
from tadropedge.paper.trained_filters import Filters, movement, trained_taps
from tadropedge.scores.aggregate import aggregate_resistance
from tadropedge.strategies import keep_probabilities

ROWS = (Subgraphs, Filters)
REPRESENTED = 1e-6  # a larger share of S − S' that no E represents is no rounding


def run(bench: Bench) -> Item:
    """Measure subgraphs of several families of graphs, then trained filters on the graphs of source localisation."""
    journal = Journal(bench)
    subgraphs, filters = _subgraphs(bench, journal), _filters(bench, journal)
    pictures = {"errors": figures.errors(subgraphs), "bound": figures.bounds(filters)}
    verdicts = [*judge_subgraphs(subgraphs, bench.recipe), *judge_filters(filters, bench.recipe)]
    return Item([*subgraphs, *filters], verdicts, pictures, bench.recipe.said(), run=journal.run)


def _cases(bench: Bench, family: Mapping[str, Any]) -> list[Case]:
    cases = []
    for seed in range(bench.seed, bench.seed + family["graphs"]):
        dataset = bench.dataset(family["dataset"], seed=seed)
        graph = largest_component(dataset.graph)
        gamma: float | str = "auto" if dataset.gamma is None else dataset.gamma
        cases.append(Case(family["dataset"], graph, aggregate_resistance(graph, dataset.num_classes), gamma))
    return cases


def _subgraphs(bench: Bench, journal: Journal) -> list[Subgraphs]:
    """The relative errors of one family, normalisation and p after the other."""
    recipe = bench.recipe
    jobs = [
        (family, normalization, p)
        for family in recipe["families"]
        for normalization in family["normalizations"]
        for p in family.get("keep_probs", recipe["keep_probs"])
    ]
    # The graphs of a family are made when they are needed.
    cases = {family["dataset"]: cache(partial(_cases, bench, family)) for family in recipe["families"]}
    rows: list[Subgraphs] = []
    for family, normalization, p in bench.each("relative errors", jobs, lambda job: job[0]["dataset"]):
        name = family["dataset"]
        draws = range(bench.seed, bench.seed + family.get("draws", recipe["draws"]))
        measure = partial(compare, cases[name], recipe["strategies"], normalization, p, draws)
        rows += journal.rows(f"{name}/{normalization}/{p:g}", Subgraphs, measure)
    return rows


def _filters(bench: Bench, journal: Journal) -> list[Filters]:
    """Trained filters on one graph and with one number of layers after the other."""
    jobs = [(graph, n) for graph in range(bench.recipe["trained_graphs"]) for n in bench.recipe["network"]["layers"]]
    rows = []
    for graph, layers in bench.each("trained filters", jobs):
        rows += journal.rows(f"filters/{graph}/{layers}", Filters, partial(_trained, bench, graph, layers))
    return rows


def _trained(bench: Bench, graph: int, layers: int) -> list[Filters]:
    """One row for each normalisation, p and way of dropping."""
    recipe, settings = bench.recipe, bench.recipe["network"]
    draws = range(bench.seed, bench.seed + recipe["draws"])
    dataset = bench.dataset("source-localization", seed=bench.seed + graph, sizes=tuple(recipe["sizes"]))
    scores = aggregate_resistance(dataset.graph, dataset.num_classes)
    signals = dataset.features[dataset.split.test[: settings["signals"]]].double()
    rows = []
    for normalization, taps, accuracy in trained_taps(bench, dataset, layers, settings):
        for p in recipe["keep_probs"]:
            adaptive = keep_probabilities(scores, keep_prob=p, strategy="cdf")
            level = torch.full_like(adaptive, float(adaptive.mean()))
            ways = {"dropedge": torch.full_like(level, p), "cdf": adaptive, "same_budget": level}
            for method, prob in ways.items():
                found = movement(taps, dataset, signals, prob, normalization, draws)
                rows.append(
                    Filters(
                        graph=graph,
                        nodes=dataset.graph.num_nodes,
                        normalization=normalization,
                        keep_prob=p,
                        draws=len(draws),
                        layers=layers,
                        method=method,
                        kept_share=float(prob.mean()),
                        accuracy=accuracy,
                        constants=found.constants,
                        moved=found.summary,
                    )
                )
    return rows


def judge_subgraphs(rows: Sequence[Subgraphs], recipe: Recipe) -> list[Verdict]:
    """Whether E exists, and whether adaptive dropping makes it smaller."""
    kinds = grouped(rows, lambda row: row.normalization)
    worst = {kind: max(row.unexplained for row in mine) for kind, mine in kinds.items()}
    said = ", ".join(f"{kind} {share:.2g}" for kind, share in worst.items())
    exists = judged(recipe, "exists", max(worst.values()) <= REPRESENTED or None, said=said)
    return [exists, *(_smaller(rows, how, recipe) for how in HOW)]


def _smaller(rows: Sequence[Subgraphs], how: str, recipe: Recipe) -> Verdict:
    """Whether the relative error of cdf's subgraphs is clearly smaller in every row."""
    said, everywhere = [], False
    for strategy, mine in grouped(rows, lambda row: row.strategy).items():
        ratios = [row.relative_ratio_same_p if how == "same_p" else row.relative_ratio_same_budget for row in mine]
        logs = [Measured(float(np.log(ratio.value)), ratio.error) for ratio in ratios]
        less, more = sum(log.below(CLEAR) for log in logs), sum(log.above(CLEAR) for log in logs)
        low, high = (end(ratio.value for ratio in ratios) for end in (min, max))
        everywhere = everywhere or (strategy == "cdf" and less == len(mine))
        said.append(
            f"{strategy} smaller in {less}, larger in {more} of {len(mine)} settings (ratios {low:.2f} to {high:.2f})"
        )
    return judged(recipe, "smaller", everywhere, how=HOW[how], said="; ".join(said))


def judge_filters(rows: Sequence[Filters], recipe: Recipe) -> list[Verdict]:
    """The assumptions of the theorem, its bound, and what ‖E‖ says about outputs."""
    slopes, moved = [row.constants.C_L for row in rows], [row.moved for row in rows]
    correlation = mean_and_error([one.rank_correlation for one in moved])
    numbers = {
        "least_slope": min(slopes),
        "most_slope": max(slopes),
        # h = ln λ on [1.2, 2.8]: Definition 1 at its ends; |λ h'| is 1
        "log": np.log(2.8 / 1.2) * 4.0 / (2 * 1.6),
        "order": max(row.constants.definition_over_slope for row in rows),
        "least": min(one.least_ratio for one in moved),
        "ratio": np.median([one.median_ratio for one in moved]),
        "informative": np.mean([one.informative for one in moved]),
        "small": np.mean([one.below_one for one in moved]),
        "correlation": correlation,
        "count": len(rows),
        "plain": mean_and_error([one.rank_correlation_plain for one in moved]),
    }
    holds = {
        "bounded": None,
        "equivalent": None,
        "first order": numbers["least"] >= 1,
        "closer": correlation.above(CLEAR),
    }
    return [judged(recipe, claim, holds[claim], **numbers) for claim in holds]
