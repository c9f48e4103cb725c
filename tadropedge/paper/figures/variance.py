"""Output variance against p: the adaptive strategies, DropEdge at the same p, and DropEdge at the same budget."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tadropedge.publish.pictures import METHOD_COLOURS, QUIET, WIDTH, look, png

MARKERS = {"cdf": "o", "cutoff": "s", "division": "^"}


def variances(rows: Sequence[Mapping[str, Any]], what: str, words: str) -> bytes:
    """Above, the variance (or deviation) against p; below, how much less it is than DropEdge's."""
    main = rows[0]["normalization"]
    rows = [row for row in rows if row["normalization"] == main]
    names = list(dict.fromkeys(row["dataset"] for row in rows))
    with look():
        figure = Figure(figsize=(WIDTH * 1.5, 6.0))
        axes = figure.subplots(2, len(names), sharex=True, squeeze=False)
        for column, name in enumerate(names):
            _panels(list(axes[:, column]), [row for row in rows if row["dataset"] == name], what)
            axes[0, column].set_title(name)
            axes[1, column].set_xlabel("keep_prob p")
        axes[0, 0].set_ylabel(what)
        axes[1, 0].set_ylabel("less than DropEdge (%)")
        handles = [pair for axis in axes[:, 0] for pair in zip(*axis.get_legend_handles_labels(), strict=True)]
        lines, labels = zip(*handles, strict=True)
        figure.legend(lines, labels, loc="outside lower center", ncols=3, fontsize=9)
        return png(figure, f"{words}, untrained GCN, normalization {main}; bars: 95 %")


def _panels(axes: Sequence[Axes], rows: Sequence[Mapping[str, Any]], what: str) -> None:
    upper, lower = axes
    for place, strategy in enumerate(dict.fromkeys(row["strategy"] for row in rows)):
        mine = sorted((row for row in rows if row["strategy"] == strategy), key=lambda row: float(row["keep_prob"]))
        p = [row["keep_prob"] for row in mine]
        colour, marker = METHOD_COLOURS[strategy], MARKERS[strategy]
        if place == 0:
            upper.plot(p, [row[f"{what}_dropedge_same_p"] for row in mine], "k-", label="DropEdge, same p")
            level = [row[f"{what}_dropedge_same_budget"] for row in mine]
            upper.plot(p, level, "k:", label=f"DropEdge, budget of {strategy}")
        upper.plot(p, [row[what] for row in mine], label=strategy, color=colour, marker=marker, markersize=4)
        for how, dashes in (("same_p", "-"), ("same_budget", ":")):
            lower.errorbar(
                p,
                [100 * row[f"{what}_reduction_{how}"] for row in mine],
                [196 * row[f"{what}_reduction_{how}_error"] for row in mine],
                linestyle=dashes,
                label=f"{strategy}, {how.replace('_', ' ')}",
                color=colour,
                marker=marker,
                markersize=4,
            )
    upper.set_ylim(bottom=0)
    lower.axhline(0, color=QUIET, linewidth=1)
    lower.set_ylim(bottom=max(lower.get_ylim()[0], -110))  # far below is far enough
