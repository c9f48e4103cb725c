"""Graphs in files: edge lists as text (csv, tsv, whitespace, gzip) and plain arrays in ``.npz``.

Nothing is ever unpickled, and files are written whole or not at all. A malformed line is named with its number:
``edges.csv:17: expected 2 columns, got 3``.
"""

from __future__ import annotations

import csv
import errno
import gzip
import os
import platform
import re
import warnings
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, TextIO

import numpy as np
import numpy.typing as npt

from tadropedge.errors import TadropedgeError, cannot_write

if TYPE_CHECKING:
    import scipy.sparse as sp

# A first line made of these words alone is a header, unless a later line repeats one of them as an id.
HEADER_WORDS = {
    *("source", "target", "src", "dst", "from", "to", "u", "v", "i", "j", "head", "tail"),
    *("node1", "node2", "node_1", "node_2", "weight", "w", "value"),
}
INTEGER = re.compile(r"-?[0-9]{1,18}")
TRAILING = re.compile(r"\s#.*$")

HOST = re.sub(r"[^A-Za-z0-9-]", "-", platform.node())[:32] or "localhost"  # in names of files: no dots
DAMAGED = (zipfile.BadZipFile, zlib.error)


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


def write_atomic(path: Path, content: bytes) -> Path:
    """Write a file beside ``path`` and move it into place; missing folders are made."""
    with atomic(path) as stream:
        stream.write(content)
    return path


@contextmanager
def atomic(path: Path) -> Iterator[BinaryIO]:
    """A stream for what is too long to hold: ``path`` is there, whole, when the block ends well, else as before.

    It is there even if the power fails right after.
    """
    temporary = beside(path)
    try:
        make_folder(path.parent)
        _sweep(path.parent)
        with temporary.open("wb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        temporary.replace(path)
        sync_folder(path.parent)
    except OSError as error:
        raise cannot_write(path, error) from error
    finally:
        with suppress(OSError):  # where the folder itself could not be made there is nothing to remove
            temporary.unlink(missing_ok=True)


def beside(path: Path) -> Path:
    """A name for a file that this process will move to ``path``; if it dies before, the next one removes the file."""
    return path.with_name(f".{path.name}.{HOST}.{os.getpid()}.tmp")


def make_folder(folder: Path) -> None:
    """Make a folder and those it lies in, so that they outlast a failure of the power."""
    missing = [each for each in (folder, *folder.parents) if not each.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    for made in missing:
        sync_folder(made.parent)


def sync_folder(folder: Path) -> None:
    """Bring the names in a folder to the disk: without that, a file that was just moved may be gone after a crash."""
    if os.name == "nt":  # where folders cannot be opened
        return
    opened = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(opened)
    except OSError as error:
        if error.errno != errno.EINVAL:  # some network file systems have no such thing
            raise
    finally:
        os.close(opened)


@cache
def _sweep(folder: Path) -> None:
    """Remove the temporary files of processes that died on this machine; one look at each folder is enough."""
    for path in folder.glob(f".*.{HOST}.*.tmp*"):
        process = path.name.split(".")[-2]
        if process.isdecimal() and not _alive(int(process)):
            path.unlink(missing_ok=True)


def _alive(process: int) -> bool:
    if os.name == "nt":  # where asking would end it
        return True
    try:
        os.kill(process, 0)
    except OSError as error:
        return error.errno != errno.ESRCH  # else it belongs to somebody else
    return True


def read_edge_list(path: str | Path, *, header: bool | None = None, weighted: bool = True) -> EdgeList:
    """Read ``source target [weight]`` lines; blank lines and lines that start with ``#`` or ``%`` are skipped.

    Columns are split at whatever the first line holds: a comma, a tab, a semicolon, or white space. After an edge,
    white space and ``#`` begin a comment. ``header=None`` skips a first line of words where all other ids are
    integers, or of words such as ``source,target`` that no other line repeats. With ``weighted=False`` columns after
    the second are ignored. When every id is an integer, ids are integers and nodes are numbered in increasing order
    (``007`` is 7); otherwise ids are strings in alphabetical order.
    """
    path = existing(path)
    with readable_text(path):
        fast = _read_integers(path, header)
        return fast if fast is not None else _read_lines(path, header, weighted)


@contextmanager
def readable_text(path: Path) -> Iterator[None]:
    """Say it in one line where ``path`` turns out to be no text."""
    try:
        yield
    except UnicodeDecodeError as error:
        raise TadropedgeError(f"{path.name}: not a UTF-8 text file ({error.reason})") from error
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise TadropedgeError(f"{path.name}: damaged gzip file ({error})") from error
    except csv.Error as error:
        raise TadropedgeError(f"{path.name}: not a table that can be read ({error})") from error


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
                if "#" in text and '"' not in text:
                    text = TRAILING.sub("", text)
                yield number, text


def delimiter_of(path: Path, first: str) -> str | None:
    """The column separator; ``None`` stands for any white space. A ``.tsv`` may hold commas in its ids."""
    marks = "\t,;" if ".tsv" in path.suffixes else ",\t;"
    return next((mark for mark in marks if mark in first), None)


def split_cells(text: str, delimiter: str | None) -> list[str]:
    """The cells of a line, quotes taken off."""
    if delimiter is None:
        return text.split()
    if '"' in text:
        return [cell.strip() for cell in next(csv.reader([text], delimiter=delimiter, skipinitialspace=True))]
    return [cell.strip() for cell in text.split(delimiter)]


def table_cells(path: Path, bounds: tuple[int, int | None], wanted: str) -> list[tuple[int, list[str]]]:
    """The cells of every line with its number, as many on each as on the first: within ``bounds``, which ``wanted``."""
    rows: list[tuple[int, list[str]]] = []
    delimiter: str | None = None
    for number, text in data_lines(path):
        if not rows:
            delimiter = delimiter_of(path, text)
        cells = split_cells(text, delimiter)
        columns = len(rows[0][1]) if rows else len(cells)
        within = bounds[0] <= columns <= (bounds[1] or columns)
        if not within or len(cells) != columns:
            expected = f"{columns} columns" if within else wanted
            raise TadropedgeError(f"{path.name}:{number}: expected {expected}, got {len(cells)}")
        rows.append((number, cells))
    return rows


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
    edge = all(INTEGER.fullmatch(cell) for cell in cells)
    skip = header if header is not None else not edge
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # an empty table, or a float read as an integer
            rows = lines if skip else chain((first,), lines)
            table = np.loadtxt(rows, dtype=np.int64, delimiter=delimiter, comments=None, ndmin=2)
    except (ValueError, OverflowError, UserWarning, DeprecationWarning) as error:
        if isinstance(error, UnicodeDecodeError):
            raise
        return None  # the careful reader below says which line is wrong, or finds string ids
    if table.shape[1] != 2 or np.abs(table).max() >= 10**18:
        return None
    ids, arcs = np.unique(table, return_inverse=True)
    return EdgeList(arcs.reshape(table.shape).T.astype(np.int64), None, tuple(ids.tolist()))


def _read_lines(path: Path, header: bool | None, weighted: bool) -> EdgeList:
    """Line by line: string ids, weights, and an exact place for every mistake."""
    rows = table_cells(path, (2, 3 if weighted else None), "2 or 3 columns (source, target, weight)")
    for number, cells in rows:
        if not cells[0] or not cells[1]:
            raise TadropedgeError(f"{path.name}:{number}: empty node id")
    if rows and _has_header(rows, header):
        rows.pop(0)
    if not rows:
        raise TadropedgeError(f"{path.name}: no edges in the file")
    names = [name for _, cells in rows for name in cells[:2]]
    integers = all(INTEGER.fullmatch(name) for name in names)
    ids, arcs = np.unique(np.array([int(name) for name in names] if integers else names), return_inverse=True)
    weight = None
    if weighted and len(rows[0][1]) == 3:
        weight = np.array([_weight(cells[2], f"{path.name}:{number}") for number, cells in rows])
    return EdgeList(arcs.reshape(-1, 2).T.astype(np.int64), weight, tuple(ids.tolist()))


def _has_header(rows: list[tuple[int, list[str]]], header: bool | None) -> bool:
    """Whether the first row names the columns: by order, or by looking at the others."""
    if header is not None:
        return header
    first = rows[0][1]
    others = {name for _, cells in rows[1:] for name in cells[:2]}
    if others and all(INTEGER.fullmatch(name) for name in others):
        return not any(INTEGER.fullmatch(name) for name in first[:2])
    return all(cell.lower() in HEADER_WORDS for cell in first) and others.isdisjoint(first[:2])


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
    """Arcs ``edge_index [2, A]`` with what is known beside them."""

    edge_index: npt.NDArray[np.int64]
    num_nodes: int | None
    weight: npt.NDArray[np.float64] | None


def read_npz(path: str | Path) -> ArrayGraph:
    """Read ``edge_index`` (with optional ``num_nodes`` and ``edge_weight``), or what ``scipy.sparse.save_npz`` wrote.

    Arrays beside these (features, labels) are left alone.
    """
    path = existing(path)
    try:
        with path.open("rb") as stream, np.load(stream, allow_pickle=False) as arrays:
            keys = set(arrays.files)
            if "edge_index" in keys:
                nodes = arrays["num_nodes"].item() if "num_nodes" in keys else None
                return ArrayGraph(arrays["edge_index"], nodes, arrays["edge_weight"] if "edge_weight" in keys else None)
        if {"format", "shape", "data"} <= keys:
            from scipy.sparse import load_npz  # SciPy takes a while to import, and most graphs do without

            matrix = load_npz(path)
            arcs, weight = matrix_arcs(matrix)
            return ArrayGraph(arcs, max(matrix.shape), weight)
    except (ValueError, TypeError, KeyError, OSError, EOFError, NotImplementedError, *DAMAGED) as error:
        raise TadropedgeError(f"{path.name}: not an .npz file of plain arrays ({error})") from error
    raise TadropedgeError(
        f"{path.name}: expected an array 'edge_index' or a matrix saved by scipy.sparse.save_npz, "
        f"found {', '.join(sorted(keys)) or 'nothing'}"
    )


def matrix_arcs(matrix: sp.spmatrix) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
    """The entries of a sparse matrix in row-major order: repeated ones summed, stored zeros left out."""
    entries = matrix.tocsr().astype(np.float64).copy()
    entries.sum_duplicates()
    entries.eliminate_zeros()
    entries = entries.tocoo()
    return np.stack((entries.row, entries.col)).astype(np.int64), entries.data
