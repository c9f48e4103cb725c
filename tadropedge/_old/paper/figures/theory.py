"""Pictures of what the analysis speaks of: output variance, relative errors and bounds, distances of low modes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tadropedge._old.paper.figures.fixed import TICKS
from tadropedge._old.paper.rows import Measured, grouped, title
from tadropedge._old.publish.pictures import (
    INK,
    MARKERS,
    METHOD_COLOURS,
    PALETTE,
    QUIET,
    RULE,
    WIDTH,
    legend,
    lines,
    picture,
)

if TYPE_CHECKING:
    from tadropedge._old.paper.items.augmentation import Changed
    from tadropedge._old.paper.items.edge_errors import Edges
    from tadropedge._old.paper.items.eigengap import Agreement
    from tadropedge._old.paper.items.proposition1 import Kind
    from tadropedge._old.paper.items.theorem1 import Subgraphs
    from tadropedge._old.paper.items.variance import Spread
    from tadropedge._old.paper.trained_filters import Filters

WAYS = {
    "dropedge": ("DropEdge", INK, "o"),
    "cdf": ("cdf", METHOD_COLOURS["cdf"], "s"),
    "same_budget": ("DropEdge, budget of cdf", PALETTE[4], "D"),
}
LAPLACIANS: dict[str, dict[str, Any]] = {
    "combinatorial": {"color": PALETTE[0], "marker": "o", "markersize": 4},
    "normalized": {"color": PALETTE[1], "marker": "s", "markersize": 4},
}
PLACES = {"inside": (PALETTE[0], "o"), "between": (PALETTE[1], "s"), "as many inside": (PALETTE[2], "^")}


@picture
def variances(rows: Sequence[Spread], scripts: Mapping[str, str]) -> tuple[Figure, str]:
    """The variance of cdf, with both Laplacians, and of DropEdge against p; one line of panels per normalisation."""
    figure, axes = _grid(rows, scripts, "variance")
    for place, mine in axes.items():
        for number, (laplacian, found) in enumerate(_curves(mine).items()):
            p = [row.keep_prob for row in found]
            if number == 0:
                level = [row.variance.dropedge_same_p.value for row in found]
                place.plot(p, level, color=INK, marker="D", markersize=3, label="DropEdge")
            values, halves = _bars([row.variance.value for row in found])
            place.errorbar(p, values, halves, label=f"cdf, {laplacian} Laplacian", **LAPLACIANS[laplacian])
        place.set_ylim(bottom=0)
    legend(figure, next(iter(axes)))
    return figure, "output variance of an untrained GCN; bars: 95 %; bold: as in DropEdge's scripts"


@picture
def reductions(rows: Sequence[Spread], what: str, words: str, scripts: Mapping[str, str]) -> tuple[Figure, str]:
    """By how much cdf has less variance (or deviation) than DropEdge, against p."""
    figure, axes = _grid(rows, scripts, "less than DropEdge (%)")
    for place, mine in axes.items():
        for laplacian, found in _curves(mine).items():
            p = [row.keep_prob for row in found]
            for how, face in (("same_p", LAPLACIANS[laplacian]["color"]), ("same_budget", "white")):
                values, halves = _bars([row.quantity(what).reduction(how) for row in found], 100)
                looks = {
                    **LAPLACIANS[laplacian],
                    "markerfacecolor": face,
                    "label": f"{how.replace('_', ' ')}, {laplacian}",
                }
                place.errorbar(p, values, halves, **{**looks, "linestyle": "-" if how == "same_p" else ":"})
        place.axhline(0, color=QUIET, linewidth=1)
        place.set_yscale("symlog", linthresh=100, linscale=1)  # a curve may end far below zero
        place.margins(y=0.08)
        low, high = place.get_ylim()
        ticks = [tick for tick in (-400, -200, -100, -50, -25, 0, 25, 50, 75) if low <= tick <= high]
        place.set_yticks(ticks, [f"{tick}".replace("-", "−") for tick in ticks])
        place.minorticks_off()
    legend(figure, next(iter(axes)), ncols=2)
    far = "; logarithmic below −100 %" if any(place.get_ylim()[0] < -100 for place in axes) else ""
    return figure, f"cdf: {words}; bars: 95 %; bold: as in DropEdge's scripts{far}"


def _grid(rows: Sequence[Spread], scripts: Mapping[str, str], label: str) -> tuple[Figure, dict[Axes, list[Spread]]]:
    """A panel for each normalisation (line) and dataset (column), with its rows; bold where the scripts have it."""
    kinds, datasets = (list(dict.fromkeys(getattr(row, name) for row in rows)) for name in ("normalization", "dataset"))
    figure = Figure(figsize=(WIDTH * 1.5, 1.2 + 2.3 * len(kinds)))
    panels = figure.subplots(len(kinds), len(datasets), sharex=True, squeeze=False)
    found = {}
    for line, kind in zip(panels, kinds, strict=True):
        for axis, dataset in zip(line, datasets, strict=True):
            axis.set_title(f"{title(dataset)}, {kind}", fontweight="bold" if scripts.get(dataset) == kind else "normal")
            found[axis] = [row for row in rows if (row.normalization, row.dataset) == (kind, dataset)]
        line[0].set_ylabel(label)
    for axis in panels[-1]:
        axis.set(xlabel="keep_prob p", xticks=TICKS)
    return figure, found


def _curves(rows: Sequence[Spread]) -> dict[str, list[Spread]]:
    """The rows of each Laplacian, p rising."""
    return grouped(sorted(rows, key=lambda row: row.keep_prob), lambda row: row.laplacian)


def _bars(found: Sequence[Measured], scale: float = 1) -> tuple[list[float], list[float]]:
    """Values and halves of their 95 % intervals."""
    return [scale * one.value for one in found], [1.96 * scale * one.error for one in found]


@picture
def errors(rows: Sequence[Subgraphs]) -> tuple[Figure, str]:
    """‖E‖ of each strategy over DropEdge's, at the same p and at the same budget, with 95 % intervals."""
    places = {name: place for place, name in enumerate(dict.fromkeys(map(_setting, rows)))}
    figure = Figure(figsize=(WIDTH * 1.5, 1.6 + 0.36 * len(places)))
    axes = figure.subplots(1, 2, sharey=True, sharex=True)
    for axis, words in zip(axes, ("same p", "same budget"), strict=True):
        lines(axis, list(places))
        for number, (strategy, mine) in enumerate(grouped(rows, lambda row: row.strategy).items()):
            found = [row.relative_ratio_same_p if words == "same p" else row.relative_ratio_same_budget for row in mine]
            ratio = np.array([one.value for one in found])
            half = 1.96 * np.array([one.error for one in found])
            at = [places[_setting(row)] + 0.2 * (number - 1) for row in mine]
            ends = [ratio - ratio * np.exp(-half), ratio * np.exp(half) - ratio]
            looks: dict[str, Any] = {"color": METHOD_COLOURS[strategy], "fmt": MARKERS[strategy], "markersize": 4}
            axis.errorbar(ratio, at, xerr=ends, label=strategy, **looks)
        axis.axvline(1, color=QUIET, linestyle=RULE, linewidth=1)
        axis.set(title=f"beside DropEdge at the {words}", xlabel="‖E‖ over DropEdge's; left of 1: smaller")
    axes[0].set_xlim(left=0)
    legend(figure, axes[0])
    return figure, "relative error of sampled subgraphs; bars: 95 %"


@picture
def bounds(rows: Sequence[Filters]) -> tuple[Figure, str]:
    """The bound of the theorem against the measured change, one point for each setting; the diagonal is equality."""
    groups = grouped(rows, lambda row: row.normalization)
    figure = Figure(figsize=(WIDTH * 1.3, 3.9))
    axes = figure.subplots(1, len(groups), sharex=True, sharey=True, squeeze=False)[0]
    for axis, (kind, mine) in zip(axes, groups.items(), strict=True):
        for row in mine:
            _, colour, marker = WAYS[row.method]
            face = colour if row.layers == 1 else "white"
            axis.plot(row.moved.change, row.moved.bound, marker, color=colour, markerfacecolor=face, markersize=6)
        axis.axline((1e-2, 1e-2), (1, 1), color=QUIET, linewidth=1)
        axis.set(title=kind, xscale="log", yscale="log", xlabel="measured change over ‖X‖")
    axes[0].set_ylabel("first-order bound over ‖X‖")
    for name, colour, marker in WAYS.values():
        axes[0].plot([], [], marker, color=colour, label=name)
    legend(figure, axes[0])
    return figure, "bound against measurement; line: equal; hollow: two layers"


def _setting(row: Subgraphs) -> str:
    return f"{row.family}, {row.normalization}, p = {row.keep_prob:g}"


@picture
def changed_signals(rows: Sequence[Changed]) -> tuple[Figure, str]:
    """Left, what the best X' leaves of the change of an output; right, how far it is from X. A dot for each graph."""
    places = {name: place for place, name in enumerate(dict.fromkeys(row.name for row in rows))}
    kinds = list(dict.fromkeys(row.normalization for row in rows))
    figure = Figure(figsize=(WIDTH * 1.5, 1.8 + 0.55 * len(places)))
    left, right = figure.subplots(1, 2, sharey=True)
    for axis in (left, right):
        lines(axis, list(places))
    for (kind, family), mine in grouped(rows, lambda row: (row.normalization, row.family)).items():
        number = kinds.index(kind)
        at = [places[row.name] + 0.22 * (number - 1) for row in mine]
        looks: dict[str, Any] = {"color": PALETTE[number], "marker": "osD"[number], "markersize": 5, "alpha": 0.7}
        looks |= {"linestyle": "", "markerfacecolor": PALETTE[number] if family == rows[0].family else "white"}
        label = kind if family == rows[0].family else None
        left.plot([100 * row.unexplained for row in mine], at, label=label, **looks)
        right.plot([row.distance for row in mine], at, **looks)
    left.set(xlabel="share of the change of the output (%)", title="what X' leaves of the change", xlim=(-4, 104))
    right.axvline(1, color=QUIET, linewidth=1, linestyle=RULE)
    right.set(xscale="log", xlabel="‖X' − X‖ over ‖X‖", title="how far X' is from X")
    legend(figure, left)
    hollow = "".join(
        f"; hollow: {title(name)}" for name in dict.fromkeys(row.family for row in rows) if name != rows[0].family
    )
    return figure, f"the best X' for Eq. 7, one dot for each graph and p{hollow}"


@picture
def edge_errors(rows: Sequence[Edges]) -> tuple[Figure, str]:
    """Rank correlations of ‖E‖ of single dropped edges: with their weight, left, and with their smaller degree."""
    places = {name: place for place, name in enumerate(dict.fromkeys(row.family for row in rows))}
    figure = Figure(figsize=(WIDTH * 1.5, 1.8 + 0.55 * len(places)))
    panels = dict(zip(("with_weight", "with_degree"), figure.subplots(1, 2, sharey=True, sharex=True), strict=True))
    for axis in panels.values():
        lines(axis, [" ".join(map(title, name.split())) for name in places])
        axis.axvline(0, color=QUIET, linewidth=1)
    for number, (kind, mine) in enumerate(grouped(rows, lambda row: row.normalization).items()):
        for what, axis in panels.items():
            for family, graphs in grouped(mine, lambda row: row.family).items():
                known = [getattr(row, what) for row in graphs if getattr(row, what) is not None]
                at = places[family] + 0.22 * (number - 1)
                looks: dict[str, Any] = {"color": PALETTE[number], "marker": "osD"[number], "linestyle": ""}
                axis.plot(known, [at] * len(known), **looks, markersize=3, alpha=0.35)
                if known:
                    axis.plot([np.mean(known)], [at], **looks, markersize=7, markeredgecolor=INK)
        panels["with_weight"].plot([], [], color=PALETTE[number], marker="osD"[number], linestyle="", label=kind)
    panels["with_weight"].set(title="‖E‖ and the weight ω (the paper: positive)", xlim=(-1.05, 1.05))
    panels["with_degree"].set(title="‖E‖ and the smaller degree")
    for axis in panels.values():
        axis.set_xlabel("rank correlation")
    legend(figure, panels["with_weight"])
    return figure, "one edge dropped at a time; small: graphs, large: their mean"


@picture
def choices_of_q(rows: Sequence[Agreement], p: float) -> tuple[Figure, str]:
    """Left, how far both choices of q agree on the order of edges; right, how far keep probabilities differ."""
    names = [f"{title(row.dataset)}, {row.laplacian}\nq = {row.chosen} for {row.classes} classes" for row in rows]
    figure = Figure(figsize=(WIDTH * 1.5, 1.6 + 0.5 * len(rows)))
    left, right = figure.subplots(1, 2, sharey=True)
    for axis in (left, right):
        lines(axis, names)
    at = range(len(rows))
    left.plot([row.rank_correlation for row in rows], at, "o", color=INK, label="rank correlation of weights")
    left.plot([row.overlap for row in rows], at, "D", color=PALETTE[3], label="critical edges in common")
    left.set(xlim=(0, 1.03), title="agreement", xlabel="1: the same")
    for strategy in ("cutoff", "division", "cdf"):
        looks: dict[str, Any] = {"color": METHOD_COLOURS[strategy], "marker": MARKERS[strategy], "linestyle": ""}
        right.plot([getattr(row, strategy) for row in rows], at, label=strategy, **looks)
    right.set(xlim=(-0.002, None), title=f"keep probabilities at p = {p:g}", xlabel="mean |difference|")
    legend(figure, left, right)
    return figure, "weights with q at the eigengap beside q = classes"


@picture
def distances(rows: Sequence[Kind]) -> tuple[Figure, str]:
    """One panel for each kind of graph: solid lines measured, dotted lines the bound, grey the largest distance."""
    kinds = grouped(rows, lambda row: row.kind)
    lines = -(-len(kinds) // 2)
    figure = Figure(figsize=(WIDTH * 1.5, 1.0 + 3.0 * lines))
    axes = figure.subplots(lines, 2, sharex=True, squeeze=False)
    for axis, (kind, mine) in zip(axes.flatten(), kinds.items(), strict=False):
        _panel(axis, mine)
        axis.set_title(kind.replace(", links", ",\nlinks"), fontsize=10)
    for axis in axes.flatten()[len(kinds) :]:
        axis.set_axis_off()
    for axis in axes[-1]:
        axis.set_xlabel("share of those edges that is dropped")
    for axis in axes[:, 0]:
        axis.set_ylabel("distance of the first q modes")
    legend(figure, axes[0, 0], fontsize=9)
    return figure, "solid: measured distance; dotted: bound α + α'; ∞: the bound is infinite"


def _panel(axis: Axes, rows: Sequence[Kind]) -> None:
    for name, (colour, marker) in PLACES.items():
        mine = [row for row in rows if row.dropped == name]
        shares, values = [row.share for row in mine], [row.distance.value for row in mine]
        halves = [1.96 * row.distance.error for row in mine]
        axis.errorbar(shares, values, halves, color=colour, marker=marker, markersize=4, label=f"dropped {name}")
        known = [(row.share, row.bound) for row in mine if row.bound is not None]
        axis.plot(*zip(*known, strict=True) if known else ([], []), ":", color=colour, marker=marker, markersize=3)
        for share in (row.share for row in mine if row.bound is None):  # where the line would go on
            axis.text(share, 0.99, "∞", color=colour, ha="center", va="top", transform=axis.get_xaxis_transform())
    axis.axhline(rows[0].largest_distance, color=QUIET, linewidth=1, linestyle=RULE, label="√q, the largest distance")
    axis.set_yscale("log")
    axis.set_ylim(top=2.5 * axis.get_ylim()[1])  # room for what is infinite
