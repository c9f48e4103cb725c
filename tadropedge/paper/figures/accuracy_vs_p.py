"""Pictures of accuracy against p: each strategy beside DropEdge at the same p and at the same budget."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tadropedge.publish.pictures import INK, METHOD_COLOURS, WIDTH, look, png

Row = Mapping[str, Any]

GREY, DASHES = "#8c8c8c", (0, (4, 2))


def draw(rows: Sequence[Row]) -> dict[str, bytes]:
    """One picture a dataset and Laplacian."""
    pictures = {}
    for dataset, laplacian in dict.fromkeys((row["dataset"], row["laplacian"]) for row in rows):
        mine = [row for row in rows if (row["dataset"], row["laplacian"]) == (dataset, laplacian)]
        pictures[f"{dataset}-{laplacian}"] = panels(mine, f"{dataset}, {laplacian} Laplacian")
    return pictures


def panels(rows: Sequence[Row], title: str) -> bytes:
    """A column a strategy: its accuracy beside both kinds of DropEdge, and below it the paired differences to them."""
    strategies = [method for method in dict.fromkeys(row["method"] for row in rows) if method != "dropedge"]
    uniform = [row for row in rows if row["method"] == "dropedge"]
    with look():
        figure = Figure(figsize=(WIDTH, 5.4))
        axes = figure.subplots(2, len(strategies), sharex=True, sharey="row", squeeze=False)
        for (above, below), method in zip(axes.T, strategies, strict=True):
            mine = [row for row in rows if row["method"] == method]
            budget = [{**row["dropedge_same_budget"], "keep_prob": row["keep_prob"]} for row in mine]
            _curve(above, uniform, INK, "-", "DropEdge, same p")
            _curve(above, budget, GREY, DASHES, "DropEdge, same budget")
            _curve(above, mine, METHOD_COLOURS[method], "-", "the strategy")
            for name, colour, dashes, aside in (("same_p", INK, "-", -0.008), ("same_budget", GREY, DASHES, 0.008)):
                _gaps(below, mine, name, colour, dashes, aside)
            below.axhline(0, color=METHOD_COLOURS[method], linewidth=1.1, zorder=1)
            above.set_title(method)
            below.set_xlabel("p")
        axes[0, 0].set_ylabel("test accuracy (%)")
        axes[1, 0].set_ylabel("points above DropEdge")
        handles, labels = axes[0, 0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=3, handlelength=1.8, fontsize=9)
        return png(figure, title)


def _percent(share: float | None) -> float:
    """In per cent; NaN, which is not drawn, where nothing is known."""
    return math.nan if share is None else 100 * share


def _curve(axis: Axes, rows: Sequence[Row], colour: str, dashes: Any, label: str) -> None:
    """Means against p."""
    p, means = [row["keep_prob"] for row in rows], [_percent(row["mean"]) for row in rows]
    axis.plot(p, means, "o", linestyle=dashes, color=colour, linewidth=1.5, markersize=3, label=label)


def _gaps(axis: Axes, rows: Sequence[Row], name: str, colour: str, dashes: Any, aside: float) -> None:
    """Paired differences against p with 95 % intervals, a little ``aside`` so that two of them can be told apart."""
    p = [row["keep_prob"] + aside for row in rows]
    axis.plot(p, [_percent(row[name]["difference"]) for row in rows], "o", linestyle=dashes, color=colour, markersize=3)
    for place, row in zip(p, rows, strict=True):
        axis.plot([place] * 2, [_percent(row[name][end]) for end in ("low", "high")], color=colour, linewidth=1)
