"""``report.html``: one self-contained page with the verdict, both protocols, the pictures and the run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tadropedge.comparison.figures import drawn
from tadropedge.comparison.results import as_document, parse
from tadropedge.comparison.rows import Results, Row, grouped, honest_label, judged, labelled, paper_label, title
from tadropedge.comparison.statistics import verdict
from tadropedge.files import write_atomic
from tadropedge.publish.page import embedded, run_lines
from tadropedge.publish.page import render as render_page
from tadropedge.publish.tables import Table
from tadropedge.publish.wording import counted, interval, p_value, percent, points, shown

CAPTIONS = {
    "accuracy": "Mean test accuracy under the honest protocol.",
    "differences": "Paired difference to DropEdge at the same expected number of kept edges, honest protocol.",
    "convergence": "Training and validation loss of each method.",
    "by-keep-prob": "Accuracy of the trials of the search; the line is the median along keep_prob.",
}


def write_report(results: Results, path: str | Path) -> Path:
    """Write ``report.html`` in one step and return its path."""
    return write_atomic(Path(path), render(results).encode())


def render(results: Results) -> str:
    """The page as text.

    >>> row = Row(dataset="cora", backbone="gcn", layers=2, method="cdf")
    >>> page = render(Results([row], {"commit": "0123abcd"}))
    >>> "no method was compared with DropEdge." in page, "0123abcd" in page
    (True, True)
    """
    results = parse(as_document(results))
    datasets = list(dict.fromkeys(row.dataset for row in results.rows))
    return render_page(
        "comparison/report.html.j2",
        heading=f"Which edge dropping helps on {', '.join(datasets) or 'nothing'}?",
        groups=[_group(rows) for rows in grouped(results.rows)],
        run=run_lines(results.run),
    )


def _group(rows: Sequence[Row]) -> dict[str, object]:
    """What the page says of one dataset, backbone and depth."""
    return {
        "title": title(rows),
        "verdict": verdict(judged(rows)),
        "honest_label": honest_label(rows),
        "honest": _honest(rows),
        "tested": counted(sum(honest.p_value is not None for honest in judged(rows).values()), "method"),
        "paper_label": paper_label(rows),
        "paper": _paper(rows),
        "pictures": [(CAPTIONS[name], embedded(picture)) for name, picture in drawn(rows).items()],
        "settings": _settings(rows),
    }


def _honest(rows: Sequence[Row]) -> Table:
    columns = (
        *("method", "verdict", "accuracy\n(%)", "95 % interval", "difference to\nDropEdge (points)", "95 % interval"),
        *("p-value,\ncorrected", "seeds"),
    )
    cells = [
        (
            label,
            honest.outcome or "",
            percent(honest.mean),
            interval(honest.low, honest.high),
            points(honest.difference),
            interval(honest.difference_low, honest.difference_high, signed=True),
            p_value(honest.p_value),
            f"{honest.seeds} ({honest.failed} failed)" if honest.failed else f"{honest.seeds}",
        )
        for label, honest in judged(rows).items()
    ]
    return Table(f"honest protocol, {title(rows)}", columns, cells, left=(0, 1))


def _paper(rows: Sequence[Row]) -> Table:
    found = {label: row.paper_protocol for label, row in labelled(rows).items() if row.paper_protocol}
    cells = [(label, percent(paper.best_test), f"{paper.trials}") for label, paper in found.items()]
    return Table(f"paper protocol, {title(rows)}", ("method", "best test\naccuracy (%)", "trials"), cells)


def _settings(rows: Sequence[Row]) -> Table:
    names = list(dict.fromkeys(name for row in rows for name in row.settings))
    chosen = {label: row.settings for label, row in labelled(rows).items() if row.settings}
    cells = [(label, *(shown(settings.get(name)) for name in names)) for label, settings in chosen.items()]
    return Table(f"settings, {title(rows)}", ("method", *names), cells)
