"""The pictures of a graph's scores as PNG bytes, spectrum and distribution, and the places of its nodes on the page.

Figures are made through matplotlib's objects, never ``pyplot``: no backend is chosen and nothing global changes. The
same figure gives the same bytes.
"""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable

import networkx as nx
import numpy as np
import numpy.typing as npt
from matplotlib import style
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from tadropedge.graph import Graph
from tadropedge.lab.graph_report.summary import GraphReport
from tadropedge.lab.reports.label import MADE_BY
from tadropedge.lab.reports.text import short

Floats = npt.NDArray[np.float64]

BLUE, ORANGE = "#0072b2", "#d55e00"  # of Okabe and Ito's palette, which colour-blind readers can distinguish
GREY, WORDS, INK, QUIET = "#c4c8cc", "#a84300", "#1a1a1a", "#6b6b6b"
STYLE = {
    "font.family": "DejaVu Sans",  # comes with matplotlib
    "font.size": 11,
    "axes.edgecolor": QUIET,
    "axes.labelcolor": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 11,
    "axes.titlelocation": "left",
    "figure.facecolor": "white",
    "figure.constrained_layout.use": True,
    "figure.constrained_layout.h_pad": 0.1,
    "figure.constrained_layout.w_pad": 0.1,
    "legend.frameon": False,
    "xtick.color": QUIET,
    "ytick.color": INK,
}
WIDTH = 6.0  # inches: narrow, so that its words can still be read on a phone
RULE = (0, (4, 3))  # the dashes of a line that marks a value
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


def png(draw: Callable[[GraphReport], tuple[Figure, str]], report: GraphReport) -> bytes:
    """A picture with its title, in smaller letters where it is long; whatever style the user has set."""
    with style.context(["default", STYLE]), warnings.catch_warnings():
        # A name in a script that the font lacks is drawn as boxes; the page has it as text.
        warnings.filterwarnings("ignore", message="Glyph")
        figure, title = draw(report)
        size = 11 if len(title) <= 10.5 * WIDTH else 10
        words = short(title, int(13 * WIDTH)).replace("$", r"\$")  # a dollar sign starts no formula
        figure.suptitle(words, x=0.02, ha="left", fontsize=size, color=QUIET)
        stream = io.BytesIO()
        figure.savefig(stream, format="png", dpi=160, metadata={"Software": MADE_BY})
    return stream.getvalue()


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


def distribution(report: GraphReport) -> tuple[Figure, str]:
    """The sorted scores on a log scale, with γ."""
    gamma, values = report.own_gamma, np.sort(report.values.numpy())
    positive = values[values > 0]
    figure = Figure(figsize=(WIDTH, 3.8))
    axis = figure.subplots()
    rank = np.arange(1, len(values) + 1) / len(values)
    if len(positive):
        shown = np.unique(np.linspace(0, len(positive) - 1, POINTS).round().astype(np.int64))
        axis.plot(rank[values > 0][shown], positive[shown], color=BLUE, linewidth=1.6)
        axis.set_yscale("log")
    zeros = len(values) - len(positive)
    left_out = f", {zeros:,} zeros left out" if zeros else ""
    axis.set(xlabel=f"share of edges below{left_out}", ylabel="score ω", xlim=(-0.02, 1.02))
    critical = int((values >= gamma).sum())
    if critical and gamma > 0:
        axis.axhline(gamma, color=ORANGE, linewidth=1.2, linestyle=RULE)
        axis.plot([1 - critical / len(values)], [gamma], "o", color=ORANGE, markersize=6)
        axis.annotate("γ", (0, gamma), xytext=(2, 4), textcoords="offset points", color=WORDS)
    words = f"γ = {gamma:.3g}, {critical:,} of {len(values):,} edges reach it" if critical else "no edge stands out"
    return figure, f"{report.name}: the score {report.score}; {words}"
