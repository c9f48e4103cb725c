"""The picture of Table 2: every row on every dataset, printed and measured."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from matplotlib.figure import Figure

from tadropedge.paper.rows import grouped
from tadropedge.publish.pictures import WIDTH, lines, marks, picture

if TYPE_CHECKING:
    from tadropedge.paper.items.table2_claims import Contender


def draw(rows: Sequence[Contender]) -> dict[str, bytes]:
    """The one picture there is."""
    return {"table2": panels(rows)}


@picture
def panels(rows: Sequence[Contender]) -> tuple[Figure, str]:
    """One panel per dataset, one line per row."""
    names = list(dict.fromkeys(row.row for row in rows))
    groups = grouped(rows, lambda row: row.dataset)
    figure = Figure(figsize=(WIDTH, 1.4 + 0.36 * len(names)))
    axes = figure.subplots(1, len(groups), sharey=True, squeeze=False)[0]
    for axis, (dataset, mine) in zip(axes, groups.items(), strict=True):
        lines(axis, names)
        for row in mine:
            best = row.accuracy if row.source == "measured" else None
            marks(axis, names.index(row.row), row.printed, best, (row.honest.low, row.honest.mean, row.honest.high))
        axis.set_title(dataset)
    figure.supxlabel("test accuracy (%); bar: printed; diamond: best trial; dot: honest mean, 95 %", fontsize=9)
    return figure, "TADropEdge beside its competitors"
