"""Graphs in files: edge lists as text (csv, tsv, whitespace, gzip) and plain arrays in ``.npz``.

Nothing is ever unpickled. A malformed line is named with its number: ``edges.csv:17: expected 2 columns, got 3``.
"""

from __future__ import annotations

import csv
import gzip
import re
import warnings
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from tadropedge.errors import TadropedgeError

# A first line made of these words alone is a header, not an edge.
HEADER_WORDS = {
    *("source", "target", "src", "dst", "from", "to", "u", "v", "i", "j", "head", "tail"),
    *("node1", "node2", "node_1", "node_2", "weight", "w", "value"),
}
INTEGER = re.compile(r"-?[0-9]{1,18}")


@dataclass(frozen=True)
class EdgeList:
    """The arcs of a file: ``arcs [2, A]`` index into ``ids``, the names as they stand in the file."""

    arcs: npt.NDArray[np.int64]
    weight: npt.NDArray[np.float64] | None
    ids: tuple[int, ...] | tuple[str, ...]


def existing(path: str | Path) -> Path:
    """Return ``path`` if it is a file that exists."""
    path = Path(path)
    if not path.is_file():
        raise TadropedgeError(f"no such file: '{path}'")
    return path


def read_edge_list(path: str | Path, *, header: bool | None = None, weighted: bool = True) -> EdgeList:
    """Read ``source target [weight]`` lines; blank lines and lines that start with ``#`` or ``%`` are skipped.

    Columns are split at commas in ``.csv``, at tabs in ``.tsv`` and otherwise at whatever the first line
    holds: a comma, a tab, or white space. ``header=None`` skips a first line of words such as
    ``source,target``. With ``weighted=False`` columns after the second are ignored. When every id is an
    integer, ids are integers and nodes are numbered in increasing order; otherwise ids are strings in
    alphabetical order.
    """
    path = existing(path)
    with readable(path):
        fast = _read_integers(path, header)
        return fast if fast is not None else _read_lines(path, header, weighted)


@contextmanager
def readable(path: Path) -> Iterator[None]:
    """Say it in one line where ``path`` turns out to be no text."""
    try:
        yield
    except UnicodeDecodeError as error:
        raise TadropedgeError(f"{path.name}: not a UTF-8 text file ({error.reason})") from error
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise TadropedgeError(f"{path.name}: damaged gzip file ({error})") from error


def _open(path: Path) -> TextIO:
    if path.suffix == ".gz":
        return gzip.open(path, "rt", encoding="utf-8-sig", newline=None)
    return path.open(encoding="utf-8-sig")


def data_lines(path: Path) -> Iterator[tuple[int, str]]:
    """The lines that are neither blank nor comments, with their numbers."""
    with _open(path) as stream:
        for number, line in enumerate(stream, 1):
            text = line.strip()
            if text and text[0] not in "#%":
                yield number, text


def delimiter_of(path: Path, first: str) -> str | None:
    """The column separator; ``None`` stands for any white space."""
    suffix = Path(path.stem).suffix if path.suffix == ".gz" else path.suffix
    if suffix in (".csv", ".tsv"):
        return "," if suffix == ".csv" else "\t"
    return next((mark for mark in (",", "\t") if mark in first), None)


def split_cells(text: str, delimiter: str | None) -> list[str]:
    """The cells of a line, quotes taken off."""
    if delimiter is None:
        return text.split()
    if '"' in text:
        return [cell.strip() for cell in next(csv.reader([text], delimiter=delimiter, skipinitialspace=True))]
    return [cell.strip() for cell in text.split(delimiter)]


def _is_header(cells: list[str], header: bool | None) -> bool:
    return header if header is not None else all(cell.lower() in HEADER_WORDS for cell in cells)


def _read_integers(path: Path, header: bool | None) -> EdgeList | None:
    """The common case, two columns of integers, at NumPy's speed; ``None`` when the file is not that."""
    lines = (text for _, text in data_lines(path))
    first = next(lines, None)
    if first is None:
        raise TadropedgeError(f"{path.name}: no edges in the file")
    delimiter = delimiter_of(path, first)
    cells = split_cells(first, delimiter)
    if len(cells) != 2:
        return None

    def rows() -> Iterator[str]:
        if not _is_header(cells, header):
            yield first
        yield from lines

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # an empty table, or a float read as an integer
            table = np.loadtxt(rows(), dtype=np.int64, delimiter=delimiter, comments=None, ndmin=2)
    except (ValueError, OverflowError, UserWarning, DeprecationWarning) as error:
        if isinstance(error, UnicodeDecodeError):
            raise
        return None  # the careful reader below says which line is wrong, or finds string ids
    if table.shape[1] != 2:
        return None
    ids, arcs = np.unique(table, return_inverse=True)
    return EdgeList(arcs.reshape(table.shape).T.astype(np.int64), None, tuple(ids.tolist()))


def _read_lines(path: Path, header: bool | None, weighted: bool) -> EdgeList:
    """Line by line: string ids, weights, and an exact place for every mistake."""
    names: list[str] = []
    weight: list[float] = []
    delimiter: str | None = None
    columns = 0
    for number, text in data_lines(path):
        where = f"{path.name}:{number}"
        if not columns:
            delimiter = delimiter_of(path, text)
        cells = split_cells(text, delimiter)
        if not columns:
            columns = len(cells)
            if columns < 2 or (weighted and columns > 3):
                raise TadropedgeError(f"{where}: expected 2 or 3 columns (source, target, weight), got {columns}")
            if _is_header(cells, header):
                continue
        if len(cells) != columns:
            raise TadropedgeError(f"{where}: expected {columns} columns, got {len(cells)}")
        if not cells[0] or not cells[1]:
            raise TadropedgeError(f"{where}: empty node id")
        names += cells[:2]
        if weighted and columns == 3:
            weight.append(_weight(cells[2], where))
    if not names:
        raise TadropedgeError(f"{path.name}: no edges in the file")
    integers = all(INTEGER.fullmatch(name) for name in names)
    ids, arcs = np.unique(np.array([int(name) for name in names] if integers else names), return_inverse=True)
    values = np.array(weight) if weight else None
    return EdgeList(arcs.reshape(-1, 2).T.astype(np.int64), values, tuple(ids.tolist()))


def _weight(cell: str, where: str) -> float:
    try:
        value = float(cell)
    except ValueError:
        raise TadropedgeError(f"{where}: weight {cell!r} is not a number") from None
    if not 0 < value < float("inf"):
        raise TadropedgeError(f"{where}: weight {cell!r} must be positive and finite")
    return value


@dataclass(frozen=True)
class ArrayGraph:
    """The arrays of an ``.npz`` file: ``edge_index [2, A]``, or in its stead a sparse adjacency ``matrix``."""

    edge_index: npt.NDArray[np.int64]
    num_nodes: int | None
    weight: npt.NDArray[np.float64] | None
    matrix: sp.spmatrix | None


def read_npz(path: str | Path) -> ArrayGraph:
    """Read ``edge_index`` (with optional ``num_nodes`` and ``edge_weight``), or what ``scipy.sparse.save_npz`` wrote.

    Arrays beside these (features, labels) are left alone.
    """
    path = existing(path)
    try:
        with path.open("rb") as stream, np.load(stream, allow_pickle=False) as arrays:
            keys = set(arrays.files)
            if "edge_index" in keys:
                nodes = int(arrays["num_nodes"]) if "num_nodes" in keys else None
                weight = arrays["edge_weight"] if "edge_weight" in keys else None
                return ArrayGraph(arrays["edge_index"], nodes, weight, None)
        if {"format", "shape", "data"} <= keys:
            return ArrayGraph(np.empty((2, 0), dtype=np.int64), None, None, sp.load_npz(path))
    except (ValueError, TypeError, OSError, EOFError, zipfile.BadZipFile) as error:
        raise TadropedgeError(f"{path.name}: not an .npz file of plain arrays ({error})") from error
    raise TadropedgeError(
        f"{path.name}: expected an array 'edge_index' or a matrix saved by scipy.sparse.save_npz, "
        f"found {', '.join(sorted(keys)) or 'nothing'}"
    )
