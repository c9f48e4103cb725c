"""The distribution of aggregate resistance on the three citation sets, with γ marked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated

import numpy as np

from tadropedge._old.paper.figures import graphs as figures
from tadropedge._old.paper.item import Bench, Item, Verdict
from tadropedge._old.paper.journal import Journal
from tadropedge._old.paper.judge import Array, judged, where_it_holds
from tadropedge._old.paper.recipe import Recipe
from tadropedge._old.paper.rows import Column, Row, grouped, title
from tadropedge._old.scores.aggregate import aggregate_resistance
from tadropedge._old.strategies import auto_gamma

DECADE = 10.0  # how far γ may lie from the knee of the curve, as a factor: the paper searches around γ


@dataclass(frozen=True, kw_only=True)
class Distribution(Row):
    """The scores of one dataset with one Laplacian: quantiles, and what γ does to them."""

    dataset: str
    laplacian: str
    q: int
    entries: int
    gamma: float
    above_gamma: int
    share_above_gamma: float
    knee: float
    share_above_knee: float
    median: Annotated[float, Column("quantile_0.5")]
    quantile_90: Annotated[float, Column("quantile_0.9")]
    quantile_95: Annotated[float, Column("quantile_0.95")]
    quantile_98: Annotated[float, Column("quantile_0.98")]
    quantile_99: Annotated[float, Column("quantile_0.99")]
    maximum: float


ROWS = (Distribution,)


def run(bench: Bench) -> Item:
    """Score the edges of each dataset with each Laplacian, q the number of classes."""
    recipe, published = bench.recipe, bench.recipe.published
    cases = [(name, laplacian) for name in recipe["datasets"] for laplacian in recipe["laplacians"]]
    journal, rows = Journal(bench), []
    curves: dict[str, dict[str, Array]] = {}
    for name, laplacian in bench.each("scores", cases):
        dataset = bench.dataset(name)
        q = dataset.num_classes
        scores = aggregate_resistance(dataset.graph, q, laplacian=laplacian, cache_dir=bench.cache_dir)
        both = np.repeat(np.sort(scores.cpu().numpy()), 2)  # each edge as two pairs, as in the paper
        curves.setdefault(title(name), {})[laplacian] = both
        make = partial(measured, name, laplacian, both, published[title(name)], auto_gamma(scores), q)
        rows.append(journal.row(f"{name}/{laplacian}", [dataset.graph.fingerprint, q], Distribution, make))
    pictures = {"weights": figures.distributions(curves, published)}
    return Item(rows, judge(rows, recipe), pictures, recipe.said(), run=journal.run)


def measured(name: str, laplacian: str, values: Array, gamma: float, knee: float, q: int) -> Distribution:
    """One row, from the sorted scores ``[2 M]``."""
    quantiles = np.quantile(values, (0.5, 0.9, 0.95, 0.98, 0.99))
    return Distribution(
        dataset=name,
        laplacian=laplacian,
        q=q,
        entries=len(values),
        gamma=gamma,
        above_gamma=int((values >= gamma).sum()),
        share_above_gamma=float((values >= gamma).mean()),
        knee=knee,
        share_above_knee=float((values >= knee).mean()),
        median=float(quantiles[0]),
        quantile_90=float(quantiles[1]),
        quantile_95=float(quantiles[2]),
        quantile_98=float(quantiles[3]),
        quantile_99=float(quantiles[4]),
        maximum=float(values[-1]),
    )


def judge(rows: Sequence[Distribution], recipe: Recipe) -> list[Verdict]:
    """Whether each curve of sorted scores turns upwards within a decade of γ, and few edges have large scores."""
    ratios = [row.quantile_99 / max(row.median, np.finfo(float).tiny) for row in rows]
    said = [f"{title(row.dataset)} ({row.laplacian}) {ratio:.0e}" for row, ratio in zip(rows, ratios, strict=True)]
    return [
        *(_gamma(mine, recipe) for mine in grouped(rows, lambda row: row.dataset).values()),
        judged(recipe, "skew", min(ratios) >= 10, said=", ".join(said)),
    ]


def _gamma(rows: Sequence[Distribution], recipe: Recipe) -> Verdict:
    """With which Laplacian the curve of a dataset turns upwards around γ."""
    near = {f"{row.laplacian} Laplacian": row.gamma / DECADE <= row.knee <= row.gamma * DECADE for row in rows}
    said = "; ".join(
        f"{row.laplacian} Laplacian: turns at {row.knee:.1e}, above which are {row.share_above_knee:.2%} of the edges; "
        f"{row.share_above_gamma:.2%} have ω ≥ γ"
        for row in rows
    )
    numbers = {"name": title(rows[0].dataset), "gamma": rows[0].gamma, "decade": DECADE}
    return judged(recipe, "gamma", where_it_holds(near), said=said, **numbers)
