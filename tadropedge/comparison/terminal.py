"""The table of a comparison for the terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich import box
from rich.table import Table
from rich.text import Text

from tadropedge.comparison.rows import Row, labels
from tadropedge.comparison.statistics import verdict
from tadropedge.comparison.wording import (
    NOTHING,
    honest_label,
    judged,
    outcome,
    p_value,
    paper_label,
    percent,
    plus_minus,
    points,
    title,
)

COLUMNS = ("method", "best test\n(paper)", "accuracy\n(honest)", "difference\nto DropEdge", "p", "verdict")
STYLES = {"better": "bold green", "worse": "bold red", "failed": "bold red"}


def table(rows: Sequence[Row]) -> Table:
    """Both protocols side by side, for the rows of one dataset, backbone and depth, with 95 % intervals.

    >>> table([Row("cora", "gcn", 2, "cdf")]).row_count
    1
    """
    caption = f"{paper_label(rows)}\n{honest_label(rows)}\n{verdict(judged(rows))}"
    made = Table(
        title=Text(title(rows[0])) if rows else None,
        caption=Text(caption, style="default"),
        caption_justify="left",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        collapse_padding=True,
    )
    for place, name in enumerate(COLUMNS):
        made.add_column(
            name, justify="left" if place in (0, len(COLUMNS) - 1) else "right", no_wrap=place > 0, overflow="fold"
        )
    for label, row in zip(labels(rows), rows, strict=True):
        made.add_row(*_cells(label, row))
    return made


def _cells(label: str, row: Row) -> list[Text]:
    """A row as text: ``Text`` shows names as they are, so brackets in them are no markup."""
    paper = percent(row.paper_protocol.best_test) if row.paper_protocol else NOTHING
    honest = row.honest
    if honest is None:
        return [Text(cell) for cell in (label, paper, NOTHING, NOTHING, NOTHING, "")]
    said = outcome(honest)
    accuracy = plus_minus(percent(honest.mean), honest.low, honest.high)
    gap = plus_minus(points(honest.difference), honest.difference_low, honest.difference_high)
    cells = (label, paper, accuracy, gap, p_value(honest.p_value))
    return [*map(Text, cells), Text(said, style=STYLES.get(said, ""))]
