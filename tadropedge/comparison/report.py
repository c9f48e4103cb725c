"""What is said of a comparison: ``report.html``, one self-contained page, and the table for the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tadropedge.atomic import write_atomic
from tadropedge.comparison.figures import drawn, save_figures
from tadropedge.comparison.nulls import NULLS, false_alarms, nearest
from tadropedge.comparison.results import (
    MethodRow,
    Results,
    as_document,
    evidence_of,
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
from tadropedge.publish.page import embedded, run_lines
from tadropedge.publish.page import render as render_page
from tadropedge.publish.tables import Table
from tadropedge.publish.terminal import Shown, terminal_table
from tadropedge.publish.wording import NOTHING, counted, p_value, percent, plus_minus, points, shown

BEHIND = (
    *("method", "worst\naccuracy", "worst\ndifference", "collapsed", "could\ncollapse"),
    *("finds\n(80 %)", "seeds\nfor half"),
)
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
    named, honest, evidence = labelled(rows), judged(rows), evidence_of(rows)
    tested = [one for one in honest.values() if one.p_value is not None]
    names = list(dict.fromkeys(name for row in rows for name in row.settings))
    return {
        "title": title(rows),
        "verdict": verdict(honest, evidence),
        "honest_label": honest_label(rows),
        "honest": honest,
        "tested": counted(len(tested), "method"),
        "behind": behind(rows),
        "warnings": warnings(rows),
        "nulls": _nulls(max(one.seeds for one in tested), len(tested)) if tested and evidence else None,
        "paper_label": paper_label(rows),
        "paper": {label: row.paper_protocol for label, row in named.items() if row.paper_protocol},
        "pictures": {name: embedded(picture) for name, picture in drawn(rows).items()},
        "names": names,
        "settings": {
            label: [shown(row.settings.get(name)) for name in names] for label, row in named.items() if row.settings
        },
    }


def _nulls(seeds: int, methods: int) -> dict[str, object]:
    """Rates of false alarms, measured nearest to this comparison: where 5 % is held, and where it is not."""
    near, rates = nearest(seeds, methods), false_alarms(seeds, methods)
    columns = ("null", "mean difference 0, and replicates are", "false alarms (%)")
    where = f"{counted(near[0], 'replicate')} and {counted(near[1], 'method')}"
    rows = {
        one: [(name, NULLS[name].words, percent(rate, 1)) for name, rate in rates.items() if NULLS[name].held == one]
        for one in (True, False)
    }
    held, unheld = (
        Table(f"{words}, {where}", columns, rows[one], left=(0, 1))
        for one, words in ((True, "5 % is held"), (False, "5 % is not always held"))
    )
    return {"where": where, "held": held, "unheld": unheld}


def behind(rows: Sequence[MethodRow]) -> Table | None:
    """What stands behind the verdicts of a group; ``None`` where nothing is known of it.

    >>> behind([MethodRow(dataset="cora", backbone="gcn", layers=2, method="cdf")]) is None
    True
    """
    honest, cells = judged(rows), []
    for label, one in evidence_of(rows).items():
        worst = f"{percent(one.worst)} ({one.worst_replicate})"
        gap = f"{points(one.worst_difference)} ({one.worst_difference_replicate})"
        half = NOTHING if one.seeds_for_half is None else str(one.seeds_for_half)
        cells.append(
            (
                *(label, worst, NOTHING if one.worst_difference is None else gap),
                *(f"{one.collapses} of {honest[label].seeds}", f"≤ {percent(one.collapse_rate, 0)} %"),
                *(points(one.detectable).removeprefix("+"), half),
            )
        )
    return (
        Table("what the replicates can and cannot show (in brackets: which replicate)", BEHIND, cells)
        if cells
        else None
    )


def warnings(rows: Sequence[MethodRow]) -> list[str]:
    """Why a reader should look at the replicates, a line each."""
    return [f"{label}: {words}" for label, one in evidence_of(rows).items() for words in one.warnings]


def tables(rows: Sequence[MethodRow]) -> list[Shown]:
    """What the terminal shows of one dataset, backbone and depth: both protocols, and what stands behind them."""
    made = behind(rows)
    return [table(rows), *([] if made is None else [terminal_table(made, below="\n".join(warnings(rows)))])]


def table(rows: Sequence[MethodRow]) -> Shown:
    """Both protocols side by side in the terminal, for one dataset, backbone and depth, with 95 % intervals.

    >>> table([MethodRow(dataset="cora", backbone="gcn", layers=2, method="cdf")]).row_count
    1
    """
    cells = [(label, *_both(row)) for label, row in labelled(rows).items()]
    below = f"{paper_label(rows)}\n{honest_label(rows)}\n{verdict(judged(rows), evidence_of(rows))}"
    return terminal_table(Table(title(rows), BOTH, cells, left=(0, len(BOTH) - 1)), STYLES, below)


def _both(row: MethodRow) -> tuple[str, ...]:
    paper = percent(row.paper_protocol.best_test) if row.paper_protocol else NOTHING
    if (honest := row.honest) is None:
        return paper, NOTHING, NOTHING, NOTHING, ""
    accuracy = plus_minus(percent(honest.mean), honest.low, honest.high)
    gap = plus_minus(points(honest.difference), honest.difference_low, honest.difference_high)
    return paper, accuracy, gap, p_value(honest.p_value), honest.outcome or ""
