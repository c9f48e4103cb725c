"""Results on standard output: a table, or JSON and nothing else."""

from __future__ import annotations

import json

from rich.console import Console

from tadropedge.compare.results import as_document
from tadropedge.compare.rows import Results, grouped
from tadropedge.compare.terminal import table


def show(results: Results, as_json: bool) -> None:
    """Print the rows of a comparison."""
    if as_json:
        print(json.dumps(as_document(results)))
        return
    for group in grouped(results.rows):
        Console().print(table(group))
