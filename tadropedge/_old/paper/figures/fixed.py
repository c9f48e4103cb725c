"""Pictures of fixed settings on fresh seeds: losses against the epoch, accuracy against p."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tadropedge._old.paper.judge import Gap, Summary
from tadropedge._old.paper.rows import grouped, title
from tadropedge._old.publish.pictures import DASHES, GREY, INK, METHOD_COLOURS, WIDTH, legend, picture

if TYPE_CHECKING:
    from tadropedge._old.paper.items.accuracy_vs_p import Accuracy
    from tadropedge._old.paper.items.convergence import Losses
    from tadropedge._old.paper.items.inverse import Inverted

ASIDE = 0.012
TICKS = (0.1, 0.3, 0.5, 0.7, 0.9)
BARS = "bars: 95 %, not corrected; filled: decided after Holm's correction"
METHODS = {"dropedge": "DropEdge", "cdf": "TADropEdge (cdf)", "inverse-cdf": "Inverse-TADropEdge (cdf)"}

BUDGETS = {"same_p": "same p", "same_budget": "same budget"}  # of the DropEdge that a strategy is compared with


def draw_losses(rows: Sequence[Losses]) -> dict[str, bytes]:
    """One picture per Laplacian."""
    groups = grouped(rows, lambda row: row.laplacian)
    return {f"convergence-{laplacian}": curves(mine, laplacian) for laplacian, mine in groups.items()}


@picture
def curves(rows: Sequence[Losses], laplacian: str) -> tuple[Figure, str]:
    """The loss of each strategy minus DropEdge's, with 95 % intervals: a row for each kind of DropEdge."""
    figure = Figure(figsize=(WIDTH * 1.2, 5.6))
    axes = figure.subplots(2, 2, sharex=True, sharey="col")
    for line, (budget, words) in zip(axes, BUDGETS.items(), strict=True):
        for axis, loss in zip(line, ("training", "validation"), strict=True):
            for row in rows:
                band = (row.train_apart if loss == "training" else row.val_apart).at(budget)
                if row.epoch is None or band.value is None or band.low is None or band.high is None:
                    continue
                colour = METHOD_COLOURS[row.method]
                axis.plot(row.epoch, band.value, color=colour, linewidth=1.4, label=row.method)
                axis.fill_between(row.epoch, band.low, band.high, color=colour, alpha=0.18, linewidth=0)
            axis.axhline(0, color=INK, linewidth=0.9, zorder=1)
            axis.set_title(f"{loss} loss, {words}")
            axis.margins(x=0.01)
        line[0].set_ylabel("minus DropEdge's")
    for axis in axes[1]:
        axis.set_xlabel("epoch")
    if axes[0, 0].get_legend_handles_labels()[1]:
        legend(figure, axes[0, 0], handlelength=1.8)
    seeds = max(row.seeds for row in rows)
    return figure, f"convergence, {laplacian} Laplacian; {seeds} pairs of runs, bands: 95 % at each epoch"


def draw_accuracy(rows: Sequence[Accuracy]) -> dict[str, bytes]:
    """One picture per dataset and Laplacian."""
    groups = grouped(rows, lambda row: (row.dataset, row.laplacian))
    return {
        f"{data}-{laplacian}": panels(mine, f"{title(data)}, {laplacian} Laplacian")
        for (data, laplacian), mine in groups.items()
    }


@picture
def panels(rows: Sequence[Accuracy], words: str) -> tuple[Figure, str]:
    """A column per strategy: its accuracy beside both kinds of DropEdge, and below it the paired differences."""
    methods = grouped(rows, lambda row: row.method)
    uniform = methods.pop("dropedge")
    figure = Figure(figsize=(WIDTH * 1.2, 6.2))
    axes = figure.subplots(2, len(methods), sharex=True, sharey="row", squeeze=False)
    for (above, below), (method, mine) in zip(axes.T, methods.items(), strict=True):
        _means(above, [(row.keep_prob, row.accuracy) for row in uniform], INK, "-", -ASIDE, "DropEdge, same p")
        level = [(row.keep_prob, row.dropedge_same_budget or Summary()) for row in mine]
        _means(above, level, GREY, DASHES, ASIDE, "DropEdge, same budget")
        own = [(row.keep_prob, row.accuracy) for row in mine]
        _means(above, own, METHOD_COLOURS[method], "-", 0.0, "the strategy, in its colour")
        _gaps(below, [(row.keep_prob, row.against.same_p) for row in mine], INK, "-", -ASIDE)
        _gaps(below, [(row.keep_prob, row.against.same_budget) for row in mine], GREY, DASHES, ASIDE)
        below.axhline(0, color=METHOD_COLOURS[method], linewidth=1.1, zorder=1)
        above.set_title(method)
        below.set(xlabel="p", xticks=TICKS)
    axes[0, 0].set_ylabel("test accuracy (%)")
    axes[1, 0].set_ylabel("points above DropEdge")
    legend(figure, axes[0, 0], handlelength=1.8, fontsize=9, title=BARS, title_fontsize=9)
    return figure, f"{words}, {_seeds(rows)}"


def draw_inverse(rows: Sequence[Inverted]) -> dict[str, bytes]:
    """One picture per Laplacian."""
    groups = grouped(rows, lambda row: row.laplacian)
    return {laplacian: opposites(mine, f"{laplacian} Laplacian") for laplacian, mine in groups.items()}


@picture
def opposites(rows: Sequence[Inverted], words: str) -> tuple[Figure, str]:
    """A column per dataset: TADropEdge, its inverse and DropEdge together, and below the inverse minus its rivals."""
    groups = grouped(rows, lambda row: row.dataset)
    figure = Figure(figsize=(WIDTH * 1.3, 6.2))
    axes = figure.subplots(2, len(groups), sharex=True, squeeze=False)
    for (above, below), (dataset, mine) in zip(axes.T, groups.items(), strict=True):
        for place, (method, name) in enumerate(METHODS.items()):
            own = [(row.keep_prob, row.accuracy) for row in mine if row.method == method]
            _means(above, own, METHOD_COLOURS[method], "-", (place - 1) * ASIDE, name)
        inverse = [row for row in mine if row.method == "inverse-cdf"]
        rivals = {
            "minus DropEdge, same p": ([(row.keep_prob, row.against.same_p) for row in inverse], INK, "-"),
            "minus DropEdge, same budget": (
                [(row.keep_prob, row.against.same_budget) for row in inverse],
                GREY,
                DASHES,
            ),
            "minus TADropEdge": ([(row.keep_prob, row.to_cdf) for row in inverse], METHOD_COLOURS["cdf"], "-"),
        }
        for place, (label, (found, colour, dashes)) in enumerate(rivals.items()):
            _gaps(below, found, colour, dashes, (place - 1) * ASIDE, label)
        below.axhline(0, color=METHOD_COLOURS["inverse-cdf"], linewidth=1.1, zorder=1)
        above.set_title(f"{title(dataset)}, {_seeds(mine)}", fontsize=10)
        below.set(xlabel="p", xticks=TICKS)
    axes[0, 0].set_ylabel("test accuracy (%)")
    axes[1, 0].set_ylabel("inverse minus others")
    legend(figure, axes[0, 0], axes[1, 0], handlelength=1.8, fontsize=9, ncols=2, title=BARS, title_fontsize=9)
    return figure, f"Inverse-TADropEdge, {words}"


def _seeds(rows: Sequence[Accuracy]) -> str:
    return f"{max(row.accuracy.seeds or 0 for row in rows)} seeds"


def _percent(share: float | None) -> float:
    """In per cent; NaN, which is not drawn, where nothing is known."""
    return math.nan if share is None else 100 * share


def _means(
    axis: Axes, found: Sequence[tuple[float, Summary]], colour: str, dashes: Any, aside: float, label: str
) -> None:
    """Means against p with 95 % intervals, a little ``aside`` so that several can be told apart."""
    p, shown = [at + aside for at, _ in found], [_percent(one.mean) for _, one in found]
    axis.plot(p, shown, "o", linestyle=dashes, color=colour, linewidth=1.4, markersize=3, label=label)
    axis.vlines(
        p, [_percent(one.low) for _, one in found], [_percent(one.high) for _, one in found], colour, linewidth=1
    )


def _gaps(
    axis: Axes, found: Sequence[tuple[float, Gap | None]], colour: str, dashes: Any, aside: float, label: str = ""
) -> None:
    """Paired differences against p with 95 % intervals; those that Holm's correction leaves decided are filled."""
    known = [(at + aside, gap) for at, gap in found if gap is not None]
    p, middles = [at for at, _ in known], [_percent(gap.difference) for _, gap in known]
    axis.vlines(
        p, [_percent(gap.low) for _, gap in known], [_percent(gap.high) for _, gap in known], colour, linewidth=1
    )
    axis.plot(
        p, middles, linestyle=dashes, color=colour, linewidth=1.1, marker="o", markersize=4, mfc="white", label=label
    )
    decided = [(at, _percent(gap.difference)) for at, gap in known if gap.sign]
    axis.plot([at for at, _ in decided], [y for _, y in decided], "o", color=colour, markersize=5, linestyle="none")
