"""Results on standard output: a table, or JSON and nothing else."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tadropedge.comparison.rows import Results
    from tadropedge.paper.document import Document


def show(results: Results, as_json: bool) -> None:
    """Print the rows of a comparison."""
    from rich.console import Console

    from tadropedge.comparison.results import as_document
    from tadropedge.comparison.rows import grouped
    from tadropedge.comparison.terminal import table

    if as_json:
        print(json.dumps(as_document(results)))
        return
    for group in grouped(results.rows):
        Console().print(table(group))


def show_verdicts(document: Document) -> None:
    """Print every claim with its verdict and the reason."""
    from rich.console import Console
    from rich.padding import Padding
    from rich.text import Text

    from tadropedge.paper.item import STATUSES

    styles = dict(zip(STATUSES, ("bold blue", "bold dark_orange3", "bold magenta"), strict=True))
    console = Console()
    for name, entry in document.items():
        for verdict in entry.verdicts:
            console.print(f"{name}: {verdict.status}", style=styles[verdict.status], markup=False, highlight=False)
            for words in (verdict.claim, verdict.reason):
                console.print(Padding(Text(words), (0, 0, 0, 2)))
