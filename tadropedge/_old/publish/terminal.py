"""Tables for the terminal."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from io import StringIO

from rich import box
from rich.console import Console, JustifyMethod
from rich.table import Table as Shown
from rich.text import Text

from tadropedge._old.publish.tables import Table

__all__ = ["Shown", "as_text", "facts", "least_width", "terminal_table"]

WIDTH = 120  # columns of a text
LEAST = 8  # letters of a folded line


def terminal_table(table: Table, styles: Mapping[str, str] | None = None, below: str | None = None) -> Shown:
    """A table with its caption on top and the words ``below`` under it; ``styles`` of cells by what they hold.

    Cells are shown as they are: brackets in a name are no markup. The ends of a line are folded where room is scarce,
    and nothing is cut off where there are :func:`least_width` columns.
    """
    made = Shown(
        title=Text(table.caption) if table.caption else None,
        title_justify="left",
        caption=Text(below, style="default") if below else None,
        caption_justify="left",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        collapse_padding=True,
    )
    last = len(table.columns) - 1
    for place, name in enumerate(table.columns):
        side: JustifyMethod = "left" if place in table.left else "right"
        whole = 0 < place < last  # numbers, as a rule, of which no digit may be lost
        cells = (name, *(row[place] for row in table.rows))
        longest = max(len(line) for cell in cells for line in cell.split("\n"))
        least = longest if whole else min(longest, LEAST)
        made.add_column(Text(name), justify=side, no_wrap=whole, overflow="fold", min_width=least)
    for row in table.rows:
        made.add_row(Text(row[0]), *(Text(cell, style=(styles or {}).get(cell, "")) for cell in row[1:]))
    return made


def least_width(table: Shown) -> int:
    """The columns of a terminal that a table needs at least, so that no number is cut off.

    >>> rows = [("degree-proportional:unbiased", "87.44 ± 0.14", "undecided")]
    >>> least_width(terminal_table(Table("", ("method", "test", "verdict"), rows)))  # 8 + 12 + 8, and what is between
    34
    """
    return sum((column.min_width or 0) + 2 for column in table.columns)


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


def as_text(parts: Iterable[Shown | str]) -> str:
    """Lines and tables as one text, without colours and without spaces at the ends of lines.

    >>> as_text(["Found:", terminal_table(Table("", ("method", "p"), [("cdf", "0.5")]))]).splitlines()[0]
    'Found:'
    """
    console = Console(file=StringIO(), width=WIDTH, color_system=None)
    for part in parts:
        console.print(Text(part) if isinstance(part, str) else part)
    written = console.file.getvalue()  # type: ignore[attr-defined]
    return "\n".join(line.rstrip() for line in written.splitlines())
