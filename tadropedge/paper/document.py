"""``results.json`` of the paper's items: ``{"table1": [rows], ..., "verdicts": {...}, "notes": {...}, "run": {...}}``.

Rows, verdicts and notes depend on data and settings alone; what depends on the run (seconds, commit, machine) sits
apart under ``"run"``. Reading checks every field that the program looks at and names the wrong one by its place;
writing checks in the same way.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from tadropedge.comparison.checks import each, flag, mapping, members_of, number, short, text, whole
from tadropedge.comparison.results import plain, read_json, write_json
from tadropedge.errors import TadropedgeError, lookup
from tadropedge.files import write_atomic
from tadropedge.paper.item import Verdict
from tadropedge.paper.recipe import PRESETS
from tadropedge.paper.registry import ITEMS, item_module
from tadropedge.paper.stopwatch import seconds_by_part

SECTIONS = ("verdicts", "notes", "figures", "run")
RUN_TEXTS = ("preset", "fingerprint", "commit", "machine", "device", "command")
RUN_OPTIONAL: dict[str, Callable[[object, str], object]] = {
    "complete": flag,
    "quick": flag,
    "cells": text,
    "seconds_of": seconds_by_part,
    "trained_on": partial(each, text),
}


@dataclass(frozen=True)
class Entry:
    """What one item gave, as it stands on disk; ``figures`` are file names in ``figures/``."""

    rows: Sequence[Mapping[str, Any]]
    verdicts: Sequence[Verdict]
    notes: Sequence[str] = ()
    figures: Sequence[str] = ()
    run: Mapping[str, Any] = field(default_factory=dict)

    @property
    def complete(self) -> bool:
        """Whether no part of the item is missing."""
        return bool(self.run.get("complete", True))


Document = dict[str, Entry]


def as_plain(document: Document) -> dict[str, Any]:
    """A document as JSON values, items in the order of the registry."""
    names = [name for name in ITEMS if name in document]
    return {
        **{name: plain(list(document[name].rows)) for name in names},
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
    tadropedge.errors.TadropedgeError: results: the document lacks 'figures', found tabel1
    """
    top = members_of(content, f"{name}: the document", set(SECTIONS), ITEMS)
    parts = {part: mapping(top[part], f"{name}: {part}") for part in SECTIONS}
    items = [item for item in top if item not in SECTIONS]
    for part, table in parts.items():
        for item in table:
            if item not in items:
                raise TadropedgeError(f"{name}: {part}.{item} belongs to no item, found {', '.join(items) or 'none'}")
    return {
        item: Entry(
            _rows(item, top[item], f"{name}: {item}"),
            each(_verdict, _part(parts, "verdicts", item, name), f"{name}: verdicts.{item}"),
            each(text, _part(parts, "notes", item, name), f"{name}: notes.{item}"),
            each(_file, _part(parts, "figures", item, name), f"{name}: figures.{item}"),
            _run(_part(parts, "run", item, name), f"{name}: run.{item}"),
        )
        for item in items
    }


def _part(parts: Mapping[str, Mapping[str, object]], part: str, item: str, name: str) -> object:
    if item not in parts[part]:
        raise TadropedgeError(f"{name}: {part} lacks {item!r}, found {', '.join(parts[part]) or 'nothing'}")
    return parts[part][item]


def _rows(item: str, value: object, where: str) -> tuple[dict[str, Any], ...]:
    """Rows that the item can show; the first one that it cannot is named."""
    rows = each(mapping, value, where)
    tables = getattr(item_module(item), "tables", None)
    if tables is None or not rows or _fault(tables, rows) is None:
        return rows
    for place, row in enumerate(rows):
        if fault := _fault(tables, [row]):
            raise TadropedgeError(f"{where}[{place}] {fault}")
    raise TadropedgeError(f"{where} {_fault(tables, rows)}")


def _fault(tables: Callable[[Any], object], rows: Sequence[Mapping[str, Any]]) -> str | None:
    """Why rows cannot be shown, if they cannot: they lack a member, or hold one of another kind."""
    try:
        tables(rows)
    except KeyError as error:
        return f"lacks {error}"
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        return f"cannot be shown: {error}"
    return None


def _file(value: object, where: str) -> str:
    """The name of a file, in no folder: a page shows what lies in ``figures/`` and nothing else."""
    name = text(value, where)
    if name in (".", "..") or any(mark in name for mark in "/\\\0"):
        raise TadropedgeError(f"{where} must be the name of a file without a folder, got {short(name)}")
    return name


def _verdict(value: object, where: str) -> Verdict:
    members = members_of(value, where, {"claim", "status", "reason"})
    claim, status, reason = (text(members[name], f"{where}.{name}") for name in ("claim", "status", "reason"))
    try:
        return Verdict(claim, status, reason)
    except TadropedgeError as error:
        raise TadropedgeError(f"{where}: {error}") from error


def _run(value: object, where: str) -> dict[str, object]:
    run = mapping(value, where)
    for name in (*RUN_TEXTS, "seconds", "seed", "versions"):
        if name not in run:
            raise TadropedgeError(f"{where} lacks {name!r}, found {', '.join(run) or 'nothing'}")
    for name in RUN_TEXTS:
        text(run[name], f"{where}.{name}")
    lookup(f"preset at {where}", run["preset"], PRESETS)
    number(run["seconds"], f"{where}.seconds")
    whole(run["seed"], f"{where}.seed")
    mapping(run["versions"], f"{where}.versions")
    for name, check in RUN_OPTIONAL.items():
        if name in run:
            check(run[name], f"{where}.{name}")
    return run


def write_rows(rows: Sequence[Mapping[str, Any]], path: Path) -> Path:
    """Write rows as a flat table; nested names are joined by an underscore, lists stand as JSON."""
    flat = [flattened(row) for row in rows]
    columns = list(dict.fromkeys(name for row in flat for name in row))
    stream = io.StringIO()
    table = csv.writer(stream, lineterminator="\n")
    table.writerow(columns)
    for row in flat:
        table.writerow([row.get(name) for name in columns])
    return write_atomic(path, stream.getvalue().encode())


def flattened(row: Mapping[str, Any], before: str = "") -> dict[str, Any]:
    """A row without tables inside.

    >>> flattened({"method": "cdf", "honest": {"mean": 0.87, "seeds": 20}, "sizes": [1, 2]})
    {'method': 'cdf', 'honest_mean': 0.87, 'honest_seeds': 20, 'sizes': '[1, 2]'}
    """
    flat: dict[str, Any] = {}
    for name, value in row.items():
        if isinstance(value, Mapping):
            flat |= flattened(value, f"{before}{name}_")
        else:
            flat[f"{before}{name}"] = json.dumps(plain(value)) if isinstance(value, list | tuple) else value
    return flat
