"""Pictures of accuracy against p: a panel a strategy, with DropEdge at the same p and at the same budget."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tadropedge.compare.figures import INK, WIDTH
from tadropedge.paper.figures.canvas import METHOD_COLOURS, look, png

Row = Mapping[str, Any]


def draw(rows: Sequence[Row]) -> dict[str, bytes]:
    """One picture a dataset and Laplacian."""
    pictures = {}
    for dataset, laplacian in dict.fromkeys((row["dataset"], row["laplacian"]) for row in rows):
        mine = [row for row in rows if (row["dataset"], row["laplacian"]) == (dataset, laplacian)]
        pictures[f"{dataset}-{laplacian}"] = panels(mine, f"{dataset}, {laplacian} Laplacian")
    return pictures


def panels(rows: Sequence[Row], title: str) -> bytes:
    """A panel a strategy."""
    strategies = [method for method in dict.fromkeys(row["method"] for row in rows) if method != "dropedge"]
    uniform = [row for row in rows if row["method"] == "dropedge"]
    with look():
        figure = Figure(figsize=(WIDTH, 3.4))
        axes = figure.subplots(1, len(strategies), sharex=True, sharey=True, squeeze=False)[0]
        for axis, method in zip(axes, strategies, strict=True):
            mine = [row for row in rows if row["method"] == method]
            curve(axis, uniform, INK, "-", "DropEdge, same p")
            budget = [{**row["dropedge_same_budget"], "keep_prob": row["keep_prob"]} for row in mine]
            curve(axis, budget, "#8c8c8c", (0, (4, 2)), "DropEdge, same budget")
            curve(axis, mine, METHOD_COLOURS[method], "-", "the strategy")
            axis.set(title=method, xlabel="p")
        axes[0].set_ylabel("test accuracy (%)")
        handles, labels = axes[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=3, handlelength=1.8)
        return png(figure, title)


def curve(axis: Axes, rows: Sequence[Row], colour: str, dashes: Any, label: str) -> None:
    """Means with 95 % intervals."""
    p = [row["keep_prob"] for row in rows]
    axis.plot(p, [100 * row["mean"] for row in rows], color=colour, linestyle=dashes, linewidth=1.5, label=label)
    for row in rows:
        ends = [100 * row["low"], 100 * row["high"]]
        axis.plot([row["keep_prob"]] * 2, ends, color=colour, linewidth=1, alpha=0.6)
