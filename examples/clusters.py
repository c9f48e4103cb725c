"""Three clusters, a few edges between them, and what edge dropping does to those few.

Makes a clustered graph, scores its edges by aggregate resistance, draws the paper's Figure 1 for it, and
counts how often each strategy keeps the edges between and inside clusters and how often the thinned graph stays
connected, beside DropEdge with the same expected number of kept edges.

    python examples/clusters.py --out demo-output
    python examples/clusters.py --clusters 5 --nodes 30 --keep-prob 0.5 --draws 4000
"""

from __future__ import annotations

import argparse
import base64
import sys
from dataclasses import astuple, dataclass
from html import escape
from itertools import pairwise
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import networkx as nx
import numpy as np
import scipy.sparse as sp
import torch
from rich import box
from rich.console import Console
from rich.table import Table
from scipy.sparse.csgraph import connected_components
from torch import Tensor

import tadropedge as tde
from tadropedge.checks import check_integer, check_probability
from tadropedge.spectrum import cluster_subspaces
from tadropedge.spectrum.clusters import Clusters

LINKS = 2  # edges between two neighbouring clusters
INSIDE = 0.5  # probability of an edge inside a cluster
METHODS = (
    ("cutoff", "aggregate", "cutoff", False),
    ("division", "aggregate", "division", False),
    ("cdf", "aggregate", "cdf", False),
    ("effective-cdf", "effective", "cdf", False),
    ("inverse-cdf", "aggregate", "cdf", True),
)
HEADER = ("method", "kept", "between", "inside", "connected", "between", "inside", "connected")


def clustered_graph(clusters: int, nodes: int, seed: int) -> tuple[tde.Graph, np.ndarray]:
    """A ring of random clusters, each connected, with a few edges between neighbours; and the cluster of each node."""
    random = np.random.default_rng(seed)
    edges = []
    for cluster in range(clusters):
        start = cluster * nodes
        order = start + random.permutation(nodes)
        edges += list(pairwise(order))  # a path keeps the cluster in one piece
        low, high = np.triu_indices(nodes, 1)
        chosen = random.random(len(low)) < INSIDE
        edges += list(zip(start + low[chosen], start + high[chosen], strict=True))
    rings = clusters if clusters > 2 else clusters - 1
    for cluster in range(rings):
        here, there = cluster * nodes, (cluster + 1) % clusters * nodes
        edges += [(here + random.integers(nodes), there + random.integers(nodes)) for _ in range(LINKS)]
    return tde.Graph.from_edge_index(np.array(edges).T), np.repeat(np.arange(clusters), nodes)


@dataclass(frozen=True)
class Row:
    """How often edges were kept and the graph stayed whole: a strategy, and DropEdge with the same budget."""

    method: str
    kept: float
    between: float
    inside: float
    connected: float
    dropedge_between: float
    dropedge_inside: float
    dropedge_connected: float


def stays_connected(graph: tde.Graph, masks: Tensor) -> float:
    """The share of the subgraphs ``masks [T, M]`` that are connected: one sparse matrix holds them all."""
    draw, edge = torch.nonzero(masks, as_tuple=True)
    low, high = (graph.pairs[:, edge] + draw * graph.num_nodes).numpy()
    size = graph.num_nodes * len(masks)
    labels = connected_components(sp.coo_matrix((np.ones(len(low)), (low, high)), shape=(size, size)))[1]
    labels = labels.reshape(len(masks), graph.num_nodes)
    return float((labels == labels[:, :1]).all(axis=1).mean())


def measure(graph: tde.Graph, between: Tensor, prob: Tensor, draws: int) -> tuple[float, float, float]:
    """Draw ``draws`` subgraphs: kept share between and inside clusters, and how often they are connected."""
    masks = tde.sample_edges(prob, seed=list(range(draws)))
    kept = masks.double().mean(dim=0)
    return float(kept[between].mean()), float(kept[~between].mean()), stays_connected(graph, masks)


def compare(graph: tde.Graph, cluster: np.ndarray, keep_prob: float, draws: int) -> list[Row]:
    """One row per method."""
    low, high = graph.pairs
    between = torch.from_numpy(cluster)[low] != torch.from_numpy(cluster)[high]
    weights = {
        "aggregate": tde.aggregate_resistance(graph, q=int(cluster.max()) + 1),
        "effective": tde.effective_resistance(graph),
    }
    rows = []
    for name, kind, strategy, inverse in METHODS:
        prob = tde.keep_probabilities(weights[kind], keep_prob=keep_prob, strategy=strategy, inverse=inverse)
        kept = float(prob.mean())
        ours = measure(graph, between, prob, draws)
        theirs = measure(graph, between, torch.full_like(prob, kept), draws)
        rows.append(Row(name, kept, *ours, *theirs))
    return rows


def draw(graph: tde.Graph, clusters: int, path: Path) -> None:
    """The paper's Figure 1: edges coloured by score, the lowest eigenvalues, the first modes."""
    (modes,) = cluster_subspaces(graph, Clusters(q=clusters))
    weights = tde.aggregate_resistance(graph, q=clusters)
    network = nx.Graph(graph.pairs.T.tolist())
    place = nx.spring_layout(network, seed=3, iterations=200)
    order = np.argsort(modes.block.nodes[0])
    shown = min(clusters, 3)
    figure, axes = plt.subplots(1, 2 + shown, figsize=(4.2 * (2 + shown), 4), layout="constrained")
    ascending = torch.argsort(weights).tolist()  # critical edges on top
    edges = [tuple(graph.pairs[:, edge].tolist()) for edge in ascending]
    colours = weights[ascending].numpy()
    nx.draw_networkx_nodes(network, place, node_size=18, node_color="#555555", ax=axes[0])
    lines = nx.draw_networkx_edges(
        network, place, edgelist=edges, edge_color=colours, edge_cmap=plt.cm.plasma_r, width=1.6, ax=axes[0]
    )
    figure.colorbar(lines, ax=axes[0], shrink=0.8)
    axes[0].set_title("aggregate resistance of each edge")
    values = modes.values[0][: 2 * clusters]
    axes[1].plot(range(len(values)), values, "o-", color="#3b4cc0")
    axes[1].axvspan(clusters - 1, clusters, color="#f4a582", alpha=0.5, label="eigengap")
    axes[1].set(title=f"the first {len(values)} eigenvalues", xlabel="index")
    axes[1].legend(loc="upper left")
    for mode in range(shown):
        values = modes.vectors[0][order, mode]
        limit = np.abs(values).max()
        nx.draw_networkx_edges(network, place, edge_color="#cccccc", ax=axes[2 + mode])
        nx.draw_networkx_nodes(
            network,
            place,
            nodelist=range(graph.num_nodes),
            node_size=28,
            node_color=values,
            cmap=plt.cm.coolwarm,
            vmin=-limit,
            vmax=limit,
            ax=axes[2 + mode],
        )
        axes[2 + mode].set_title(f"eigenvector {mode}")
    for axis in (axes[0], *axes[2:]):
        axis.set_axis_off()
    figure.savefig(path, dpi=90)
    plt.close(figure)


def cells(row: Row) -> list[str]:
    """A row as text: shares in per cent."""
    return [row.method, *(f"{100 * value:.1f}" for value in astuple(row)[1:])]


def write_report(path: Path, picture: Path, rows: list[Row], title: str) -> None:
    """One self-contained page: the picture and the table."""
    image = base64.b64encode(picture.read_bytes()).decode()
    body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in cells(row)) + "</tr>" for row in rows)
    head = "".join(f"<th>{escape(name)}</th>" for name in HEADER)
    path.write_text(
        f"""<!doctype html><html lang="en"><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1"><title>tadropedge: {escape(title)}</title>
<style>body{{font:16px/1.5 sans-serif;max-width:72rem;margin:auto;padding:1rem}}img{{max-width:100%}}
div{{overflow-x:auto}}table{{border-collapse:collapse}}td,th{{padding:.3rem .8rem;border-bottom:1px solid #ccc;
text-align:right}}td:first-child{{text-align:left}}</style>
<h1>{escape(title)}</h1><img alt="graph, eigenvalues and eigenvectors" src="data:image/png;base64,{image}">
<h2>How often edges are kept, and how often the thinned graph stays connected (per cent)</h2>
<div><table><tr><th></th><th></th><th colspan="3">the method</th><th colspan="3">DropEdge, same expected number
of kept edges</th></tr><tr>{head}</tr>{body}</table></div></html>
""",
        encoding="utf-8",
    )


def show(rows: list[Row], title: str) -> None:
    """Print the table."""
    caption = "per cent of edges kept and of subgraphs connected; DropEdge at the same budget"
    table = Table(title=title, caption=caption, box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    for place, name in enumerate(HEADER):
        note = "DropEdge\n" if place > 4 else "\n"
        table.add_column(note + name, justify="left" if place == 0 else "right", no_wrap=True)
    for row in rows:
        table.add_row(*cells(row))
    Console().print(table)


def parse(arguments: list[str] | None) -> argparse.Namespace:
    """Read and check the options."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clusters", type=int, default=3, help="number of clusters (default 3)")
    parser.add_argument("--nodes", type=int, default=20, help="nodes per cluster (default 20)")
    parser.add_argument("--keep-prob", type=float, default=0.5, help="the paper's p (default 0.5)")
    parser.add_argument("--draws", type=int, default=2000, help="subgraphs drawn (default 2000)")
    parser.add_argument("--seed", type=int, default=0, help="seed of the graph (default 0)")
    parser.add_argument("--out", type=Path, default=Path("demo-output"), help="folder to write to")
    options = parser.parse_args(arguments)
    check_integer("--clusters", options.clusters, least=2)
    check_integer("--nodes", options.nodes, least=3)
    check_integer("--draws", options.draws, least=1)
    check_integer("--seed", options.seed, least=0)
    check_probability("--keep-prob", torch.tensor(options.keep_prob))
    return options


def main(arguments: list[str] | None = None) -> None:
    """Make the graph, the picture, the table and the report."""
    options = parse(arguments)
    graph, cluster = clustered_graph(options.clusters, options.nodes, options.seed)
    rows = compare(graph, cluster, options.keep_prob, options.draws)
    options.out.mkdir(parents=True, exist_ok=True)
    picture, report = options.out / "clusters.png", options.out / "report.html"
    draw(graph, options.clusters, picture)
    title = (
        f"{options.clusters} clusters, {graph.num_nodes} nodes, {graph.num_edges} edges, "
        f"p = {options.keep_prob:g}, {options.draws} subgraphs"
    )
    write_report(report, picture, rows, title)
    show(rows, title)
    print(f"picture: {picture}\nreport:  {report}")


if __name__ == "__main__":
    try:
        main()
    except (tde.TadropedgeError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)
