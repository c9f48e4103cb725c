"""The pictures of a graph's scores, as PNG bytes: the spectrum, the distribution of the scores, the graph itself."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from matplotlib.collections import LineCollection
from matplotlib.colors import LinearSegmentedColormap, LogNorm
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from tadropedge._old.publish.pictures import INK, PALETTE, QUIET, RULE, WIDTH
from tadropedge._old.publish.pictures import picture as rendered
from tadropedge._old.score_report.summary import label
from tadropedge._old.scores.solve import Scored

Floats = npt.NDArray[np.float64]

BLUE, ORANGE = PALETTE[:2]
GREY = "#c4c8cc"
# From the knee upwards: all well away from the grey of the other edges, the most critical the darkest.
CRITICAL = LinearSegmentedColormap.from_list("critical", ["#e69f00", "#d55e00", "#a50f15", "#4a0010"])


@rendered
def spectrum(scored: Scored, name: str, where: str = "the largest component") -> tuple[Figure, str]:
    """The lowest eigenvalues of a component, with the gap above the chosen q."""
    values, chosen = scored.eigenvalues, scored.chosen
    figure = Figure(figsize=(WIDTH, 3.6))
    axis = figure.subplots()
    if chosen < len(values):
        gap = values[chosen] - values[chosen - 1]
        axis.axhspan(values[chosen - 1], values[chosen], color=ORANGE, alpha=0.18, linewidth=0)
        axis.annotate(
            f"gap {gap:.3g}", (0.0, (values[chosen - 1] + values[chosen]) / 2), xytext=(4, 0),
            textcoords="offset points", va="center", color="#a84300",
        )  # fmt: skip
    index = np.arange(len(values))
    axis.vlines(index, 0, values, color=GREY, linewidth=1)
    for inside, colour, words in ((index < chosen, BLUE, f"used: q = {chosen}"), (index >= chosen, QUIET, "above")):
        if inside.any():
            axis.plot(index[inside], values[inside], "o", color=colour, markersize=6, label=words, clip_on=False)
    axis.set(xlabel="index ℓ", ylabel=f"eigenvalue λ, {scored.settings['laplacian']}")
    axis.xaxis.set_major_locator(MaxNLocator(integer=True))
    axis.set_ylim(0, 1.08 * float(values.max()) or 1.0)
    figure.legend(loc="outside lower center", ncols=2, handletextpad=0.2)
    nodes = scored.graph.components.largest
    return figure, f"{name}: lowest eigenvalues of {where} ({nodes:,} nodes)"


@rendered
def distribution(scored: Scored, name: str, gamma: float) -> tuple[Figure, str]:
    """The sorted scores on a log scale with the knee, and their histogram."""
    values = np.sort(scored.values.numpy())
    positive = values[values > 0]
    figure = Figure(figsize=(WIDTH, 3.8))
    left, right = figure.subplots(1, 2, width_ratios=(3, 2))
    rank = np.arange(1, len(values) + 1) / len(values)
    if len(positive):
        left.plot(*_thinned(rank[values > 0], positive), color=BLUE, linewidth=1.6)
        left.set_yscale("log")
        right.hist(np.log10(positive), bins=40, color=BLUE)
    left.set(xlabel="share of edges below", ylabel="score ω", xlim=(-0.02, 1.02))
    right.set(xlabel="log₁₀ ω", ylabel="edges")
    critical = int((values >= gamma).sum())
    if critical:
        left.axhline(gamma, color=ORANGE, linewidth=1.2, linestyle=RULE)
        left.plot([1 - critical / len(values)], [gamma], "o", color=ORANGE, markersize=6)
        left.annotate("γ", (0, gamma), xytext=(2, 4), textcoords="offset points", color="#a84300")
        right.axvline(float(np.log10(gamma)), color=ORANGE, linewidth=1.2, linestyle=RULE)
    zeros = len(values) - len(positive)
    left.set_title(f"sorted{f', {zeros:,} zeros left out' if zeros else ''}")
    right.set_title("histogram")
    words = f"γ = {gamma:.3g}, {critical:,} of {len(values):,} edges reach it" if critical else "no edge stands out"
    return figure, f"{name}: {label(scored.score)}; {words}"


@rendered
def picture(scored: Scored, name: str, gamma: float, places: Floats) -> tuple[Figure, str]:
    """The graph: edges of ω ≥ γ coloured, the most critical on top, the others grey."""
    values = scored.values.numpy()
    order = np.argsort(values, kind="stable")
    critical = order[values[order] >= gamma]
    quiet = order[values[order] < gamma]
    lines = places[scored.graph.pairs.numpy().T]
    figure = Figure(figsize=(WIDTH, WIDTH))
    axis = figure.subplots()
    thin = float(np.clip(40 / np.sqrt(len(order)), 0.25, 1.2))
    axis.add_collection(LineCollection(list(lines[quiet]), colors=GREY, linewidths=thin, zorder=1))
    dot = float(np.clip(80 / np.sqrt(len(places)), 1, 7))
    axis.plot(*places.T, "o", color=INK, markersize=dot, markeredgewidth=0, zorder=2)
    if len(critical):
        scale = LogNorm(gamma, max(float(values.max()), gamma * (1 + 1e-9)))
        drawn = LineCollection(
            list(lines[critical]), cmap=CRITICAL, norm=scale, linewidths=thin + 1, zorder=3, capstyle="round"
        )
        drawn.set_array(values[critical])
        axis.add_collection(drawn)
        figure.colorbar(drawn, ax=axis, shrink=0.5, pad=0.01, label=f"score ω ≥ γ = {gamma:.3g}")
    axis.set_aspect("equal")
    axis.set_axis_off()
    return figure, f"{name}: {len(critical):,} of {len(order):,} edges are critical"


def _thinned(x: Floats, y: Floats, most: int = 4_000) -> tuple[Floats, Floats]:
    """At most ``most`` points of a long curve, the ends among them."""
    places = np.unique(np.linspace(0, len(x) - 1, most).round().astype(np.int64))
    return x[places], y[places]
