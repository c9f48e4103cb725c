"""Table 2: the best TADropEdge of each backbone, from Table 1, beside the competitors.

A competitor's row shows the printed number and says so, until its baseline is measured here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from tadropedge.compare.wording import NOTHING, percent
from tadropedge.paper.document import read_document
from tadropedge.paper.figures.table2 import draw
from tadropedge.paper.item import NOT_REPRODUCED, REPRODUCED, Bench, Item, Table, Verdict
from tadropedge.paper.items import table1
from tadropedge.paper.recipe import Recipe, load_recipe
from tadropedge.search.protocol import adaptive

Row = dict[str, Any]

# A baseline that can be run here: from a bench and a dataset to its best test accuracy. Named as on the command line.
BASELINES: dict[str, Callable[[Bench, str], float]] = {}


def run(bench: Bench) -> Item:
    """Rows of Table 1 that are in the folder are taken from there; otherwise Table 1 is run."""
    first = load_recipe("table1", bench.recipe.preset)
    measured, source, complete = _table1_rows(bench, first)
    rows = [*_ours(bench.recipe, measured), *_competitors(bench)]
    notes = [
        "TADropEdge: the best test accuracy over strategies, depths and Laplacians, as the paper takes it.",
        source,
    ]
    if any(row["source"] == "printed" for row in rows):
        notes.append("Rows with source “printed” show the paper's number: these methods were not run here.")
    return Item(rows, judge(rows), draw(rows), notes, complete)


def _table1_rows(bench: Bench, recipe: Recipe) -> tuple[Sequence[Mapping[str, Any]], str, bool]:
    path = bench.folder / "results.json"
    entry = read_document(path).get("table1") if path.exists() else None
    wanted = {"fingerprint": recipe.fingerprint, "seed": bench.seed}
    if entry is not None and all(entry.run[key] == value for key, value in wanted.items()):
        missing = "" if entry.complete else f" Table 1 is not complete: {entry.run.get('cells')} cells."
        return entry.rows, f"TADropEdge's rows come from table1 in the same folder.{missing}", entry.complete
    found = table1.run(replace(bench, recipe=recipe))
    return found.rows, "TADropEdge's rows come from the trainings of table1.", found.complete


def printed_accuracy(recipe: Recipe, title: str, dataset: str) -> float | None:
    """What the paper prints for a row and a dataset."""
    columns = [column.lower() for column in recipe.published["columns"]]
    return float(recipe.published[title][columns.index(dataset)]) if dataset in columns else None


def _ours(recipe: Recipe, measured: Sequence[Mapping[str, Any]]) -> list[Row]:
    """One row for each backbone and dataset: the best of Table 1."""
    rows = []
    for backbone, title in recipe["backbones"].items():
        for dataset in dict.fromkeys(row["dataset"] for row in measured):
            mine = [
                row
                for row in measured
                if (row["dataset"], row["backbone"]) == (dataset, backbone) and adaptive(row["method"])
            ]
            if not mine:
                continue
            best = max(mine, key=lambda row: row["paper_protocol"]["best_test"])
            rows.append(
                {
                    **{"row": title, "dataset": dataset, "source": "measured"},
                    "printed": printed_accuracy(recipe, title, dataset),
                    "accuracy": best["paper_protocol"]["best_test"],
                    "honest_mean": best["honest"]["mean"],
                    **{name: best[name] for name in ("method", "layers", "laplacian")},
                }
            )
    return rows


def _competitors(bench: Bench) -> list[Row]:
    """One row for each competitor and dataset: measured where there is a baseline, else the printed number."""
    rows = []
    for method, title in bench.recipe["competitors"].items():
        for column in bench.recipe.published["columns"]:
            printed = printed_accuracy(bench.recipe, title, column.lower())
            ours = BASELINES.get(method)
            row: Row = {"row": title, "dataset": column.lower(), "source": "measured" if ours else "printed"}
            row |= {"printed": printed, "accuracy": ours(bench, column.lower()) if ours else printed}
            rows.append({**row, "honest_mean": None, "method": method, "layers": None, "laplacian": None})
    return rows


def judge(rows: Sequence[Row]) -> list[Verdict]:
    """On each dataset, whether the best TADropEdge is above every competitor."""
    verdicts = []
    for dataset in dict.fromkeys(row["dataset"] for row in rows):
        mine = [row for row in rows if row["dataset"] == dataset]
        ours = [row for row in mine if row["row"].startswith("TADropEdge")]
        others = [row for row in mine if row not in ours]
        if not ours or not others:
            continue
        best, rival = (max(group, key=lambda row: row["accuracy"]) for group in (ours, others))
        verdicts.append(
            Verdict(
                f"{dataset}: TADropEdge outperforms the five competitors",
                REPRODUCED if best["accuracy"] > rival["accuracy"] else NOT_REPRODUCED,
                f"{best['row']} {best['accuracy']:.3f} measured ({best['printed']:.3f} printed) against {rival['row']} "
                f"{rival['accuracy']:.4f} ({rival['source']}); ours is the best of many looks at the test set",
            )
        )
    return verdicts


def tables(rows: Sequence[Mapping[str, Any]]) -> list[Table]:
    """Printed and measured, a line for each row and dataset."""
    cells = [
        [
            *(row["row"], row["dataset"], percent(row["printed"])),
            percent(row["accuracy"]) if row["source"] == "measured" else NOTHING,
            percent(row["honest_mean"]),
            row["source"],
        ]
        for row in rows
    ]
    columns = ("row", "dataset", "printed (%)", "measured, best (%)", "honest mean (%)", "source")
    return [Table("best test accuracy", columns, cells)]
