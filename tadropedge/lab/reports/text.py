"""What readers see as text: numbers in words, tables for the terminal and as csv.

Python and files hold fractions of 1; people read per cent, and differences in points. Numbers are the same in the
terminal, in pictures and on pages, where each function for them is a filter of templates.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from rich.table import Table as Shown

NOTHING = "–"
WIDTH = 80  # columns of a text
LEAST = 8  # letters of a folded line
COMPUTED = ("=", "+", "-", "@", "\t", "\r")  # how a cell begins that spreadsheets compute


def percent(share: float | None, digits: int = 1) -> str:
    """A share in per cent.

    >>> percent(0.8153), percent(None)
    ('81.5', '–')
    """
    return NOTHING if share is None or not math.isfinite(share) else f"{100 * share:.{digits}f}"


def points(difference: float | None, digits: int = 1) -> str:
    """A difference in points, with its sign.

    >>> points(0.012), points(-0.012), points(-0.0001)
    ('+1.2', '−1.2', '0.0')
    """
    if difference is None or not math.isfinite(difference):
        return NOTHING
    text = f"{100 * difference:+.{digits}f}"
    return text[1:] if float(text) == 0 else text.replace("-", "−")


def interval(low: float | None, high: float | None, digits: int = 1) -> str:
    """Both ends of an interval of a difference, in points.

    >>> interval(-0.001, 0.02)
    '−0.1 to +2.0'
    """
    return NOTHING if NOTHING in (ends := (points(low, digits), points(high, digits))) else " to ".join(ends)


def plus_minus(middle: str, low: float | None, high: float | None, digits: int = 1) -> str:
    """A number and half the width of its interval, where that has ends.

    >>> plus_minus(percent(0.81), 0.80, 0.82), plus_minus(NOTHING, None, None)
    ('81.0 ± 1.0', '–')
    """
    if low is None or high is None or not math.isfinite(high - low):
        return middle
    return f"{middle} ± {50 * (high - low):.{digits}f}"


def factor(times: float | None) -> str:
    """By how much one thing costs less than another.

    >>> factor(3.14159), factor(12.6), factor(None)
    ('3.1 ×', '13 ×', '–')
    """
    return NOTHING if times is None else f"{times:.{1 if times < 10 else 0}f} ×"


def seconds(number: float | None) -> str:
    """A time as people say it.

    >>> [seconds(number) for number in (0.0042, 0.5, 90, 7200, None)]
    ['4.2 ms', '0.5 s', '90 s', '2 h', '–']
    """
    if number is None:
        return NOTHING
    if number < 0.1:
        return f"{1000 * number:.2g} ms"
    return (
        f"{number:.2g} s" if number < 120 else f"{number / 60:.0f} min" if number < 7200 else f"{number / 3600:.3g} h"
    )


def memory(size: float | None) -> str:
    """Bytes as people say them.

    >>> memory(36_700_160), memory(None)
    ('35 MiB', '–')
    """
    if size is None:
        return NOTHING
    return f"{size / 2**20:.0f} MiB" if size < 2**30 else f"{size / 2**30:.1f} GiB"


def counted(number: int, thing: str) -> str:
    """A number of things.

    >>> counted(1, "layer"), counted(1200, "trial")
    ('1 layer', '1,200 trials')
    """
    return f"{number:,} {thing}{'' if number == 1 else 's'}"


def listed(names: Iterable[object]) -> str:
    """Names in a sentence.

    >>> listed("a"), listed("ab"), listed([1, 2, 3])
    ('a', 'a and b', '1, 2 and 3')
    """
    *rest, last = map(str, names)
    return f"{', '.join(rest)} and {last}" if rest else last


def shown(value: object) -> str:
    """Any JSON value as a few words.

    >>> shown({"torch": "2.13.0", "numpy": "2.4.6"}), shown(812.4375), shown(["a", 1]), shown(None)
    ('torch 2.13.0, numpy 2.4.6', '812.4', 'a, 1', '–')
    """
    if value is None:
        return NOTHING
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {shown(part)}" for name, part in value.items()) or NOTHING
    if isinstance(value, list | tuple):
        return ", ".join(shown(part) for part in value) or NOTHING
    return str(value)


def short(words: str, longest: int) -> str:
    """Words, cut where they would leave no room.

    >>> short("a long name", 6)
    'a lon…'
    """
    return words if len(words) <= longest else f"{words[: longest - 1]}…"


FILTERS = (percent, points, interval, plus_minus, factor, seconds, memory, counted, listed, shown, short)


# -- tables ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Table:
    """Words in columns: those whose place is in ``left`` start at the left; numbers, all others, end at the right."""

    caption: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    left: Collection[int] = (0,)


def terminal_table(table: Table) -> Shown:
    """A table with its caption on top.

    Cells are shown as they are: brackets in a name are no markup. The ends of a line are folded where room is scarce,
    and no digit is cut off.
    """
    from rich import box
    from rich.table import Table as Shown
    from rich.text import Text

    made = Shown(
        title=Text(table.caption) if table.caption else None,
        title_justify="left",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        collapse_padding=True,
    )
    last = len(table.columns) - 1
    for place, name in enumerate(table.columns):
        side: Literal["left", "right"] = "left" if place in table.left else "right"
        whole = 0 < place < last  # numbers, as a rule
        cells = (name, *(row[place] for row in table.rows))
        longest = max(len(line) for cell in cells for line in cell.split("\n"))
        least = longest if whole else min(longest, LEAST)
        made.add_column(Text(name), justify=side, no_wrap=whole, overflow="fold", min_width=least)
    for row in table.rows:
        made.add_row(*map(Text, row))
    return made


def facts(words: Mapping[str, str]) -> Shown:
    """What is known, a line for each: its name, and the words for it, folded where the terminal is narrow.

    >>> print(as_text([facts({"nodes": "34", "edges": "78"})]))
    nodes  34
    edges  78
    """
    from rich.table import Table as Shown
    from rich.text import Text

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
    from rich.console import Console
    from rich.text import Text

    stream = io.StringIO()
    console = Console(file=stream, width=width, color_system=None, soft_wrap=False)
    for part in parts:
        console.print(Text(part) if isinstance(part, str) else part)
    return "\n".join(line.rstrip() for line in stream.getvalue().splitlines())


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
