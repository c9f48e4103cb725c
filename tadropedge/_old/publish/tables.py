"""One table, many forms: lines of Markdown and csv here, a page's in ``page.py``, a terminal's in ``terminal.py``."""

from __future__ import annotations

import csv
import io
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

COMPUTED = ("=", "+", "-", "@", "\t", "\r")  # how a cell begins that spreadsheets compute


@dataclass(frozen=True)
class Table:
    """Words in columns: those whose place is in ``left`` start at the left; numbers, all others, end at the right."""

    caption: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    left: Collection[int] = (0,)


def markdown(columns: Sequence[str], rows: Iterable[Iterable[object]], left: Collection[int] = (0,)) -> list[str]:
    r"""A table as lines of Markdown; a cell stays in its line, whatever it holds.

    >>> markdown(["graph", "edges"], [["a|b", 3]])
    ['| graph | edges |', '|---|---:|', '| a\\|b | 3 |']
    """
    rule = ("---" if place in left else "---:" for place in range(len(columns)))
    return [_line(columns), f"|{'|'.join(rule)}|", *map(_line, rows)]


def _line(cells: Iterable[object]) -> str:
    return f"| {' | '.join(' '.join(str(cell).split()).replace('|', chr(92) + '|') for cell in cells)} |"


def csv_bytes(columns: Sequence[str], rows: Iterable[Iterable[object]]) -> bytes:
    r"""A csv file; what is ``None`` stays empty.

    >>> csv_bytes(["method", "mean"], [["cdf", 0.5], ["original", None]])
    b'method,mean\ncdf,0.5\noriginal,\n'
    """
    return csv_lines([columns, *rows])


def csv_lines(rows: Iterable[Iterable[object]], quoted: bool = False, numbers: bool = False) -> bytes:
    """Lines of a csv file; ``quoted`` puts all words in quotation marks, so that every name comes back as it was.

    ``numbers`` says that there are no words, so that no cell is looked at.
    """
    text = io.StringIO()
    writer = csv.writer(text, quoting=csv.QUOTE_NONNUMERIC if quoted else csv.QUOTE_MINIMAL, lineterminator="\n")
    writer.writerows(rows if numbers else (map(inert, row) for row in rows))
    return text.getvalue().encode(errors="backslashreplace")  # a lone surrogate has no bytes


def inert(cell: object) -> object:
    """A text that a spreadsheet would compute begins with an apostrophe instead, so that it is shown as it is.

    Numbers stay, also those in texts. ``Graph.from_file`` takes the apostrophe off again.

    >>> inert("=HYPERLINK(1)"), inert("'=1"), inert("-0.5"), inert(-0.5), inert("a=1")
    ("'=HYPERLINK(1)", "''=1", '-0.5', -0.5, 'a=1')
    """
    if not isinstance(cell, str) or cell.lstrip("'")[:1] not in COMPUTED:
        return cell
    try:
        float(cell)
    except ValueError:
        return f"'{cell}"
    return cell
