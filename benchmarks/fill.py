"""Tables in the docs: columns of the csv files of benchmarks, between two comments.

    <!-- table masks.csv: graph, edges, ours_ms, pyg_ms, ratio where graph=cora -->
    <!-- end -->

``python -m benchmarks fill`` fills them. ``python -m benchmarks check`` fails where a table is not as its file, or
where the source of a benchmark (not what it imports) has changed since then.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from benchmarks.frame import RESULTS, ROOT, digest, number_of, read, shown

MARK = re.compile(
    r"(?P<mark><!-- table (?P<file>[\w-]+\.csv): (?P<columns>[^\n]+?)(?: where (?P<where>[^\n]+?))? -->\n)"
    r"(?P<table>.*?)(?P<end><!-- end -->)",
    re.DOTALL,
)


def fill(root: Path = ROOT, *, check: bool = False) -> list[str]:
    """Write the tables of ``README.md`` and ``docs/`` that are not as their csv files; what is left to do, in lines.

    With ``check`` nothing is written, and each of these tables is such a line.
    """
    found = list(stale(root))
    for page in [root / "README.md", *sorted((root / "docs").rglob("*.md"))]:
        if not page.exists():
            continue
        text, name = page.read_text(encoding="utf-8"), page.relative_to(root)
        for mark in MARK.finditer(text):
            if not (root / RESULTS / mark["file"]).exists():
                command = f"python -m benchmarks.{_benchmark(mark['file'])}"
                found.append(f"{name} shows {mark['file']}, which is not there: run {command}")
        filled = MARK.sub(lambda mark, page=page: _filled(mark, page, root), text)
        if filled == text:
            continue
        if check:
            found.append(f"{name} has a table that is not as its csv file: run python -m benchmarks fill")
        else:
            page.write_text(filled, encoding="utf-8")
    return found


def stale(root: Path = ROOT) -> Iterator[str]:
    """A line for every csv file that another benchmark than that of today has measured."""
    for path in sorted((root / RESULTS).glob("*.csv")):
        name = _benchmark(path.name)
        source = root / "benchmarks" / f"{name}.py"
        if not source.exists():
            yield f"{path.relative_to(root)} belongs to no benchmark: remove it"
        elif read(path)[0].get("source") != digest(source):
            command = f"python -m benchmarks.{name} --only {path.stem.removesuffix('-cuda')}"
            command += " --device cuda" * path.stem.endswith("-cuda")
            yield f"{path.relative_to(root)} was measured by another benchmarks/{name}.py: run {command}"


def _benchmark(file: str) -> str:
    return file.partition(".")[0].partition("-")[0]


def _filled(mark: re.Match[str], page: Path, root: Path) -> str:
    """The text of a mark with its table and a link to the file."""
    path = root / RESULTS / mark["file"]
    if not path.exists():
        return mark[0]
    columns = [column.strip() for column in mark["columns"].split(",")]
    wanted = [part.strip().partition("=")[::2] for part in (mark["where"] or "").split(" and ") if part]
    rows = [row for row in read(path) if all(row[name] == value for name, value in wanted)]
    numbers = {column for column in columns if all(number_of(row[column]) is not None for row in rows if row[column])}
    lines = ["| " + " | ".join(column.replace("_", " ") for column in columns) + " |"]
    lines.append("|" + "|".join("---:" if column in numbers else "---" for column in columns) + "|")
    lines += ["| " + " | ".join(shown(row[column]) for column in columns) + " |" for row in rows]
    link = Path(os.path.relpath(path, page.parent)).as_posix()
    command = f"python -m benchmarks.{_benchmark(mark['file'])}"
    lines += ["", f"From [{mark['file']}]({link}), by `{command}`."]
    return mark["mark"] + "\n".join(lines) + "\n" + mark["end"]
