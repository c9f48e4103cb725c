"""The picture of Table 2: every row on every dataset, printed and measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.figure import Figure

from tadropedge.publish.pictures import WIDTH, lines, look, marks, png


def draw(rows: Sequence[Mapping[str, Any]]) -> dict[str, bytes]:
    """One panel a dataset, one line a row."""
    names = list(dict.fromkeys(row["row"] for row in rows))
    datasets = list(dict.fromkeys(row["dataset"] for row in rows))
    with look():
        figure = Figure(figsize=(WIDTH, 1.4 + 0.36 * len(names)))
        axes = figure.subplots(1, len(datasets), sharey=True, squeeze=False)[0]
        for axis, dataset in zip(axes, datasets, strict=True):
            lines(axis, names)
            for row in rows:
                if row["dataset"] != dataset:
                    continue
                ends = (row["honest_low"], row["honest_mean"], row["honest_high"])
                best = row["accuracy"] if row["source"] == "measured" else None
                marks(axis, names.index(row["row"]), row["printed"], best, ends)
            axis.set_title(dataset)
        figure.supxlabel("test accuracy (%); bar: printed; diamond: best trial; dot: honest mean, 95 %", fontsize=9)
        return {"table2": png(figure, "TADropEdge beside its competitors")}
