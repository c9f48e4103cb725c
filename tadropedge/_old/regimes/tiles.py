"""The heat map as a table of tiles: datasets by conditions, the same for the page and for the picture."""

from __future__ import annotations

from dataclasses import dataclass

from tadropedge._old.publish.wording import points
from tadropedge._old.regimes.results import RegimeMap
from tadropedge._old.regimes.summary import (
    GAIN,
    GREY,
    LOSS,
    UNJUDGED,
    Finding,
    conditions,
    datasets,
    difference,
    findings,
    heading,
)

STEPS = (0.005, 0.01, 0.02)  # gains at which the colour changes
LEGEND = {
    "gain-1": "gain below 0.5 points",
    "gain-2": "0.5 to 1 point",
    "gain-3": "1 to 2 points",
    "gain-4": "2 points and more",
    LOSS: "every method is worse: the smallest loss",
    GREY: "no method is surely better than not dropping (± half-width)",
    UNJUDGED: "not judged",
}
MARK, MARKED = "○", "a network that sees no edges is better than not dropping"


@dataclass(frozen=True, kw_only=True)
class Tile:
    """A cell as it is shown: ``step`` names its colour, ``said`` tells it in words; ``mark``: no edges are better."""

    key: str
    step: str
    method: str
    gain: str
    said: str
    mark: bool = False


@dataclass(frozen=True)
class Grid:
    """The heads of the columns, and the rows: a dataset and its tiles, ``None`` where there is no such cell."""

    columns: list[str]
    rows: list[tuple[str, list[Tile | None]]]


def tiles(found: RegimeMap) -> Grid:
    """Every cell of a map in its place."""
    every = {(one.cell.dataset, one.cell.kind, one.cell.value): one for one in findings(found)}
    across = conditions(found)
    rows: list[tuple[str, list[Tile | None]]] = [
        (dataset, [_maybe(every.get((dataset, *condition))) for condition in across]) for dataset in datasets(found)
    ]
    return Grid([heading(*condition) for condition in across], rows)


def _maybe(one: Finding | None) -> Tile | None:
    return None if one is None else tile(one)


def tile(one: Finding) -> Tile:
    """What is shown of a cell."""
    row, state, where = one.best if one.state == GAIN else one.leader, one.state, one.cell.key
    if row is None:
        return Tile(key=where, step=UNJUDGED, method="", gain="–", said=f"{where}: not judged")
    told = row.tests["none"]
    number = f"{difference(told)} points"
    said = {
        GAIN: f"{row.method}, {number} against not dropping",
        LOSS: f"every method is worse than not dropping, least {row.method}, {number}",
        GREY: f"no method is surely better than not dropping; the largest mean has {row.method}, {number}",
    }[state]
    return Tile(
        key=where,
        step=step(told.difference) if state == GAIN else state,
        method="" if state == GREY else row.method,
        gain=f"± {100 * (one.half_width or 0.0):.2f}" if state == GREY else points(told.difference),
        said=f"{where}: {said}{f'; {MARKED}' if one.edgeless else ''}",
        mark=one.edgeless,
    )


def step(gain: float) -> str:
    """The colour of a gain.

    >>> step(0.001), step(0.005), step(0.3)
    ('gain-1', 'gain-2', 'gain-4')
    """
    return f"gain-{1 + sum(gain >= edge for edge in STEPS)}"
