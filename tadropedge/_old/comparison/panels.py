"""Forest plots as rows of tables: places in per cent of the width, so that they need no script and fit every screen.

A plot is one column of a table. Each cell is a drawing of its own, whose width is that of the column; lines and dots
stand at shares of it, so letters keep their size on a phone.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from tadropedge._old.comparison.judging import KINDS, Against
from tadropedge._old.comparison.results import MethodRow, labelled
from tadropedge._old.comparison.statistics import Honest
from tadropedge._old.publish.wording import NOTHING, interval, p_value, percent, plus_minus, points

TICKS = 5  # about so many on an axis
MARGIN = 0.04  # of the axis, at both ends


@dataclass(frozen=True)
class Axis:
    """A scale from ``low`` to ``high`` with its ``ticks``."""

    low: float
    high: float
    ticks: Sequence[float] = ()

    @classmethod
    def over(cls, values: Iterable[float | None]) -> Axis:
        """An axis that holds all values, with ticks at multiples of 1, 2 or 5.

        >>> Axis.over([-0.7, None, 2.1]).ticks
        (0.0, 1.0, 2.0)
        """
        known = [value for value in values if value is not None and math.isfinite(value)] or [0.0]
        spread = (max(known) - min(known)) or 1.0
        low, high = min(known) - MARGIN * spread, max(known) + MARGIN * spread
        power = 10.0 ** math.floor(math.log10((high - low) / TICKS))
        step = next(power * one for one in (1, 2, 5, 10) if (high - low) / (power * one) <= TICKS)
        return cls(low, high, tuple(n * step for n in range(math.ceil(low / step), math.floor(high / step) + 1)))

    def at(self, value: float) -> str:
        """The place of a value.

        >>> Axis(0.0, 4.0).at(1.0)
        '25%'
        """
        return f"{100 * (value - self.low) / (self.high - self.low):.5g}%"

    @property
    def labels(self) -> list[tuple[str, str]]:
        """The place of each tick with its number, which has no more digits than it needs."""
        step = self.ticks[1] - self.ticks[0] if len(self.ticks) > 1 else 1.0
        digits = max(0, -math.floor(math.log10(step) + 1e-9))
        return [(self.at(tick), f"{tick + 0.0:.{digits}f}".replace("-", "−")) for tick in self.ticks]


@dataclass(frozen=True, kw_only=True)
class Mark:
    """A dot on its interval, with thin strokes for single replicates; ``said`` where a reader points."""

    ends: tuple[str, str, str] | None  # low, middle, high
    strokes: Sequence[str]
    said: str


@dataclass(frozen=True, kw_only=True)
class PanelLine:
    """A line of a panel: the ``place`` of its method among all, its label, its mark, and the cells beside it."""

    place: int
    label: str
    mark: Mark
    outcome: str
    cells: Sequence[str]


@dataclass(frozen=True, kw_only=True)
class Panel:
    """One forest plot with the numbers that it shows; ``rules`` are lines across it, by the class of their dashes."""

    title: str
    unit: str
    axis: Axis
    columns: Sequence[str]
    left: Sequence[int]
    lines: Sequence[PanelLine]
    rules: Mapping[str, str]


def differences(rows: Sequence[MethodRow], measure: str) -> list[Panel]:
    """A panel for each kind of reference, all on one scale, with every number of every test."""
    tests = [
        (kind, place, label, test)
        for place, (label, row) in enumerate(labelled(rows).items())
        for kind, test in row.tests.items()
    ]
    axis = Axis.over([0.0, *(end for _, _, _, test in tests for end in (*_interval(test), *_replicates(test)))])
    failed = any(test.failed for _, _, _, test in tests)
    columns = [
        *("difference\n(points)", "p-value,\ncorrected", "verdict", f"its {measure}\n(%)", "reference\n(%)"),
        *(["failed\nseeds"] if failed else []),
    ]
    return [
        Panel(
            title=f"against {words}",
            unit="difference (points)",
            axis=axis,
            columns=columns,
            left=(2,),
            lines=[_line(*one, axis, failed) for one in tests if one[0] == kind],
            rules={"zero": axis.at(0.0)},
        )
        for kind, words in KINDS.items()
        if any(one[0] == kind for one in tests)
    ]


def _line(kind: str, place: int, label: str, test: Against, axis: Axis, failed: bool) -> PanelLine:
    ends = _interval(test)
    gap = plus_minus(points(test.difference), test.difference_low, test.difference_high)
    cells = [gap, p_value(test.p_value), test.outcome or NOTHING, plus_minus(percent(test.mean), test.low, test.high)]
    cells.append(percent(test.reference_mean) if test.reference_mean is not None else NOTHING)
    cells += [f"{test.failed} of {test.seeds + test.failed}"] if failed else []
    return PanelLine(
        place=place,
        label=label,
        mark=Mark(
            ends=_places(ends, axis), strokes=[axis.at(one) for one in _replicates(test)], said=_said(label, kind, test)
        ),
        outcome=test.outcome or "",
        cells=cells,
    )


def _said(label: str, kind: str, test: Against) -> str:
    if test.difference is None:
        return f"{label} against {KINDS[kind]}: too few replicates"
    where = interval(test.difference_low, test.difference_high, signed=True)
    p = p_value(test.p_value)
    p = f"p {p}" if p.startswith("<") else f"p = {p}"
    return (
        f"{label} against {KINDS[kind]}: {points(test.difference)} points, 95 % interval {where}, {p}, {test.outcome}"
    )


def _interval(test: Against) -> tuple[float | None, float | None, float | None]:
    low, middle, high = test.difference_low, test.difference, test.difference_high
    return tuple(None if end is None else 100 * end for end in (low, middle, high))  # type: ignore[return-value]


def _replicates(test: Against) -> list[float]:
    return [100 * one for one in (test.evidence.differences if test.evidence else ()) if math.isfinite(one)]


def _places(ends: Sequence[float | None], axis: Axis) -> tuple[str, str, str] | None:
    low, middle, high = ends
    if low is None or middle is None or high is None:
        return None
    return axis.at(low), axis.at(middle), axis.at(high)


RULED = {"original": "none", "dropedge": "uniform"}  # means that run across the panel of methods


def methods(
    rows: Sequence[MethodRow],
    measure: str,
    columns: Sequence[str],
    cells: Mapping[str, Sequence[str]],
    left: Sequence[int],
) -> Panel | None:
    """The panel of the methods themselves: their means with what else is told of each, ``cells`` by label."""
    named = {label: row.honest for label, row in labelled(rows).items() if row.honest is not None}
    if not named:
        return None
    axis = Axis.over(100 * end for one in named.values() for end in (one.low, one.mean, one.high) if end is not None)
    places = {label: place for place, label in enumerate(labelled(rows))}
    return Panel(
        title="the methods",
        unit=f"test {measure} (%)",
        axis=axis,
        columns=(f"{measure}\n(%)", *columns),
        left=left,
        lines=[
            PanelLine(
                place=places[label],
                label=label,
                mark=Mark(ends=_places(_mean(one), axis), strokes=(), said=_of_mean(label, measure, one)),
                outcome="",
                cells=(plus_minus(percent(one.mean), one.low, one.high), *cells[label]),
            )
            for label, one in named.items()
        ]
        + [
            PanelLine(
                place=places[label],
                label=label,
                mark=Mark(ends=None, strokes=(), said=f"{label}: out of reach at this budget"),
                outcome="",
                cells=(NOTHING, *cells[label]),
            )
            for label, row in labelled(rows).items()
            if row.least_share is not None
        ],
        rules={
            kind: axis.at(100 * mean)
            for label, kind in RULED.items()
            if label in named and (mean := named[label].mean) is not None
        },
    )


def _mean(one: Honest) -> tuple[float | None, float | None, float | None]:
    return tuple(None if end is None else 100 * end for end in (one.low, one.mean, one.high))  # type: ignore[return-value]


def _of_mean(label: str, measure: str, one: Honest) -> str:
    if one.mean is None:
        return f"{label}: too few replicates"
    return f"{label}: mean test {measure} {percent(one.mean)} %, 95 % interval {interval(one.low, one.high)}"
