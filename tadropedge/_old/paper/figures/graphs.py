"""Pictures of scores: on the edges of clustered graphs, beside eigenvalues and modes; sorted, with γ marked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import networkx as nx
import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.collections import LineCollection
from matplotlib.colors import LogNorm, Normalize
from matplotlib.figure import Figure

from tadropedge._old.graph import Graph
from tadropedge._old.paper.clustered import Clustered, Spectrum
from tadropedge._old.paper.judge import Array
from tadropedge._old.publish.pictures import INK, PALETTE, QUIET, WIDTH, legend, picture

EDGES = "viridis_r"  # light for small scores, dark for critical edges; read by colour-blind eyes
MODES = "PuOr"
MARKERS = "osD^vP*X"  # clusters are told apart by shape, so colour is free for values
LAPLACIANS: dict[str, dict[str, Any]] = {
    "combinatorial": {"color": PALETTE[0], "linestyle": "-"},
    "normalized": {"color": PALETTE[1], "linestyle": (0, (5, 1.5))},
}
FLOOR = 1e-16  # smaller scores are drawn here, and the picture says how many


@picture
def modes(made: Clustered, found: Spectrum, shown: int) -> tuple[Figure, str]:
    """Figure 1: the graph, its lowest eigenvalues with the gap marked, and its first three modes."""
    place = layout(made.graph)
    figure = Figure(figsize=(WIDTH * 1.6, 6.2))
    grid = figure.add_gridspec(2, 6)
    _graph(figure, figure.add_subplot(grid[0, :3]), made, found.scores, place, "right")
    figure.axes[0].set_title("edges by weight; thick: between clusters")
    _eigenvalues(figure.add_subplot(grid[0, 3:]), found.values[:shown], made.q)
    limit = float(np.abs(found.modes).max())
    norm = Normalize(-limit, limit)
    panels = [figure.add_subplot(grid[1, 2 * mode : 2 * mode + 2]) for mode in range(3)]
    for mode, axis in enumerate(panels):
        axis.add_collection(LineCollection(_segments(made.graph, place), colors="#d9d9d9", linewidths=0.6))
        draw_nodes(axis, made, place, found.modes[:, mode], norm)
        axis.set_title(f"mode u_{mode}")
    bar = figure.colorbar(ScalarMappable(norm, MODES), ax=panels, location="bottom", shrink=0.4, aspect=40)
    bar.set_label("value at a node; shapes are clusters")
    return figure, f"{made.q} clusters, {made.graph.num_nodes} nodes, {made.graph.num_edges} edges"


@picture
def scores(pictures: Sequence[tuple[Clustered, Spectrum]]) -> tuple[Figure, str]:
    """Graphs side by side, each with the scale of its own scores."""
    figure = Figure(figsize=(WIDTH * 1.6, 4.0))
    for axis, (made, found) in zip(figure.subplots(1, len(pictures)), pictures, strict=True):
        _graph(figure, axis, made, found.scores, layout(made.graph), "bottom")
        axis.set_title(f"{made.q} clusters, {int(made.between.sum())} edges between")
    return figure, "aggregate resistance weights; thick edges join clusters, shapes are clusters"


def layout(graph: Graph) -> Array:
    """Where the nodes are drawn, ``[N, 2]``: springs, the same every time."""
    network = nx.Graph()
    network.add_nodes_from(range(graph.num_nodes))
    network.add_edges_from(graph.pairs.T.tolist())
    places = nx.spring_layout(network, seed=3, iterations=200)
    return np.array([places[node] for node in range(graph.num_nodes)])


def _graph(figure: Figure, axis: Axes, made: Clustered, values: Array, place: Array, bar: str) -> None:
    """A graph with its edges coloured by their score on a logarithmic scale, critical ones on top."""
    least = max(float(values.min()), 1e-4 * float(values.max()))
    order = np.argsort(values)
    segments = _segments(made.graph, place)
    lines = LineCollection(
        [segments[edge] for edge in order],
        array=np.maximum(values[order], least),
        cmap=EDGES,
        norm=LogNorm(least, float(values.max())),
        linewidths=np.where(made.between.numpy()[order], 1.8, 0.9),
    )
    axis.add_collection(lines)
    figure.colorbar(lines, ax=axis, location=bar, label="weight ω", shrink=0.85)
    draw_nodes(axis, made, place, "#555555")


def draw_nodes(axis: Axes, made: Clustered, place: Array, colour: str | Array, norm: Normalize | None = None) -> None:
    """Nodes, with a shape for each cluster."""
    label = made.clusters.numpy()
    for cluster in range(made.q):
        mine = label == cluster
        shade = {"color": colour} if isinstance(colour, str) else {"c": colour[mine], "cmap": MODES, "norm": norm}
        looks: dict[str, Any] = {**shade, "marker": MARKERS[cluster % len(MARKERS)], "edgecolors": "#333333"}
        axis.scatter(place[mine, 0], place[mine, 1], s=22, linewidths=0.5, zorder=2, **looks)
    axis.set_axis_off()
    axis.margins(0.06)


def _segments(graph: Graph, place: Array) -> list[Array]:
    return list(place[graph.pairs.T.numpy()])


def _eigenvalues(axis: Axes, values: Array, q: int) -> None:
    axis.axvspan(q - 1, q, color="#f0e4c2")
    axis.text(q - 0.5, float(values.max()), "eigengap", ha="center", va="top", color=QUIET)
    axis.plot(range(len(values)), values, "o-", color=PALETTE[0])
    axis.set(title=f"the first {len(values)} eigenvalues", xlabel="index ℓ", ylabel="λ_ℓ of D − A")
    axis.set_xticks(range(len(values)))


@picture
def distributions(curves: Mapping[str, Mapping[str, Array]], gamma: Mapping[str, float]) -> tuple[Figure, str]:
    """One line of two panels for each dataset; ``curves[dataset][laplacian]`` are the sorted scores ``[2 M]``."""
    figure = Figure(figsize=(WIDTH * 1.4, 0.8 + 2.3 * len(curves)))
    axes = figure.subplots(len(curves), 2, squeeze=False)
    for (linear, logarithmic), (dataset, found) in zip(axes, curves.items(), strict=True):
        for laplacian, values in found.items():
            for axis in (linear, logarithmic):
                label = f"{laplacian} Laplacian"
                place = np.arange(1, len(values) + 1)
                axis.plot(place, np.maximum(values, FLOOR), linewidth=1.6, label=label, **LAPLACIANS[laplacian])
        for axis in (linear, logarithmic):
            axis.axhline(gamma[dataset], color=INK, linewidth=1, linestyle=(0, (2, 2)))
        linear.set(title=f"{dataset}: the largest tenth", ylabel="weight ω")
        size = max(len(values) for values in found.values())
        linear.set_xlim(0.9 * size, 1.005 * size)
        linear.set_ylim(0, 12 * gamma[dataset])
        logarithmic.set(title=f"{dataset}: all, logarithmic", yscale="log")
        words, where = f"γ = {gamma[dataset]:g}", logarithmic.get_yaxis_transform()
        logarithmic.text(0.02, gamma[dataset], words, transform=where, va="bottom", fontsize=9)
        small = "\n".join(f"{(values < FLOOR).mean():.1%} ({laplacian})" for laplacian, values in found.items())
        logarithmic.text(
            0.98, 0.02, f"drawn at {FLOOR:g}, but smaller:\n{small}", transform=logarithmic.transAxes, ha="right",
            va="bottom", fontsize=8, color=QUIET,
        )  # fmt: skip
    for axis in axes[-1]:
        axis.set_xlabel("pairs (i, j) in order of weight")
    legend(figure, axes[0, 1], ncols=2)
    return figure, "aggregate resistance weights, q = number of classes; dotted: γ of the paper; left: up to 12 γ"
