"""One table, many forms: for the terminal, in Markdown, as csv; pages have a macro in ``parts.html.j2``."""

from __future__ import annotations

import csv
import io
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from rich import box
from rich.console import Console, JustifyMethod
from rich.table import Table as Shown
from rich.text import Text

WIDTH = 80  # columns of a text
LEAST = 8  # letters of a folded line
COMPUTED = ("=", "+", "-", "@", "\t", "\r")  # how a cell begins that spreadsheets compute


@dataclass(frozen=True)
class Table:
    """Words in columns: those whose place is in ``left`` start at the left; numbers, all others, end at the right."""

    caption: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    left: Collection[int] = (0,)


def terminal_table(table: Table, styles: Mapping[str, str] | None = None) -> Shown:
    """A table with its caption on top; ``styles`` of cells by what they hold.

    Cells are shown as they are: brackets in a name are no markup. The ends of a line are folded where room is scarce,
    and no digit is cut off.
    """
    made = Shown(
        title=Text(table.caption) if table.caption else None,
        title_justify="left",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        collapse_padding=True,
    )
    last = len(table.columns) - 1
    for place, name in enumerate(table.columns):
        side: JustifyMethod = "left" if place in table.left else "right"
        whole = 0 < place < last  # numbers, as a rule
        cells = (name, *(row[place] for row in table.rows))
        longest = max(len(line) for cell in cells for line in cell.split("\n"))
        least = longest if whole else min(longest, LEAST)
        made.add_column(Text(name), justify=side, no_wrap=whole, overflow="fold", min_width=least)
    for row in table.rows:
        made.add_row(Text(row[0]), *(Text(cell, style=(styles or {}).get(cell, "")) for cell in row[1:]))
    return made


def facts(words: Mapping[str, str]) -> Shown:
    """What is known, a line for each: its name, and the words for it, folded where the terminal is narrow.

    >>> print(as_text([facts({"nodes": "34", "edges": "78"})]))
    nodes  34
    edges  78
    """
    grid = Shown.grid(padding=(0, 2))
    grid.add_column(style="dim", no_wrap=True)
    grid.add_column(overflow="fold")
    for name, told in words.items():
        grid.add_row(Text(name), Text(told))
    return grid


def as_text(parts: Iterable[Shown | str], width: int = WIDTH) -> str:
    """Lines and tables as one text, without colours and without spaces at the ends of lines.

    >>> as_text(["Found:", terminal_table(Table("", ("method", "p"), [("cdf", "0.5")]))]).splitlines()[0]
    'Found:'
    """
    stream = io.StringIO()
    console = Console(file=stream, width=width, color_system=None, soft_wrap=False)
    for part in parts:
        console.print(Text(part) if isinstance(part, str) else part)
    return "\n".join(line.rstrip() for line in stream.getvalue().splitlines())


# -- text -----------------------------------------------------------------------------------------------


def markdown(columns: Sequence[str], rows: Iterable[Iterable[object]], left: Collection[int] = (0,)) -> list[str]:
    r"""A table as lines of Markdown; a cell stays in its line, whatever it holds.

    >>> markdown(["graph", "edges"], [["a|b", 3]])
    ['| graph | edges |', '|---|---:|', '| a\\|b | 3 |']
    """
    rule = ("---" if place in left else "---:" for place in range(len(columns)))
    return [_line(columns), f"|{'|'.join(rule)}|", *map(_line, rows)]


def _line(cells: Iterable[object]) -> str:
    return f"| {' | '.join(' '.join(str(cell).split()).replace('|', chr(92) + '|') for cell in cells)} |"


def csv_lines(rows: Iterable[Iterable[object]], quoted: bool = False) -> bytes:
    r"""Lines of a csv file; ``quoted`` puts all words in quotation marks, so that every name comes back as it was.

    What is ``None`` stays empty.

    >>> csv_lines([["method", "mean"], ["cdf", 0.5], ["original", None]])
    b'method,mean\ncdf,0.5\noriginal,\n'
    """
    text = io.StringIO()
    writer = csv.writer(text, quoting=csv.QUOTE_NONNUMERIC if quoted else csv.QUOTE_MINIMAL, lineterminator="\n")
    writer.writerows(map(inert, row) for row in rows)
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
