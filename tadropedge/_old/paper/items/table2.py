"""Table 2: Original, DropEdge and TADropEdge of each backbone beside five competitors, all with as many trials.

Every row has one depth and the same number of trials. The competitors are searched in spaces of their own. Our rows
take their trials from Table 1: trial i of TADropEdge has strategy i mod 3, Laplacian ⌊i / 3⌋ mod 2 and the
hyper-parameters i, so strategy and Laplacian are chosen like any other setting.

The paper's protocol is the best test accuracy of these trials. The honest mean is that of the trial which is best on
validation, retrained on the same starts, splits and test nodes for all rows. Where a preset leaves a dataset out, its
rows show the printed numbers and say so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial

import optuna

from tadropedge._old.errors import TadropedgeError
from tadropedge._old.paper.cells import Cell, Result, all_cells
from tadropedge._old.paper.cells import printed_accuracy as printed_in_table1
from tadropedge._old.paper.contest import KINDS, TADROPEDGE, Contender, Contest, judge
from tadropedge._old.paper.document import read_document
from tadropedge._old.paper.figures import tables as figures
from tadropedge._old.paper.item import Bench, Cells, Item, Table, table_of
from tadropedge._old.paper.items import table1
from tadropedge._old.paper.judge import accuracy, summary
from tadropedge._old.paper.recipe import Recipe, load_recipe
from tadropedge._old.paper.rows import title
from tadropedge._old.paper.trainings import Fresh, Search, UnfinishedError, Work, commits, laboratory, trainings
from tadropedge._old.publish.wording import NOTHING, percent
from tadropedge._old.search.engine import Table as Searched
from tadropedge._old.search.protocol import adaptive, choose, paper
from tadropedge._old.search.space import method_space
from tadropedge._old.search.study import Finished
from tadropedge._old.training.batch import MOST_STEPS

ROWS = (Contender,)


def run(bench: Bench) -> Item:
    """Rows of Table 1 that are in the folder are taken from there; otherwise Table 1 is run."""
    recipe = bench.recipe
    wanted = _wanted(bench)  # a part that is not there is refused before Table 1 is run
    first = load_recipe("table1", recipe.preset)
    measured, source, complete = _table1_rows(bench, first)
    work = Work(bench, sum(_trainings(recipe, first, dataset) for dataset in wanted))
    known: dict[tuple[str, str], Contender] = {}
    for dataset in recipe["seeds"]:
        found = [*_ours(work, first, dataset, dataset in wanted), *_competitors(work, dataset, dataset in wanted)]
        known |= {(row.row, row.dataset): row for row in found}
    rows = [row for place in _places(recipe) if (row := known.get(place) or _printed(recipe, *place))]
    cells = sum(len(_cells(recipe, first, dataset)) for dataset in recipe["seeds"])
    planned = len(KINDS) * cells + len(recipe["competitors"]) * len(recipe["seeds"])
    left = planned - sum(row.honest.mean is not None for row in known.values())
    notes = recipe.said(
        source=[{"source": source}],
        steps=[{"steps": MOST_STEPS}],
        unknown=[{}] * (left > 0),
        printed=[{}] * any(row.source == "printed" for row in rows),
    )
    counts = ", ".join(f"{dataset} {count}" for dataset, count in recipe["seeds"].items())
    return Item(
        rows, judge(rows, measured, recipe), {"table2": figures.contenders(rows)}, notes,
        complete=complete and left == 0, run=work.run(counts=counts),
    )  # fmt: skip


def _table1_rows(bench: Bench, recipe: Recipe) -> tuple[Sequence[Result], str, bool]:
    path = bench.folder / "results.json"
    entry = read_document(path).get("table1") if path.exists() else None
    if entry is None or (entry.run["fingerprint"], entry.run["seed"]) != (recipe.fingerprint, bench.seed):
        found = table1.run(replace(bench, recipe=recipe, parts=()))
        rows, source, complete = found.rows, "", found.complete
    else:
        rows, source, complete = entry.rows, " in the same folder", entry.complete
    told = f"The trials of Original, DropEdge and TADropEdge are those of table1{source}."
    told += "" if complete else " Table 1 is not complete."
    return [row for row in rows if isinstance(row, Result)], told, complete


def _wanted(bench: Bench) -> list[str]:
    """The datasets that are trained now: those of the parts that were asked for, or all of the recipe."""
    datasets = list(bench.recipe["seeds"])
    for part in bench.parts:
        if part not in datasets:
            raise TadropedgeError(f"no part {part!r} in this recipe; take one of {', '.join(datasets)}")
    return [dataset for dataset in datasets if not bench.parts or dataset in bench.parts]


def _trainings(recipe: Recipe, first: Recipe, dataset: str) -> int:
    """How many trainings a dataset takes: the competitors' two protocols, and ours, whose search is that of Table 1."""
    seeds, ours = recipe["seeds"][dataset], len(_cells(recipe, first, dataset))
    searched: int = sum(len(table1.methods_of(first, at)) * first["trials"] for at in range(len(first["laplacians"])))
    fresh = trainings(["original", "dropedge", "cdf"], 0, seeds)
    return trainings(list(recipe["competitors"]), recipe["trials"], seeds) + ours * (searched + fresh)


def _cells(recipe: Recipe, first: Recipe, dataset: str) -> list[Cell]:
    """One cell of Table 1 for each backbone."""
    wanted = [Cell(dataset, backbone, layers) for backbone, layers in recipe["depths"].items()]
    return [cell for cell in wanted if cell in all_cells(first)]


def _places(recipe: Recipe) -> list[tuple[str, str]]:
    """The lines of the table, and the datasets of each."""
    names = [f"{kind}-{backbone}" for backbone in recipe["backbones"].values() for kind in KINDS]
    datasets = dict.fromkeys([*(column.lower() for column in recipe.published["columns"]), *recipe["seeds"]])
    return [(name, dataset) for name in (*names, *recipe["competitors"].values()) for dataset in datasets]


def printed_accuracy(recipe: Recipe, row: str, dataset: str) -> float | None:
    """What the paper prints for a row and a dataset."""
    columns = [column.lower() for column in recipe.published["columns"]]
    known = dataset in columns and row in recipe.published
    return float(recipe.published[row][columns.index(dataset)]) if known else None


def _printed(recipe: Recipe, name: str, dataset: str) -> Contender | None:
    """A row that was not run here, if the paper has it."""
    printed = printed_accuracy(recipe, name, dataset)
    if printed is None:
        return None
    return Contender(row=name, dataset=dataset, source="printed", printed=printed, accuracy=printed, choice=Contest())


@dataclass(frozen=True, eq=False, kw_only=True)
class Shelf:
    """The trials of Table 1 in one cell: a search and its table for each Laplacian."""

    cell: Cell
    storage: optuna.storages.BaseStorage
    searches: Mapping[str, Search]
    tables: Mapping[str, Searched]

    def drawn(self, kind: str, trials: int) -> list[Finished]:
        """The trials of a row: as many for each kind."""
        if kind != TADROPEDGE:
            return next(iter(self.tables.values()))[kind.lower()][:trials]
        laplacians = list(self.tables)
        strategies = [method for method in self.tables[laplacians[0]] if adaptive(method)]
        places = [place(i, strategies, laplacians) for i in range(trials)]
        return [self.tables[laplacian][method][i] for i, (method, laplacian) in enumerate(places)]

    def contest(self, run: Finished) -> Contest:
        """What a trial was trained with."""
        method, laplacians = run.trial.method, list(self.tables)
        strategies = [name for name in self.tables[laplacians[0]] if adaptive(name)]
        laplacian = place(run.index, strategies, laplacians)[1] if adaptive(method) else None
        return Contest(method, self.cell.layers, laplacian)


def place(i: int, strategies: Sequence[str], laplacians: Sequence[str]) -> tuple[str, str]:
    """The strategy and the Laplacian of trial i.

    >>> [place(i, ("cutoff", "division", "cdf"), ("combinatorial", "normalized")) for i in (0, 1, 2, 3, 99)]
    [('cutoff', 'combinatorial'), ('division', 'combinatorial'), ('cdf', 'combinatorial'), ('cutoff', 'normalized'), \
('cutoff', 'normalized')]
    """
    return strategies[i % len(strategies)], laplacians[i // len(strategies) % len(laplacians)]


def _ours(work: Work, first: Recipe, dataset: str, now: bool) -> list[Contender]:
    """Original, DropEdge and TADropEdge of each backbone; none where Table 1 has no trials.

    Fresh trainings go into the studies of Table 1: one that is there with the same splits is not run again.
    """
    recipe, seeds = work.bench.recipe, work.bench.recipe["seeds"][dataset]
    fresh = {"test_nodes": {}, "half_width": 0.0, "seeds": {dataset: (seeds, seeds)}}  # as the competitors' are
    bench = replace(work.bench, recipe=replace(first, settings={**first.settings, **fresh}), parts=())
    data, storage = bench.dataset(dataset), bench.storage(dataset)
    rows: list[Contender] = []
    for cell in _cells(recipe, first, dataset):
        searches = {
            laplacian: table1.search_of(bench, cell, data, laplacian, table1.methods_of(first, at))
            for at, laplacian in enumerate(first["laplacians"])
        }
        with suppress(UnfinishedError):
            tables = {name: search.searched(work, storage, dataset, now) for name, search in searches.items()}
            shelf = Shelf(cell=cell, storage=storage, searches=searches, tables=tables)
            rows += [_row(work, first, shelf, kind, now) for kind in KINDS]
    return rows


def _row(work: Work, first: Recipe, shelf: Shelf, kind: str, now: bool) -> Contender:
    """One kind of training with one backbone; without an honest mean where that may not be trained ``now``."""
    recipe, cell = work.bench.recipe, shelf.cell
    name, runs = f"{kind}-{recipe['backbones'][cell.backbone]}", shelf.drawn(kind, recipe["trials"])
    # Each trial carries its own method: the name of the table is that of the first.
    (best,), (chosen,) = (pick({runs[0].trial.method: runs}).values() for pick in (paper, choose))
    taken = shelf.contest(chosen)
    search, method = shelf.searches[taken.laplacian or next(iter(shelf.searches))], chosen.trial.method
    printed = printed_accuracy(recipe, name, cell.dataset)
    if printed is None:
        printed = printed_in_table1(first, cell.dataset, cell.backbone, cell.layers, kind.lower())
    row = Contender(
        row=name,
        dataset=cell.dataset,
        source="measured",
        printed=printed,
        accuracy=round(best.test_accuracy, 6),
        choice=shelf.contest(best),
        honest_choice=taken,
        fresh=Fresh(round(chosen.val_accuracy, 6)),
        looks=len(runs),
        commit=commits(runs),
    )
    with suppress(UnfinishedError):
        work.journal.start()
        found = search.retrained(work, shelf.storage, cell.dataset, {method: [chosen]}, now)
        made = commits([*runs, *found.runs[method]])
        row = replace(row, honest=summary(found.accuracy[method]), fresh=search.fresh(found, method), commit=made)
    return row


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
    rows = []
    for method, best in paper(table).items():
        name, choice = recipe["competitors"][method], Contest(method, search.laboratory.architecture.layers, None)
        rows.append(
            Contender(
                row=name,
                dataset=dataset,
                source="measured",
                printed=printed_accuracy(recipe, name, dataset),
                accuracy=round(best.test_accuracy, 6),
                honest=summary(fresh.accuracy[method]),
                choice=choice,
                honest_choice=choice,
                fresh=search.fresh(fresh, method),
                looks=len(table[method]),
                commit=commits([*table[method], *fresh.runs[method]]),
            )
        )
    return rows


def tables(rows: Sequence[Contender]) -> list[Table]:
    """Printed and measured, a line for each row and dataset."""
    columns: Cells[Contender] = {
        "row": lambda row: row.row,
        "dataset": lambda row: title(row.dataset),
        "layers": lambda row: str(row.choice.layers or NOTHING),
        "trials": lambda row: NOTHING if row.looks is None else f"{row.looks:,}",
        "printed (%)": lambda row: percent(row.printed),
        "best of the trials (%)": lambda row: percent(row.accuracy) if row.source == "measured" else NOTHING,
        "chosen on validation": lambda row: row.honest_choice.words,
        "honest mean, 95 % interval (%)": lambda row: accuracy(row.honest),
        "commit": lambda row: row.commit or NOTHING,
    }
    return [table_of("best test accuracy of as many trials, and the honest mean", rows, columns)]
