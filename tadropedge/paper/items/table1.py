"""Table 1: five methods, three backbones, three datasets; the paper's protocol and the honest one side by side.

A cell is a dataset, a backbone and a depth. Its trials are random, the same for every method. Methods that look at
the topology are run with both Laplacians; the others do not depend on it and are run once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any

from tadropedge.comparison.comparison import make_rows
from tadropedge.comparison.results import PaperProtocol
from tadropedge.comparison.statistics import Honest, honest_rows
from tadropedge.data.dataset import Dataset
from tadropedge.errors import TadropedgeError
from tadropedge.paper.figures import tables as figures
from tadropedge.paper.item import Bench, Cells, Item, Table, Verdict, table_of
from tadropedge.paper.judge import accuracy, difference, judged_by_laplacian
from tadropedge.paper.recipe import Recipe
from tadropedge.paper.rows import WITHOUT_NAME, Row, grouped, title
from tadropedge.paper.trainings import Fresh, Search, Work, laboratory, trainings
from tadropedge.publish.wording import NOTHING, p_value, percent
from tadropedge.search.engine import Table as Searched
from tadropedge.search.protocol import Replicates, adaptive
from tadropedge.search.space import Space
from tadropedge.spectrum import LAPLACIANS


@dataclass(frozen=True)
class Cell:
    """A dataset, a backbone and a depth."""

    dataset: str
    backbone: str
    layers: int

    @property
    def network(self) -> str:
        """Backbone and depth."""
        return f"{self.backbone}-{self.layers}"

    @property
    def name(self) -> str:
        """As ``--part`` names it."""
        return f"{self.dataset}/{self.network}"

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


@dataclass(frozen=True, kw_only=True)
class Result(Cell, Row):
    """One method in one cell under both protocols, beside the printed number."""

    method: str
    laplacian: str | None  # of methods that look at the topology
    printed: float | None
    paper_protocol: PaperProtocol
    short: float | None  # by how much the best trial is below the printed number
    honest: Honest
    fresh: Annotated[Fresh, WITHOUT_NAME]
    settings: dict[str, Any]

    @property
    def words(self) -> str:
        """The cell, the method and its Laplacian."""
        laplacian = f", {self.laplacian}" if self.laplacian else ""
        return f"{title(self.dataset)} {self.network} {self.method}{laplacian}"


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
                search = _search(bench, cell, data, laplacian, methods_of(recipe, place))
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
        short=[{"row": row} for row in rows if row.short is not None and row.short > recipe["tolerance"]],
        speed=_speed(work, cells),
    )
    return Item(rows, judge(rows, recipe), figures.draw_table1(rows), notes, complete=finished == len(cells), run=told)


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
    for row in make_rows(search.laboratory, table, fresh, honest_rows(fresh.accuracy, fresh.reference)):
        assert row.paper_protocol is not None
        assert row.honest is not None
        printed = printed_accuracy(recipe, cell.dataset, cell.backbone, cell.layers, row.method)
        found = round(row.paper_protocol.best_test, 6)
        rows.append(
            Result(
                **vars(cell),
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


def judge(rows: Sequence[Result], recipe: Recipe) -> list[Verdict]:
    """One verdict per dataset on its printed numbers, then the claim under both protocols."""
    there = grouped(rows, lambda row: row.dataset)
    # Methods that look at the topology have a row for each Laplacian.
    each = sum(len(recipe["laplacians"]) if adaptive(method) else 1 for method in recipe["methods"])
    whole = {name: len(there.get(name, [])) == len(cells) * each for name, cells in recipe["cells"].items()}
    # A claim on all cells is judged when all are there.
    reached = [_reached(mine, name, recipe) for name, mine in there.items() if whole[name]]
    if not rows or not all(whole.values()):
        return reached
    once = _distinct(rows)
    return [*reached, _better_at_best(once, recipe), _better_honestly(once, recipe)]


def _distinct(rows: Sequence[Result]) -> list[Result]:
    """The rows without IncepGCN of 3 layers where JKNet of 3 layers, the same function, has the same results."""

    def content(row: Result) -> tuple[Any, ...]:
        return (row.dataset, row.method, row.laplacian, row.paper_protocol, row.honest)

    known = [content(row) for row in rows if row.network == "jknet-3"]
    return [row for row in rows if row.network != "incepgcn-3" or content(row) not in known]


def _reached(rows: Sequence[Result], dataset: str, recipe: Recipe) -> Verdict:
    """Whether all printed numbers are reached with one of the two Laplacians."""
    tolerance = recipe["tolerance"]
    known = [(row.short, row) for row in rows if row.short is not None]
    found = {}
    for laplacian in recipe["laplacians"]:
        mine = [(short, row) for short, row in known if row.laplacian in (None, laplacian)]
        low = sum(short > tolerance for short, _ in mine)
        most, worst = max(mine, key=lambda pair: pair[0], default=(0.0, None))
        least = f", the lowest {100 * most:.1f} points short ({worst.words})" if worst is not None and most > 0 else ""
        found[laplacian] = (low == 0, f"{len(mine) - low} of {len(mine)} cells{least}")
    cases = grouped(known, lambda pair: (pair[1].network, pair[1].method)).values()
    good = sum(min(short for short, _ in case) <= tolerance for case in cases)
    return judged_by_laplacian(recipe, "reached", found, name=title(dataset), good=good, count=len(cases))


def _better_at_best(rows: Sequence[Result], recipe: Recipe) -> Verdict:
    """The claim as the paper tests it: the best of the trials against DropEdge's best."""
    base = {(row.dataset, row.network): row.paper_protocol.best_test for row in rows if row.method == "dropedge"}
    found = {}
    for laplacian in recipe["laplacians"]:
        groups = grouped((row for row in rows if row.laplacian == laplacian), lambda row: row.method)
        wins = {
            method: [row.paper_protocol.best_test > base.get((row.dataset, row.network), 1.0) for row in mine]
            for method, mine in groups.items()
        }
        said = ", ".join(f"{method} in {sum(above)} of {len(above)}" for method, above in wins.items())
        found[laplacian] = (bool(wins) and all(map(all, wins.values())), said)
    return judged_by_laplacian(recipe, "better", found)


def _better_honestly(rows: Sequence[Result], recipe: Recipe) -> Verdict:
    """The claim under fresh seeds and splits, against DropEdge at the same budget."""
    found = {}
    for laplacian in recipe["laplacians"]:
        mine = [row.honest.outcome for row in rows if row.laplacian == laplacian]
        better, worse, undecided = (mine.count(outcome) for outcome in ("better", "worse", "undecided"))
        failed = len(mine) - better - worse - undecided
        words = f"better in {better}, worse in {worse}, undecided in {undecided} of {len(mine)}"
        found[laplacian] = (0 < better == len(mine), words + (f", failed in {failed}" if failed else ""))
    ends = [(row.honest.difference_low, row.honest.difference_high) for row in rows]
    widths = [(high - low) / 2 for low, high in ends if low is not None and high is not None]
    precision = f"largest half-width {100 * max(widths):.2f} points" if widths else "no interval"
    return judged_by_laplacian(recipe, "honestly", found, precision=precision, wanted=100 * recipe["half_width"])


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
        "short (points)": lambda row: f"{100 * row.short:.1f}" if row.short else NOTHING,
    }
    honest: Cells[Result] = {
        "accuracy (%)": lambda row: accuracy(row.honest),
        "above DropEdge (points)": lambda row: difference(row.honest),
        "p-value": lambda row: p_value(row.honest.p_value),
        "seeds": lambda row: str(row.honest.seeds),
    }
    made = []
    for dataset, mine in grouped(rows, lambda row: title(row.dataset)).items():
        best = f"best test accuracy of {max(row.paper_protocol.trials for row in mine)} trials"
        mean = "mean over fresh seeds and splits, 95 % intervals"
        made.append(table_of(f"{dataset}, paper protocol: {best}", mine, {**which, **paper}))
        made.append(table_of(f"{dataset}, honest protocol: {mean}", mine, {**which, **honest}))
    return made
