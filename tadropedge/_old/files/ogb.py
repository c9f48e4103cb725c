"""Node classification sets of the Open Graph Benchmark, as its own package unpacks them.

A folder such as ``ogbn_arxiv`` holds ``raw/edge.csv.gz`` (a line ``source,target`` per edge), ``raw/node-feat.csv.gz``
(one line of features per node), ``raw/node-label.csv.gz``, ``raw/num-node-list.csv.gz`` and
``split/NAME/{train,valid,test}.csv.gz`` (one node per line). Each may be unpacked.
"""

from __future__ import annotations

import warnings
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tadropedge._old.checks import OGB
from tadropedge._old.errors import TadropedgeError
from tadropedge._old.files.edge_list import ascii_only
from tadropedge._old.files.held import Asked, Held, unknown
from tadropedge._old.files.npz import class_numbers
from tadropedge._old.files.opening import data_lines, existing, readable_text

PREFIX = OGB
PARTS = ("train", "valid", "test")
EXPECTED = "raw/edge.csv.gz, raw/node-feat.csv.gz, raw/node-label.csv.gz and raw/num-node-list.csv.gz"


def is_ogb(folder: Path) -> bool:
    """Whether a folder, or its ``raw``, holds an edge list of OGB."""
    with suppress(OSError, ValueError):  # a path that cannot be, or must not be looked at
        return _file(_raw(folder), "edge") is not None
    return False


def ogb_folder(name: str, root: Path | None) -> Path:
    """The folder of a set such as ``ogbn-arxiv`` below ``root``, as OGB's own package unpacks it.

    >>> ogb_folder("ogbn-arxiv", Path("nowhere"))
    Traceback (most recent call last):
    tadropedge._old.errors.TadropedgeError: ogbn-arxiv is not below 'nowhere': expected ogbn_arxiv with raw/edge.csv.gz, \
raw/node-feat.csv.gz, raw/node-label.csv.gz and raw/num-node-list.csv.gz, as OGB's own package unpacks it; \
root='FOLDER' says where it is
    """
    top, below = root if root is not None else Path("data"), name.replace("-", "_")
    called = (below, name, name.removeprefix(PREFIX))
    for place in (top / part / each for part in ("", "ogb", "dataset") for each in called):
        if is_ogb(place):
            return place
    raise TadropedgeError(
        f"{name} is not below '{top}': expected {below} with {EXPECTED}, as OGB's own package unpacks it; "
        "root='FOLDER' says where it is"
    )


def read(folder: Path, asked: Asked) -> Held:
    """The graph of a folder; features, labels and the split where the whole is asked for."""
    raw = _raw(folder)
    if asked.column is not None:
        raise TadropedgeError(unknown(folder.name, asked.column, []))
    counts = _numbers(raw, "num-node-list", np.int64)
    if counts.size != 1:
        raise TadropedgeError(f"{folder.name}: expected one graph, got {counts.size} in num-node-list")
    edges = _numbers(raw, "edge", np.int64)
    if edges.shape[1] != 2:
        raise TadropedgeError(f"{folder.name}: edge.csv must have 2 columns, got {edges.shape[1]}")
    return Held(
        arcs=edges.T,
        num_nodes=int(counts[0, 0]),
        lacking={
            "features": f"expected features, raw/node-feat.csv.gz, in the folder {folder.name}",
            "labels": f"expected labels, raw/node-label.csv.gz, in the folder {folder.name}",
        },
        **(_nodes(folder, raw, asked.masks) if asked.whole else {}),
    )


def _nodes(folder: Path, raw: Path, masks: bool) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if _file(raw, "node-feat"):
        found["features"] = _numbers(raw, "node-feat", np.float32)
    if _file(raw, "node-label"):
        found["labels"] = class_numbers(_numbers(raw, "node-label", np.float64), "node-label")
    ways = sorted(way for way in (raw.parent / "split").glob("*") if way.is_dir()) if masks else []
    if len(ways) > 1:
        told = ", ".join(way.name for way in ways)
        raise TadropedgeError(f"{folder.name}: expected one folder below split, got {told}")
    if ways:
        parts = {part: _numbers(ways[0], part, np.int64) for part in PARTS if _file(ways[0], part)}
        found["parts"] = {part: parts[part][:, 0] if part in parts else None for part in PARTS}
    return found


def _raw(folder: Path) -> Path:
    return folder / "raw" if (folder / "raw").is_dir() else folder


def _file(folder: Path, name: str) -> Path | None:
    return next((path for end in (".csv.gz", ".csv") if (path := folder / f"{name}{end}").is_file()), None)


def _numbers(folder: Path, name: str, kind: type[Any]) -> npt.NDArray[Any]:
    """A table of numbers, ``[lines, columns]``."""
    path = _file(folder, name) or existing(folder / f"{name}.csv.gz")
    with readable_text(path), warnings.catch_warnings():
        warnings.simplefilter("error")  # an empty table, or a float read as an integer
        rows = ascii_only(text for _, text in data_lines(path))
        return np.loadtxt(rows, dtype=kind, delimiter=",", comments=None, ndmin=2)
