"""What every table of README and docs is made with: a file of results, its rows as cells, and where they come from."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import Any

from tadropedge.publish.tables import markdown

ROOT = Path(__file__).resolve().parent.parent


def load(name: str) -> dict[str, Any]:
    """The content of a results file."""
    content: dict[str, Any] = json.loads((ROOT / "results" / "benchmarks" / name).read_text())
    return content


def source(name: str) -> str:
    """Where a table's numbers come from."""
    content = load(name)
    run, rows = content["run"], next(iter(content.values()))
    commits = ", ".join(dict.fromkeys(row.get("commit", run["commit"]) for row in rows))
    versions = f"torch {run['versions']['torch']}, torch-geometric {run['versions']['torch-geometric']}"
    return f"[{name}](results/benchmarks/{name}): commit {commits}, {run['machine']}, {versions}"


def from_docs(name: str) -> str:
    """The same, for a page in docs/."""
    return source(name).replace("(results/", "(../results/")


def body(name: str, *cells: str) -> list[list[str]]:
    """The cells of each row of a results file; its rows stand first in it."""
    return [[cell.format(**row) for cell in cells] for row in next(iter(load(name).values()))]


def page(columns: Sequence[str], rows: Sequence[Sequence[str]], left: Collection[int], notes: Iterable[str]) -> str:
    """A table and where its numbers come from."""
    return "\n".join([*markdown(columns, rows, left), "", *(f"* {note}" for note in notes)])


NOTHING_YET = "Not measured yet: the command above makes the numbers."


def present(*names: str) -> list[str]:
    """Those of the results files that are there; a benchmark for a GPU may not have been run yet."""
    return [name for name in names if (ROOT / "results" / "benchmarks" / name).exists()]
