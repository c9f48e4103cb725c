"""``tadropedge report``: the page of a finished comparison, written again."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tadropedge.cli.app import app
from tadropedge.cli.options import Json_
from tadropedge.cli.show import show
from tadropedge.compare.report import write_report
from tadropedge.compare.results import read_results


@app.command("report")
def report_command(
    folder: Annotated[Path, typer.Argument(help="folder with a results.json")], as_json: Json_ = False
) -> None:
    """Write the report of a finished comparison again.

    Example: tadropedge report cora-gcn
    """
    results = read_results(folder / "results.json")
    page = write_report(results, folder / "report.html")
    show(results, as_json)
    if not as_json:
        print(f"report: {page}")
