"""Proposition 1 in pictures: distance and bound against the share of dropped edges."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tadropedge.publish.pictures import PALETTE, QUIET, WIDTH, look, png

Row = Mapping[str, Any]

LOOKS = {"inside": (PALETTE[0], "o"), "between": (PALETTE[1], "s"), "as many inside": (PALETTE[2], "^")}


def distances(rows: Sequence[Row]) -> bytes:
    """One panel for each kind of graph: solid lines measured, dotted lines the bound, grey the largest distance."""
    kinds = list(dict.fromkeys(row["kind"] for row in rows))
    lines = -(-len(kinds) // 2)
    with look():
        figure = Figure(figsize=(WIDTH * 1.5, 1.0 + 3.0 * lines))
        axes = figure.subplots(lines, 2, sharex=True, squeeze=False)
        for axis, kind in zip(axes.flatten(), kinds, strict=False):
            _panel(axis, [row for row in rows if row["kind"] == kind])
            axis.set_title(kind.replace(", links", ",\nlinks"), fontsize=10)
        for axis in axes.flatten()[len(kinds) :]:
            axis.set_axis_off()
        for axis in axes[-1]:
            axis.set_xlabel("share of those edges that is dropped")
        for axis in axes[:, 0]:
            axis.set_ylabel("distance of the first q modes")
        handles, names = axes[0, 0].get_legend_handles_labels()
        figure.legend(handles, names, loc="outside lower center", ncols=3, fontsize=9)
        return png(figure, "solid: measured distance; dotted: bound α + α'")


def _panel(axis: Axes, rows: Sequence[Row]) -> None:
    for name, (colour, marker) in LOOKS.items():
        mine = [row for row in rows if row["dropped"] == name]
        share = [row["share"] for row in mine]
        found, error = [row["distance"] for row in mine], [1.96 * row["distance_error"] for row in mine]
        axis.errorbar(share, found, error, color=colour, marker=marker, markersize=4, label=f"dropped {name}")
        known = [row for row in mine if row["bound"] is not None]
        axis.plot(
            [row["share"] for row in known],
            [row["bound"] for row in known],
            ":",
            color=colour,
            marker=marker,
            markersize=3,
        )
    axis.axhline(rows[0]["largest_distance"], color=QUIET, linewidth=1, linestyle=(0, (4, 3)), label="largest there is")
    axis.set_yscale("log")
