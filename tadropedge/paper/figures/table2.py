"""The picture of Table 2: every row on every dataset, printed and measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.figure import Figure

from tadropedge.compare.figures import COLOURS, INK, WIDTH
from tadropedge.paper.figures.canvas import lines, look, png


def draw(rows: Sequence[Mapping[str, Any]]) -> dict[str, bytes]:
    """One panel a dataset, one line a row."""
    names = list(dict.fromkeys(row["row"] for row in rows))
    datasets = list(dict.fromkeys(row["dataset"] for row in rows))
    with look():
        figure = Figure(figsize=(WIDTH, 1.4 + 0.3 * len(names)))
        axes = figure.subplots(1, len(datasets), sharey=True, squeeze=False)[0]
        for axis, dataset in zip(axes, datasets, strict=True):
            lines(axis, names)
            for row in rows:
                if row["dataset"] != dataset:
                    continue
                place = names.index(row["row"])
                if row["printed"] is not None:
                    axis.plot([100 * row["printed"]], [place], "|", color=INK, markersize=11, markeredgewidth=1.8)
                if row["source"] == "measured":
                    axis.plot([100 * row["accuracy"]], [place], "o", color=COLOURS["better"], markersize=6)
            axis.set_title(dataset)
        figure.supxlabel("best test accuracy (%); bar: printed, dot: measured here", fontsize=9)
        return {"table2": png(figure, "TADropEdge beside its competitors")}
