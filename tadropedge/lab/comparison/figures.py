"""Forest plots as inline drawings: places in per cent of the width, so that they need no script and fit every screen.

Each line is a drawing of its own, whose width is that of its place on the page: letters and dots keep their size on a
phone, and colours are the page's, in the light and in the dark.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from tadropedge.lab.comparison.results import ORIGINAL, Results, Row
from tadropedge.lab.comparison.statistics import Pair
from tadropedge.lab.reports.words import interval, percent, plus_minus, points

TICKS = 5  # about so many on an axis
MARGIN = 0.04  # of the axis, at both ends
HEIGHT, STEP, LEVELS = 36, 5, 5  # of a line; dots stand at five heights, so that equal ones are seen


@dataclass(frozen=True)
class Axis:
    """A scale from ``low`` to ``high`` with its ``ticks``."""

    low: float
    high: float
    ticks: Sequence[float] = ()

    @classmethod
    def over(cls, values: Iterable[float]) -> Axis:
        """An axis that holds all values that are numbers, with ticks at multiples of 1, 2 or 5.

        >>> Axis.over([-0.7, float("nan"), 2.1]).ticks
        (0.0, 1.0, 2.0)
        """
        known = [value for value in values if math.isfinite(value)] or [0.0]
        spread = (max(known) - min(known)) or 1.0
        low, high = min(known) - MARGIN * spread, max(known) + MARGIN * spread
        power = 10.0 ** math.floor(math.log10((high - low) / TICKS))
        step = next(power * one for one in (1, 2, 5, 10) if (high - low) / (power * one) <= TICKS)
        return cls(low, high, tuple(n * step for n in range(math.ceil(low / step), math.floor(high / step) + 1)))

    def at(self, value: float) -> str:
        """The place of a value; what lies beyond an end stands at it.

        >>> Axis(0.0, 4.0).at(1.0)
        '25%'
        """
        share = (value - self.low) / (self.high - self.low)
        return f"{100 * min(max(share, 0.0), 1.0):.5g}%"

    @property
    def labels(self) -> list[tuple[str, str]]:
        """The place of each tick with its number, which has no more digits than it needs."""
        step = self.ticks[1] - self.ticks[0] if len(self.ticks) > 1 else 1.0
        digits = max(0, -math.floor(math.log10(step) + 1e-9))
        return [(self.at(tick), f"{tick + 0.0:.{digits}f}".replace("-", "−")) for tick in self.ticks]


@dataclass(frozen=True, kw_only=True)
class Line:
    """A line of a forest plot: a name, a dot per replicate, the mean on its interval, and what is written beside it."""

    name: str
    dots: Sequence[tuple[str, int]]
    ends: tuple[str, str, str] | None  # low, mean, high
    number: str
    word: str
    said: str


@dataclass(frozen=True, kw_only=True)
class Forest:
    """A forest plot on one ``axis``; ``rule`` is the place of a line across it, and a band lies within the margin."""

    title: str
    unit: str
    axis: Axis
    lines: Sequence[Line]
    rule: str
    band: tuple[str, str] | None = None
    height: int = HEIGHT


def scores(results: Results) -> Forest:
    """Every candidate's test scores, in per cent."""
    rows = list(results.rows)
    yardstick = results.yardstick
    ends = [100 * value for row in rows for value in (*row.tests, row.low, row.mean, row.high)]
    if yardstick is not None:
        ends += [100 * value for value in (yardstick.low, yardstick.mean, yardstick.high)]
    axis = Axis.over(ends)
    lines = [_of_row(row, axis) for row in rows]
    if yardstick is not None:
        lines.append(_line(yardstick.candidate, [], (yardstick.low, yardstick.mean, yardstick.high), axis, percent))
    reference = next((row.mean for row in rows if row.candidate == ORIGINAL), math.nan)
    rule = axis.at(100 * reference) if math.isfinite(reference) else ""
    return Forest(title="Test scores", unit="%", axis=axis, lines=lines, rule=rule)


def differences(results: Results) -> list[Forest]:
    """The paired differences from not dropping, and those of each candidate from its controls."""
    first = {(row.candidate, ORIGINAL): row.candidate for row in results.rows if ORIGINAL in row.against}
    found = [_forest(results, "Differences from not dropping", first)] if first else []
    for row in results.rows:
        controls = {(row.candidate, name): f"minus {name}" for name in row.against if name != ORIGINAL}
        found += [_forest(results, f"{row.candidate} and its controls", controls)] if controls else []
    return found


def _forest(results: Results, title: str, names: Mapping[Pair, str]) -> Forest:
    """A line for each pair, by the name that it has there; its scale holds every replicate, 0 and the margin."""
    gaps = {pair: paired(results, *pair) for pair in names}
    values = [0.0, -results.margin, results.margin]
    for (candidate, reference), each in gaps.items():
        one = results.row(candidate).against[reference]
        values += [*each.values(), one.low, one.high]
    axis = Axis.over(100 * value for value in values)
    lines = [_difference(results.row(pair[0]), pair[1], name, gaps[pair], axis) for pair, name in names.items()]
    band = axis.at(-100 * results.margin), axis.at(100 * results.margin)
    return Forest(title=title, unit="points", axis=axis, lines=lines, rule=axis.at(0.0), band=band)


def paired(results: Results, candidate: str, reference: str) -> dict[int, float]:
    """The difference of every replicate that both have, by its number."""
    other = {one.number: one.test for one in results.row(reference).replicates}
    gaps = {one.number: one.test - other.get(one.number, math.nan) for one in results.row(candidate).replicates}
    return {number: gap for number, gap in gaps.items() if not math.isnan(gap)}


def _of_row(row: Row, axis: Axis) -> Line:
    tests = {one.number: one.test for one in row.replicates if not math.isnan(one.test)}
    return _line(row.candidate, tests.items(), (row.low, row.mean, row.high), axis, percent)


def _difference(row: Row, reference: str, name: str, gaps: Mapping[int, float], axis: Axis) -> Line:
    one = row.against[reference]
    said = f"{row.candidate} minus {reference}: {points(one.difference)} points"
    said += f", interval {interval(one.low, one.high)}, {one.word}"
    return _line(name, gaps.items(), (one.low, one.difference, one.high), axis, points, one.word, said)


def _line(
    name: str,
    values: Iterable[tuple[int, float]],
    ends: tuple[float, float, float],
    axis: Axis,
    words: Callable[[float], str],
    word: str = "",
    said: str = "",
) -> Line:
    low, middle, high = ends
    known = math.isfinite(low) and math.isfinite(high)
    number = plus_minus(words(middle), low, high) if known else words(middle)
    marked = (axis.at(100 * low), axis.at(100 * middle), axis.at(100 * high)) if math.isfinite(middle) else None
    dots = [
        (axis.at(100 * value), HEIGHT // 2 + STEP * ((2 * place) % LEVELS - LEVELS // 2)) for place, value in values
    ]
    return Line(name=name, dots=dots, ends=marked, number=number, word=word, said=said or f"{name}: {number}")
