"""Pictures of fixed settings on fresh seeds: losses against the epoch, accuracy against p."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tadropedge.paper.rows import grouped
from tadropedge.publish.pictures import DASHES, GREY, INK, METHOD_COLOURS, WIDTH, legend, picture

if TYPE_CHECKING:
    from tadropedge.paper.items.accuracy_vs_p import Accuracy
    from tadropedge.paper.items.convergence import Losses

SHOWN = ("dropedge", "cutoff", "division", "cdf", "dropedge as cdf")


def draw_losses(rows: Sequence[Losses]) -> dict[str, bytes]:
    """One picture per Laplacian."""
    groups = grouped(rows, lambda row: row.laplacian)
    return {f"convergence-{laplacian}": curves(mine, laplacian) for laplacian, mine in groups.items()}


@picture
def curves(rows: Sequence[Losses], laplacian: str) -> tuple[Figure, str]:
    """Mean curves, with a band that holds two thirds of the runs for DropEdge and cdf."""
    mine = {row.method: row for row in rows if row.epoch is not None}
    figure = Figure(figsize=(WIDTH, 4.2))
    axes = figure.subplots(1, 2, sharex=True)
    for axis, training in zip(axes, (True, False), strict=True):
        for label in (label for label in SHOWN if label in mine):
            row, colour = mine[label], METHOD_COLOURS.get(label, INK)
            band = row.train_loss if training else row.val_loss
            dashes = (0, (2, 1.5)) if label == "dropedge as cdf" else "-"
            axis.plot(row.epoch, band.value, color=colour, linestyle=dashes, linewidth=1.4, label=label)
            if label in ("dropedge", "cdf"):
                axis.fill_between(row.epoch, band.low, band.high, color=colour, alpha=0.12, linewidth=0)
        axis.set(title=f"{'training' if training else 'validation'} loss", xlabel="epoch")
        axis.margins(x=0.01)
    legend(figure, axes[0], handlelength=1.8)
    return figure, f"convergence, {laplacian} Laplacian"


def draw_accuracy(rows: Sequence[Accuracy]) -> dict[str, bytes]:
    """One picture per dataset and Laplacian."""
    groups = grouped(rows, lambda row: (row.dataset, row.laplacian))
    return {
        f"{data}-{laplacian}": panels(mine, f"{data}, {laplacian} Laplacian")
        for (data, laplacian), mine in groups.items()
    }


@picture
def panels(rows: Sequence[Accuracy], title: str) -> tuple[Figure, str]:
    """A column per strategy: its accuracy beside both kinds of DropEdge, and below it the paired differences."""
    methods = grouped(rows, lambda row: row.method)
    uniform = methods.pop("dropedge")
    uniform_p = [row.keep_prob for row in uniform]
    figure = Figure(figsize=(WIDTH, 5.4))
    axes = figure.subplots(2, len(methods), sharex=True, sharey="row", squeeze=False)
    for (above, below), (method, mine) in zip(axes.T, methods.items(), strict=True):
        p, level = [row.keep_prob for row in mine], [row.dropedge_same_budget for row in mine]
        _curve(above, uniform_p, [row.accuracy.mean for row in uniform], INK, "-", "DropEdge, same p")
        _curve(above, p, [None if one is None else one.mean for one in level], GREY, DASHES, "DropEdge, same budget")
        _curve(above, p, [row.accuracy.mean for row in mine], METHOD_COLOURS[method], "-", "the strategy")
        for budget, colour, dashes, aside in (("same_p", INK, "-", -0.008), ("same_budget", GREY, DASHES, 0.008)):
            _gaps(below, mine, budget, colour, dashes, aside)
        below.axhline(0, color=METHOD_COLOURS[method], linewidth=1.1, zorder=1)
        above.set_title(method)
        below.set_xlabel("p")
    axes[0, 0].set_ylabel("test accuracy (%)")
    axes[1, 0].set_ylabel("points above DropEdge")
    legend(figure, axes[0, 0], handlelength=1.8, fontsize=9)
    return figure, title


def _percent(share: float | None) -> float:
    """In per cent; NaN, which is not drawn, where nothing is known."""
    return math.nan if share is None else 100 * share


def _curve(axis: Axes, p: Sequence[float], means: Sequence[float | None], colour: str, dashes: Any, label: str) -> None:
    """Means against p."""
    shown = [_percent(mean) for mean in means]
    axis.plot(p, shown, "o", linestyle=dashes, color=colour, linewidth=1.5, markersize=3, label=label)


def _gaps(axis: Axes, rows: Sequence[Accuracy], budget: str, colour: str, dashes: Any, aside: float) -> None:
    """Paired differences against p with 95 % intervals, a little ``aside`` so that two of them can be told apart."""
    found = [(row.keep_prob + aside, gap) for row in rows if (gap := row.against.at(budget)) is not None]
    middles = [_percent(gap.difference) for _, gap in found]
    axis.plot([p for p, _ in found], middles, "o", linestyle=dashes, color=colour, markersize=3)
    for p, gap in found:
        axis.plot([p] * 2, [_percent(gap.low), _percent(gap.high)], color=colour, linewidth=1)
