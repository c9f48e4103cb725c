"""Figure 2b–d: accuracy of each strategy against p, beside DropEdge at the same p and at the same budget."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from tadropedge.paper.figures.accuracy_vs_p import draw
from tadropedge.paper.item import NOT_REPRODUCED, REPRODUCED, Bench, Item, Table, Verdict
from tadropedge.paper.paired import BUDGETS, counted, gaps, metric, summary, surely_above, surely_below
from tadropedge.paper.recipe import Recipe
from tadropedge.paper.stopwatch import Stopwatch
from tadropedge.paper.trainings import Repeats, Tally
from tadropedge.publish.wording import p_value, percent, plus_minus, points
from tadropedge.training.config import Architecture, Trial
from tadropedge.training.laboratory import Laboratory

Row = dict[str, Any]


def run(bench: Bench) -> Item:
    """Every strategy and both kinds of DropEdge at every p, on the same fresh seeds and splits."""
    recipe, clock = bench.recipe, Stopwatch.of(bench)
    dataset = bench.dataset(recipe["dataset"])
    architecture = Architecture(recipe["backbone"], recipe["layers"], recipe["hidden"])
    storage, rows = bench.storage(), []
    each = (1 + 2 * len(recipe["strategies"])) * len(recipe["keep_probs"]) * recipe["seeds"]
    tally = Tally(bench, each * len(recipe["laplacians"]))
    for laplacian in recipe["laplacians"]:
        clock.start()
        laboratory = Laboratory(dataset, architecture, recipe["epochs"], laplacian, cache_dir=bench.cache_dir)
        repeats = Repeats(laboratory, laplacian, recipe["seeds"], bench.seed)
        shares = add_all(repeats, recipe["strategies"], recipe["keep_probs"], recipe["trial"])
        trained = repeats.run(storage, partial(clock.lap, laplacian), tally.show)
        found = {label: metric(runs) for label, runs in trained.items()}
        tally.finish()
        rows += rows_of(found, shares, {"dataset": recipe["dataset"], "laplacian": laplacian})
    notes = ["Every seed is a fresh start and split, shared by all methods."]
    return Item(rows, judge(rows, recipe), draw(rows), notes, run=run_of(recipe, clock, recipe["seeds"]))


def run_of(recipe: Recipe, clock: Stopwatch, seeds: Mapping[str, int] | int) -> dict[str, Any]:
    """How much was run, in words, how long it took and where."""
    counts = seeds if isinstance(seeds, int) else ", ".join(f"{name} {count}" for name, count in seeds.items())
    settings = f"fresh seeds and splits: {counts}; {recipe['epochs']} epochs, fixed settings"
    return {"settings": settings, "seconds_of": clock.seconds, "trained_on": clock.trained_on}


def add_all(
    repeats: Repeats, strategies: Sequence[str], keep_probs: Sequence[float], settings: Mapping[str, Any]
) -> dict[str, float]:
    """Ask for DropEdge, every strategy and its reference at every p; return the kept share of each."""
    shares = {}
    for p in keep_probs:
        for method in ("dropedge", *strategies):
            trial = repeats.add(f"{method}/{p:g}", Trial(method, **settings, keep_prob=p))
            shares[f"{method}/{p:g}"] = repeats.laboratory.kept_share(trial)
            if method != "dropedge":
                repeats.add_reference(f"reference/{method}/{p:g}", trial)
    return shares


def rows_of(found: Mapping[str, Any], shares: Mapping[str, float], names: Mapping[str, Any]) -> list[Row]:
    """One row a method and p: accuracy, and the differences to both kinds of DropEdge."""
    labels = [label for label in found if f"reference/{label}" in found]
    same_p = gaps({label: (found[label], found[f"dropedge/{label.split('/')[1]}"]) for label in labels})
    same_budget = gaps({label: (found[label], found[f"reference/{label}"]) for label in labels})
    rows = []
    for label, share in shares.items():
        method, p = label.split("/")
        row = {**names, "method": method, "keep_prob": float(p), "kept_share": round(share, 4), **summary(found[label])}
        if label in same_p:
            row |= {"same_p": same_p[label], "same_budget": same_budget[label]}
            row["dropedge_same_budget"] = summary(found[f"reference/{label}"])
        rows.append(row)
    return rows


def judge(rows: Sequence[Row], recipe: Recipe) -> list[Verdict]:
    """Whether TADropEdge is above DropEdge in almost all scenarios."""
    verdicts = []
    for budget, words in BUDGETS.items():
        said, holds = [], False
        for laplacian in recipe["laplacians"]:
            found = [row[budget] for row in rows if row["laplacian"] == laplacian and budget in row]
            above = sum((gap["difference"] or 0) > 0 for gap in found)
            sure, worse = sum(map(surely_above, found)), sum(map(surely_below, found))
            holds = holds or (above >= recipe["almost_all"] * len(found) and sure > worse)
            said.append(f"{laplacian} Laplacian: mean above in {above} of {len(found)} scenarios, {counted(found)}")
        verdicts.append(
            Verdict(
                f"TADropEdge outperforms DropEdge {words} in almost all scenarios "
                f"({recipe['almost_all']:.0%} of p and strategy)",
                REPRODUCED if holds else NOT_REPRODUCED,
                "; ".join(said),
            )
        )
    return verdicts


def tables(rows: Sequence[Mapping[str, Any]]) -> list[Table]:
    """Accuracy and differences, a line for each method and p."""
    cells = []
    for row in rows:
        line = [row["method"], row["dataset"], row["laplacian"], f"{row['keep_prob']:g}", f"{row['kept_share']:.3f}"]
        line.append(plus_minus(percent(row["mean"]), row["low"], row["high"]))
        for budget in BUDGETS:
            gap = row.get(budget)
            text = "–" if gap is None else plus_minus(points(gap["difference"]), gap["low"], gap["high"])
            line.append(text if gap is None else f"{text} (p {p_value(gap['p_value'])})")
        cells.append(line)
    columns = (
        *("method", "dataset", "Laplacian", "p", "kept share", "accuracy (%)"),
        *("to DropEdge, same p (points)", "to DropEdge, same budget (points)"),
    )
    return [Table("accuracy against p, 95 % intervals", columns, cells)]
