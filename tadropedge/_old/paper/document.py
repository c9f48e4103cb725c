"""``results.json`` of the paper's items: ``{"table1": [rows], ..., "verdicts": {...}, "notes": {...}, "run": {...}}``.

Rows, verdicts and notes depend on data and settings alone; what depends on the run (seconds, commit, machine) sits
apart under ``"run"``. Reading and writing check every field and name the wrong one by its place.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from pathlib import Path
from typing import Any, Literal

from tadropedge._old.atomic import write_atomic
from tadropedge._old.errors import TadropedgeError, show
from tadropedge._old.paper.item import Verdict
from tadropedge._old.paper.registry import ITEMS, item_module
from tadropedge._old.paper.rows import Row, table
from tadropedge._old.publish.tables import csv_bytes
from tadropedge._old.typed import Count, build, plain, read_json, write_json


@dataclass(frozen=True)
class Entry:
    """What one item gave, as it stands on disk; ``figures`` are file names in ``figures/``."""

    rows: Sequence[Row]
    verdicts: Sequence[Verdict]
    notes: Sequence[str] = ()
    figures: Sequence[str] = ()
    _: KW_ONLY
    run: Mapping[str, Any] = field(default_factory=dict)

    @property
    def complete(self) -> bool:
        """Whether no part of the item is missing."""
        return bool(self.run.get("complete", True))


@dataclass(frozen=True, kw_only=True)
class RunInfo:
    """The schema of ``Entry.run``."""

    preset: Literal["quick", "paper"]
    seconds: float
    seed: Count
    fingerprint: str
    commit: str
    machine: str
    device: str
    command: str
    versions: dict[str, str]
    complete: bool = True
    quick: bool = False
    cells: str | None = None
    settings: str | None = None
    seconds_of: dict[str, dict[str, float]] = field(default_factory=dict)
    trained_on: tuple[str, ...] = ()
    check: str | None = None  # what a sample that was trained or measured again says


Document = dict[str, Entry]
SECTIONS: dict[str, Any] = {
    "verdicts": dict[str, tuple[Verdict, ...]],
    "notes": dict[str, tuple[str, ...]],
    "figures": dict[str, tuple[str, ...]],
    "run": dict[str, RunInfo],
}


def as_plain(document: Document) -> dict[str, Any]:
    """A document as JSON values, items in the order of the registry."""
    names = [name for name in ITEMS if name in document]
    return {
        **{name: plain(table(document[name].rows)) for name in names},
        **{part: {name: plain(getattr(document[name], part)) for name in names} for part in SECTIONS},
    }


def write_document(document: Document, path: Path) -> Path:
    """Write ``results.json`` in one step."""
    content = as_plain(document)
    parse_document(content, path.name)
    return write_json(content, path)


def read_document(path: Path) -> Document:
    """Read and check ``results.json``."""
    return parse_document(read_json(path), path.name)


def parse_document(content: object, name: str = "results") -> Document:
    """Check a document read from JSON; ``name`` starts every message.

    >>> parse_document({"tabel1": []})
    Traceback (most recent call last):
    tadropedge._old.errors.TadropedgeError: results: the document lacks 'verdicts', found tabel1
    """
    top = build(dict[str, Any], content, f"{name}: the document")
    for part in SECTIONS:
        if part not in top:
            raise TadropedgeError(f"{name}: the document lacks {part!r}, found {', '.join(top) or 'nothing'}")
    runs = top["run"]
    parts = {part: build(kind, top.pop(part), f"{name}: {part}") for part, kind in SECTIONS.items()}
    for item in top:
        if item not in ITEMS:
            raise TadropedgeError(f"{name}: the document has an unknown member {item!r}; items are {', '.join(ITEMS)}")
    for part, there in parts.items():
        for item in [*top, *there]:
            if item not in there:
                raise TadropedgeError(f"{name}: {part} lacks {item!r}, found {', '.join(there) or 'nothing'}")
            if item not in top:
                raise TadropedgeError(f"{name}: {part}.{item} belongs to no item, found {', '.join(top) or 'none'}")
    for item, files in parts["figures"].items():
        for place, file in enumerate(files):
            # A page shows what lies in figures/ and nothing else.
            if file in (".", "..") or any(mark in file for mark in "/\\\0"):
                where = f"{name}: figures.{item}[{place}]"
                raise TadropedgeError(f"{where} must be the name of a file without a folder, got {show(file)}")
    return {
        item: Entry(
            _rows(item, rows, f"{name}: {item}"),
            parts["verdicts"][item],
            parts["notes"][item],
            parts["figures"][item],
            run=runs[item],
        )
        for item, rows in top.items()
    }


def _rows(item: str, value: object, where: str) -> tuple[Row, ...]:
    """The rows of an item, each of the first of its kinds that fits."""
    first, *others = item_module(item).ROWS
    rows = []
    for place, columns in enumerate(build(list[dict[str, Any]], value, where)):
        for kind in others:
            try:
                rows.append(kind.of(columns, f"{where}[{place}]"))
                break
            except TadropedgeError:
                continue
        else:
            rows.append(first.of(columns, f"{where}[{place}]"))
    return tuple(rows)


def write_rows(rows: Sequence[Row], path: Path) -> Path:
    """Write rows as a flat table; nested names are joined by an underscore, lists stand as JSON."""
    flat = [flattened(row) for row in plain(table(rows))]
    columns = list(dict.fromkeys(name for row in flat for name in row))
    return write_atomic(path, csv_bytes(columns, ([row.get(name) for name in columns] for row in flat)))


def flattened(row: Row | Mapping[str, Any], before: str = "") -> dict[str, Any]:
    """A row without tables inside.

    >>> flattened({"method": "cdf", "honest": {"mean": 0.87, "seeds": 20}, "sizes": [1, 2]})
    {'method': 'cdf', 'honest_mean': 0.87, 'honest_seeds': 20, 'sizes': '[1, 2]'}
    """
    flat: dict[str, Any] = {}
    for name, value in (plain(row.columns()) if isinstance(row, Row) else row).items():
        if isinstance(value, Mapping):
            flat |= flattened(value, f"{before}{name}_")
        else:
            flat[f"{before}{name}"] = json.dumps(value) if isinstance(value, list) else value
    return flat
