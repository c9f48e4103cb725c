"""Theorem 1 in pictures: ratios of relative errors, and the bound beside the change of outputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from tadropedge.publish.pictures import METHOD_COLOURS, PALETTE, QUIET, WIDTH, lines, look, png

Row = Mapping[str, Any]

MARKERS = {"cdf": "o", "cutoff": "s", "division": "^"}
METHODS = {"dropedge": ("#1a1a1a", "o"), "cdf": (METHOD_COLOURS["cdf"], "s"), "same_budget": (PALETTE[4], "D")}


def errors(rows: Sequence[Row]) -> bytes:
    """‖E‖ of each strategy over DropEdge's, at the same p and at the same budget, with 95 % intervals."""
    places = {name: place for place, name in enumerate(dict.fromkeys(_setting(row) for row in rows))}
    with look():
        figure = Figure(figsize=(WIDTH * 1.5, 1.6 + 0.36 * len(places)))
        axes = figure.subplots(1, 2, sharey=True, sharex=True)
        for axis, how, words in zip(axes, ("same_p", "same_budget"), ("same p", "same budget"), strict=True):
            lines(axis, list(places))
            for number, strategy in enumerate(dict.fromkeys(row["strategy"] for row in rows)):
                mine = [row for row in rows if row["strategy"] == strategy]
                ratio = np.array([row[f"relative_ratio_{how}"] for row in mine])
                half = 1.96 * np.array([row[f"relative_ratio_{how}_error"] for row in mine])
                axis.errorbar(
                    ratio,
                    [places[_setting(row)] + 0.2 * (number - 1) for row in mine],
                    xerr=[ratio - ratio * np.exp(-half), ratio * np.exp(half) - ratio],
                    fmt=MARKERS[strategy],
                    color=METHOD_COLOURS[strategy],
                    markersize=4,
                    label=strategy,
                )
            axis.axvline(1, color=QUIET, linestyle=(0, (4, 3)), linewidth=1)
            axis.set(title=f"beside DropEdge at the {words}", xlabel="‖E‖ over DropEdge's; left of 1: smaller")
        axes[0].set_xlim(left=0)
        figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
        return png(figure, "relative error of sampled subgraphs")


def bounds(rows: Sequence[Row]) -> bytes:
    """The bound of the theorem against the measured change, one point for each setting; the diagonal is equality."""
    kinds = list(dict.fromkeys(row["normalization"] for row in rows))
    with look():
        figure = Figure(figsize=(WIDTH * 1.3, 3.9))
        axes = figure.subplots(1, len(kinds), sharex=True, sharey=True, squeeze=False)[0]
        for axis, kind in zip(axes, kinds, strict=True):
            for row in (row for row in rows if row["normalization"] == kind):
                colour, marker = METHODS[row["method"]]
                face = colour if row["layers"] == 1 else "white"
                axis.plot(row["change"], row["bound"], marker, color=colour, markerfacecolor=face, markersize=6)
            axis.axline((1e-2, 1e-2), (1, 1), color=QUIET, linewidth=1)
            axis.set(title=kind, xscale="log", yscale="log", xlabel="measured change over ‖X‖")
        axes[0].set_ylabel("first-order bound over ‖X‖")
        names = {"dropedge": "DropEdge", "cdf": "cdf", "same_budget": "DropEdge, budget of cdf"}
        for method, (colour, marker) in METHODS.items():
            axes[0].plot([], [], marker, color=colour, label=names[method])
        figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
        return png(figure, "bound against measurement; line: equal; hollow: two layers")


def _setting(row: Row) -> str:
    return f"{row['family']}, {row['normalization']}, p = {row['keep_prob']:g}"
