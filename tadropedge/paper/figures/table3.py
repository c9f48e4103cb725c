"""The picture of Table 3: accuracy with each noise, and the bound that nobody can beat."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.figure import Figure

from tadropedge.publish.pictures import QUIET, WIDTH, lines, look, marks, png


def draw(rows: Sequence[Mapping[str, Any]]) -> dict[str, bytes]:
    """One panel a noise, one line a method."""
    noises = list(dict.fromkeys(row["noise"] for row in rows))
    methods = list(dict.fromkeys(row["method"] for row in rows))
    with look():
        figure = Figure(figsize=(WIDTH, 1.8 + 0.36 * len(methods)))
        axes = figure.subplots(1, len(noises), sharex=True, sharey=True, squeeze=False)[0]
        for axis, noise in zip(axes, noises, strict=True):
            mine = [row for row in rows if row["noise"] == noise]
            lines(axis, methods)
            for row in mine:
                ends = (row["honest"]["low"], row["honest"]["mean"], row["honest"]["high"])
                marks(axis, methods.index(row["method"]), row["printed"], row["best_mean"], ends)
            bound = mine[0]
            axis.axvline(100 * bound["bayes"], color=QUIET, linewidth=1.1, linestyle=(0, (4, 3)))
            axis.axvspan(100 * bound["bayes_low"], 100 * bound["bayes_high"], color="#00000012", zorder=0)
            axis.set_title(f"{noise} noise {bound['deviation']:g}")
        figure.supxlabel(
            "accuracy (%); bar: printed; diamond: best trial; dot: honest mean, 95 % over graphs\n"
            "dashed and shaded: Bayes bound, mean and range over graphs",
            fontsize=9,
        )
        return {"table3": png(figure, "source localisation")}
