"""The folder of a map: ``results.json``, ``report.html``, ``README.md``, ``map.csv`` and a picture of the heat map."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tadropedge._old.atomic import write_atomic
from tadropedge._old.publish.page import render, run_lines, script
from tadropedge._old.publish.tables import Table, csv_bytes, markdown
from tadropedge._old.publish.wording import NOTHING, counted, percent, plus_minus, points, shown, span
from tadropedge._old.regimes.across import Across, across, means_table, methods_table
from tadropedge._old.regimes.figures import heat_map
from tadropedge._old.regimes.goals import told_goals, width_words
from tadropedge._old.regimes.results import JUDGED, KINDS, REFERENCES, MapRow, RegimeMap, write_map
from tadropedge._old.regimes.statements import statements
from tadropedge._old.regimes.summary import (
    AUTO,
    DROPEDGE,
    GAIN,
    Condition,
    Finding,
    MapChoice,
    capital,
    choice,
    condition_words,
    conditions,
    datasets,
    difference,
    findings,
    methods,
    record,
    tally,
    under,
)
from tadropedge._old.regimes.tiles import LEGEND, MARK, MARKED, tiles

FILES = ("results.json", "map.csv", "README.md", "report.html", "figures/")  # what write_all writes
TITLE = "When does edge dropping help?"
AGAINST = {  # the references of a test, as a reader is told
    "none": "not dropping",
    "dropedge": "DropEdge tuned",
    "budget": "DropEdge at the same budget",
    "degree": "the degree score",
}
SHORT = {
    "none": "not\ndropping",
    "dropedge": "DropEdge\ntuned",
    "budget": "DropEdge,\nsame budget",
    "degree": "degree\nscore",
}
WHERE = "studies"  # the member of a run that says where the trials of a cell are
COLUMNS = (
    *("dataset", "kind", "value", "method", "state", "mean", "low", "high", "seeds", "kept_share", "least_share"),
    *("trial", "epoch_seconds"),
)
TESTED = ("difference", "low", "high", "p_value", "corrected", "outcome", "settled_half")
MEANS = (
    "Differences in points, each dataset one observation, with the luck of its own choices in it; ± is half a 95 % "
    "interval. ▲ is surely better, ▼ surely worse: exact sign flips, false discovery rate 5 % over all such tests. The "
    "method with the largest mean was picked by that mean, so it is a little too large."
)


def write_all(found: RegimeMap, folder: Path) -> Path:
    """Write every file of the folder, each in one step, ``results.json`` first; return the path of the page."""
    write_map(found, folder / "results.json")
    return write_pages(found, folder)


def write_pages(found: RegimeMap, folder: Path) -> Path:
    """Write what is made of ``results.json``; return the path of the page."""
    write_atomic(folder / "map.csv", map_csv(found))
    write_atomic(folder / "figures" / "map.png", heat_map(found))
    write_atomic(folder / "README.md", readme(found).encode())
    return write_atomic(folder / "report.html", page(found).encode())


def map_csv(found: RegimeMap) -> bytes:
    """The rows as a flat table without settings; what is not known stays empty."""
    columns = [*COLUMNS, *(f"{reference}_{name}" for reference in REFERENCES for name in TESTED)]
    return csv_bytes(columns, (list(_cells(row)) for row in found.rows))


def _cells(row: MapRow) -> Iterator[object]:
    yield from (getattr(row, name) for name in COLUMNS)
    for reference in REFERENCES:
        yield from (getattr(row.tests.get(reference), name, None) for name in TESTED)


@dataclass(frozen=True, kw_only=True)
class Section:
    """What the page says under one condition: who did best where, and every method of every dataset."""

    anchor: str
    title: str
    words: str
    best: Table
    means: Table
    every: Table
    keys: Sequence[str]


def page(found: RegimeMap) -> str:
    """``report.html`` as text: the map, the answers, the goals, a table per condition, the protocol, the run."""
    every, tests = findings(found), across(found)
    grid = tiles(found)
    steps = {one.step for _, line in grid.rows for one in line if one is not None}
    return render(
        "regimes/report.html.j2",
        heading=TITLE,
        opening=opening(found),
        grid=grid,
        legend={step: words for step, words in LEGEND.items() if step in steps},
        mark=(MARK, MARKED) if any(one.mark for _, line in grid.rows for one in line if one is not None) else None,
        decisions=decisions(found),
        means=means_table(found, tests),
        means_words=MEANS,
        statements=statements(found),
        goals=told_goals(found),
        widths=width_words(every),
        sections=[_section(found, every, tests, condition) for condition in conditions(found)],
        protocol=protocol_words(found),
        trials=trials_words(found),
        run=run_lines({name: value for name, value in found.run.items() if name != WHERE}),
        script=script("publish/tables.js", "regimes/report.js"),
    )


def opening(found: RegimeMap) -> str:
    """The map in three sentences."""
    every = findings(found)
    told, beside = tally(every), record(every, AUTO, "dropedge")
    across = f"{counted(len(datasets(found)), 'dataset')} under {counted(len(conditions(found)), 'condition')}"
    helped = f"Some edge dropping is surely better than not dropping in {told.gains} of {told.cells} cells"
    often = f", most often {told.often} (in {told.often_cells})" if told.often else ""
    lost = f"; in {told.losses} every method is surely worse" if told.losses else ""
    rest = told.cells - told.gains - told.losses
    return (
        f"{across}. {helped}{often}{lost}; in {rest} neither is so. A method is also surely "
        f"better than DropEdge in {counted(told.beyond, 'cell')}. Against DropEdge, auto is better in "
        f"{counted(beside.better, 'cell')}, undecided in {beside.undecided} and worse in {beside.worse}."
    )


def decisions(found: RegimeMap) -> Table:
    """What to use in each situation: one method for all datasets, and its record there."""
    rows = [decision(choice(found, condition)) for condition in conditions(found)]
    return Table("what to use", ("your situation", "use", "record", "median difference"), rows, left=(0, 1, 2))


def decision(made: MapChoice) -> tuple[str, str, str, str]:
    """The row of one situation: the method ("perhaps": it is better on less than half of the datasets) and its record.

    The last cell is the median of its differences over all datasets, those that it does not help included.
    """
    words, against = capital(condition_words(*made.condition)), AGAINST[made.reference]
    if made.method is None:
        use = "DropEdge: no score is better" if made.reference == "budget" else "no dropping: nothing is better"
        return words, use, f"0 of {made.record.cells} datasets better than {against}", NOTHING
    told = made.record
    lost = f", worse in {told.worse}" if told.worse else ""
    record_words = f"better than {against} in {told.better} of {told.cells} datasets{lost}"
    return words, made.method if made.often else f"perhaps {made.method}", record_words, f"{points(told.median)} points"


def _section(found: RegimeMap, every: Sequence[Finding], tests: Across, condition: Condition) -> Section:
    some, (kind, value) = under(every, *condition), condition
    title = condition_words(kind, value)
    told, auto = tally(some), record(some, AUTO)
    first = some[0].cell
    how = (
        f"{first.backbone} with {counted(first.layers, 'layer')}, {first.hidden} hidden features, {first.epochs} "
        f"epochs; {KINDS.get(kind, kind)}."
    )
    words = (
        f"{how} Dropping is better than not dropping in {told.gains} of {told.cells} cells; auto: {auto.words} "
        f"(against not dropping), {record(some, AUTO, 'dropedge').words} (against DropEdge)."
    )
    lines = [(one.cell.key, line) for one in some for line in _methods(one, methods(found))]
    columns = (
        *("dataset", "method", "test\n(%)", "kept\n(%)", *(f"against\n{words}" for words in SHORT.values())),
        *("trial", "epoch\n(ms)"),
    )
    return Section(
        anchor=anchor(kind, value),
        title=capital(title),
        words=words,
        best=Table(f"best methods, {title}", BEST, [_best(one) for one in some], left=(0, 1, 2)),
        means=methods_table(found, tests, condition),
        every=Table(f"every method, {title}", columns, [line for _, line in lines], left=(0, 1)),
        keys=[key for key, _ in lines],
    )


BEST = (
    *(
        "dataset",
        "found",
        "best method",
        "gain\n(points)",
        "against\nDropEdge",
        "auto\n(points)",
        "auto against\nDropEdge",
    ),
    *("homophily", "mean\ndegree", "labels\nper class", "splits"),
)
FOUND = {"gain": "better", "loss": "worse", "grey": "undecided", "unjudged": "not judged"}


def _best(one: Finding) -> tuple[str, ...]:
    """A dataset under one condition: the best method, where there is one, and auto."""
    row, data = one.best, one.cell.data
    gains = row is not None and one.state == GAIN
    tests = (row.tests["none"], one.test(row.method, DROPEDGE)) if row is not None and gains else (None, None)
    homophily = NOTHING if data.homophily is None else f"{data.homophily:.2f}"
    return (
        *(one.cell.dataset, FOUND[one.state], NOTHING if row is None else row.method, *map(difference, tests)),
        *(difference(one.test(AUTO, reference)) for reference in ("none", "dropedge")),
        *(homophily, f"{data.mean_degree:.1f}", f"{data.split[0] / max(data.classes, 1):.0f}", str(one.cell.seeds)),
    )


def _methods(one: Finding, order: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """Every method of a cell, those that could not be judged included."""
    for name in order:
        if name not in one.rows:
            continue
        row = one.rows[name]
        tests = [_tested(row, reference) for reference in AGAINST]
        if row.state != JUDGED:
            least = "" if row.least_share is None else f" (keeps at least {percent(row.least_share, 0)} %)"
            tests[0] = f"{row.state}{least}"
        mean = plus_minus(percent(row.mean), row.low, row.high)
        epoch = NOTHING if row.epoch_seconds is None else f"{1000 * row.epoch_seconds:.3g}"
        yield one.cell.dataset, name, mean, percent(row.kept_share, 0), *tests, shown(row.trial), epoch


def _tested(row: MapRow, reference: str) -> str:
    test = row.tests.get(reference)
    mark = {"better": " ▲", "worse": " ▼", "undecided": ""}
    return NOTHING if test is None else f"{difference(test)}{mark[test.outcome]}"


def anchor(kind: str, value: object) -> str:
    """The name of a section in an address.

    >>> anchor("noise", 0.25), anchor("base", None)
    ('noise-0.25', 'base')
    """
    return kind if value is None else f"{kind}-{value}"


def protocol_words(found: RegimeMap) -> str:
    """How every cell was tuned and judged."""
    cells = found.cells
    names = ("trials", "choose_splits", "seeds", "finalists", "final_splits")
    spans = {name: {getattr(cell, name) for cell in cells} for name in names}
    tests = sum(len(row.tests) for row in found.rows)
    if not cells:
        return ""
    return (
        f"Every method and reference was tuned for itself with {counted(spans['trials'], 'trial')} on "
        f"{counted(spans['choose_splits'], 'split')} of its cell{_finals(spans)}; validation chose. What was chosen "
        f"was then trained on {counted(spans['seeds'], 'fresh split')}, the same for all, so differences are paired, "
        "with 95 % intervals that include the luck of choosing settings. Better and worse are decided by the false "
        f"discovery rate over all {tests:,} tests of the map (Benjamini and Hochberg, 5 %): of what is called so, one "
        "in twenty may be neither. An interval stands for itself and is not corrected. One condition at a time is "
        "changed from the base setting. The best method of a cell has the largest mean of those that are surely better "
        "than not dropping: the largest of several gains is, on average, larger than its method would show on new "
        "data. All numbers of cells speak of these graphs under new seeds and splits, not of other graphs."
    )


def _finals(spans: Mapping[str, set[int]]) -> str:
    """How many of the trials were tried further."""
    if spans["finalists"] == {0}:
        return ""
    return f", its best {span(spans['finalists'] - {0})} on {span(spans['final_splits'] - {0})} more"


def trials_words(found: RegimeMap) -> str:
    """How to get from a number to the trials behind it."""
    where = found.run.get(WHERE)
    told = f" {where}" if isinstance(where, str) else ""
    return (
        "Every row of a table is a row of results.json (and of map.csv), found by its dataset, kind, value and method; "
        f"trial is the number of the chosen trial in the study of that method and cell.{told}"
    )


def readme(found: RegimeMap) -> str:
    """``README.md`` of the folder: the picture, what to use, the answers and the goals."""
    every, table, means = findings(found), decisions(found), means_table(found, across(found))
    command = shown(found.run.get("command")) if found.run.get("command") else "tadropedge regimes"
    lines = [
        f"# {TITLE}",
        "",
        opening(found),
        "",
        "![The best method of every cell](figures/map.png)",
        "",
        "The interactive map, every number and the settings: report.html, [results.json](results.json), "
        "[map.csv](map.csv).",
        "",
        "## What to use",
        "",
        *markdown(table.columns, table.rows, table.left),
        "",
        "One method for all datasets of a situation, chosen by its record in the same cells; on one dataset another "
        "may do better, see the map.",
        "",
        *(
            ["## In the mean over datasets", "", *markdown(means.columns, means.rows, means.left), ""]
            if means.rows
            else []
        ),
        *([MEANS, ""] if means.rows else []),
        "## What was found",
        "",
        *(f"* **{capital(one.name)}**: {one.words}" for one in statements(found)),
        "",
        *(["## Goals", ""] if told_goals(found) else []),
        *(f"* {'✔ reached' if one.reached else '✘ missed'}: {one.name}. {one.words}" for one in told_goals(found)),
        f"* {width_words(every)}",
        "",
        "## How",
        "",
        protocol_words(found),
        "",
        trials_words(found),
        "",
        "```sh",
        command,
        "```",
        "",
        *(f"* {name}: {value}" for name, value in run_lines(found.run) if name not in ("command", WHERE)),
    ]
    return "\n".join(lines).rstrip() + "\n"
