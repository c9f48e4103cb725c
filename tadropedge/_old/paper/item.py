"""What an item of the paper gets to work with, and what it gives back."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from pathlib import Path
from typing import Any

import optuna

from tadropedge._old.data import load_dataset
from tadropedge._old.data.dataset import Dataset
from tadropedge._old.errors import TadropedgeError, lookup
from tadropedge._old.paper.recipe import Recipe
from tadropedge._old.paper.rows import Row, T
from tadropedge._old.publish.tables import Table as Table
from tadropedge._old.publish.wording import NOTHING
from tadropedge._old.search.study import open_storage

REPRODUCED, PARTLY, NOT_REPRODUCED, IMPOSSIBLE = "reproduced", "partly", "not reproduced", "cannot be as stated"
STATUSES = dict.fromkeys((REPRODUCED, PARTLY, NOT_REPRODUCED, IMPOSSIBLE))
# The answers to our own questions, which the paper does not ask.
ANSWERS = dict(zip(STATUSES, ("yes", "partly", "no", "cannot be asked"), strict=True))
Cells = Mapping[str, Callable[[T], str]]  # the columns of a table: a heading, and what is shown of a row
Report = Callable[[str, int, int], None]  # (phase, done, total)
Again = Callable[[str, Sequence[Row], Callable[[], Sequence[Row]]], None]  # (piece, its rows, how they are made)


@dataclass(frozen=True)
class Verdict:
    """One claim of the paper, judged; or a question of our ``own``, answered by the same words.

    ``printed`` is the effect that the paper prints, ``measured`` the interval that was measured here; ``reason`` tells
    the rest. A claim that holds ``partly`` says ``where`` it holds.

    >>> Verdict("Cora has 78 components", "reproduced", "78 measured", printed="78", measured="78").word
    'reproduced'
    >>> Verdict("The variance falls", "partly", "", where="for p ≥ 0.3", own=True).word
    'partly: for p ≥ 0.3'
    """

    claim: str
    status: str
    reason: str
    _: KW_ONLY
    own: bool = False
    printed: str | None = None
    measured: str | None = None
    where: str | None = None

    def __post_init__(self) -> None:
        lookup("status of a verdict", self.status, STATUSES)
        if (self.status == PARTLY) != bool(self.where):
            raise TadropedgeError(f"a verdict that is 'partly' says where, and no other does: {self.claim!r}")

    @property
    def word(self) -> str:
        """The status as a reader sees it."""
        said = ANSWERS[self.status] if self.own else self.status
        return f"{said}: {self.where}" if self.where else said


@dataclass(frozen=True, eq=False)
class Item:
    """What an item found.

    ``rows`` are of the kinds that the item's module names in ``ROWS``. ``figures`` maps the stem of a file to the
    bytes of a PNG. ``notes`` explain, one sentence each. An item that was run in parts is not ``complete`` until the
    last of them. ``run`` holds what depends on the run alone, such as the seconds of its parts.

    A module of an item may have a function ``tables(rows) -> list[Table]`` that shows the rows on a page.
    """

    rows: Sequence[Row]
    verdicts: Sequence[Verdict]
    figures: Mapping[str, bytes] = field(default_factory=dict)
    notes: Sequence[str] = ()
    _: KW_ONLY
    complete: bool = True
    run: Mapping[str, Any] = field(default_factory=dict)


def table_of(caption: str, rows: Sequence[T], columns: Cells[T]) -> Table:
    """A table with a line for each row; each column has a heading and says what it shows of a row.

    Where rows name the commit that made them, the last column shows it.

    >>> table_of("words", ["one", "three"], {"word": str, "letters": lambda word: str(len(word))}).rows
    [['one', '3'], ['three', '5']]
    """
    shown: Cells[T] = columns
    if any(isinstance(row, Row) and row.commit for row in rows):
        shown = {**columns, "commit": lambda row: getattr(row, "commit", None) or NOTHING}
    return Table(caption, list(shown), [[cell(row) for cell in shown.values()] for row in rows])


def silent(phase: str, done: int, total: int) -> None:
    """No progress display."""


@dataclass(frozen=True, eq=False)
class Bench:
    """Where an item is run: its recipe, a folder for what must survive an interruption, a device and the data.

    Everything random follows from ``seed``. ``report(phase, done, total)`` shows progress. ``parts`` names the parts
    to be run of an item that has them; none named is all. Where ``again`` is given, every measurement is finished, and
    it is shown each of them.
    """

    recipe: Recipe
    folder: Path
    _: KW_ONLY
    device: str = "cpu"
    root: Path | None = None
    seed: int = 0
    report: Report = silent
    parts: tuple[str, ...] = ()
    again: Again | None = None

    def dataset(self, name: str, **options: Any) -> Dataset:
        """A dataset on the device of this run."""
        return load_dataset(name, root=self.root, **options).to(self.device)

    def each(self, phase: str, items: Sequence[T], name: Callable[[T], str] | None = None) -> Iterator[T]:
        """One item after the other, with progress; ``name`` adds what the phase is at."""
        for done, item in enumerate(items):
            self.report(phase if name is None else f"{phase}, {name(item)}", done, len(items))
            yield item

    @property
    def cache_dir(self) -> Path:
        """Where edge scores are kept between runs."""
        return self.folder / "cache"

    def storage(self, part: str = "") -> optuna.storages.BaseStorage:
        """The finished trainings of this item, or of one part of it: an append-only journal."""
        name = f"{self.recipe.name}-{part}" if part else self.recipe.name
        return open_storage(self.folder / "studies" / f"{name}.journal", alone=True)  # the folder is locked
