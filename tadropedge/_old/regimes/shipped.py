"""The map that comes with the package: of every cell, the data, the best method and a few numbers; loads without torch.

``map.json`` is written from ``results/regimes/results.json`` by :func:`ship` and is absent until a map was measured.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path

from tadropedge._old.atomic import write_atomic
from tadropedge._old.regimes.results import MapTest, RegimeMap, Value
from tadropedge._old.regimes.summary import DROPEDGE, Finding, findings
from tadropedge._old.typed import Count, Share, build, parse_json, plain

FILE = "map.json"
DIGITS = 5  # of a share: a thousandth of a point


@dataclass(frozen=True, kw_only=True)
class ShippedCell:
    """A cell in a few numbers.

    ``state`` is that of a :class:`~tadropedge._old.regimes.summary.Finding`; ``method`` is the best one, or where none is
    better the one with the largest mean; ``gain``, ``low`` and ``high`` are its difference to not dropping, and
    ``dropedge`` says how it did against DropEdge (None: it is DropEdge). ``labels`` are the training labels per class.
    """

    dataset: str
    kind: str
    value: Value
    backbone: str
    layers: Count
    nodes: Count
    mean_degree: float
    homophily: Share | None
    classes: Count
    labels: float
    seeds: Count
    state: str
    method: str | None = None
    gain: float | None = None
    low: float | None = None
    high: float | None = None
    half_width: float | None = None
    dropedge: str | None = None


@dataclass(frozen=True)
class ShippedMap:
    """Every cell of a map in a few numbers."""

    cells: Sequence[ShippedCell]


def shrunk(found: RegimeMap) -> ShippedMap:
    """A map as it is shipped."""
    return ShippedMap(tuple(_cell(one) for one in findings(found)))


def _cell(one: Finding) -> ShippedCell:
    cell, data, row = one.cell, one.cell.data, one.best or one.leader
    told: MapTest | None = None if row is None else row.tests["none"]
    against = None if row is None else one.test(row.method, DROPEDGE)
    return ShippedCell(
        dataset=cell.dataset,
        kind=cell.kind,
        value=cell.value,
        backbone=cell.backbone,
        layers=cell.layers,
        nodes=data.nodes,
        mean_degree=round(data.mean_degree, 3),
        homophily=_short(data.homophily),
        classes=data.classes,
        labels=round(data.split[0] / max(data.classes, 1), 3),
        seeds=cell.seeds,
        state=one.state,
        method=None if row is None else row.method,
        gain=_short(told.difference if told else None),
        low=_short(told.low if told else None),
        high=_short(told.high if told else None),
        half_width=_short(one.half_width),
        dropedge=None if against is None else against.outcome,
    )


def _short(number: float | None) -> float | None:
    return None if number is None else round(number, DIGITS)


def ship(found: RegimeMap, path: Path) -> Path:
    """Write the file that the package carries, one line per cell; what is not known is left out."""
    cells = [{name: part for name, part in plain(one).items() if part is not None} for one in shrunk(found).cells]
    lines = ",\n".join(json.dumps(one, ensure_ascii=False, separators=(",", ":")) for one in cells)
    return write_atomic(path, f'{{"cells":[\n{lines}\n]}}\n'.encode())


def read_shipped(path: Path) -> ShippedMap:
    """Read and check such a file."""
    return _parsed(path.read_bytes(), path.name)


@cache
def shipped() -> ShippedMap | None:
    """The map of the package; ``None`` where it has none."""
    file = resources.files("tadropedge._old.regimes").joinpath(FILE)
    return _parsed(file.read_bytes(), FILE) if file.is_file() else None


def _parsed(content: bytes, name: str) -> ShippedMap:
    document = parse_json(content, name)
    if isinstance(document, dict) and isinstance(document.get("cells"), list):  # the base has no value
        document["cells"] = [{"value": None, "homophily": None, **one} for one in document["cells"]]
    return build(ShippedMap, document, f"{name}:")
