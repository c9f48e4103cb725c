"""A table of text: what separates its cells, whether it has a header, its columns and numbers, a block at a time."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from tadropedge.errors import TadropedgeError, show
from tadropedge.files.contents import Array
from tadropedge.files.opening import open_text

BLOCK = 1 << 17  # characters that are read together: what a processor keeps at hand
COMMENTS = "#%"
NUMERALS = frozenset("0123456789+-.eE ")  # so that neither 1_0 nor the digits of other scripts are numbers
TRAILING = re.compile(r"\s#.*$")
QUOTED = re.compile(r'"[^"]*"')
COMMENTED = re.compile(r"\s*[#%]\w")  # not "# a comment"
WORD = re.compile(r'"([^"]*)"(?!\S)|(\S+)')  # between white space, with or without quotes
DECIMAL_COMMA = re.compile(r"(?<=\d),(?=\d)")
FOREIGN = {
    re.compile(r"%%MatrixMarket"): "a Matrix Market file: call it .mtx",
    re.compile(r'[\[{]\s*(["\d\[{-]|$)'): "JSON, which is not read: write a csv with the columns source and target",
    re.compile(r"<"): "XML: call it .graphml if it is that",
    re.compile(r"sep=.?\s*$"): "a table for Excel: remove its first line, which names the separator",
}


@dataclass(frozen=True)
class Block:
    """Some lines of a file without blank ones and comments; ``raw`` has them all and ``before`` counts those above."""

    lines: list[str]
    raw: list[str]
    before: int
    skipped: int = 0

    def number(self, place: int) -> int:
        """The number in the file, from 1 on, of one of the ``lines``."""
        data = [number for number, line in enumerate(self.raw, self.before + 1) if _is_data(line)]
        return data[place + self.skipped]


@dataclass(frozen=True)
class Table:
    """A file of lines of ``count`` cells with ``delimiter`` between them (``None``: white space).

    ``titles`` are the names of its columns, where its first line has them.
    """

    path: Path
    delimiter: str | None
    count: int = 0  # as many as there are in the first line
    titles: tuple[str, ...] | None = None

    def blocks(self) -> Iterator[Block]:
        """The lines below the header; white space in front of a comment does not count."""
        header, top = self.titles is not None, True
        for block in _read_blocks(self.path):
            self._check_comments(block, top)
            top = False
            yield replace(block, lines=block.lines[1:], skipped=1) if header else block
            header = False

    def lines(self, block: Block) -> list[str]:
        """The lines of a block; between white space, ``#`` begins a comment after an edge, too."""
        if self.delimiter is None and any("#" in line for line in block.lines):
            return [TRAILING.sub("", line) for line in block.lines]
        return block.lines

    def rows(self, block: Block) -> list[list[str]]:
        """The cells of each line of a block, all of them of one number."""
        lines = self.lines(block)
        try:
            rows = self._split(lines)
        except csv.Error:
            rows = []
        if len(rows) < len(lines):
            place = next((place for place, line in enumerate(lines) if not self._is_whole(line)), len(lines) - 1)
            raise TadropedgeError(f"{self._where(block, place)}: a cell in quotes does not end where it should")
        count = self.count or len(rows[0])
        if set(map(len, rows)) - {count}:
            place, found = next((place, len(row)) for place, row in enumerate(rows) if len(row) != count)
            raise TadropedgeError(f"{self._where(block, place)}: expected {count} columns, got {found}")
        return rows

    def columns(self, block: Block) -> list[tuple[str, ...]]:
        """The cells of each column of a block."""
        return list(zip(*self.rows(block), strict=True)) or [()] * self.count

    def numbers(self, block: Block, cells: Sequence[str], name: str) -> Array:
        """The numbers of a column; in a file of semicolons they may have decimal commas."""
        plain: Sequence[str] = cells
        if self.delimiter == ";" and not any("." in cell for cell in cells):
            plain = [cell.replace(",", ".") for cell in cells]
        try:
            numbers = np.array(list(map(float, plain)))
            if NUMERALS.issuperset("".join(plain)) and np.isfinite(numbers).all():
                return numbers
        except ValueError:
            pass
        place = next(place for place, cell in enumerate(plain) if not _is_finite(cell))
        wrong = f"{show(cells[place], typed=False)} in column {name}"
        raise TadropedgeError(f"{self._where(block, place)}: {wrong} is not a finite number in plain digits")

    def where(self, row: int) -> str:
        """The file and the number of the line of a row, counted below the header."""
        for block in self.blocks():
            if row < len(block.lines):
                return self._where(block, row)
            row -= len(block.lines)
        raise IndexError(row)

    def _check_comments(self, block: Block, top: bool) -> None:
        """Refuse what may be a comment or an edge between hashtags; one such line above all others is a header."""
        if self.delimiter is None or len(block.raw) == len(block.lines):
            return
        alike = [place for place, line in enumerate(block.raw) if COMMENTED.match(line)]
        alike = [place for place in alike if block.raw[place].count(self.delimiter) == self.count - 1]
        allowed = top and alike[1:] == [] and not any(map(_is_data, block.raw[: (alike or [0])[0]]))
        if alike and not allowed:
            where = f"{self.path.name}:{block.before + alike[-1] + 1}"
            line = show(block.raw[alike[-1]].strip(), typed=False)
            raise TadropedgeError(
                f"{where}: {line} may be a comment or a line of data: put '# ' before it or quotes around names"
            )

    def _where(self, block: Block, place: int) -> str:
        return f"{self.path.name}:{block.number(place)}"

    def _split(self, lines: list[str]) -> list[list[str]]:
        if self.delimiter is not None:
            return list(csv.reader(lines, delimiter=self.delimiter, skipinitialspace=True, strict=True))
        if any('"' in line for line in lines):
            return [["".join(word) for word in WORD.findall(line)] for line in lines]
        return list(map(str.split, lines))

    def _is_whole(self, line: str) -> bool:
        try:
            return len(self._split([line])) == 1
        except csv.Error:
            return False


Rows = list[list[str]]


def open_table(path: Path, header: bool | None, guess: Callable[[Table, Rows], bool | None], what: str) -> Table:
    """The table in a file; where ``header`` is not told, ``guess`` says so, seeing the rows of the first block.

    ``what`` is a line that is no header; where it cannot be told, the user is asked.
    """
    with open_text(path) as stream:
        start = stream.readline().lstrip()
    for form, is_what in FOREIGN.items():
        if form.match(start):
            raise TadropedgeError(f"{path.name}: looks like {is_what}")
    block = next(_read_blocks(path), None)
    if block is None:
        raise TadropedgeError(f"{path.name}: there is nothing in the file")
    delimiter = delimiter_of(path, block.lines[0])
    table = Table(path, delimiter)
    rows = [[cell.strip() for cell in row] for row in table.rows(block)]
    table = replace(table, count=len(rows[0]))
    if table.count > 2 and rows[0][1:] == [row[0] for row in rows[1:]]:
        raise TadropedgeError(f"{path.name}: looks like a matrix, which is not read: write a line for every edge")
    header = guess(table, rows) if header is None else header
    if header is None:
        line = show(", ".join(rows[0]), typed=False)
        unclear = f"{path.name}:{block.number(0)}: the line {line} may name the columns or be {what}"
        raise TadropedgeError(f"{unclear}: say header=True or header=False", argument="header")
    return replace(table, titles=tuple(rows[0])) if header else table


def _read_blocks(path: Path) -> Iterator[Block]:
    with open_text(path) as stream:
        before = 0
        while raw := stream.readlines(BLOCK):
            lines = [line.strip(" \r\n") for line in raw if _is_data(line)]
            if lines:
                yield Block(lines, raw, before)
            before += len(raw)


def _is_data(line: str) -> bool:
    bare = line.lstrip()
    return bare != "" and bare[0] not in COMMENTS


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
