"""Pictures of clustered graphs: edges coloured by score, eigenvalues, modes as node colours."""

from __future__ import annotations

from collections.abc import Sequence

import networkx as nx
import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.collections import LineCollection
from matplotlib.colors import LogNorm, Normalize
from matplotlib.figure import Figure

from tadropedge.graph import Graph
from tadropedge.paper.clustered import Clustered, Spectrum
from tadropedge.paper.judge import Array
from tadropedge.publish.pictures import PALETTE, QUIET, WIDTH, picture

EDGES = "viridis_r"  # light for small scores, dark for critical edges; read by colour-blind eyes
MODES = "PuOr"
MARKERS = "osD^vP*X"  # clusters are told apart by shape, so colour is free for values


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
        axis.scatter(
            place[mine, 0],
            place[mine, 1],
            s=22,
            marker=MARKERS[cluster % len(MARKERS)],
            edgecolors="#333333",
            linewidths=0.5,
            zorder=2,
            **shade,
        )
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
