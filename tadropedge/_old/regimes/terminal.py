"""A map in the terminal: one line per condition, then the goals."""

from __future__ import annotations

from collections.abc import Iterator

from tadropedge._old.publish.tables import Table
from tadropedge._old.publish.terminal import Shown, terminal_table
from tadropedge._old.regimes.across import across, means_table
from tadropedge._old.regimes.goals import told_goals, width_words
from tadropedge._old.regimes.report import opening
from tadropedge._old.regimes.results import RegimeMap
from tadropedge._old.regimes.summary import AUTO, condition_words, conditions, findings, record, tally, under

COLUMNS = (
    *("condition", "cells", "dropping\nhelps", "all\nworse", "beyond\nDropEdge", "best, most often"),
    *("auto against\nnot dropping", "auto against\nDropEdge"),
)
BELOW = (
    "beyond DropEdge: a method is better than not dropping and than DropEdge; auto: cells where it is better / "
    "undecided / worse; all at a false discovery rate of 5 % over the map"
)

MEANS_BELOW = "points in the mean over datasets, ± half a 95 % interval; ▲ surely better, ▼ surely worse"


def told(found: RegimeMap) -> Iterator[Shown | str]:
    """What a map found: an opening, a line per condition, the goals."""
    yield opening(found)
    yield terminal_table(table(found), below=BELOW)
    means = means_table(found, across(found))
    if means.rows:
        yield terminal_table(means, below=MEANS_BELOW)
    for goal in told_goals(found):
        yield f"{'reached' if goal.reached else 'missed'}: {goal.name}. {goal.words}"
    yield width_words(findings(found))


def table(found: RegimeMap) -> Table:
    """Per condition: its cells, where dropping helps, the method that is best most often, and the record of auto."""
    every, rows = findings(found), []
    for condition in conditions(found):
        some = under(every, *condition)
        counts = tally(some)
        often = f"{counts.often} ({counts.often_cells})" if counts.often else "none"
        numbers = (counts.cells, counts.gains, counts.losses, counts.beyond)
        autos = (record(some, AUTO, reference) for reference in ("none", "dropedge"))
        record_words = (f"{one.better} / {one.undecided} / {one.worse}" for one in autos)
        rows.append((condition_words(*condition), *map(str, numbers), often, *record_words))
    return Table("", COLUMNS, rows, left=(0, 5))
