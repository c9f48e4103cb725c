"""Edge lists as text, with commas, tabs, semicolons or white space between columns, plain or packed with gzip.

Errors name the line: ``edges.csv:17: expected 2 columns, got 3``.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from tadropedge.errors import TadropedgeError
from tadropedge.files.columns import Columns, are_titles, choose
from tadropedge.files.contents import Array, FileContents, ReadOptions
from tadropedge.files.header import has_header
from tadropedge.files.ids import Numbering, number_ids
from tadropedge.files.table import Rows, Table, open_table

Found = tuple[Array, tuple[Any, ...], list[Array]]  # arcs [2, A] as places among the ids, the ids, weights and a column


def read(path: Path, options: ReadOptions) -> FileContents:
    """Read ``source target [weight]`` lines; blank lines and lines that start with ``#`` or ``%`` are skipped.

    The first line decides what separates columns: a tab, a semicolon, a comma, or white space.
    :func:`~tadropedge.files.header.has_header` decides whether it is a header, and
    :func:`~tadropedge.files.columns.choose` which columns are read. When every id is an integer, ids are integers and
    nodes are numbered in increasing order; otherwise ids are strings in alphabetical order.
    """

    def guess(table: Table, rows: Rows) -> bool | None:
        first, *below = rows
        found = are_titles(first, options) or has_header(first, below)
        if found is None:  # the first rows are not always enough to tell: an id of the first line may recur later
            later = ([cell.strip() for cell in cells] for _, cells in islice(table.rows(), len(rows), None))
            again = next((row for row in later if not {*first[:2]}.isdisjoint(row[:2])), None)
            found = found if again is None else has_header(first, [*below, again])
        return found

    table = open_table(path, options.header, guess, "an edge")
    columns = choose(table.titles, table.count, options, path.name)
    arcs, ids, read_numbers = _read_fast(table, columns) or _read_cells(table, columns)
    numbers = iter(read_numbers)
    return FileContents(
        file=path.name,
        read=columns.told(arcs.shape[1]),
        arcs=arcs,
        num_nodes=len(ids),
        node_ids=ids,
        weight=None if columns.weight is None else next(numbers),
        column=None if columns.column is None else next(numbers),
    )


def _read_fast(table: Table, columns: Columns) -> Found | None:
    """Read the common case with NumPy: integer ids, and no columns that are left out. ``None`` for other files."""
    if columns.count != len(columns.places):
        return None
    ends = (columns.source, columns.target)
    kinds = np.dtype([(str(place), np.int64 if place in ends else np.float64) for place in range(columns.count)])

    def lines() -> Iterator[str]:
        for _, line in table.lines():
            if not line.isascii():  # some other characters crash NumPy's compiled reader
                raise ValueError(line)
            yield line

    with warnings.catch_warnings():
        warnings.simplefilter("error")  # NumPy only warns of no lines, and when it reads 1.5 as an integer
        try:
            rows = np.loadtxt(lines(), kinds, comments=None, delimiter=table.delimiter, ndmin=1)
        except (ValueError, OverflowError, Warning):
            return None  # _read_cells finds the line that is wrong, or reads ids of another kind
    numbers = [np.ascontiguousarray(rows[str(place)]) for place in columns.places[2:]]
    if not all(np.isfinite(each).all() for each in numbers):
        return None
    ids, places = np.unique(np.stack([rows[str(end)] for end in ends]), return_inverse=True)
    return places.reshape(2, -1), tuple(ids.tolist()), numbers


def _read_cells(table: Table, columns: Columns) -> Found:
    """Read cell by cell: ids of any kind, any further columns, and errors that name the line."""
    numbering, parts = Numbering(), []
    for block in table.blocks():
        ends = [
            np.array([numbering[name] for name in block.columns[end]], dtype=np.int64) for end in columns.places[:2]
        ]
        parts.append(ends + [table.numbers(block, place, columns.name(place)) for place in columns.places[2:]])
    if not parts:
        raise TadropedgeError(f"{table.path.name}: no edges in the file")
    source, target, *numbers = (np.concatenate(part) for part in zip(*parts, strict=True))

    def where(name: str) -> str:
        return table.where(int(np.argmax((source == numbering[name]) | (target == numbering[name]))))

    ids, place = number_ids(list(numbering), where)
    return np.stack((place[source], place[target])), ids, numbers
