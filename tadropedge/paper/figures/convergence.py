"""The picture of Figure 2a: training and validation loss against the epoch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.figure import Figure

from tadropedge.publish.pictures import METHOD_COLOURS, WIDTH, look, png

SHOWN = ("dropedge", "cutoff", "division", "cdf", "dropedge as cdf")


def draw(rows: Sequence[Mapping[str, Any]]) -> dict[str, bytes]:
    """One picture a Laplacian: mean curves, with a band that holds two thirds of the runs for DropEdge and cdf."""
    pictures = {}
    for laplacian in dict.fromkeys(row["laplacian"] for row in rows):
        mine = {row["method"]: row for row in rows if row["laplacian"] == laplacian and "epoch" in row}
        with look():
            figure = Figure(figsize=(WIDTH, 4.2))
            axes = figure.subplots(1, 2, sharex=True)
            for axis, loss, name in zip(axes, ("train_loss", "val_loss"), ("training", "validation"), strict=True):
                for label in (label for label in SHOWN if label in mine):
                    row, colour = mine[label], METHOD_COLOURS.get(label, "#1a1a1a")
                    dashes = (0, (2, 1.5)) if label == "dropedge as cdf" else "-"
                    axis.plot(row["epoch"], row[loss], color=colour, linestyle=dashes, linewidth=1.4, label=label)
                    if label in ("dropedge", "cdf"):
                        low, high = row[f"{loss}_low"], row[f"{loss}_high"]
                        axis.fill_between(row["epoch"], low, high, color=colour, alpha=0.12, linewidth=0)
                axis.set(title=f"{name} loss", xlabel="epoch")
                axis.margins(x=0.01)
            handles, labels = axes[0].get_legend_handles_labels()
            figure.legend(handles, labels, loc="outside lower center", ncols=3, handlelength=1.8)
            pictures[f"convergence-{laplacian}"] = png(figure, f"convergence, {laplacian} Laplacian")
    return pictures
