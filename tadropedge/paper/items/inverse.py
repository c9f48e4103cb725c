"""Inverse-TADropEdge against TADropEdge and DropEdge over p, on three datasets, also at the same budget."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from tadropedge.paper.figures.accuracy_vs_p import draw
from tadropedge.paper.item import NOT_REPRODUCED, REPRODUCED, Bench, Item, Verdict
from tadropedge.paper.items.accuracy_vs_p import add_all, rows_of, run_of, tables
from tadropedge.paper.paired import Array, Gap, gaps, metric, surely_below
from tadropedge.paper.stopwatch import Stopwatch
from tadropedge.paper.trainings import Repeats, Tally
from tadropedge.training.config import Architecture
from tadropedge.training.laboratory import Laboratory

__all__ = ["run", "tables"]

Row = dict[str, Any]

STRATEGIES = ("cdf", "inverse-cdf")
RIVALS = {
    "dropedge": "DropEdge at the same p",
    "reference/inverse-cdf": "DropEdge with the same expected number of kept edges",
    "cdf": "TADropEdge",
}


def run(bench: Bench) -> Item:
    """Three datasets, every p, on the same fresh seeds and splits."""
    recipe, clock = bench.recipe, Stopwatch.of(bench)
    architecture = Architecture(recipe["backbone"], recipe["layers"], recipe["hidden"])
    seeds: Mapping[str, int] = recipe["seeds"]
    each = (1 + 2 * len(STRATEGIES)) * len(recipe["keep_probs"]) * len(recipe["laplacians"])
    tally = Tally(bench, each * sum(seeds[name] for name in recipe["datasets"]))
    rows: list[Row] = []
    worst: dict[str, dict[str, dict[str, Gap]]] = {}
    for name in recipe["datasets"]:
        dataset, storage = bench.dataset(name), bench.storage(name)
        for laplacian in recipe["laplacians"]:
            clock.start()
            laboratory = Laboratory(
                dataset,
                architecture,
                recipe["epochs"],
                laplacian,
                precision=recipe["precision"],
                cache_dir=bench.cache_dir,
            )
            repeats = Repeats(laboratory, laplacian, seeds[name], bench.seed)
            shares = add_all(repeats, STRATEGIES, recipe["keep_probs"], recipe["trial"][name])
            trained = repeats.run(storage, partial(clock.lap, f"{name}/{laplacian}"), tally.show)
            found = {label: metric(runs) for label, runs in trained.items()}
            tally.finish()
            rows += rows_of(found, shares, {"dataset": name, "laplacian": laplacian})
            worst.setdefault(laplacian, {})[name] = over_p(found, recipe["keep_probs"])
    notes = [
        "Every seed is a fresh start and split, shared by all methods; differences over p are means within a seed."
    ]
    return Item(rows, judge(worst), draw(rows), notes, run=run_of(recipe, clock, seeds))


def over_p(found: Mapping[str, Array], keep_probs: Sequence[float]) -> dict[str, Gap]:
    """Inverse minus each rival, averaged over p within a seed."""

    def mean(method: str) -> Array:
        averaged: Array = np.mean([found[f"{method}/{p:g}"] for p in keep_probs], axis=0)
        return averaged

    inverse = mean("inverse-cdf")
    return gaps({rival: (inverse, mean(rival)) for rival in RIVALS})


def judge(worst: Mapping[str, Mapping[str, Mapping[str, Gap]]]) -> list[Verdict]:
    """Worst in all three, against DropEdge at the same p, and at the same budget."""
    verdicts = []
    for against in (("dropedge", "cdf"), ("reference/inverse-cdf", "cdf")):
        said, holds = [], False
        for laplacian, datasets in worst.items():
            below = {name: all(surely_below(table[rival]) for rival in against) for name, table in datasets.items()}
            holds = holds or all(below.values())
            numbers = [
                f"{name} " + ", ".join(f"{_shown(table[rival])} to {RIVALS[rival]}" for rival in against)
                for name, table in datasets.items()
            ]
            said.append(f"{laplacian} Laplacian: worst for sure in {sum(below.values())} of {len(below)}: "
                        f"{'; '.join(numbers)}")  # fmt: skip
        verdicts.append(
            Verdict(
                f"Inverse-TADropEdge is below {RIVALS[against[0]]} and below TADropEdge in all datasets",
                REPRODUCED if holds else NOT_REPRODUCED,
                ". ".join(said),
            )
        )
    return verdicts


def _shown(gap: Gap) -> str:
    """A difference in points with half the width of its interval."""
    if gap["difference"] is None:
        return "undecided"
    return f"{100 * gap['difference']:+.2f} ± {50 * (gap['high'] - gap['low']):.2f}".replace("-", "−")
