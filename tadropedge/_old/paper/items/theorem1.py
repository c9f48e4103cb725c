"""Theorem 1 measured: the relative error of subgraphs, and the change of outputs beside the bound on it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from tadropedge._old.data.dataset import Dataset
from tadropedge._old.diagnostics import ErrorModel
from tadropedge._old.diagnostics.relative_error import spectral_norm
from tadropedge._old.graph import Graph
from tadropedge._old.paper.figures import theory as figures
from tadropedge._old.paper.item import Bench, Item, Verdict
from tadropedge._old.paper.journal import Journal
from tadropedge._old.paper.judge import CLEAR, HOW, Array, judged, mean_and_error, where_it_holds
from tadropedge._old.paper.recipe import Recipe
from tadropedge._old.paper.rows import Measured, Number, Row, grouped
from tadropedge._old.paper.trained_filters import Filters, movement, trained_taps
from tadropedge._old.sampling import sample_edges
from tadropedge._old.scores.aggregate import aggregate_resistance
from tadropedge._old.shift import shift_operator
from tadropedge._old.strategies import keep_probabilities
from tadropedge._old.training.laboratory import data_fingerprints

AT_ONCE = 2**24  # numbers of a batch of dense operators
REPRESENTED = 1e-6  # a larger share of S − S' that no E represents is no rounding


@dataclass(frozen=True, kw_only=True)
class Subgraphs(Row):
    """The subgraphs of one strategy on a family of graphs.

    Norms are medians over draws. Ratios, ours over DropEdge's, are geometric means; their errors are those of their
    logarithms, over graphs, or over draws where there is one graph.
    """

    part: Literal["subgraphs"] = "subgraphs"
    family: str
    graphs: int
    nodes: int
    normalization: str
    keep_prob: float
    draws: int
    smallest_sum: float
    strategy: str
    kept_share: float
    error_norm: float
    error_norm_same_p: float
    error_norm_same_budget: float
    below_one: float
    unexplained: float
    relative_ratio_same_p: Number
    relative_ratio_same_budget: Number
    absolute_ratio_same_p: Number
    absolute_ratio_same_budget: Number


ROWS = (Subgraphs, Filters)


def run(bench: Bench) -> Item:
    """Measure subgraphs of several families of graphs, then trained filters on the graphs of source localisation."""
    journal = Journal(bench)
    subgraphs, filters = _subgraphs(bench, journal), _filters(bench, journal)
    pictures = {"errors": figures.errors(subgraphs), "bound": figures.bounds(filters)}
    verdicts = [*judge_subgraphs(subgraphs, bench.recipe), *judge_filters(filters, bench.recipe)]
    return Item([*subgraphs, *filters], verdicts, pictures, bench.recipe.said(), run=journal.run)


@dataclass(frozen=True, eq=False)
class Case:
    """One graph with the scores its strategies use."""

    family: str
    graph: Graph
    scores: Tensor
    gamma: float | str = "auto"

    def probabilities(self, strategy: str, p: float) -> Tensor:
        """The keep probabilities ``[M]`` of a strategy with default probability p."""
        return keep_probabilities(self.scores, keep_prob=p, strategy=strategy, gamma=self.gamma)


def largest_component(graph: Graph) -> Graph:
    """The largest component as its own graph, nodes in their old order.

    >>> largest_component(Graph.from_edge_index([[0, 2, 3], [1, 3, 4]])).pairs.tolist()
    [[0, 1], [1, 2]]
    """
    components = graph.components
    inside = components.labels == components.sizes.argmax()
    number = inside.cumsum(0) - 1
    kept = inside[graph.pairs[0]]
    return Graph.from_edge_index(number[graph.pairs[:, kept]], num_nodes=int(inside.sum()))


def distances(model: ErrorModel, case: Case, prob: Tensor, normalization: str, draws: Sequence[int]) -> Array:
    """Draw subgraphs; ‖E‖₂, ‖S − S'‖₂ and the share of ‖S − S'‖_F that no E represents of each, ``[3, D]``."""
    step = max(1, AT_ONCE // case.graph.num_nodes**2)
    parts = []
    for start in range(0, len(draws), step):
        keep = sample_edges(prob, seed=list(draws[start : start + step]))
        other = shift_operator(case.graph, keep, normalization=normalization, dtype=torch.float64).to_dense()
        found = model.of(other)
        absolute = spectral_norm(model.shift - other)
        parts.append(torch.stack((found.norm, absolute, found.residual / found.change.clamp_min(1e-300))))
    measured: Array = torch.cat(parts, dim=1).cpu().numpy()
    return measured


def compare(
    make: Callable[[], Sequence[Case]], strategies: Sequence[str], normalization: str, p: float, draws: Sequence[int]
) -> list[Subgraphs]:
    """One row for each strategy on a family of graphs; all ways of dropping see the same coins."""
    cases = make()
    shifts = (shift_operator(case.graph, normalization=normalization, dtype=torch.float64) for case in cases)
    models = [ErrorModel(shift) for shift in shifts]

    def measured(probs: Sequence[Tensor]) -> Array:  # [3, G, D]
        found = [distances(*one, normalization, draws) for one in zip(models, cases, probs, strict=True)]
        return np.stack(found, axis=1)

    rows = []
    same_p = measured([torch.full_like(case.scores, p) for case in cases])
    for strategy in strategies:
        probs = [case.probabilities(strategy, p) for case in cases]
        kept = [float(prob.mean()) for prob in probs]
        level = measured([torch.full_like(prob, share) for prob, share in zip(probs, kept, strict=True)])
        relative, absolute, unexplained = measured(probs)
        rows.append(
            Subgraphs(
                family=cases[0].family,
                graphs=len(cases),
                nodes=cases[0].graph.num_nodes,
                normalization=normalization,
                keep_prob=p,
                draws=len(draws),
                smallest_sum=min(model.smallest_sum for model in models),
                strategy=strategy,
                kept_share=float(np.mean(kept)),
                error_norm=float(np.median(relative)),
                error_norm_same_p=float(np.median(same_p[0])),
                error_norm_same_budget=float(np.median(level[0])),
                below_one=float((relative < 1).mean()),
                unexplained=float(unexplained.mean()),
                relative_ratio_same_p=_ratio(relative / same_p[0]),
                relative_ratio_same_budget=_ratio(relative / level[0]),
                absolute_ratio_same_p=_ratio(absolute / same_p[1]),
                absolute_ratio_same_budget=_ratio(absolute / level[1]),
            )
        )
    return rows


def _ratio(ratios: Array) -> Measured:
    """A geometric mean of ``[G, D]``: ‖E‖ has a long tail, as sums of eigenvalues nearly vanish."""
    logs = np.log(ratios)
    mean = mean_and_error(logs.mean(axis=1) if len(logs) > 1 else logs[0])
    return Measured(float(np.exp(mean.value)), mean.error)


def _datasets(bench: Bench, family: Mapping[str, Any]) -> list[Dataset]:
    seeds = range(bench.seed, bench.seed + family["graphs"])
    return [bench.dataset(family["dataset"], seed=seed) for seed in seeds]


def _cases(family: Mapping[str, Any], datasets: Sequence[Dataset]) -> list[Case]:
    cases = []
    for dataset in datasets:
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
    datasets = {family["dataset"]: _datasets(bench, family) for family in recipe["families"]}
    data = {name: [(data_fingerprints(one), one.gamma) for one in mine] for name, mine in datasets.items()}
    # The scores of a family are computed when they are needed.
    cases = {
        family["dataset"]: cache(partial(_cases, family, datasets[family["dataset"]])) for family in recipe["families"]
    }
    rows: list[Subgraphs] = []
    for family, normalization, p in bench.each("relative errors", jobs, lambda job: job[0]["dataset"]):
        name = family["dataset"]
        draws = range(bench.seed, bench.seed + family.get("draws", recipe["draws"]))
        measure = partial(compare, cases[name], recipe["strategies"], normalization, p, draws)
        rows += journal.rows(f"{name}/{normalization}/{p:g}", data[name], Subgraphs, measure)
    return rows


def _filters(bench: Bench, journal: Journal) -> list[Filters]:
    """Trained filters on one graph and with one number of layers after the other."""
    jobs = [(graph, n) for graph in range(bench.recipe["trained_graphs"]) for n in bench.recipe["network"]["layers"]]
    sizes, rows = tuple(bench.recipe["sizes"]), []
    for graph, layers in bench.each("trained filters", jobs):
        dataset = bench.dataset("source-localization", seed=bench.seed + graph, sizes=sizes)
        make = partial(_trained, bench, dataset, graph, layers)
        rows += journal.rows(f"filters/{graph}/{layers}", data_fingerprints(dataset), Filters, make)
    return rows


def _trained(bench: Bench, dataset: Dataset, graph: int, layers: int) -> list[Filters]:
    """One row for each normalisation, p and way of dropping."""
    recipe, settings = bench.recipe, bench.recipe["network"]
    draws = range(bench.seed, bench.seed + recipe["draws"])
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
    everywhere = where_it_holds({kind: share <= REPRESENTED for kind, share in worst.items()})
    exists = judged(recipe, "exists", everywhere or None, said=said)
    return [exists, *(_smaller(rows, how, recipe) for how in HOW)]


def _smaller(rows: Sequence[Subgraphs], how: str, recipe: Recipe) -> Verdict:
    """Of which graphs the relative error of cdf's subgraphs is clearly smaller with all normalisations and p."""
    said, families = [], grouped((row for row in rows if row.strategy == "cdf"), lambda row: row.family)
    clear = {family: all(_log(row, how).below(CLEAR) for row in mine) for family, mine in families.items()}
    for strategy, mine in grouped(rows, lambda row: row.strategy).items():
        logs = [_log(row, how) for row in mine]
        less, more = sum(log.below(CLEAR) for log in logs), sum(log.above(CLEAR) for log in logs)
        low, high = (float(np.exp(end(log.value for log in logs))) for end in (min, max))
        said.append(
            f"{strategy} smaller in {less}, larger in {more} of {len(mine)} settings (ratios {low:.2f} to {high:.2f})"
        )
    claim = "smaller" if how == "same_p" else "smaller budget"
    return judged(recipe, claim, where_it_holds(clear), how=HOW[how], said="; ".join(said))


def _log(row: Subgraphs, how: str) -> Measured:
    """The logarithm of ‖E‖ over DropEdge's, with its error."""
    ratio = row.relative_ratio_same_p if how == "same_p" else row.relative_ratio_same_budget
    return Measured(float(np.log(ratio.value)), ratio.error)


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
