"""The picture of Table 3: accuracy with each noise, and the bound that nobody can beat."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from matplotlib.figure import Figure

from tadropedge.paper.rows import grouped
from tadropedge.publish.pictures import QUIET, RULE, WIDTH, lines, marks, picture

if TYPE_CHECKING:
    from tadropedge.paper.items.table3 import Localized


def draw(rows: Sequence[Localized]) -> dict[str, bytes]:
    """The one picture there is."""
    return {"table3": panels(rows)}


@picture
def panels(rows: Sequence[Localized]) -> tuple[Figure, str]:
    """One panel per noise, one line per method."""
    methods = list(dict.fromkeys(row.method for row in rows))
    groups = grouped(rows, lambda row: row.noise)
    figure = Figure(figsize=(WIDTH, 1.8 + 0.36 * len(methods)))
    axes = figure.subplots(1, len(groups), sharex=True, sharey=True, squeeze=False)[0]
    for axis, (noise, mine) in zip(axes, groups.items(), strict=True):
        lines(axis, methods)
        for row in mine:
            marks(
                axis,
                methods.index(row.method),
                row.printed,
                row.best_mean,
                (row.honest.low, row.honest.mean, row.honest.high),
            )
        bound = mine[0]
        axis.axvline(100 * bound.bayes, color=QUIET, linewidth=1.1, linestyle=RULE)
        axis.axvspan(100 * bound.bayes_low, 100 * bound.bayes_high, color="#00000012", zorder=0)
        axis.set_title(f"{noise} noise {bound.deviation:g}")
    figure.supxlabel(
        "accuracy (%); bar: printed; diamond: best trial; dot: honest mean, 95 % over graphs\n"
        "dashed and shaded: Bayes bound, mean and range over graphs",
        fontsize=9,
    )
    return figure, "source localisation"
