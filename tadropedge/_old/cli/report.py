"""``tadropedge report``: the page of a finished comparison, reproduction or map again; how results are printed."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Annotated

import typer

from tadropedge._old.cli.options import Json_, Wait_, output_folder

if TYPE_CHECKING:
    from rich.console import RenderableType

    from tadropedge._old.comparison.results import Results
    from tadropedge._old.paper.document import Document
    from tadropedge._old.regimes.results import RegimeMap

PIPED = 120  # columns of a table where there is no terminal


def report_command(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="folder with a results.json", show_default=False)],
    wait: Wait_ = False,
    as_json: Json_ = False,
) -> None:
    """Write the report of a finished comparison, reproduction or map of regimes again."""
    from tadropedge._old.comparison.report import write_report
    from tadropedge._old.comparison.results import parse
    from tadropedge._old.paper.document import parse_document
    from tadropedge._old.paper.reproduce import write_folder
    from tadropedge._old.regimes.report import write_pages
    from tadropedge._old.regimes.results import read_map
    from tadropedge._old.typed import read_json

    folder = folder.parent if folder.name == "results.json" and folder.is_file() else folder
    read_json(folder / "results.json")  # a folder without results is not made
    with output_folder(folder, "report.html", wait=wait):
        content = read_json(folder / "results.json")
        if isinstance(content, dict) and "cells" in content:
            found = read_map(folder / "results.json")
            show_map(found, as_json, f"report: {write_pages(found, folder)}")
        elif isinstance(content, dict) and "verdicts" in content:
            document = parse_document(content, "results.json")
            show_verdicts(document, as_json, f"report: {write_folder(document, folder)}")
        else:
            results = parse(content, "results.json")
            show_comparison(results, as_json, f"report: {write_report(results, folder / 'report.html')}")


def show(document: object, as_json: bool, words: Iterable[RenderableType]) -> None:
    """Print a document as JSON and nothing else, or else the lines and tables that tell of it."""
    if as_json:
        print(json.dumps(document))
        return
    from rich.console import Console
    from rich.table import Table

    from tadropedge._old.publish.terminal import least_width

    terminal = sys.stdout.isatty()
    # A pipe has no width: lines stay whole there, and tables get a fixed one unless COLUMNS says another.
    console = Console() if terminal or "COLUMNS" in os.environ else Console(width=PIPED)
    for part in words:
        if isinstance(part, str):
            print(_wrapped(part, console.width) if terminal else part)
            continue
        above, below = (part.title, part.caption) if isinstance(part, Table) else (None, None)
        if isinstance(part, Table):
            part.title = part.caption = None  # which would be as narrow as the table
        for piece in filter(None, (above, part, below)):
            least = least_width(piece) if isinstance(piece, Table) else 0
            wide = console if least <= console.width else Console(width=least)  # a narrow terminal wraps its lines
            wide.print(piece)


def _wrapped(words: str, width: int) -> str:
    """Lines of a width, broken between words alone: the path of a file stays whole.

    >>> _wrapped("written to a/very/long/folder", 12).splitlines()
    ['written to', 'a/very/long/folder']
    """
    lines = (wrap(line, width, break_long_words=False, break_on_hyphens=False) for line in words.splitlines())
    return "\n".join(line for some in lines for line in some or [""])


def show_comparison(results: Results, as_json: bool, *lines: str) -> None:
    """Print the advice and the tables of a comparison, then some lines."""
    from tadropedge._old.comparison.report import told
    from tadropedge._old.comparison.results import as_document

    show(as_document(results), as_json, chain(told(results), lines))


def show_map(found: RegimeMap, as_json: bool, *lines: str) -> None:
    """Print what a map found, condition by condition, and its goals, then some lines."""
    from tadropedge._old.regimes.terminal import told
    from tadropedge._old.typed import plain

    show(plain(vars(found)), as_json, chain(told(found), lines))


def show_verdicts(document: Document, as_json: bool, *lines: str) -> None:
    """Print every claim with its verdict and the reason, then some lines."""
    from rich.padding import Padding
    from rich.text import Text

    from tadropedge._old.paper.document import as_plain
    from tadropedge._old.paper.item import STATUSES

    styles = dict(zip(STATUSES, ("bold blue", "bold cyan", "bold dark_orange3", "bold magenta"), strict=True))

    def words() -> Iterator[RenderableType]:
        for name, entry in document.items():
            for verdict in entry.verdicts:
                yield Text(f"{name}: {verdict.word}", style=styles[verdict.status])
                yield from (Padding(Text(part), (0, 0, 0, 2)) for part in (verdict.claim, verdict.reason))

    show(as_plain(document), as_json, chain(words(), lines))
