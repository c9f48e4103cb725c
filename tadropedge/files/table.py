"""A table of text: what separates its cells, whether it has a header, its lines, cells and numbers."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice
from pathlib import Path
from typing import NamedTuple

import numpy as np

from tadropedge.errors import TadropedgeError, show
from tadropedge.files.contents import Array
from tadropedge.files.opening import open_text

ROWS = 500  # that are read together: what a processor keeps at hand
FIRST = 5_000  # rows that show whether the first line is a header
COMMENTS = "#%"
NUMERALS = frozenset("0123456789+-.eE ")  # so that neither 1_0 nor the digits of other scripts are numbers
TRAILING = re.compile(r"\s#.*$")
QUOTED = re.compile(r'"[^"]*"')
COMMENTED = re.compile(r"[#%]\w")  # not "# a comment"
WORD = re.compile(r'"([^"]*)"(?!\S)|(\S+)')  # between white space, with or without quotes
DECIMAL_COMMA = re.compile(r"(?<=\d),(?=\d)")
FOREIGN = {
    re.compile(r"%%MatrixMarket"): "a Matrix Market file: call it .mtx",
    re.compile(r'[\[{]\s*(["\d\[{-]|$)'): "JSON, which is not read: write a csv with the columns source and target",
    re.compile(r"<"): "XML: call it .graphml if it is that",
    re.compile(r"sep=.?\s*$"): "a table for Excel: remove its first line, which names the separator",
}


class Block(NamedTuple):
    """Some rows of a table: their numbers in the file, from 1 on, and the cells of each column."""

    lines: Sequence[int]
    columns: Sequence[Sequence[str]]


@dataclass(frozen=True)
class Table:
    """A file of lines of ``count`` cells with ``delimiter`` between them (``None``: white space).

    ``titles`` are the names of its columns, where its first line has them.
    """

    path: Path
    delimiter: str | None = None
    count: int = 0
    titles: tuple[str, ...] | None = None

    def lines(self) -> Iterator[tuple[int, str]]:
        """The lines below the header with their numbers in the file, without blank ones and comments.

        Refused is what may be a comment or an edge between hashtags; one such line above all others is a header.
        """
        top, skipped = True, self.titles is None
        with open_text(self.path) as stream:
            for number, line in enumerate(stream, 1):
                bare = line.lstrip()
                if not bare:
                    continue
                if bare[0] in COMMENTS:
                    if self.delimiter and COMMENTED.match(bare) and bare.count(self.delimiter) == self.count - 1:
                        if not top:
                            text = show(bare.strip(), typed=False)
                            unclear = f"{self.path.name}:{number}: {text} may be a comment or a line of data"
                            raise TadropedgeError(f"{unclear}: put '# ' before it or quotes around names")
                        top = False
                    continue
                top = False
                if skipped:
                    line = line.strip(" \r\n")
                    # Between white space a comment may stand after an edge, too.
                    yield number, TRAILING.sub("", line) if self.delimiter is None and "#" in line else line
                skipped = True

    def rows(self) -> Iterator[tuple[int, list[str]]]:
        """The cells of each line, ``count`` of them, with its number."""
        for number, line in self.lines():
            cells = self.cells(number, line)
            if len(cells) != self.count:
                wrong = f"expected {self.count} columns, got {len(cells)}"
                raise TadropedgeError(f"{self.path.name}:{number}: {wrong}")
            yield number, cells

    def cells(self, number: int, line: str) -> list[str]:
        """The cells of one line."""
        if '"' not in line:
            return line.split(self.delimiter)
        if self.delimiter is None:
            return ["".join(word) for word in WORD.findall(line)]
        try:
            return next(csv.reader([line], delimiter=self.delimiter, skipinitialspace=True, strict=True))
        except csv.Error:
            where = f"{self.path.name}:{number}"
            raise TadropedgeError(f"{where}: a cell in quotes does not end where it should") from None

    def blocks(self) -> Iterator[Block]:
        """All rows, some at a time."""
        rows = self.rows()
        while some := list(islice(rows, ROWS)):
            numbers, cells = zip(*some, strict=True)
            yield Block(numbers, list(zip(*cells, strict=True)))

    def numbers(self, block: Block, column: int, name: str) -> Array:
        """The numbers of a column; in a file of semicolons they may have decimal commas."""
        cells = plain = block.columns[column]
        if self.delimiter == ";" and not any("." in cell for cell in cells):
            plain = [cell.replace(",", ".") for cell in cells]
        try:
            numbers = np.array(list(map(float, plain)))
            if NUMERALS.issuperset("".join(plain)) and np.isfinite(numbers).all():
                return numbers
        except ValueError:
            pass
        place = next(place for place, cell in enumerate(plain) if not _is_finite(cell))
        wrong = f"{show(cells[place], typed=False)} in column {name} is not a finite number in plain digits"
        raise TadropedgeError(f"{self.path.name}:{block.lines[place]}: {wrong}")

    def where(self, row: int) -> str:
        """The file and the number of the line of a row, counted below the header."""
        return f"{self.path.name}:{next(islice(self.lines(), row, None))[0]}"


Rows = list[list[str]]


def open_table(path: Path, header: bool | None, guess: Callable[[Table, Rows], bool | None], what: str) -> Table:
    """The table in a file; where ``header`` is not told, ``guess`` says so, seeing the first rows.

    ``what`` is a line that is no header; where it cannot be told, the user is asked.
    """
    with open_text(path) as stream:
        start = stream.readline()
        data = (each for each in enumerate(chain([start], stream), 1) if (each[1].lstrip() or "#")[0] not in COMMENTS)
        number, line = next(data, (0, ""))
    for form, is_what in FOREIGN.items():
        if form.match(start.lstrip()):
            raise TadropedgeError(f"{path.name}: looks like {is_what}")
    if not line:
        raise TadropedgeError(f"{path.name}: there is nothing in the file")
    line = line.strip(" \r\n")
    table = Table(path, delimiter_of(path, line))
    table = replace(table, count=len(table.cells(number, line)))
    rows = [[cell.strip() for cell in cells] for _, cells in islice(table.rows(), FIRST)]
    if table.count > 2 and rows[0][1:] == [row[0] for row in rows[1:]]:
        raise TadropedgeError(f"{path.name}: looks like a matrix, which is not read: write a line for every edge")
    header = guess(table, rows) if header is None else header
    if header is None:
        line = show(", ".join(rows[0]), typed=False)
        unclear = f"{path.name}:{number}: the line {line} may name the columns or be {what}"
        raise TadropedgeError(f"{unclear}: say header=True or header=False", argument="header")
    return replace(table, titles=tuple(rows[0])) if header else table


def delimiter_of(path: Path, line: str) -> str | None:
    """What separates the cells of the first line: a tab, a semicolon, a comma, or ``None`` for white space.

    Commas between digits beside semicolons are decimal commas.

    >>> delimiter_of(Path("e.csv"), "1;2;0,5"), delimiter_of(Path("e.csv"), "1 2")
    (';', None)
    """
    bare = QUOTED.sub('""', line)
    if "\t" in bare and not ("#" in bare and "\t" not in TRAILING.sub("", bare)):
        return "\t"
    if ";" in bare and "," in DECIMAL_COMMA.sub("", bare):
        raise TadropedgeError(
            f"{path.name}: both ',' and ';' stand in the first line {show(line, typed=False)}: put names that hold one "
            "of them in quotes"
        )
    if ";" not in bare and "," in bare and " " in bare and "," not in DECIMAL_COMMA.sub("", bare):
        raise TadropedgeError(
            f"{path.name}: the comma in the first line {show(line, typed=False)} may separate columns or decimals: "
            "put names that hold spaces in quotes, or write 0.5 for 0,5"
        )
    return next((mark for mark in ";," if mark in bare), None)


def _is_finite(cell: str) -> bool:
    try:
        return NUMERALS.issuperset(cell) and bool(np.isfinite(float(cell)))
    except ValueError:
        return False
