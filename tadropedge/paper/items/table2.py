"""Table 2: the best TADropEdge of each backbone, from Table 1, beside the competitors.

Competitors are searched in spaces of their own with the same number of trials, and judged by both protocols. Where a
preset leaves a dataset out, its rows show the printed numbers and say so.

The paper's protocol takes the best test accuracy over all strategies, depths and Laplacians. The honest mean comes from
the one of them whose chosen trial has the best validation accuracy: the test set has no say in it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from tadropedge.comparison.statistics import Honest, honest_rows
from tadropedge.errors import TadropedgeError
from tadropedge.paper.document import read_document
from tadropedge.paper.figures import tables as figures
from tadropedge.paper.item import Bench, Item, Table
from tadropedge.paper.items import table1
from tadropedge.paper.items.table1_claims import Result
from tadropedge.paper.items.table2_claims import (
    Choice,
    Contender,
    best_on_validation,
    judge,
    other_splits,
    reached,
    without_topology,
)
from tadropedge.paper.judge import Summary
from tadropedge.paper.recipe import Recipe, load_recipe
from tadropedge.paper.rows import grouped
from tadropedge.paper.trainings import Fresh, Search, Work, laboratory, trainings
from tadropedge.publish.wording import NOTHING, percent, plus_minus
from tadropedge.search.protocol import adaptive, paper
from tadropedge.search.space import method_space
from tadropedge.training.batch import MOST_STEPS

ROWS = (Contender,)


def run(bench: Bench) -> Item:
    """Rows of Table 1 that are in the folder are taken from there; otherwise Table 1 is run."""
    recipe = bench.recipe
    wanted = _wanted(bench)  # a part that is not there is refused before Table 1 is run
    measured, source, complete = _table1_rows(bench, load_recipe("table1", recipe.preset))
    competitors, seeds = list(recipe["competitors"]), recipe["seeds"]
    work = Work(bench, sum(trainings(competitors, recipe["trials"], seeds[dataset]) for dataset in wanted))
    found = {dataset: _competitors(work, dataset, dataset in wanted) for dataset in seeds}
    known = {(row.row, row.dataset): row for rows in found.values() for row in rows}
    columns = [column.lower() for column in recipe.published["columns"]]
    printed = [_printed(recipe, method, dataset) for method in competitors for dataset in columns]
    rows = [*_ours(recipe, measured), *(known.get((row.row, row.dataset), row) for row in printed)]
    notes = [
        "TADropEdge: the best test accuracy over strategies, depths and Laplacians, as the paper takes it. Its honest "
        "mean is that of the strategy, depth and Laplacian whose chosen trial is best on validation nodes.",
        source,
        "Competitors have two layers and search spaces of their own (the files of tadropedge/nn).",
        "Budgets differ: a best test accuracy is the best of as many looks at the test set as its row says, and "
        "TADropEdge has more of them than a competitor. Behind an honest mean there is no such choice but that of the "
        "ranges: TADropEdge's were chosen by the test accuracy of a pilot (see Table 1), and the competitors' sample "
        "sizes go beyond their papers' because few samples cost accuracy on PubMed.",
        *other_splits(rows),
        *without_topology(measured),
        f"An epoch of FastGCN, AS-GCN and GraphSAGE is at most {MOST_STEPS} mini-batches.",
    ]
    if any(row.source == "measured" and row.honest.mean is None for row in rows):
        notes.append(
            "Without an honest mean: fresh trainings that failed, or rows of table1 without validation accuracies "
            "(tadropedge reproduce table1 --again adds them)."
        )
    if any(row.source == "printed" for row in rows):
        notes.append("Rows with source “printed” show the paper's number: these methods were not run here.")
    settings = (
        f"{recipe['trials']} trials of {recipe['epochs']} epochs a competitor; fresh seeds and splits: "
        + ", ".join(f"{dataset} {count}" for dataset, count in seeds.items())
    )
    return Item(
        rows,
        [*judge(rows), *reached(rows)],
        {"table2": figures.contenders(rows)},
        notes,
        complete and all(found.values()),
        run=work.run(settings),
    )


def _table1_rows(bench: Bench, recipe: Recipe) -> tuple[Sequence[Result], str, bool]:
    path = bench.folder / "results.json"
    entry = read_document(path).get("table1") if path.exists() else None
    if entry is None or (entry.run["fingerprint"], entry.run["seed"]) != (recipe.fingerprint, bench.seed):
        found = table1.run(replace(bench, recipe=recipe, parts=()))
        rows, source, complete = found.rows, "TADropEdge's rows come from the trainings of table1.", found.complete
    else:
        rows, source, complete = entry.rows, "TADropEdge's rows come from table1 in the same folder.", entry.complete
        source += "" if complete else f" Table 1 is not complete: {entry.run.get('cells')} cells."
    return [row for row in rows if isinstance(row, Result)], source, complete


def printed_accuracy(recipe: Recipe, row: str, dataset: str) -> float | None:
    """What the paper prints for a row and a dataset."""
    columns = [column.lower() for column in recipe.published["columns"]]
    return float(recipe.published[row][columns.index(dataset)]) if dataset in columns else None


def _ours(recipe: Recipe, measured: Sequence[Result]) -> list[Contender]:
    """One row for each backbone and dataset: the best of Table 1."""
    rows = []
    groups = grouped(filter(lambda row: adaptive(row.method), measured), lambda row: (row.backbone, row.dataset))
    for backbone, name in recipe["backbones"].items():
        for dataset in dict.fromkeys(row.dataset for row in measured):
            if not (mine := groups.get((backbone, dataset))):
                continue
            best, chosen = max(mine, key=lambda row: row.paper_protocol.best_test), best_on_validation(mine)
            rows.append(
                Contender(
                    row=name,
                    dataset=dataset,
                    source="measured",
                    printed=printed_accuracy(recipe, name, dataset),
                    accuracy=best.paper_protocol.best_test,
                    honest=_summary(chosen.honest) if chosen else Summary(),
                    choice=Choice(best.method, best.layers, best.laplacian),
                    honest_choice=Choice(chosen.method, chosen.layers, chosen.laplacian) if chosen else Choice(),
                    fresh=chosen.fresh if chosen else Fresh(),
                    looks=sum(row.paper_protocol.trials for row in mine),
                )
            )
    return rows


def _summary(honest: Honest) -> Summary:
    return Summary(mean=honest.mean, low=honest.low, high=honest.high, seeds=honest.seeds)


def _competitors(work: Work, dataset: str, now: bool) -> list[Contender]:
    """The competitors on one dataset; none where they are not finished."""
    bench, recipe = work.bench, work.bench.recipe
    data = bench.dataset(dataset)
    search = Search(
        laboratory=laboratory(bench, data),
        space=partial(method_space, gamma=data.gamma),
        methods=list(recipe["competitors"]),
        trials=recipe["trials"],
        seeds=recipe["seeds"][dataset],
        place=dataset,
    )
    work.journal.start()
    both = search.run(work, bench.storage(dataset), dataset, now)
    if both is None:  # it belongs to another part
        return []
    table, fresh = both
    honest = honest_rows(fresh.accuracy, fresh.reference)
    return [
        replace(
            _printed(recipe, method, dataset),
            source="measured",
            accuracy=best.test_accuracy,
            honest=_summary(honest[method]),
            fresh=search.fresh(fresh, method),
            looks=len(table[method]),
        )
        for method, best in paper(table).items()
    ]


def _printed(recipe: Recipe, method: str, dataset: str) -> Contender:
    """A competitor that was not run here."""
    name = recipe["competitors"][method]
    printed, choice = printed_accuracy(recipe, name, dataset), Choice(method, 2, None)
    return Contender(
        row=name,
        dataset=dataset,
        source="printed",
        printed=printed,
        accuracy=math.nan if printed is None else printed,
        honest=Summary(),
        choice=choice,
        honest_choice=choice,
        fresh=Fresh(),
    )


def _wanted(bench: Bench) -> list[str]:
    """The datasets that are trained now: those of the parts that were asked for, or all of the recipe."""
    datasets = list(bench.recipe["seeds"])
    for part in bench.parts:
        if part not in datasets:
            raise TadropedgeError(f"no part {part!r} in this recipe; take one of {', '.join(datasets)}")
    return [dataset for dataset in datasets if not bench.parts or dataset in bench.parts]


def tables(rows: Sequence[Contender]) -> list[Table]:
    """Printed and measured, a line for each row and dataset."""
    cells = [
        [
            *(row.row, row.dataset, percent(row.printed)),
            percent(row.accuracy) if row.source == "measured" else NOTHING,
            NOTHING if row.looks is None else f"{row.looks:,}",
            plus_minus(percent(row.honest.mean), row.honest.low, row.honest.high),
            row.source,
        ]
        for row in rows
    ]
    columns = (
        *("row", "dataset", "printed (%)", "measured, best (%)", "looks at the test set"),
        *("honest mean, 95 % interval (%)", "source"),
    )
    return [Table("best test accuracy, and the honest mean", columns, cells)]
