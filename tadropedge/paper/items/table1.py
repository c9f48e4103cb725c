"""Table 1: five methods, three backbones, three datasets; the paper's protocol and the honest one side by side.

A cell is a dataset, a backbone and a depth. Its trials are random, the same for every method. Methods that look at
the topology are run with both Laplacians; the others do not depend on it and are run once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tadropedge.comparison.comparison import make_rows
from tadropedge.comparison.results import PaperProtocol
from tadropedge.data.dataset import Dataset
from tadropedge.errors import TadropedgeError
from tadropedge.paper.figures import tables as figures
from tadropedge.paper.item import Bench, Item
from tadropedge.paper.items.table1_claims import Result, judge, notes, tables
from tadropedge.paper.recipe import Recipe
from tadropedge.paper.rows import grouped
from tadropedge.paper.trainings import Search, Work, laboratory, trainings
from tadropedge.search.engine import Table as Searched
from tadropedge.search.protocol import Replicates, adaptive
from tadropedge.search.space import Space
from tadropedge.spectrum import LAPLACIANS

__all__ = ["ROWS", "run", "tables"]

ROWS = (Result,)


@dataclass(frozen=True)
class Cell:
    """A dataset, a backbone and a depth."""

    dataset: str
    backbone: str
    layers: int

    @property
    def name(self) -> str:
        """As ``--part`` names it."""
        return f"{self.dataset}/{self.backbone}-{self.layers}"

    def trained(self, recipe: Recipe) -> Cell:
        """The cell whose trainings are this one's: JKNet and IncepGCN of three layers are one function."""
        twin = replace(self, backbone="jknet")
        same = (self.backbone, self.layers) == ("incepgcn", 3) and space_of(recipe, self) == space_of(recipe, twin)
        return twin if same else self

    def inside(self, part: str, laplacian: str = "") -> bool:
        """Whether a part holds this cell, or its trainings with one Laplacian.

        >>> cell = Cell("pubmed", "gcn", 3)
        >>> [cell.inside(part) for part in ("pubmed", "pubmed/gcn", "pubmed/gcn-3", "pubmed/gcn-2", "cora")]
        [True, True, True, False, False]
        >>> [cell.inside("pubmed/gcn/normalized", laplacian) for laplacian in ("normalized", "combinatorial")]
        [True, False]
        """
        front, _, last = part.rpartition("/")
        if last in LAPLACIANS:
            part = front if laplacian in ("", last) else ""
        return part in (self.dataset, f"{self.dataset}/{self.backbone}", self.name)


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
                search = _search(bench, cell, data, laplacian, methods_of(recipe, place))
                now = not bench.parts or any(cell.inside(part, laplacian) for part in bench.parts)
                both = search.run(work, storage, f"{cell.name}/{laplacian}", now)
                if both is not None:
                    found.append(_rows(recipe, cell, search, laplacian, *both))
            rows += [row for some in found for row in some]
            finished += len(found) == len(recipe["laplacians"])
    return Item(
        rows,
        judge(rows, recipe),
        figures.draw_table1(rows),
        [*notes(rows, recipe), *_speed(work, cells)],
        complete=finished == len(cells),
        run={
            "cells": f"{finished * len(recipe['methods'])} of {_published_cells(recipe)}",
            **work.run(_settings(recipe)),
            "seconds_of": _seconds(work, cells),
        },
    )


def all_cells(recipe: Recipe) -> list[Cell]:
    """The cells of a recipe, dataset by dataset."""
    cells = []
    for dataset, names in recipe["cells"].items():
        for name in names:
            backbone, _, layers = name.partition("-")
            cells.append(Cell(dataset, backbone, int(layers)))
    return cells


def chosen_cells(cells: Sequence[Cell], parts: Sequence[str]) -> list[Cell]:
    """The cells inside one of the parts; no part named is all.

    >>> chosen_cells([Cell("cora", "gcn", 2)], ["coar"])
    Traceback (most recent call last):
    tadropedge.errors.TadropedgeError: no part 'coar' in this recipe; take a dataset or one of cora/gcn-2
    """
    for part in parts:
        if not any(cell.inside(part) for cell in cells):
            names = ", ".join(cell.name for cell in cells)
            raise TadropedgeError(f"no part {part!r} in this recipe; take a dataset or one of {names}")
    return [cell for cell in cells if not parts or any(cell.inside(part) for part in parts)]


def space_of(recipe: Recipe, cell: Cell) -> Space:
    """The search space of a cell: what holds for all, then for its dataset, then for its backbone there."""
    whole: Mapping[str, Any] = recipe["space"]
    mine: Mapping[str, Any] = whole.get(cell.dataset, {})
    common = {name: entry for name, entry in whole.items() if name not in recipe["cells"]}
    backbones = {other.backbone for other in all_cells(recipe)} | {"gcn", "jknet", "incepgcn"}
    of_dataset = {name: entry for name, entry in mine.items() if name not in backbones}
    return Space.of({**common, **of_dataset, **mine.get(cell.backbone, {})})


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


def _search(bench: Bench, cell: Cell, dataset: Dataset, laplacian: str, methods: Sequence[str]) -> Search:
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
    for row in make_rows(search.laboratory, table, fresh):
        assert row.paper_protocol is not None
        assert row.honest is not None
        printed = printed_accuracy(recipe, cell.dataset, cell.backbone, cell.layers, row.method)
        found = round(row.paper_protocol.best_test, 6)
        rows.append(
            Result(
                dataset=cell.dataset,
                backbone=cell.backbone,
                layers=cell.layers,
                method=row.method,
                laplacian=laplacian if adaptive(row.method) else None,
                printed=printed,
                paper_protocol=PaperProtocol(found, row.paper_protocol.trials),
                short=None if printed is None else round(max(0.0, printed - found), 6),
                honest=row.honest,
                fresh=search.fresh(fresh, row.method),
                settings=dict(row.settings),
            )
        )
    return rows


def printed_accuracy(recipe: Recipe, dataset: str, backbone: str, layers: int, method: str) -> float | None:
    """What the paper prints in a cell, if it does."""
    for name, backbones in recipe.published.items():
        for kind, table in backbones.items():
            if (name.lower(), kind.lower()) == (dataset, backbone) and layers in table["depths"]:
                return float(table[method][table["depths"].index(layers)])
    return None


def _published_cells(recipe: Recipe) -> int:
    """105: every cell of the printed table."""
    depths = sum(len(table["depths"]) for backbones in recipe.published.values() for table in backbones.values())
    return depths * len(recipe["methods"])


def _settings(recipe: Recipe) -> str:
    seeds = ", ".join(f"{dataset} {least} to {most}" for dataset, (least, most) in recipe["seeds"].items())
    tested = "".join(f"; {name} is tested on {count:,} nodes there" for name, count in recipe["test_nodes"].items())
    return f"{recipe['trials']} trials of {recipe['epochs']} epochs a method; fresh seeds and splits: {seeds}{tested}"


def _speed(work: Work, cells: Sequence[Cell]) -> list[str]:
    """How long the printed table's share of the work took: the search with the first Laplacian."""
    recipe, clock = work.bench.recipe, work.journal.seconds
    laplacian = recipe["laplacians"][0]
    networks = list(dict.fromkeys(cell.trained(recipe).name for cell in cells))
    seconds = [clock.get(f"{name}/{laplacian}", {}).get("search") for name in networks]
    if None in seconds:
        return []
    count = len(networks) * len(recipe["methods"]) * recipe["trials"]
    together = sum(sum(phases.values()) for phases in clock.values())
    return [
        f"The search with the {laplacian} Laplacian, {count:,} trainings of {recipe['epochs']} epochs, took "
        f"{sum(filter(None, seconds)):,.0f} s; with the other Laplacian and all fresh trainings {together:,.0f} s."
    ]


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
