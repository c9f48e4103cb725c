"""Theorem 1 in pictures: ratios of relative errors, and the bound beside the change of outputs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.figure import Figure

from tadropedge.paper.rows import grouped
from tadropedge.publish.pictures import (
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
    from tadropedge.paper.perturbation import Subgraphs
    from tadropedge.paper.trained_filters import Filters

WAYS = {
    "dropedge": ("DropEdge", INK, "o"),
    "cdf": ("cdf", METHOD_COLOURS["cdf"], "s"),
    "same_budget": ("DropEdge, budget of cdf", PALETTE[4], "D"),
}


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
            axis.errorbar(
                ratio,
                [places[_setting(row)] + 0.2 * (number - 1) for row in mine],
                xerr=[ratio - ratio * np.exp(-half), ratio * np.exp(half) - ratio],
                fmt=MARKERS[strategy],
                color=METHOD_COLOURS[strategy],
                markersize=4,
                label=strategy,
            )
        axis.axvline(1, color=QUIET, linestyle=RULE, linewidth=1)
        axis.set(title=f"beside DropEdge at the {words}", xlabel="‖E‖ over DropEdge's; left of 1: smaller")
    axes[0].set_xlim(left=0)
    legend(figure, axes[0])
    return figure, "relative error of sampled subgraphs"


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
