"""The three goals of a map, reached or missed, with the numbers that decide."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median

from tadropedge._old.publish.wording import counted, points
from tadropedge._old.regimes.results import MapRow, RegimeMap
from tadropedge._old.regimes.statements import best_score, statements
from tadropedge._old.regimes.summary import (
    AUTO,
    NOT_DROPPING,
    Finding,
    capital,
    condition_words,
    datasets,
    findings,
    narrow,
    record,
    under,
)

LOW_BUDGET, ALLOWED = 0.1, 0.005  # the budget of the third goal, and the loss it allows
THIRD = 3  # one cell in three
LEAST = 10  # datasets that a map needs to speak of graphs in general


@dataclass(frozen=True, kw_only=True)
class Goal:
    """A goal: its ``name`` says what was aimed at; ``reached`` or not, what was ``measured``, and that in ``words``."""

    name: str
    words: str
    reached: bool
    measured: Mapping[str, object] = field(default_factory=dict)


def goals(found: RegimeMap) -> list[Goal]:
    """The three goals; what no cell was judged for is not reached."""
    every = findings(found)
    return [auto_goal(every), statement_goal(found, every), budget_goal(every)]


def told_goals(found: RegimeMap) -> list[Goal]:
    """Those that a reader is told: none of a map of a few datasets."""
    return goals(found) if len(datasets(found)) >= LEAST else []


def auto_goal(every: Sequence[Finding]) -> Goal:
    """``auto`` is never worse than not dropping or DropEdge, and better than both in a third of where any method is.

    Where the budget is given, ``auto`` must keep to it, too, and cannot choose not to drop: such cells are counted, and
    the words name them.
    """
    judged = [one for one in every if AUTO in one.droppings]
    lost = [one for one in judged if "worse" in one.outcomes(AUTO)]
    worse, given = [one.cell.key for one in lost], sum(one.cell.kind == "budget" for one in lost)
    possible = [one for one in judged if one.beyond]
    better = [one.cell.key for one in possible if AUTO in one.beyond]
    words = (
        f"In {counted(len(judged), 'judged cell')}, auto is worse than not dropping or than DropEdge in {len(worse)}"
        f"{f' ({_few(worse)}; in {given} of these the budget is given, also to auto)' if worse else ''}. Some method "
        f"is better than both in {counted(len(possible), 'cell')}, and auto in {len(better)} of these"
        f"{f' ({100 * len(better) / len(possible):.0f} %)' if possible else ''}."
    )
    return Goal(
        name="auto is never surely worse than the better of not dropping and DropEdge, and surely better than both "
        "in at least a third of the cells where any method is",
        words=words,
        reached=bool(judged) and not worse and THIRD * len(better) >= len(possible),
        measured={
            "cells": len(judged),
            "worse": worse,
            "given": given,
            "possible": len(possible),
            "better": len(better),
        },
    )


def _few(names: Sequence[str], most: int = 5) -> str:
    rest = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + rest


def statement_goal(found: RegimeMap, every: Sequence[Finding]) -> Goal:
    """Every question has an answer in numbers, the one about spectral scores included."""
    silent, told = [one.name for one in statements(found) if not one.cells], spectral(every)
    said = "every question has its statement" if not silent else f"no cell was judged for {', '.join(silent)}"
    names = ", ".join(f"{name} in {wins}" for name, wins in told.wins.items()) or "no such test was made"
    return Goal(
        name="a clear statement for depth, few labels, low budget, noise, heterophily and missing features, and "
        "whether a spectral score ever beats the degree score",
        words=f"{capital(said)}. {told.words} By method: {names}.",
        reached=not silent and bool(told.tests),
        measured={"silent": silent, **vars(told)},
    )


@dataclass(frozen=True, kw_only=True)
class Spectral:
    """Spectral scores against the degree score: how many ``tests``, the cells of those that are better, by method."""

    tests: int
    better: int
    worse: int
    wins: Mapping[str, int]
    where: Sequence[str]

    @property
    def words(self) -> str:
        """Whether a spectral score ever beats the degree score.

        >>> Spectral(tests=20, better=0, worse=3, wins={"cdf": 0}, where=()).words
        'A spectral score is never better than the degree score: 0 of 20 tests, and worse in 3.'
        """
        if self.better:
            front = f"better than the degree score in {self.better} of {self.tests} tests ({_few(self.where)})"
        else:
            front = f"never better than the degree score: 0 of {self.tests} tests"
        return f"A spectral score is {front}, and worse in {self.worse}."


def spectral(every: Sequence[Finding]) -> Spectral:
    """How spectral scores did against the degree score, over all cells: every method with such a test is one."""
    names = dict.fromkeys(name for one in every for name, row in one.droppings.items() if "degree" in row.tests)
    records = {name: record(every, name, "degree") for name in names}
    return Spectral(
        tests=sum(one.cells for one in records.values()),
        better=sum(one.better for one in records.values()),
        worse=sum(one.worse for one in records.values()),
        wins={name: one.better for name, one in records.items()},
        where=[one.cell.key for one in every if any(_beats_degree(one, name) for name in names)],
    )


def _beats_degree(one: Finding, name: str) -> bool:
    test = one.test(name, "degree")
    return test is not None and test.outcome == "better"


def budget_goal(every: Sequence[Finding]) -> Goal:
    """With a tenth of the edges, the best score loses less than half a point on half of the datasets."""
    some = [one for one in under(every, "budget", LOW_BUDGET) if best_score(one) is not None]
    leaders = {one.cell.dataset: row for one in some if (row := best_score(one)) is not None}
    lost = {dataset: row.tests["none"] for dataset, row in leaders.items()}
    near = [dataset for dataset, test in lost.items() if test.difference > -ALLOWED]
    sure = [dataset for dataset, test in lost.items() if test.low > -ALLOWED]
    saved = {one.cell.dataset: share for one in some if (share := _saved(one, leaders[one.cell.dataset])) is not None}
    middle = points(median(test.difference for test in lost.values())) if lost else ""
    words = (
        f"With {condition_words('budget', LOW_BUDGET)}, the score with the largest mean loses less than "
        f"{100 * ALLOWED:g} points against the whole graph on {len(near)} of {len(lost)} datasets (on {len(sure)} also "
        f"by the lower end of its interval); in the median it differs by {middle} points. "
        + (
            f"An epoch takes {_share(median(saved.values()))} in the median of {len(saved)} datasets."
            if saved
            else "The time of an epoch was not measured."
        )
    )
    return Goal(
        name=f"at a budget of {LOW_BUDGET:g} the best score loses less than {100 * ALLOWED:g} points against the whole "
        "graph on at least half of the datasets",
        words=words if lost else "No cell was judged.",
        reached=bool(lost) and 2 * len(near) >= len(lost),
        measured={
            "datasets": len(lost),
            "near": near,
            "sure": sure,
            "differences": {dataset: test.difference for dataset, test in lost.items()},
            "methods": {dataset: row.method for dataset, row in leaders.items()},
            "epoch": saved,
        },
    )


def _saved(one: Finding, row: MapRow) -> float | None:
    """The time of an epoch as a multiple of that on the whole graph."""
    whole = one.rows.get(NOT_DROPPING)
    if whole is None or not whole.epoch_seconds or row.epoch_seconds is None:
        return None
    return row.epoch_seconds / whole.epoch_seconds


def _share(times: float) -> str:
    """A time beside another.

    >>> _share(0.46), _share(1.2)
    ('46 % of the time on the whole graph', '120 % of the time on the whole graph')
    """
    return f"{100 * times:.0f} % of the time on the whole graph"


def width_words(every: Sequence[Finding]) -> str:
    """In how many cells the interval is as narrow as it should be."""
    (settled, known), (some, cells) = narrow(every, settled=True), narrow(every)
    return (
        f"The half-width of a difference to not dropping is at most 0.5 points in {_of_cells(settled, known)} for the "
        f"settings as they were chosen, and in {_of_cells(some, cells)} where the luck of choosing them is included."
    )


def _of_cells(some: int, cells: int) -> str:
    return f"{some} of {cells} cells" + (f" ({100 * some / cells:.0f} %)" if cells else "")
