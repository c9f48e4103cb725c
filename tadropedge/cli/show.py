"""How results are printed: JSON alone, or lines and tables that fit 80 columns."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable
from textwrap import wrap
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.table import Table

WIDTH = 80


def show(document: object, as_json: bool, parts: Iterable[str | Table]) -> None:
    """Print a document as JSON and nothing else, or else the lines and tables that tell of it."""
    if as_json:
        print(json.dumps(document, indent=2))
        return
    from rich.console import Console

    from tadropedge.lab.reports.tables import as_text

    for part in parts:
        if isinstance(part, str):
            print("\n".join(_wrapped(line, columns()) for line in part.split("\n")))
        elif sys.stdout.isatty():
            Console(highlight=False).print(part)
        else:
            print(as_text([part], columns()))


def columns() -> int:
    """How wide a text may be: as the terminal is, or as ``COLUMNS`` says."""
    from rich.console import Console

    return Console().width if sys.stdout.isatty() or "COLUMNS" in os.environ else WIDTH


def _wrapped(line: str, width: int) -> str:
    r"""A line, broken between words alone, so that paths stay whole; what is indented stays a line.

    >>> _wrapped("written to a/very/long/folder", 12)
    'written to\na/very/long/folder'
    """
    if line.startswith(" "):
        return line
    return "\n".join(wrap(line, width, break_long_words=False, break_on_hyphens=False))
