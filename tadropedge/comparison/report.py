"""What is said of a comparison: ``report.html``, one self-contained page, and the table for the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tadropedge.comparison.figures import drawn, save_figures
from tadropedge.comparison.results import (
    MethodRow,
    Results,
    as_document,
    grouped,
    honest_label,
    judged,
    labelled,
    paper_label,
    parse,
    title,
    write_csv,
    write_results,
)
from tadropedge.comparison.statistics import verdict
from tadropedge.files import write_atomic
from tadropedge.publish.page import embedded, run_lines
from tadropedge.publish.page import render as render_page
from tadropedge.publish.tables import Table
from tadropedge.publish.terminal import Shown, terminal_table
from tadropedge.publish.wording import NOTHING, counted, p_value, percent, plus_minus, points, shown

BOTH = ("method", "best test\n(paper)", "accuracy\n(honest)", "difference\nto DropEdge", "p", "verdict")
STYLES = {"better": "bold green", "worse": "bold red", "failed": "bold red"}
FILES = ("results.json", "results.csv", "report.html", "figures/")  # what write_all writes


def write_all(results: Results, folder: Path) -> Path:
    """Write ``results.json``, ``results.csv``, the figures and ``report.html``; return the report's path."""
    write_results(results, folder / "results.json")
    write_csv(results, folder / "results.csv")
    for group in grouped(results.rows):
        save_figures(group, folder / "figures")
    return write_report(results, folder / "report.html")


def write_report(results: Results, path: str | Path) -> Path:
    """Write ``report.html`` in one step and return its path."""
    return write_atomic(Path(path), render(results).encode())


def render(results: Results) -> str:
    """The page as text: the verdict, both protocols, the pictures and the run.

    >>> row = MethodRow(dataset="cora", backbone="gcn", layers=2, method="cdf")
    >>> page = render(Results([row], {"commit": "0123abcd"}))
    >>> "no method was compared with DropEdge." in page, "0123abcd" in page
    (True, True)
    """
    results = parse(as_document(results))
    datasets = ", ".join(dict.fromkeys(row.dataset for row in results.rows)) or "nothing"
    groups = [_group(rows) for rows in grouped(results.rows)]
    heading = f"Which edge dropping helps on {datasets}?"
    return render_page("comparison/report.html.j2", heading=heading, groups=groups, run=run_lines(results.run))


def _group(rows: Sequence[MethodRow]) -> dict[str, object]:
    """What the page says of one dataset, backbone and depth."""
    named, honest = labelled(rows), judged(rows)
    names = list(dict.fromkeys(name for row in rows for name in row.settings))
    return {
        "title": title(rows),
        "verdict": verdict(honest),
        "honest_label": honest_label(rows),
        "honest": honest,
        "tested": counted(sum(one.p_value is not None for one in honest.values()), "method"),
        "paper_label": paper_label(rows),
        "paper": {label: row.paper_protocol for label, row in named.items() if row.paper_protocol},
        "pictures": {name: embedded(picture) for name, picture in drawn(rows).items()},
        "names": names,
        "settings": {
            label: [shown(row.settings.get(name)) for name in names] for label, row in named.items() if row.settings
        },
    }


def table(rows: Sequence[MethodRow]) -> Shown:
    """Both protocols side by side in the terminal, for one dataset, backbone and depth, with 95 % intervals.

    >>> table([MethodRow(dataset="cora", backbone="gcn", layers=2, method="cdf")]).row_count
    1
    """
    cells = [(label, *_both(row)) for label, row in labelled(rows).items()]
    below = f"{paper_label(rows)}\n{honest_label(rows)}\n{verdict(judged(rows))}"
    return terminal_table(Table(title(rows), BOTH, cells, left=(0, len(BOTH) - 1)), STYLES, below)


def _both(row: MethodRow) -> tuple[str, ...]:
    paper = percent(row.paper_protocol.best_test) if row.paper_protocol else NOTHING
    if (honest := row.honest) is None:
        return paper, NOTHING, NOTHING, NOTHING, ""
    accuracy = plus_minus(percent(honest.mean), honest.low, honest.high)
    gap = plus_minus(points(honest.difference), honest.difference_low, honest.difference_high)
    return paper, accuracy, gap, p_value(honest.p_value), honest.outcome or ""
