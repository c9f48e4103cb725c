"""``tadropedge report``: the page of finished results again."""

from __future__ import annotations

from pathlib import Path

from tadropedge.cli.options import RunOptions
from tadropedge.cli.output import columns, show
from tadropedge.errors import TadropedgeError
from tadropedge.errors import show as shown


def report(folder: Path, /, *, running: RunOptions = RunOptions()) -> None:
    """Write the page and the table of a finished comparison again, from its results.json.

    Args:
        folder: The folder with the results.json that tadropedge compare wrote.
    """
    running.begin()
    from tadropedge.lab.comparison.page import PAGES, save, text
    from tadropedge.lab.comparison.results import Comparison

    place = folder.parent if folder.name == "results.json" else folder
    results = Comparison.from_file(place / "results.json")
    try:
        told = text(results, columns())
        save(results, place, PAGES)
    except TadropedgeError:
        raise
    except Exception as error:  # what somebody has changed in the file may stand in the way of any sentence
        said = shown(str(error), typed=False)
        raise TadropedgeError(f"'{place / 'results.json'}' was changed and cannot be shown: {said}") from error
    show(results.as_dict(), running.json, [f"written to {place / 'report.html'}", told])
