"""The table of a comparison for the terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.table import Table as Shown

from tadropedge.comparison.rows import Row, honest_label, judged, labelled, paper_label, title
from tadropedge.comparison.statistics import verdict
from tadropedge.publish.tables import Table
from tadropedge.publish.terminal import terminal_table
from tadropedge.publish.wording import NOTHING, p_value, percent, plus_minus, points

COLUMNS = ("method", "best test\n(paper)", "accuracy\n(honest)", "difference\nto DropEdge", "p", "verdict")
STYLES = {"better": "bold green", "worse": "bold red", "failed": "bold red"}


def table(rows: Sequence[Row]) -> Shown:
    """Both protocols side by side, for the rows of one dataset, backbone and depth, with 95 % intervals.

    >>> table([Row(dataset="cora", backbone="gcn", layers=2, method="cdf")]).row_count
    1
    """
    made = Table(title(rows), COLUMNS, list(_cells(rows)), left=(0, len(COLUMNS) - 1))
    below = f"{paper_label(rows)}\n{honest_label(rows)}\n{verdict(judged(rows))}"
    return terminal_table(made, STYLES, below)


def _cells(rows: Sequence[Row]) -> Iterator[tuple[str, ...]]:
    for label, row in labelled(rows).items():
        paper = percent(row.paper_protocol.best_test) if row.paper_protocol else NOTHING
        if (honest := row.honest) is None:
            yield label, paper, NOTHING, NOTHING, NOTHING, ""
            continue
        accuracy = plus_minus(percent(honest.mean), honest.low, honest.high)
        gap = plus_minus(points(honest.difference), honest.difference_low, honest.difference_high)
        yield label, paper, accuracy, gap, p_value(honest.p_value), honest.outcome or ""
