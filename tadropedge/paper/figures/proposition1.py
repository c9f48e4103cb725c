"""Proposition 1 in pictures: distance and bound against the share of dropped edges."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tadropedge.paper.rows import grouped
from tadropedge.publish.pictures import PALETTE, QUIET, RULE, WIDTH, legend, picture

if TYPE_CHECKING:
    from tadropedge.paper.items.proposition1 import Kind

LOOKS = {"inside": (PALETTE[0], "o"), "between": (PALETTE[1], "s"), "as many inside": (PALETTE[2], "^")}


@picture
def distances(rows: Sequence[Kind]) -> tuple[Figure, str]:
    """One panel for each kind of graph: solid lines measured, dotted lines the bound, grey the largest distance."""
    kinds = grouped(rows, lambda row: row.kind)
    lines = -(-len(kinds) // 2)
    figure = Figure(figsize=(WIDTH * 1.5, 1.0 + 3.0 * lines))
    axes = figure.subplots(lines, 2, sharex=True, squeeze=False)
    for axis, (kind, mine) in zip(axes.flatten(), kinds.items(), strict=False):
        _panel(axis, mine)
        axis.set_title(kind.replace(", links", ",\nlinks"), fontsize=10)
    for axis in axes.flatten()[len(kinds) :]:
        axis.set_axis_off()
    for axis in axes[-1]:
        axis.set_xlabel("share of those edges that is dropped")
    for axis in axes[:, 0]:
        axis.set_ylabel("distance of the first q modes")
    legend(figure, axes[0, 0], fontsize=9)
    return figure, "solid: measured distance; dotted: bound α + α'"


def _panel(axis: Axes, rows: Sequence[Kind]) -> None:
    for name, (colour, marker) in LOOKS.items():
        mine = [row for row in rows if row.dropped == name]
        axis.errorbar(
            [row.share for row in mine],
            [row.distance.value for row in mine],
            [1.96 * row.distance.error for row in mine],
            color=colour,
            marker=marker,
            markersize=4,
            label=f"dropped {name}",
        )
        known = [(row.share, row.bound) for row in mine if row.bound is not None]
        axis.plot(*zip(*known, strict=True) if known else ([], []), ":", color=colour, marker=marker, markersize=3)
    axis.axhline(rows[0].largest_distance, color=QUIET, linewidth=1, linestyle=RULE, label="largest there is")
    axis.set_yscale("log")
