"""Inverse-TADropEdge against TADropEdge and DropEdge over p, on three datasets, also at the same budget."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from tadropedge.paper.figures.fixed import draw_accuracy
from tadropedge.paper.fixed import Fixed, Trained
from tadropedge.paper.item import Bench, Item, Verdict
from tadropedge.paper.items.accuracy_vs_p import ROWS, Accuracy, rows_of, tables
from tadropedge.paper.judge import Array, Gap, accuracies, gaps, judged_by_laplacian
from tadropedge.paper.recipe import Recipe
from tadropedge.publish.wording import plus_minus
from tadropedge.search.study import Finished

__all__ = ["ROWS", "run", "tables"]

INVERSE = "inverse-cdf"
RIVALS = {
    "same_p": "DropEdge at the same p",
    "same_budget": "DropEdge with the same expected number of kept edges",
    "cdf": "TADropEdge",
}
Gaps = Mapping[str, Gap]  # inverse minus each rival


def run(bench: Bench) -> Item:
    """Three datasets, every p, on the same fresh seeds and splits."""
    recipe = bench.recipe
    plan = Fixed(strategies=("cdf", INVERSE), keep_probs=recipe["keep_probs"])
    work = plan.work(bench)
    rows: list[Accuracy] = []
    found: dict[str, dict[str, Gaps]] = {}
    for group in plan.run(work):
        rows += rows_of(group)
        where = group[0].setting
        found.setdefault(where.laplacian, {})[where.dataset] = over_p(group)
    counts = ", ".join(f"{name} {count}" for name, count in recipe["seeds"].items())
    return Item(rows, judge(found, recipe), draw_accuracy(rows), recipe.said(), run=work.run(counts=counts))


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
    """Worst in all datasets, against DropEdge at the same p, and at the same budget; Laplacian by Laplacian."""
    verdicts = []
    for against in (("same_p", "cdf"), ("same_budget", "cdf")):
        judged = {}
        for laplacian, mine in found.items():
            worst = sum(all(gaps[rival].sign < 0 for rival in against) for gaps in mine.values())
            numbers = [
                f"{dataset} " + ", ".join(f"{_shown(gaps[rival])} to {RIVALS[rival]}" for rival in against)
                for dataset, gaps in mine.items()
            ]
            words = f"worst for sure in {worst} of {len(mine)}: {'; '.join(numbers)}"
            judged[laplacian] = (worst == len(mine), words)
        verdicts.append(judged_by_laplacian(recipe, "worst", judged, ". ", rival=RIVALS[against[0]]))
    return verdicts


def _shown(gap: Gap) -> str:
    """A difference in points, always with its sign, and half the width of its interval."""
    if gap.difference is None:
        return "undecided"
    return plus_minus(f"{100 * gap.difference:+.2f}".replace("-", "−"), gap.low, gap.high)
