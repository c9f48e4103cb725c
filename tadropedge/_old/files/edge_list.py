"""Edge lists as text: csv, tsv, white space, each also packed with gzip.

A malformed line is named with its number: ``edges.csv:17: expected 2 columns, got 3``.
"""

from __future__ import annotations

import csv
import re
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tadropedge._old.errors import TadropedgeError, show
from tadropedge._old.files.held import Asked, Held
from tadropedge._old.files.opening import data_lines, existing, readable_text

# A first line made of these words alone is a header, unless a later line repeats one of them as an id.
HEADER_WORDS = {
    *("source", "target", "src", "dst", "from", "to", "u", "v", "i", "j", "head", "tail"),
    *("node1", "node2", "node_1", "node_2", "weight", "w", "value"),
}
WEIGHT_WORDS = {"weight", "w", "value"}
MORE_COLUMNS = "; where there are more, the header must call one of them 'weight'"
INTEGER = re.compile(r"[+-]?[0-9]+")
NUMBER_LIKE = re.compile(r"[+-]?[.,_]?\d")
ESCAPED = re.compile(r"'+[=+\-@\t\r]")  # how publish/tables.py begins a cell that a spreadsheet would compute


@dataclass(frozen=True)
class EdgeList:
    """The arcs of a file: ``arcs [2, A]`` index into ``ids``, the names as they stand in the file.

    ``column [A]`` are the numbers of a further column, where one was asked for.
    """

    arcs: npt.NDArray[np.int64]
    weight: npt.NDArray[np.float64] | None
    ids: tuple[int, ...] | tuple[str, ...]
    column: npt.NDArray[np.float64] | None = None


def read(path: Path, asked: Asked) -> Held:
    """An edge list as every other file: features and labels of its nodes are in a table beside it."""
    table = read_edge_list(
        path, header=asked.header, weighted=asked.weighted, integers=asked.integers, column=asked.column
    )
    return Held(arcs=table.arcs, num_nodes=len(table.ids), weight=table.weight, ids=table.ids, column=table.column)


def read_edge_list(
    path: str | Path,
    *,
    header: bool | None = None,
    weighted: bool = True,
    integers: bool = True,
    column: str | None = None,
) -> EdgeList:
    """Read ``source target [weight]`` lines; blank lines and lines that start with ``#`` or ``%`` are skipped.

    Columns are split at whatever the first line holds: a comma, a tab, a semicolon, or white space. After an edge,
    white space and ``#`` begin a comment. ``header=None`` skips a first line of words where all other ids are
    integers, or of words such as ``source,target`` that no other line repeats. With ``weighted=False`` columns after
    the second are ignored. When every id is an integer, ids are integers and nodes are numbered in increasing order
    (``007`` and ``+7`` are 7); otherwise, or where one does not fit 64 bits, ids are strings in alphabetical order, as
    they stand in the file. What begins like a number is never skipped: where the first line alone holds such a thing
    that is no integer (``1_000``), say ``header=True`` or ``header=False``. ``integers=False`` makes all ids strings.

    ``column`` asks for the numbers of one more column, by its name in the header or by its number from 3 on. There may
    be any number of columns then, and the weight is the one called ``weight``, ``w`` or ``value``; where none is, it is
    the third of a file of three columns or without a header, unless that is the column asked for.
    """
    path = existing(path)
    with readable_text(path):
        fast = _read_integers(path, header) if integers and column is None else None
        return fast if fast is not None else _read_lines(path, header, weighted, integers, column)


def delimiter_of(path: Path, first: str) -> str | None:
    """The column separator; ``None`` stands for any white space. A ``.tsv`` may hold commas in its ids."""
    marks = "\t,;" if ".tsv" in path.suffixes else ",\t;"
    return next((mark for mark in marks if mark in first), None)


def split_cells(text: str, delimiter: str | None) -> list[str]:
    """The cells of a line, without quotes, and without the apostrophe that keeps spreadsheets from computing them."""
    if delimiter is None:
        return text.split()
    if '"' in text:
        cells = next(csv.reader([text], delimiter=delimiter, skipinitialspace=True))
    else:
        cells = text.split(delimiter)
    return [cell[1:] if ESCAPED.match(cell) else cell for cell in map(str.strip, cells)]


def table_cells(path: Path, bounds: tuple[int, int | None], wanted: str, hint: str = "") -> list[tuple[int, list[str]]]:
    """The cells of every line with its number, as many on each as on the first: within ``bounds``, which ``wanted``.

    ``hint`` says what to do where there are more.
    """
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
            more = hint if not within and len(cells) > bounds[0] else ""
            raise TadropedgeError(f"{path.name}:{number}: expected {expected}, got {len(cells)}{more}")
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
    if header is None and not edge and any(map(NUMBER_LIKE.match, cells)):
        return None  # for the careful reader: it may be an edge
    skip = header if header is not None else not edge
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # an empty table, or a float read as an integer
            rows = ascii_only(lines if skip else chain((first,), lines))
            table = np.loadtxt(rows, dtype=np.int64, delimiter=delimiter, comments=None, ndmin=2)
    except (ValueError, OverflowError, UserWarning, DeprecationWarning) as error:
        if isinstance(error, UnicodeDecodeError | TadropedgeError):
            raise
        return None  # the careful reader below says which line is wrong, or finds string ids
    if table.shape[1] != 2:
        return None
    ids, arcs = np.unique(table, return_inverse=True)
    return EdgeList(arcs.reshape(table.shape).T.astype(np.int64), None, tuple(ids.tolist()))


def ascii_only(lines: Iterable[str]) -> Iterator[str]:
    """Lines for NumPy, whose compiled reader looks other characters up in a table of 256: some of them crash it."""
    for line in lines:
        if not line.isascii():
            raise ValueError("no integers")
        yield line


def _read_lines(path: Path, header: bool | None, weighted: bool, integers: bool, column: str | None) -> EdgeList:
    """Line by line: string ids, weights, and an exact place for every mistake."""
    named = weighted and column is None and _names_weights(path, header)
    most = 3 if weighted and column is None and not named else None
    rows = table_cells(path, (2, most), "2 or 3 columns (source, target, weight)", MORE_COLUMNS)
    for number, cells in rows:
        if not cells[0] or not cells[1]:
            raise TadropedgeError(f"{path.name}:{number}: empty node id")
    titles = rows.pop(0)[1] if named or (rows and _has_titles(rows, header, path.name, column)) else None
    if not rows:
        raise TadropedgeError(f"{path.name}: no edges in the file")
    names = [name for _, cells in rows for name in cells[:2]]
    ends: list[Any] = (as_integers(names) if integers else None) or names
    ids = tuple(sorted(set(ends)))
    place = {each: number for number, each in enumerate(ids)}
    arcs = np.array([place[end] for end in ends], dtype=np.int64)
    wanted = None if column is None else _column_place(column, titles, len(rows[0][1]), path.name)
    third = _weight_place(titles, len(rows[0][1]), wanted) if weighted else None
    weight = score = None
    if third is not None:
        weight = np.array([_weight(cells[third], f"{path.name}:{number}") for number, cells in rows])
    if wanted is not None:
        score = np.array([_score(cells[wanted], str(column), f"{path.name}:{number}") for number, cells in rows])
    return EdgeList(arcs.reshape(-1, 2).T.copy(), weight, ids, score)


def _names_weights(path: Path, header: bool | None) -> bool:
    """Whether the first line is a header that calls one of several further columns the weight."""
    first = "" if header is False else next((text for _, text in data_lines(path)), "")
    further = split_cells(first, delimiter_of(path, first))[2:] if first else []
    return len(further) > 1 and not WEIGHT_WORDS.isdisjoint(cell.lower() for cell in further)


def _has_titles(rows: list[tuple[int, list[str]]], header: bool | None, name: str, column: str | None) -> bool:
    """Whether the first row names the columns; it surely does where it holds the name of the one asked for."""
    if column is None:
        return _has_header(rows, header, name)
    named = not NUMBER_LIKE.match(column) and column in rows[0][1][2:]
    ends = [(number, cells[:2]) for number, cells in rows]  # whatever the other columns are called
    return (header is None and named) or _has_header(ends, header, name)


def _column_place(column: str, titles: list[str] | None, count: int, name: str) -> int:
    """The place of a column by its name or its number; those of the two ends are none."""
    if titles is not None and column in titles[2:]:
        return titles.index(column, 2)
    if INTEGER.fullmatch(column) and 3 <= int(column[:9]) <= count:
        return int(column) - 1
    told = show(column, typed=False)
    if count == 2:
        raise TadropedgeError(f"{name} has no column {told}: it has the ends of each edge and no further column")
    if titles is None:
        raise TadropedgeError(f"{name} has no column {told}: without a header, columns have the numbers 3 to {count}")
    raise TadropedgeError(f"{name} has no column {told}; its columns are {', '.join(titles[2:])}")


def _weight_place(titles: list[str] | None, count: int, taken: int | None) -> int | None:
    """The place of the edge weights; ``taken`` is that of the column which was asked for."""
    if titles is not None and (taken is not None or count > 3):
        called = [place for place in range(2, count) if titles[place].lower() in WEIGHT_WORDS]
        if called:
            return called[0]
    only = count == 3 or (titles is None and taken is not None)
    return 2 if count > 2 and only and taken != 2 else None


def as_integers(names: list[str]) -> list[int] | None:
    """``names`` as integers where all of them are, and fit 64 bits.

    >>> as_integers(["007", "-3"]), as_integers(["7", "1_000"]), as_integers(["9" * 19])
    ([7, -3], None, None)
    """
    if not all(len(name) <= 4000 and INTEGER.fullmatch(name) for name in names):  # Python reads no more digits
        return None
    numbers = [int(name) for name in names]
    return numbers if all(-(2**63) <= number < 2**63 for number in numbers) else None


def _has_header(rows: list[tuple[int, list[str]]], header: bool | None, name: str) -> bool:
    """Whether the first row names the columns: by order, or by looking at the others."""
    if header is not None:
        return header
    number, first = rows[0]
    others = {each for _, cells in rows[1:] for each in cells[:2]}
    if others and all(map(INTEGER.fullmatch, others)):
        odd = [cell for cell in first[:2] if NUMBER_LIKE.match(cell) and not INTEGER.fullmatch(cell)]
        if odd:
            raise TadropedgeError(
                f"{name}:{number}: {show(odd[0], typed=False)} is no integer, unlike all other ids: say whether this "
                "line names the columns (header=True) or is an edge (header=False)"
            )
        return not any(map(INTEGER.fullmatch, first[:2]))
    return all(cell.lower() in HEADER_WORDS for cell in first) and others.isdisjoint(first[:2])


def _weight(cell: str, where: str) -> float:
    try:
        value = float(cell)
    except ValueError:
        raise TadropedgeError(f"{where}: weight {cell!r} is not a number") from None
    if not 0 < value < float("inf"):
        raise TadropedgeError(f"{where}: weight {cell!r} must be positive and finite")
    return value


def _score(cell: str, name: str, where: str) -> float:
    try:
        value = float(cell)
    except ValueError:
        raise TadropedgeError(f"{where}: {name} {cell!r} is not a number") from None
    if not 0 <= value < float("inf"):
        raise TadropedgeError(f"{where}: {name} {cell!r} must be finite and at least 0")
    return value
