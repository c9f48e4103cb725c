"""A comparison as people read it: an object, a page, a text for the terminal, and the files of its folder."""

from __future__ import annotations

import html
import os
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tadropedge._support.atomic import write_atomic
from tadropedge._support.checks import check_path
from tadropedge._support.folder import claim
from tadropedge.lab.comparison.advice import answer, failed, fallen, family, unbeaten
from tadropedge.lab.comparison.figures import differences, scores
from tadropedge.lab.comparison.results import ORIGINAL, Results, Row
from tadropedge.lab.comparison.statistics import LEAST
from tadropedge.lab.reports.label import run_lines
from tadropedge.lab.reports.render import pages_of, render, script
from tadropedge.lab.reports.tables import WIDTH, Table, as_text, terminal_table
from tadropedge.lab.reports.words import NOTHING, memory, percent, plus_minus, points, seconds, shown

PAGES = ("report.html", "results.csv")
FILES = (*PAGES, "results.json")
OF_PAGE = ("data", "made_by", "options")  # of the run, what stands elsewhere on the page
LEAST_WIDTH = 60  # of a table in the terminal


@dataclass(frozen=True, repr=False)
class Comparison:
    """Results that print as the text of the command line, and show their page in a notebook."""

    results: Results

    @property
    def rows(self) -> tuple[Row, ...]:
        """A row for each candidate, ``original`` first, controls last."""
        return self.results.rows

    def row(self, candidate: str) -> Row:
        """The row of a candidate, by its printed form."""
        return self.results.row(candidate)

    @property
    def answer(self) -> Mapping[str, str]:
        """What to do, the code that does it, and how sure that is: ``do``, ``code``, ``sure``."""
        return self.results.answer

    @property
    def page(self) -> str:
        """The page as one file of HTML that makes no request."""
        return page(self.results)

    def as_dict(self) -> dict[str, Any]:
        """Plain values, as ``results.json`` has them."""
        return self.results.as_dict()

    def labelled(self, **run: Any) -> Comparison:
        """The same with more in its label: a ``command``, or the ``source`` that ``tadropedge train`` reads."""
        results = replace(self.results, run={**self.results.run, **run})
        return Comparison(replace(results, answer=answer(results)))

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Write ``report.html``, ``results.csv`` and ``results.json`` into a folder."""
        save(self.results, check_path("folder", folder))

    def __str__(self) -> str:
        return text(self.results)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        """The page in a frame of its own, so that its style is not the notebook's."""
        return (
            f'<iframe srcdoc="{html.escape(self.page)}" sandbox="allow-scripts" width="100%" height="700" '
            'style="border:0" title="comparison"></iframe>'
        )


def page(results: Results) -> str:
    """The page: one file without a request."""
    return render(
        "comparison/report.html.j2",
        heading=heading(results),
        answer=results.answer,
        forests=[*differences(results), scores(results)],
        data=_data(results.run.get("data")),
        notes=notes(results),
        tables=[table(results), costs(results), settings(results)],
        run=run_lines({name: value for name, value in results.run.items() if name not in OF_PAGE}),
        script=script("reports/tables.js"),
    )


def text(results: Results, width: int = WIDTH) -> str:
    """What a terminal shows, which ends with the answer; the table is never narrower than its numbers."""
    told = render("comparison/report.txt.j2", answer=results.answer, notes=notes(results), width=width)
    return f"{as_text([heading(results), terminal_table(table(results))], max(width, LEAST_WIDTH))}\n{told}".rstrip()


def save(results: Results, folder: Path, files: Collection[str] = FILES) -> None:
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


def heading(results: Results) -> str:
    """What was compared, in a few words."""
    data = results.run.get("data")
    where = f" on {data['name']}" if isinstance(data, Mapping) and "name" in data else ""
    return f"Does it pay to drop edges{where}?"


def notes(results: Results) -> dict[str, Any]:
    """What else must be said, as facts; ``notes.j2`` has the sentences."""
    told = family(results) if results.replicates >= LEAST else []
    yardstick = results.yardstick
    return {
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


def table(results: Results) -> Table:
    """Every candidate: its score, the difference from not dropping, the verdict, and the share of edges it keeps."""
    columns = ("candidate", "test\n(%)", "difference\n(points)", "verdict", "kept\n(%)")
    return Table("", columns, [_cells(row) for row in results.rows], left=(0, 3))


def _cells(row: Row) -> tuple[str, ...]:
    one = row.against.get(ORIGINAL)
    known = [replicate.kept_share for replicate in row.replicates if replicate.kept_share is not None]
    return (
        row.candidate,
        plus_minus(percent(row.mean), *_ends(row)),
        NOTHING if one is None else plus_minus(points(one.difference), *_ends(one)),
        NOTHING if one is None else one.word,
        percent(sum(known) / len(known), 0) if known else NOTHING,
    )


def _ends(one: Any) -> tuple[float | None, float | None]:
    """The ends of an interval that has any."""
    return (one.low, one.high) if abs(one.low) < 1e9 and abs(one.high) < 1e9 else (None, None)


def costs(results: Results) -> Table:
    """What the chosen setting of every candidate takes."""
    cells = []
    for row in results.rows:
        spent = row.seconds_per_epoch or {}
        cells.append(
            (row.candidate, seconds(spent.get("train")), seconds(spent.get("evaluate")), memory(row.peak_bytes))
        )
    columns = ("candidate", "training\nper epoch", "evaluation", "peak memory")
    if results.run.get("task") == "run":
        columns = ("candidate", "one run", "evaluation", "peak memory")
    return Table("Costs of the chosen settings", columns, cells)


def settings(results: Results) -> Table:
    """The settings that validation chose in every replicate."""
    names = dict.fromkeys(name for row in results.rows for one in row.replicates for name in one.chosen)
    cells = [
        (
            *(row.candidate, str(one.number), percent(one.validation), percent(one.test)),
            *(shown(one.chosen.get(name)) for name in names),
        )
        for row in results.rows
        for one in row.replicates
    ]
    columns = ("candidate", "replicate", "validation\n(%)", "test\n(%)", *names)
    return Table("Settings chosen by validation, replicate by replicate", columns, cells)


def _data(data: object) -> list[tuple[str, str]]:
    if not isinstance(data, Mapping):
        return []
    return [(str(name).replace("_", " "), shown(value)) for name, value in data.items() if name != "name"]
