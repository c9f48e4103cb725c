"""Inverse-TADropEdge against TADropEdge and DropEdge over p, on three datasets, also at the same budget."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from tadropedge._old.paper.figures.fixed import draw_inverse
from tadropedge._old.paper.fixed import Fixed, Trained, held, in_points
from tadropedge._old.paper.item import Bench, Cells, Item, Table, Verdict, table_of
from tadropedge._old.paper.items.accuracy_vs_p import COLUMNS, Accuracy, rows_of, shown_gap
from tadropedge._old.paper.judge import Array, Gap, accuracies, gaps, judged
from tadropedge._old.paper.recipe import Recipe
from tadropedge._old.paper.rows import OPTIONAL, title
from tadropedge._old.search.study import Finished

INVERSE = "inverse-cdf"
RIVALS = {
    "same_p": "DropEdge at the same p",
    "same_budget": "DropEdge with the same expected number of kept edges",
    "cdf": "TADropEdge",
}
CLAIMS = {"worst": ("same_p", "cdf"), "worst_same_budget": ("same_budget", "cdf")}
Gaps = Mapping[str, Gap]  # inverse minus each rival


@dataclass(frozen=True, kw_only=True)
class Inverted(Accuracy):
    """Inverse-TADropEdge has its difference to TADropEdge at the same p, which keeps about as many edges, besides."""

    to_cdf: Annotated[Gap | None, OPTIONAL] = None


ROWS = (Inverted,)


def run(bench: Bench) -> Item:
    """Three datasets, every p, on the same fresh seeds and splits."""
    recipe = bench.recipe
    plan = Fixed(strategies=("cdf", INVERSE), keep_probs=recipe["keep_probs"])
    work = plan.work(bench)
    rows: list[Inverted] = []
    found: dict[str, dict[str, Gaps]] = {}
    for group in plan.run(work):
        rows += inverted(group)
        where = group[0].setting
        found.setdefault(where.laplacian, {})[title(where.dataset)] = over_p(group)
    counts = ", ".join(f"{name} {count}" for name, count in recipe["seeds"].items())
    return Item(rows, judge(found, recipe), draw_inverse(rows), recipe.said(), run=work.run(counts=counts))


def inverted(group: Sequence[Trained]) -> list[Inverted]:
    """The rows of one dataset and Laplacian; the differences to TADropEdge are corrected together."""
    cdf = {one.setting.keep_prob: accuracies(one.runs) for one in group if one.setting.method == "cdf"}
    ours = {one.setting.keep_prob: accuracies(one.runs) for one in group if one.setting.method == INVERSE}
    found = gaps({p: (values, cdf[p]) for p, values in ours.items()})
    rows = rows_of(group)
    return [Inverted(**vars(row), to_cdf=found[row.keep_prob] if row.method == INVERSE else None) for row in rows]


def over_p(group: Sequence[Trained]) -> Gaps:
    """Inverse minus each rival, averaged over p within a seed."""

    def mean(all_runs: Iterable[Sequence[Finished]]) -> Array:
        averaged: Array = np.mean([accuracies(runs) for runs in all_runs], axis=0)
        return averaged

    inverse = [one for one in group if one.setting.method == INVERSE]
    rivals = {
        "same_p": [one.same_p for one in inverse],
        "same_budget": [one.same_budget for one in inverse],
        "cdf": [one.runs for one in group if one.setting.method == "cdf"],
    }
    ours = mean(one.runs for one in inverse)
    return gaps({rival: (ours, mean(all_runs)) for rival, all_runs in rivals.items()})


def judge(found: Mapping[str, Mapping[str, Gaps]], recipe: Recipe) -> list[Verdict]:
    """Worst in all datasets, against DropEdge at the same p, and, our own question, at the same budget."""
    verdicts = []
    for claim, rivals in CLAIMS.items():
        worst = {
            laplacian: {
                f"below {RIVALS[rival]} on {name}": gaps[rival].sign < 0
                for name, gaps in mine.items()
                for rival in rivals
            }
            for laplacian, mine in found.items()
        }
        said = [
            f"to {RIVALS[rival]} ({laplacian}) "
            + ", ".join(f"{name} {in_points(gaps[rival])}" for name, gaps in mine.items())
            for laplacian, mine in found.items()
            for rival in rivals
        ]
        verdicts.append(judged(recipe, claim, held(worst), said="; ".join(said)))
    return verdicts


def tables(rows: Sequence[Inverted]) -> list[Table]:
    """Accuracy and differences, a line for each method and p."""
    columns: Cells[Inverted] = {**COLUMNS, "to TADropEdge (points)": lambda row: shown_gap(row.to_cdf)}
    return [table_of("accuracy against p, 95 % intervals, p-values corrected", rows, columns)]
