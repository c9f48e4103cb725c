"""The pictures of a graph's scores, as PNG bytes: the spectrum, the distribution of the scores, the graph itself."""

from __future__ import annotations

import networkx as nx
import numpy as np
import numpy.typing as npt
import torch
from matplotlib.collections import LineCollection
from matplotlib.colors import LinearSegmentedColormap, LogNorm
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from tadropedge.graph import Graph
from tadropedge.lab.graph_report.part import Part
from tadropedge.lab.graph_report.summary import GraphReport
from tadropedge.lab.reports.pictures import INK, PALETTE, QUIET, RULE, WIDTH
from tadropedge.lab.reports.pictures import picture as rendered

Floats = npt.NDArray[np.float64]

BLUE, ORANGE = PALETTE[:2]
GREY, WORDS = "#c4c8cc", "#a84300"
# From the knee upwards: all well away from the grey of the other edges, the most critical the darkest.
CRITICAL = LinearSegmentedColormap.from_list("critical", ["#e69f00", "#d55e00", "#a50f15", "#4a0010"])
FEW = 500  # nodes, whose places are worth more steps
POINTS = 4_000  # of a curve


def layout(graph: Graph) -> Floats:
    """A place for each node ``[N, 2]``, by forces between nodes.

    A large graph starts near its end, where nodes stand in the order of its two slowest modes.
    """
    drawn = nx.Graph()
    drawn.add_nodes_from(range(graph.num_nodes))
    drawn.add_edges_from(graph.pairs.T.tolist())
    if graph.num_nodes <= FEW:
        places = nx.forceatlas2_layout(drawn, max_iter=100, seed=0)
    elif graph.components.count > 1:
        places = nx.spring_layout(drawn, iterations=20, seed=0)
    else:
        modes = np.array(list(nx.spectral_layout(drawn).values()))
        order = modes.argsort(axis=0, kind="stable").argsort(axis=0) / graph.num_nodes
        places = nx.spring_layout(drawn, pos=dict(enumerate(order)), iterations=10, seed=0)
    return np.array([places[node] for node in range(graph.num_nodes)], dtype=np.float64)


@rendered
def spectrum(report: GraphReport) -> tuple[Figure, str]:
    """The lowest eigenvalues of the largest component, with the gap above the chosen q."""
    values, chosen = report.scored.eigenvalues, report.scored.chosen
    figure = Figure(figsize=(WIDTH, 3.6))
    axis = figure.subplots()
    if chosen < len(values):
        low, high = values[chosen - 1], values[chosen]
        axis.axhspan(low, high, color=ORANGE, alpha=0.18, linewidth=0)
        middle = (0.0, (low + high) / 2)
        axis.annotate(f"gap {high - low:.3g}", middle, (4, 0), textcoords="offset points", va="center", color=WORDS)
    index = np.arange(len(values))
    axis.vlines(index, 0, values, color=GREY, linewidth=1)
    for inside, colour, words in ((index < chosen, BLUE, f"used: q = {chosen}"), (index >= chosen, QUIET, "above")):
        if inside.any():
            axis.plot(index[inside], values[inside], "o", color=colour, markersize=6, label=words, clip_on=False)
    axis.set(xlabel="index ℓ", ylabel="eigenvalue λ")
    axis.xaxis.set_major_locator(MaxNLocator(integer=True))
    axis.set_ylim(0, 1.08 * float(values.max()) or 1.0)
    figure.legend(loc="outside lower center", ncols=2, handletextpad=0.2)
    nodes = report.scored.connected.components.largest
    return figure, f"{report.name}: lowest eigenvalues of the largest component ({nodes:,} nodes)"


@rendered
def distribution(report: GraphReport) -> tuple[Figure, str]:
    """The sorted scores on a log scale with the knee, and their histogram."""
    gamma, values = report.own_gamma, np.sort(report.values.numpy())
    positive = values[values > 0]
    figure = Figure(figsize=(WIDTH, 3.8))
    left, right = figure.subplots(1, 2, width_ratios=(3, 2))
    rank = np.arange(1, len(values) + 1) / len(values)
    if len(positive):
        shown = np.unique(np.linspace(0, len(positive) - 1, POINTS).round().astype(np.int64))
        left.plot(rank[values > 0][shown], positive[shown], color=BLUE, linewidth=1.6)
        left.set_yscale("log")
        right.hist(np.log10(positive), bins=40, color=BLUE)
    left.set(xlabel="share of edges below", ylabel="score ω", xlim=(-0.02, 1.02))
    right.set(xlabel="log₁₀ ω", ylabel="edges")
    critical = int((values >= gamma).sum())
    if critical and gamma > 0:
        left.axhline(gamma, color=ORANGE, linewidth=1.2, linestyle=RULE)
        left.plot([1 - critical / len(values)], [gamma], "o", color=ORANGE, markersize=6)
        left.annotate("γ", (0, gamma), xytext=(2, 4), textcoords="offset points", color=WORDS)
        right.axvline(float(np.log10(gamma)), color=ORANGE, linewidth=1.2, linestyle=RULE)
    zeros = len(values) - len(positive)
    left.set_title(f"sorted{f', {zeros:,} zeros left out' if zeros else ''}")
    right.set_title("histogram")
    words = f"γ = {gamma:.3g}, {critical:,} of {len(values):,} edges reach it" if critical else "no edge stands out"
    return figure, f"{report.name}: the score {report.score}; {words}"


@rendered
def picture(report: GraphReport, part: Part, places: Floats) -> tuple[Figure, str]:
    """Some part of the graph: edges of ω ≥ γ coloured, the most critical on top, the others grey."""
    edges = torch.from_numpy(part.edges)
    values, gamma = report.scored.values[edges].numpy(), report.own_gamma
    order = np.argsort(values, kind="stable")
    critical, quiet = order[values[order] >= gamma], order[values[order] < gamma]
    lines = places[part.of(report.graph).pairs.numpy().T]
    figure = Figure(figsize=(WIDTH, WIDTH))
    axis = figure.subplots()
    thin = float(np.clip(40 / np.sqrt(max(1, len(order))), 0.25, 1.2))
    axis.add_collection(LineCollection(list(lines[quiet]), colors=GREY, linewidths=thin, zorder=1))
    dot = float(np.clip(80 / np.sqrt(len(places)), 1, 7))
    axis.plot(*places.T, "o", color=INK, markersize=dot, markeredgewidth=0, zorder=2)
    if len(critical) and gamma > 0:
        scale = LogNorm(gamma, max(float(values.max()), gamma * (1 + 1e-9)))
        drawn = LineCollection(
            list(lines[critical]), cmap=CRITICAL, norm=scale, linewidths=thin + 1, zorder=3, capstyle="round"
        )
        drawn.set_array(values[critical])
        axis.add_collection(drawn)
    if len(critical) and float(values.max()) > 1.001 * gamma > 0:
        figure.colorbar(drawn, ax=axis, shrink=0.5, pad=0.01, label=f"score ω ≥ γ = {gamma:.3g}")
    axis.set_aspect("equal")
    axis.set_axis_off()
    nodes = report.graph.num_nodes
    where = "" if len(part.nodes) == nodes else f" among {len(part.nodes):,} of {nodes:,} nodes"
    return figure, f"{report.name}: {len(critical):,} of {len(order):,} edges are critical{where}"
