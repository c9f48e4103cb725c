"""Table 3: source localisation on many graphs, with the stated and a calibrated noise, beside the Bayes bound.

A graph is the unit: its best trial is the paper's protocol, and the mean over fresh seeds of the settings that are
best on validation is the honest one, paired with DropEdge at the same budget on the same graph.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tadropedge.comparison.statistics import Honest, honest_rows, verdict
from tadropedge.data import SourceLocalization, bayes_accuracy
from tadropedge.paper.figures import tables as figures
from tadropedge.paper.item import Bench, Cells, Item, Table, Verdict, table_of
from tadropedge.paper.judge import CLEAR, accuracy, difference, judged, mean_and_error
from tadropedge.paper.recipe import Recipe
from tadropedge.paper.rows import Row, grouped
from tadropedge.paper.trainings import Search, Work, laboratory, rounded, trainings
from tadropedge.publish.wording import percent, points
from tadropedge.search.protocol import Replicates, adaptive, paper
from tadropedge.search.space import Space

TOLERANCE = 0.005  # below the printed accuracy


@dataclass(frozen=True, kw_only=True)
class Localized(Row):
    """One method with one noise; entry g of every tuple is graph g."""

    noise: str
    deviation: float
    method: str
    printed: float | None
    best_mean: float
    best_of_graphs: float
    honest: Honest
    bayes: float
    bayes_low: float
    bayes_high: float
    graphs: int
    trials: int
    seeds_per_graph: int
    best_by_graph: tuple[float | None, ...]
    honest_by_graph: tuple[float | None, ...]
    bayes_by_graph: tuple[float | None, ...]


ROWS = (Localized,)


def run(bench: Bench) -> Item:
    """Both noises on the same graphs."""
    recipe, storage = bench.recipe, bench.storage()
    graphs = [1000 * bench.seed + number for number in range(recipe["graphs"])]
    each = trainings(recipe["methods"], recipe["trials"], recipe["seeds"])
    work = Work(bench, each * len(graphs) * len(recipe["noises"]))
    rows: list[Localized] = []
    for noise in recipe["noises"]:
        best: dict[str, list[float]] = {method: [] for method in recipe["methods"]}
        fresh: list[Replicates] = []
        for graph in graphs:
            both = _search(bench, noise, graph).run(work, storage, noise)
            assert both is not None
            fresh.append(both[1])
            for method, row in paper(both[0]).items():
                best[method].append(row.test_accuracy)
        bounds = [bayes_accuracy(graph, noise) for graph in graphs]
        rows += _rows(recipe, noise, best, fresh, bounds)
    notes = recipe.said(noise=[{noise: _deviation(noise) for noise in ("stated", "calibrated")}])
    return Item(rows, judge(rows, recipe), {"table3": figures.noises(rows)}, notes, run=work.run())


def _search(bench: Bench, noise: str, graph: int) -> Search:
    recipe = bench.recipe
    dataset = bench.dataset("source-localization", seed=graph, noise=noise)
    return Search(
        laboratory=laboratory(bench, dataset, "gcnn", recipe["laplacian"]),
        space=Space.of(recipe["space"]),
        methods=recipe["methods"],
        trials=recipe["trials"],
        seeds=recipe["seeds"],
        place=f"{noise}/graph-{graph}",
    )


def _deviation(noise: str) -> float:
    return SourceLocalization(noise=noise).deviation


def _rows(
    recipe: Recipe,
    noise: str,
    best: Mapping[str, Sequence[float]],
    fresh: Sequence[Replicates],
    bounds: Sequence[float],
) -> list[Localized]:
    """One row per method."""
    means = {method: np.array([graph_means(one, method) for one in fresh]) for method in recipe["methods"]}
    honest = honest_rows(
        {method: pairs[:, 0] for method, pairs in means.items()},
        {method: pairs[:, 1] for method, pairs in means.items() if adaptive(method)},
    )
    return [
        Localized(
            noise=noise,
            deviation=_deviation(noise),
            method=method,
            printed=recipe.published.get(method),
            best_mean=float(np.mean(best[method])),
            best_of_graphs=float(np.max(best[method])),
            honest=honest[method],
            bayes=float(np.mean(bounds)),
            bayes_low=float(np.min(bounds)),
            bayes_high=float(np.max(bounds)),
            graphs=len(bounds),
            trials=recipe["trials"],
            seeds_per_graph=recipe["seeds"],
            best_by_graph=rounded(best[method], 4),
            honest_by_graph=rounded(means[method][:, 0], 4),
            bayes_by_graph=rounded(bounds, 4),
        )
        for method in recipe["methods"]
    ]


def graph_means(fresh: Replicates, method: str) -> tuple[float, float]:
    """The means over replicates of a method and of its reference; its own twice where it has none.

    A replicate that failed in one of the two is left out of both. NaN where none is left.
    """
    values = fresh.accuracy[method]
    reference = fresh.reference.get(method, values)
    used = ~np.isnan(values + reference)
    return (float(values[used].mean()), float(reference[used].mean())) if used.any() else (np.nan, np.nan)


def judge(rows: Sequence[Localized], recipe: Recipe) -> list[Verdict]:
    """Whether the printed numbers can be reached, and whether TADropEdge outperforms DropEdge where they can."""
    verdicts = []
    for noise, group in grouped(rows, lambda row: row.noise).items():
        mine = {row.method: row for row in group}
        verdicts.append(_reachable(mine, noise, recipe))
        if noise != "stated":
            verdicts += [_better_at_best(mine, noise, recipe), _better_honestly(mine, noise, recipe)]
    return verdicts


def _reachable(mine: Mapping[str, Localized], noise: str, recipe: Recipe) -> Verdict:
    first = next(iter(mine.values()))
    printed = {method: row.printed for method, row in mine.items() if row.printed is not None}
    low, high = min(printed.values()), max(printed.values())
    said = ", ".join(f"{method} {mine[method].best_mean:.3f} ({value:.3f})" for method, value in printed.items())
    reached = all(mine[method].best_mean >= value - TOLERANCE for method, value in printed.items())
    impossible = noise == "stated" and first.bayes < low
    claim = "impossible" if impossible else "reached"
    return judged(recipe, claim, None if impossible else reached, row=first, low=low, high=high, said=said)


def _better_at_best(mine: Mapping[str, Localized], noise: str, recipe: Recipe) -> Verdict:
    """Best trial against best trial on the same graphs; a mean over graphs has an error, and has to be clear of it."""
    best = {method: np.array(row.best_by_graph, dtype=np.float64) for method, row in mine.items()}
    base = best["dropedge"]
    gaps = {method: mean_and_error(values - base) for method, values in best.items() if adaptive(method)}
    said = ", ".join(f"{method} {points(gap.value)} ± {100 * CLEAR * gap.error:.2f}" for method, gap in gaps.items())
    numbers = {"base": percent(float(base.mean())), "clear": CLEAR, "said": said}
    return judged(recipe, "better", all(gap.above(CLEAR) for gap in gaps.values()), noise=noise, **numbers)


def _better_honestly(mine: Mapping[str, Localized], noise: str, recipe: Recipe) -> Verdict:
    honest = {method: row.honest for method, row in mine.items() if adaptive(method)}
    better = all(one.outcome == "better" for one in honest.values())
    return judged(recipe, "honestly", better, noise=noise, said=verdict(honest))


def tables(rows: Sequence[Localized]) -> list[Table]:
    """One table per noise."""
    columns: Cells[Localized] = {
        "method": lambda row: row.method,
        "printed (%)": lambda row: percent(row.printed, 1),
        "best trial, mean over graphs (%)": lambda row: percent(row.best_mean),
        "best graph (%)": lambda row: percent(row.best_of_graphs, 1),
        "honest mean (%)": lambda row: accuracy(row.honest),
        "above DropEdge (points)": lambda row: difference(row.honest),
        "Bayes bound (%)": lambda row: percent(row.bayes, 1),
    }
    groups = grouped(rows, lambda row: (row.noise, row.deviation, row.graphs))
    return [
        table_of(f"{noise} noise ({deviation:g}), {graphs} graphs", mine, columns)
        for (noise, deviation, graphs), mine in groups.items()
    ]
