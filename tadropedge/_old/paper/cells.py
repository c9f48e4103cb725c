"""The cells of Table 1 and their rows: a dataset, a backbone and a depth; a method there, under both protocols."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any

from tadropedge._old.comparison.results import PaperProtocol
from tadropedge._old.comparison.statistics import Honest
from tadropedge._old.errors import TadropedgeError
from tadropedge._old.paper.recipe import Recipe
from tadropedge._old.paper.rows import WITHOUT_NAME, Row, title
from tadropedge._old.paper.trainings import Fresh
from tadropedge._old.search.space import Space
from tadropedge._old.spectrum import LAPLACIANS

TWIN_OF = {"incepgcn-3": "jknet-3"}  # two names of one function in the DropEdge code that the paper builds on


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
        twin = replace(self, backbone=TWIN_OF.get(self.network, self.network).partition("-")[0])
        same = space_of(recipe, self) == space_of(recipe, twin)
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
    """One method in one cell under both protocols, beside the printed number.

    ``null`` says why a strategy differs from DropEdge in name alone: where it does, no difference is to be expected.
    """

    method: str
    laplacian: str | None  # of methods that look at the topology
    printed: float | None
    paper_protocol: PaperProtocol
    above_printed: float | None  # the best trial minus the printed number
    honest: Honest
    null: str | None
    fresh: Annotated[Fresh, WITHOUT_NAME]
    reference_accuracies: tuple[float | None, ...] | None  # of DropEdge at the same budget, by replicate
    settings: dict[str, Any]

    @property
    def words(self) -> str:
        """The cell, the method and its Laplacian."""
        laplacian = f", {self.laplacian}" if self.laplacian else ""
        return f"{title(self.dataset)} {self.network} {self.method}{laplacian}"


def why_null(settings: Mapping[str, Any], recipe: Recipe) -> str | None:
    """Why the chosen settings of a strategy are those of DropEdge in all but name; None where they are not.

    >>> recipe = Recipe("table1", "", "", "paper", settings={"same_share": 0.001, "hardly_drops": 0.95})
    >>> why_null({"keep_prob": 0.3, "kept_share": 0.30032}, recipe)
    'keeps 30.03 % where DropEdge keeps 30.00 %'
    >>> why_null({"keep_prob": 0.9, "kept_share": 0.951}, recipe), why_null({"keep_prob": 0.9}, recipe)
    ('drops only 4.90 %', None)
    """
    share, p = settings.get("kept_share"), settings.get("keep_prob")
    if share is None or p is None:
        return None
    if abs(share - p) <= recipe["same_share"]:
        return f"keeps {100 * share:.2f} % where DropEdge keeps {100 * p:.2f} %"
    return f"drops only {100 * (1 - share):.2f} %" if share > recipe["hardly_drops"] else None


def distinct(rows: Sequence[Result]) -> list[Result]:
    """The rows without IncepGCN of 3 layers where JKNet of 3 layers, the same function, has the same results."""

    def content(row: Result) -> tuple[Any, ...]:
        return (row.dataset, row.method, row.laplacian, row.paper_protocol, row.honest)

    known = [content(row) for row in rows if row.network in TWIN_OF.values()]
    return [row for row in rows if row.network not in TWIN_OF or content(row) not in known]


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
    tadropedge._old.errors.TadropedgeError: no part 'coar' in this recipe; take a dataset or one of cora/gcn-2
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


def printed_accuracy(recipe: Recipe, dataset: str, backbone: str, layers: int, method: str) -> float | None:
    """What the paper prints in a cell, if it does."""
    for name, backbones in recipe.published.items():
        for kind, table in backbones.items():
            if (name.lower(), kind.lower()) == (dataset, backbone) and layers in table["depths"]:
                return float(table[method][table["depths"].index(layers)])
    return None
