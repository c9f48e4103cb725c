"""The results document: rows that depend on data and settings alone, and apart from them the run that made them.

``results.json`` is ``{"compare": [row, ...], "run": {...}}``. The same rows give the same bytes. Reading checks every
field and names the wrong one by its place (``results.json: compare[3].honest.mean must be a number, got 'high'``);
writing checks in the same way, so no file is written that cannot be read.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import astuple, dataclass, field, fields
from pathlib import Path

from tadropedge.comparison.rows import Results, Row
from tadropedge.comparison.statistics import Honest
from tadropedge.errors import TadropedgeError
from tadropedge.files import write_atomic
from tadropedge.publish.tables import csv_bytes
from tadropedge.typed import build, plain, read_json, write_json

NAMED_BY = ("dataset", "backbone", "layers", "method", "laplacian")


@dataclass(frozen=True)
class _Document:
    compare: tuple[Row, ...]
    run: Mapping[str, object] = field(default_factory=dict)

    def __post_init__(self) -> None:
        seen: dict[tuple[object, ...], int] = {}
        for place, row in enumerate(self.compare):
            key = tuple(getattr(row, name) for name in NAMED_BY)
            if (first := seen.setdefault(key, place)) != place:
                words = " ".join(str(part) for part in key if part is not None)
                raise TadropedgeError(f"compare[{place}] repeats compare[{first}]: {words}")


def as_document(results: Results) -> dict[str, object]:
    """``results`` as plain JSON values; a number that is not finite becomes ``None``.

    >>> as_document(Results([Row(dataset="cora", backbone="gcn", layers=2, method="cdf")]))["compare"][0]["layers"]
    2
    """
    return {"compare": plain(results.rows), "run": plain(results.run)}


def parse(document: object, name: str = "results") -> Results:
    """Check a document read from JSON; ``name`` starts every message.

    >>> parse({"compare": [{"dataset": "cora", "backbone": "gcn", "layers": "two", "method": "cdf"}]})
    Traceback (most recent call last):
    tadropedge.errors.TadropedgeError: results: compare[0].layers must be a whole number, got 'two'
    """
    found = build(_Document, document, f"{name}:")
    return Results(found.compare, found.run)


def read_results(path: str | Path) -> Results:
    """Read and check ``results.json``."""
    return parse(read_json(path), Path(path).name)


def write_results(results: Results, path: str | Path) -> Path:
    """Write ``results.json`` in one step: a killed process leaves the old file or the new one."""
    document = as_document(results)
    parse(document, Path(path).name)
    return write_json(document, Path(path))


def write_csv(results: Results, path: str | Path) -> Path:
    """Write the rows as a flat table, without their curves and settings; what is not known stays empty."""
    honest = [member.name for member in fields(Honest)]
    columns = [*NAMED_BY, "paper_best_test", "paper_trials", *(f"honest_{name}" for name in honest)]
    lines = (
        [
            *(getattr(row, name) for name in NAMED_BY),
            *(astuple(row.paper_protocol) if row.paper_protocol else (None, None)),
            *(astuple(row.honest) if row.honest else (None,) * len(honest)),
        ]
        for row in parse(as_document(results), Path(path).name).rows
    )
    return write_atomic(Path(path), csv_bytes(columns, lines))
