"""Pages: ``verdicts.csv``, ``README.md``, ``report.html`` and the figures, from rows and the words of claims."""

from __future__ import annotations

import base64
import io
import json
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd
from jinja2 import Environment, FileSystemLoader, StrictUndefined, select_autoescape

from experiments.claims import IMPOSSIBLE, KINDS, NOT, PARTLY, REPRODUCED, STATUSES, tally, verdict

if TYPE_CHECKING:
    from experiments.frame import Item

MARKS = {REPRODUCED: "✔", PARTLY: "◐", NOT: "✘", IMPOSSIBLE: "⚠"}
FIGURES = "figures"


def write_pages(
    found: Mapping[str, tuple[Item, pd.DataFrame]], folder: Path, words: Path, *, draw: bool = True
) -> None:
    """Judge the rows of items, draw their figures and write the pages into a folder; the html only with its figures."""
    told = tomllib.loads(words.read_text(encoding="utf-8"))
    runs = folder / "run.json"
    about = json.loads(runs.read_text(encoding="utf-8")) if runs.exists() else {}
    verdicts, items = [], []
    for name, (one, rows) in found.items():
        mine = []
        for claim in one.claims(rows):
            if claim.cases.empty:  # a small preset asks less
                continue
            columns, ticks = claim.table()
            mine.append({**verdict(name, claim, told[name][claim.name]), "columns": columns, "ticks": ticks})
        verdicts += mine
        items.append({"name": name, "where": one.where, "verdicts": mine, "figure": one.figure is not None,
                      **_run(about, name, rows)})  # fmt: skip
        if draw and one.figure is not None:
            picture = io.BytesIO()
            one.figure(rows).savefig(picture, format="png")
            (folder / FIGURES).mkdir(parents=True, exist_ok=True)
            _write(folder / FIGURES / f"{name}.png", picture.getvalue())
            items[-1]["picture"] = base64.b64encode(picture.getvalue()).decode()
    table = [{key: value for key, value in one.items() if key not in ("columns", "ticks")} for one in verdicts]
    _write(folder / "verdicts.csv", pd.DataFrame(table).to_csv(index=False).encode())
    parts = {"items": items, "verdicts": verdicts, "kinds": KINDS, "marks": MARKS, "statuses": STATUSES}
    for page in ("README.md", "report.html") if draw else ("README.md",):
        filled = _environment().get_template(f"{page}.j2").render(**parts, tally=tally(verdicts))
        _write(folder / page, filled.encode())


def _run(about: Mapping[str, Mapping[str, str]], name: str, rows: pd.DataFrame) -> dict[str, str]:
    """Who measured the rows of an item, and how."""
    known = {part: about.get(name, {}).get(part, "") for part in ("protocol", "preset", "seed", "machine")}
    commits = {one for told in rows["commit"].dropna().astype(str) for one in told.split(", ")}
    return {**known, "commit": ", ".join(sorted(commits))}


def _environment() -> Environment:
    made = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=select_autoescape(("html.j2",)),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters["cell"] = lambda text: str(text).replace("|", "\\|").replace("\n", " ")
    return made


def _write(path: Path, content: bytes) -> None:
    beside = path.with_name(f"{path.name}.tmp")
    beside.write_bytes(content)
    beside.replace(path)
