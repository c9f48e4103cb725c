"""A comparison as people read it: a page, a text for the terminal, and the files of its folder.

Forest plots are inline drawings: places in per cent of the width, so that they need no script and fit every screen.
Each line is a drawing of its own, whose width is that of its place on the page: letters and dots keep their size on a
phone, and colours are the page's, in the light and in the dark.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from textwrap import fill
from typing import Any

from tadropedge._support.atomic import write_atomic
from tadropedge._support.folder import claim
from tadropedge.lab.candidate import Candidate
from tadropedge.lab.comparison.advice import failed, fallen, family, unbeaten
from tadropedge.lab.comparison.results import ORIGINAL, Comparison, Plain, Row
from tadropedge.lab.reports.label import run_lines
from tadropedge.lab.reports.render import pages_of, render, script
from tadropedge.lab.reports.text import (
    NOTHING,
    WIDTH,
    Table,
    as_text,
    factor,
    interval,
    memory,
    percent,
    plus_minus,
    points,
    seconds,
    shown,
    terminal_table,
)
from tadropedge.lab.statistics import LEAST
from tadropedge.lab.training.trial import TrainingSettings

PAGES = ("report.html", "results.csv")
FILES = (*PAGES, "results.json")
OF_PAGE = ("data", "made_by", "options")  # of the run, what stands elsewhere on the page
LEAST_WIDTH = 60  # of a table in the terminal
TICKS = 5  # about so many on an axis
MARGIN = 0.04  # of the axis, at both ends
HEIGHT, STEP, LEVELS = 36, 5, 5  # of a line; dots stand at five heights, so that equal ones are seen


def page(results: Comparison) -> str:
    """The page: one file without a request."""
    return render(
        "comparison/report.html.j2",
        heading=heading(results),
        answer=results.answer,
        forests=list(forests(results)),
        data=_data(results.run.get("data")),
        notes=notes(results),
        tables=[table(results), costs(results)],
        run=run_lines({name: value for name, value in results.run.items() if name not in OF_PAGE}),
        script=script("reports/tables.js"),
    )


def text(results: Comparison, width: int = WIDTH) -> str:
    """What a terminal shows, which ends with the answer; the table is never narrower than its numbers."""
    written = partial(fill, width=width, break_long_words=False, break_on_hyphens=False)
    answer = results.answer
    code = [f"  {line}" for line in answer["code"].splitlines()]
    told = [*map(written, notes(results)), "", written(answer["do"]), *code, written(answer["sure"])]
    head = as_text([heading(results), terminal_table(table(results))], max(width, LEAST_WIDTH))
    return "\n".join([head, *told])


def save(results: Comparison, folder: Path, files: Collection[str] = FILES) -> None:
    """Write the page, the csv and, last, the JSON, or some of them; nothing is written over a file of somebody else."""
    contents = {
        "report.html": page(results).encode(),
        "results.csv": results.as_csv(),
        "results.json": results.as_json().encode(),
    }
    claim(folder, files)
    with pages_of(folder):
        for name in files:
            write_atomic(folder / name, contents[name])


def heading(results: Comparison) -> str:
    """What was compared, in a few words."""
    data = results.run.get("data")
    where = f" on {data['name']}" if isinstance(data, Mapping) and "name" in data else ""
    return f"Does it pay to drop edges{where}?"


def notes(results: Comparison) -> list[str]:
    """What else must be said, a sentence each."""
    told = family(results) if results.replicates >= LEAST else []
    yardstick = results.yardstick
    facts = {
        "yardstick": yardstick,
        "no_claim": bool(told) and yardstick is not None and not yardstick.difference["low"] > 0,
        "left_out": results.run.get("left_out", {}),
        "cheaper": results.cheaper,
        "fallen": fallen(results),
        "failed": failed(results),
        "unbeaten": {row.candidate: names for row in told if (names := unbeaten(row))},
        "undecided": {row.candidate: one.needed for row in told if (one := row.against[ORIGINAL]).needed},
        "claims": len(family(results)),
        "margin": results.margin,
        "replicates": results.replicates,
        "fixed": results.run.get("split") == "fixed",
        "whole": results.run.get("rungs") is False,
    }
    lines = render("comparison/words.txt.j2", part="notes", verdict=None, **facts).splitlines()
    return [line.strip() for line in lines if line.strip()]


def table(results: Comparison) -> Table:
    """Every candidate: its score, the difference from not dropping, the verdict, and the share of edges it keeps."""
    columns = ("candidate", "test\n(%)", "difference\n(points)", "verdict", "kept\n(%)")
    return Table("", columns, [_cells(row) for row in results.rows], left=(0, 3))


def _cells(row: Row) -> tuple[str, ...]:
    one = row.against.get(ORIGINAL)
    return (
        row.candidate,
        plus_minus(percent(row.mean), row.low, row.high),
        NOTHING if one is None else plus_minus(points(one.difference), one.low, one.high),
        NOTHING if one is None else one.word,
        percent(row.kept_share, 0),
    )


def costs(results: Comparison) -> Table:
    """What the chosen setting of every candidate takes, per epoch and in all, and against not dropping."""
    run, cells = results.run, list[tuple[str, ...]]()
    if run.get("task") == "run":
        for row in results.rows:
            cells.append((row.candidate, seconds((row.seconds_per_epoch or {}).get("train"))))
        return Table("Costs of the chosen settings", ("candidate", "one run"), cells)
    whole = results.row(ORIGINAL)
    told = TrainingSettings(epochs=run.get("epochs", 400), keep=run.get("keep", "measure"))
    for row in results.rows:
        training = told.shortened(Candidate.parse(row.candidate).epochs)
        cells.append(_costs(row.candidate, row.seconds_per_epoch, row.peak_bytes, whole, training))
        if (before := row.while_dropping) is not None:
            cells.append(_costs("… before its finish", before, before["peak_bytes"], whole))
    columns = ("candidate", "training\nper epoch", "less\ntime", "peak\nmemory", "less\nmemory", "evaluation", "in all")
    return Table("Costs of the chosen settings", columns, cells)


def _costs(
    name: str, spent: Plain | None, size: int | None, whole: Row, training: TrainingSettings | None = None
) -> tuple[str, ...]:
    """The cells of one line; without a ``training``, of some of its epochs."""
    train, evaluate = (None if spent is None else spent.get(part) for part in ("train", "evaluate"))
    reference = None if whole.seconds_per_epoch is None else whole.seconds_per_epoch["train"]
    everything = None
    if training is not None and train is not None and evaluate is not None:
        everything = training.epochs * train + sum(map(training.evaluates, range(training.epochs))) * evaluate
    less = [known / own if known and own else None for known, own in ((reference, train), (whole.peak_bytes, size))]
    return (
        *(name, seconds(train), factor(less[0]), memory(size), factor(less[1])),
        *(seconds(evaluate), seconds(everything)),
    )


def _data(data: object) -> list[tuple[str, str]]:
    if not isinstance(data, Mapping):
        return []
    return [(str(name).replace("_", " "), shown(value)) for name, value in data.items() if name != "name"]


# -- forest plots ----------------------------------------------------------------------------------------


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


def forests(results: Comparison) -> Iterable[dict[str, Any]]:
    """The differences from not dropping, those of each candidate from its controls, and all test scores."""
    pairs = [(row.candidate, ORIGINAL, row.candidate) for row in family(results)]
    if pairs:
        yield _differences(results, "Differences from not dropping", pairs)
    for row in results.rows:
        controls = [(row.candidate, name, f"minus {name}") for name in row.against if name != ORIGINAL]
        if controls:
            yield _differences(results, f"{row.candidate} and its controls", controls)
    everyone: list[Any] = [*results.rows, *([] if results.yardstick is None else [results.yardstick])]
    axis = Axis.over(100 * value for one in everyone for value in (one.low, one.mean, one.high, *_tests(one).values()))
    lines = [_line(one.candidate, _tests(one), (one.low, one.mean, one.high), axis, percent) for one in everyone]
    middle = results.row(ORIGINAL).mean
    rule = axis.at(100 * middle) if math.isfinite(middle) else ""
    yield _forest("Test scores", "%", axis, lines, rule)


def _tests(one: Any) -> dict[int, float]:
    """The test score of every replicate, by its number; of the yardstick none are known."""
    return {each.number: each.test for each in getattr(one, "replicates", ()) if not math.isnan(each.test)}


def _differences(results: Comparison, title: str, pairs: Sequence[tuple[str, str, str]]) -> dict[str, Any]:
    """A line for each pair, by the name that it has there; its scale holds every replicate, 0 and the margin."""
    margin = 100 * results.margin
    drawn, values = [], [0.0, -margin, margin]
    for candidate, reference, name in pairs:
        row, others = results.row(candidate), _tests(results.row(reference))
        gaps = {number: test - others[number] for number, test in _tests(row).items() if number in others}
        one = row.against[reference]
        said = f"{candidate} minus {reference}: {points(one.difference)} points"
        said += f", interval {interval(one.low, one.high)}, {one.word}"
        values += [100 * value for value in (*gaps.values(), one.low, one.high)]
        drawn.append((name, gaps, (one.low, one.difference, one.high), one.word, said))
    axis = Axis.over(values)
    lines = [_line(name, gaps, ends, axis, points, word, said) for name, gaps, ends, word, said in drawn]
    band = axis.at(-margin), axis.at(margin)
    return _forest(title, "points", axis, lines, axis.at(0.0), band)


def _forest(
    title: str, unit: str, axis: Axis, lines: Sequence[Mapping[str, Any]], rule: str, band: tuple[str, ...] = ()
) -> dict[str, Any]:
    """A forest plot: ``rule`` is the place of a line across it, a ``band`` lies within the margin."""
    return {"title": title, "unit": unit, "axis": axis, "lines": lines, "rule": rule, "band": band, "height": HEIGHT}


def _line(
    name: str,
    values: Mapping[int, float],
    ends: tuple[float, float, float],
    axis: Axis,
    words: Callable[[float], str],
    word: str = "",
    said: str = "",
) -> dict[str, Any]:
    """A name, a dot per replicate, the mean on its interval, and what is written beside it."""
    low, middle, high = ends
    number = plus_minus(words(middle), low, high)
    dots = [
        (axis.at(100 * value), HEIGHT // 2 + STEP * ((2 * place) % LEVELS - LEVELS // 2))
        for place, value in values.items()
    ]
    places = [axis.at(100 * value) for value in ends] if math.isfinite(middle) else None
    said = said or f"{name}: {number}"
    return {"name": name, "dots": dots, "ends": places, "number": number, "word": word, "said": said}
