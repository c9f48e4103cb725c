"""Table 1: five methods, three backbones, three datasets; the paper's protocol and the honest one side by side.

A cell is a dataset, a backbone and a depth. Its trials are random, the same for every method. Methods that look at
the topology are run with both Laplacians; the others do not depend on it and are run once.
"""

from __future__ import annotations

from collections.abc import Sequence

from tadropedge._old.comparison.comparison import make_rows
from tadropedge._old.comparison.results import PaperProtocol
from tadropedge._old.comparison.statistics import honest_rows
from tadropedge._old.data.dataset import Dataset
from tadropedge._old.paper.cells import (
    Cell,
    Result,
    all_cells,
    chosen_cells,
    distinct,
    printed_accuracy,
    space_of,
    why_null,
)
from tadropedge._old.paper.figures import tables as figures
from tadropedge._old.paper.gains import corrected, effects
from tadropedge._old.paper.item import Bench, Cells, Item, Table, table_of
from tadropedge._old.paper.judge import Gap, accuracy, difference
from tadropedge._old.paper.recipe import Recipe
from tadropedge._old.paper.rows import grouped, title
from tadropedge._old.paper.sentences import judge
from tadropedge._old.paper.trainings import Search, Work, commits, laboratory, rounded, trainings
from tadropedge._old.publish.wording import NOTHING, p_value, percent, plus_minus, points
from tadropedge._old.search.engine import Table as Searched
from tadropedge._old.search.protocol import Replicates, adaptive

ROWS = (Result,)


def run(bench: Bench) -> Item:
    """Train what is asked for, and make rows of every cell that is finished."""
    recipe = bench.recipe
    cells = all_cells(recipe)
    wanted = chosen_cells(cells, bench.parts)
    work = Work(bench, sum(_trainings(recipe, cell) for cell in wanted))
    rows: list[Result] = []
    finished = 0
    for dataset, mine in grouped(cells, lambda cell: cell.dataset).items():
        data, storage = bench.dataset(dataset), bench.storage(dataset)
        for cell in mine:
            work.journal.start()
            found = []
            for place, laplacian in enumerate(recipe["laplacians"]):
                search = search_of(bench, cell, data, laplacian, methods_of(recipe, place))
                now = not bench.parts or any(cell.inside(part, laplacian) for part in bench.parts)
                both = search.run(work, storage, f"{cell.name}/{laplacian}", now)
                if both is not None:
                    found.append(_rows(recipe, cell, search, laplacian, *both))
            rows += [row for some in found for row in some]
            finished += len(found) == len(recipe["laplacians"])
    seeds = ", ".join(f"{dataset} {least} to {most}" for dataset, (least, most) in recipe["seeds"].items())
    tested = "".join(f"; {name} is tested on {count:,} nodes there" for name, count in recipe["test_nodes"].items())
    told = {
        "cells": f"{finished * len(recipe['methods'])} of {_published_cells(recipe)}",
        **work.run(counts=seeds + tested),
        "seconds_of": _seconds(work, cells),
    }
    notes = recipe.said(
        test_nodes=[{"name": title(name), "count": count} for name, count in recipe["test_nodes"].items()],
        short=[
            {"row": row, "by": -above} for row in rows if (above := row.above_printed or 0.0) < -recipe["tolerance"]
        ],
        null=[_nulls(rows)],
        speed=_speed(work, cells),
    )
    return Item(rows, judge(rows, recipe), figures.draw_table1(rows), notes, complete=finished == len(cells), run=told)


def fresh_sizes(sizes: tuple[int, int, int], test_nodes: int | None) -> tuple[int, int, int] | None:
    """The sizes of fresh splits with so many test nodes, which training gives up; None: as the dataset's own.

    >>> fresh_sizes((18217, 500, 1000), 3000)
    (16217, 500, 3000)
    """
    train, val, test = sizes
    return None if test_nodes is None else (train + test - test_nodes, val, test_nodes)


def methods_of(recipe: Recipe, place: int) -> list[str]:
    """The methods that are run with a Laplacian: the first runs those that have none too."""
    return [method for method in recipe["methods"] if place == 0 or adaptive(method)]


def _trainings(recipe: Recipe, cell: Cell) -> int:
    """How many trainings a cell takes at least: search, retraining and references."""
    groups = [methods_of(recipe, place) for place in range(len(recipe["laplacians"]))]
    return sum(trainings(methods, recipe["trials"], recipe["seeds"][cell.dataset][0]) for methods in groups)


def search_of(bench: Bench, cell: Cell, dataset: Dataset, laplacian: str, methods: Sequence[str]) -> Search:
    """The search of one cell with one Laplacian, and what follows it."""
    recipe = bench.recipe
    trained, sizes = cell.trained(recipe), fresh_sizes(dataset.split.sizes, recipe["test_nodes"].get(cell.dataset))
    seeds, most = recipe["seeds"][cell.dataset]
    return Search(
        laboratory=laboratory(bench, dataset, trained.backbone, laplacian, sizes, layers=cell.layers),
        space=space_of(recipe, cell),
        methods=methods,
        trials=recipe["trials"],
        seeds=seeds,
        place=f"{trained.name}/{laplacian}",
        most_seeds=most,
        half_width=recipe["half_width"],
    )


def _rows(
    recipe: Recipe, cell: Cell, search: Search, laplacian: str, table: Searched, fresh: Replicates
) -> list[Result]:
    """The rows of a comparison beside the printed numbers, without their curves."""
    rows = []
    for row in make_rows(search.laboratory, table, fresh, honest_rows(fresh.accuracy, fresh.reference)):
        assert row.paper_protocol is not None
        assert row.honest is not None
        printed = printed_accuracy(recipe, cell.dataset, cell.backbone, cell.layers, row.method)
        found = round(row.paper_protocol.best_test, 6)
        runs = [*table[row.method], *fresh.runs[row.method], *fresh.reference_runs.get(row.method, [])]
        references = fresh.reference.get(row.method)
        rows.append(
            Result(
                **vars(cell),
                method=row.method,
                laplacian=laplacian if adaptive(row.method) else None,
                printed=printed,
                paper_protocol=PaperProtocol(found, row.paper_protocol.trials),
                above_printed=None if printed is None else round(found - printed, 6),
                honest=row.honest,
                null=why_null(row.settings, recipe),
                fresh=search.fresh(fresh, row.method),
                reference_accuracies=None if references is None else rounded(references, 6),
                settings=dict(row.settings),
                commit=commits(runs),
            )
        )
    return rows


def _nulls(rows: Sequence[Result]) -> dict[str, object]:
    """How many strategies differ from DropEdge in name alone, and where."""
    null = [row for row in distinct(rows) if row.null is not None]
    cases = grouped(null, lambda row: f"{row.method} on {title(row.dataset)}, {row.laplacian} Laplacian").items()
    said = "; ".join(f"{where}: {', '.join(row.network for row in mine)}" for where, mine in cases)
    return {"count": len(null), "said": said or "nowhere"}


def _published_cells(recipe: Recipe) -> int:
    """105: every cell of the printed table."""
    depths = sum(len(table["depths"]) for backbones in recipe.published.values() for table in backbones.values())
    return depths * len(recipe["methods"])


def _speed(work: Work, cells: Sequence[Cell]) -> list[dict[str, object]]:
    """How long the printed table's share of the work took: the search with the first Laplacian."""
    recipe, clock = work.bench.recipe, work.journal.seconds
    laplacian = recipe["laplacians"][0]
    networks = list(dict.fromkeys(cell.trained(recipe).name for cell in cells))
    seconds = [clock.get(f"{name}/{laplacian}", {}).get("search") for name in networks]
    if None in seconds:
        return []
    count = len(networks) * len(recipe["methods"]) * recipe["trials"]
    together = sum(sum(phases.values()) for phases in clock.values())
    return [{"laplacian": laplacian, "count": count, "seconds": sum(filter(None, seconds)), "together": together}]


def _seconds(work: Work, cells: Sequence[Cell]) -> dict[str, dict[str, float]]:
    """Seconds of search and retraining by dataset and Laplacian, of all cells of this recipe and all runs."""
    names = {cell.name for cell in cells}
    total: dict[str, dict[str, float]] = {}
    for part, phases in work.journal.seconds.items():
        cell, _, laplacian = part.rpartition("/")
        if cell in names:
            sums = total.setdefault(cell.partition("/")[0], {})
            for phase, seconds in phases.items():
                label = f"{phase}, {laplacian}"
                sums[label] = sums.get(label, 0.0) + seconds
    return {dataset: {label: round(seconds, 1) for label, seconds in sums.items()} for dataset, sums in total.items()}


def tables(rows: Sequence[Result]) -> list[Table]:
    """Both protocols, dataset by dataset."""
    which: Cells[Result] = {
        "network": lambda row: row.network,
        "method": lambda row: row.method,
        "Laplacian": lambda row: row.laplacian or NOTHING,
    }
    paper: Cells[Result] = {
        "printed (%)": lambda row: percent(row.printed, 1),
        "measured (%)": lambda row: percent(row.paper_protocol.best_test, 1),
        "measured − printed (points)": lambda row: points(row.above_printed),
        "commit": lambda row: row.commit or NOTHING,
    }
    made = []
    honest = _honest(rows)
    for dataset, mine in grouped(rows, lambda row: title(row.dataset)).items():
        best = f"best test accuracy of {max(row.paper_protocol.trials for row in mine)} trials"
        mean = "mean over fresh seeds and splits, 95 % intervals"
        made.append(table_of(f"{dataset}, paper protocol: {best}", mine, {**which, **paper}))
        made.append(table_of(f"{dataset}, honest protocol: {mean}", mine, {**which, **honest}))
    return made


def _honest(rows: Sequence[Result]) -> Cells[Result]:
    """The columns of the honest protocol; p-values are corrected over the strategies of a network, and over all."""
    once = distinct(rows)
    budget = effects(once, "budget")
    printed = {one.key: one.printed for one in effects(rows, "dropedge")}
    over_all, tuned, original = (
        corrected(budget, together=True), *(corrected(effects(rows, name)) for name in ("dropedge", "original")),
    )  # fmt: skip

    def key(row: Result) -> tuple[str, str, str, str | None]:
        return row.dataset, row.network, row.method, row.laplacian

    def shown(gap: Gap | None) -> str:
        return NOTHING if gap is None else plus_minus(points(gap.difference), gap.low, gap.high)

    return {
        "accuracy (%)": lambda row: accuracy(row.honest),
        "printed gain (points)": lambda row: points(printed.get(key(row))),
        "above DropEdge, same budget": lambda row: difference(row.honest),
        "p": lambda row: p_value(row.honest.p_value),
        "p over all": lambda row: p_value(getattr(over_all.get(key(row)), "p_value", None)),
        "above DropEdge, tuned": lambda row: shown(tuned.get(key(row))),
        "above Original, tuned": lambda row: shown(original.get(key(row))),
        "seeds": lambda row: str(row.honest.seeds),
        "null": lambda row: row.null or NOTHING,
    }
