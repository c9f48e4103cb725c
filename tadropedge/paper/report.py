"""``report.html`` of the paper's items: measured beside printed, a verdict on every claim, the pictures, the runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tadropedge.files import write_atomic
from tadropedge.paper.document import Document, Entry, flattened
from tadropedge.paper.item import STATUSES, Table, Verdict
from tadropedge.paper.recipe import load_recipe
from tadropedge.paper.registry import item_module
from tadropedge.paper.rows import Row
from tadropedge.publish.page import embedded, run_lines
from tadropedge.publish.page import render as render_page
from tadropedge.publish.wording import shown

CLASSES = dict(zip(STATUSES, ("holds", "fails", "impossible"), strict=True))
LONGEST = 60  # rows of a table that is not folded away


def write_page(document: Document, folder: Path) -> Path:
    """Write ``report.html`` beside ``figures/`` in one step and return its path."""
    return write_atomic(folder / "report.html", render(document, folder / "figures").encode())


def render(document: Document, figures: Path) -> str:
    """The page as text; a picture that is not in ``figures`` is named instead."""
    verdicts = [verdict for entry in document.values() for verdict in entry.verdicts]
    return render_page(
        "paper/report.html.j2",
        heading="The paper, reproduced",
        counts=_counts(verdicts),
        quick=[name for name, entry in document.items() if entry.run.get("quick")],
        items=[_item(name, entry, figures) for name, entry in document.items()],
        longest=LONGEST,
    )


def _item(name: str, entry: Entry, figures: Path) -> dict[str, Any]:
    recipe = load_recipe(name, entry.run["preset"])
    return {
        "name": name,
        "title": recipe.title,
        "claim": recipe.claim,
        "cells": entry.run.get("cells", ""),
        "complete": entry.complete,
        "counts": [counted for counted in _counts(entry.verdicts) if counted[-1]],
        "verdicts": [(v.claim, v.status, CLASSES[v.status], v.reason) for v in entry.verdicts],
        "pictures": [(path.name, embedded(path)) for path in (figures / file for file in entry.figures)],
        "tables": _tables(name, entry.rows),
        "notes": entry.notes,
        "seconds_of": _seconds(entry.run.get("seconds_of", {})),
        "run": run_lines({key: value for key, value in entry.run.items() if key not in ("seconds_of", "quick")}),
    }


def _counts(verdicts: Sequence[Verdict]) -> list[tuple[str, str, int]]:
    """How many claims have each status, with its class on the page."""
    return [(status, CLASSES[status], sum(v.status == status for v in verdicts)) for status in STATUSES]


def _tables(name: str, rows: Sequence[Row]) -> list[Table]:
    """The tables of an item as its module shows them, else its rows as they are."""
    if not rows:
        return []
    module = item_module(name)
    if hasattr(module, "tables"):
        made: list[Table] = module.tables(rows)
        return made
    flat = [flattened(row) for row in rows]
    # A curve or a histogram is for the picture and the csv.
    columns = list(dict.fromkeys(key for row in flat for key, value in row.items() if len(str(value)) <= LONGEST))
    return [Table("all rows", columns, [[shown(row.get(key)) for key in columns] for row in flat])]


def _seconds(parts: Mapping[str, Mapping[str, float]]) -> Table | None:
    """Seconds by part and phase, and their sums."""
    if not parts:
        return None
    phases = list(dict.fromkeys(phase for table in parts.values() for phase in table))
    rows = [[part, *(f"{table.get(phase, 0.0):.1f}" for phase in phases), f"{sum(table.values()):.1f}"]
            for part, table in parts.items()]  # fmt: skip
    sums = [sum(table.get(phase, 0.0) for table in parts.values()) for phase in phases]
    rows.append(["all", *(f"{value:.1f}" for value in sums), f"{sum(sums):.1f}"])
    return Table("seconds", ["part", *phases, "together"], rows)
