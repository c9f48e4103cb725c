"""``tadropedge report``: the page of a finished comparison or reproduction, written again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from tadropedge.cli.app import app
from tadropedge.cli.options import Json_


@app.command("report")
def report_command(
    folder: Annotated[Path, typer.Argument(help="folder with a results.json")], as_json: Json_ = False
) -> None:
    """Write the report of a finished comparison or reproduction again.

    Example: tadropedge report cora-gcn
    """
    from tadropedge.cli.show import show, show_verdicts
    from tadropedge.comparison.report import write_report
    from tadropedge.comparison.results import parse
    from tadropedge.paper.document import as_plain, parse_document
    from tadropedge.paper.reproduce import write_folder
    from tadropedge.typed import read_json

    content = read_json(folder / "results.json")
    if isinstance(content, dict) and "verdicts" in content:
        document = parse_document(content, "results.json")
        page = write_folder(document, folder)
        if as_json:
            print(json.dumps(as_plain(document)))
        else:
            show_verdicts(document)
    else:
        results = parse(content, "results.json")
        page = write_report(results, folder / "report.html")
        show(results, as_json)
    if not as_json:
        print(f"report: {page}")
