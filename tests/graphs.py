"""A zoo of small graphs, most of them with closed forms."""

from __future__ import annotations

import networkx as nx
import numpy as np
import torch
from hypothesis import strategies as st

from tadropedge import Graph


def of(graph: nx.Graph) -> Graph:
    return Graph.from_networkx(nx.convert_node_labels_to_integers(graph), weight=None)


def path(n: int) -> Graph:
    return of(nx.path_graph(n))


def cycle(n: int) -> Graph:
    return of(nx.cycle_graph(n))


def complete(n: int) -> Graph:
    return of(nx.complete_graph(n))


def star(leaves: int) -> Graph:
    return of(nx.star_graph(leaves))


def spider(legs: int, length: int) -> Graph:
    """``legs`` paths that meet in one node: the lowest non-zero eigenvalue is repeated ``legs − 1`` times."""
    graph = nx.Graph()
    for leg in range(legs):
        nx.add_path(graph, ["centre", *((leg, step) for step in range(length))])
    return of(graph)


def two_cliques(n: int) -> Graph:
    """Two complete graphs of n nodes joined by one edge, the pair (n − 1, n)."""
    return of(nx.barbell_graph(n, 0))


def clusters(sizes: list[int], inside: float, between: float, seed: int = 0) -> Graph:
    probabilities = np.full((len(sizes), len(sizes)), between)
    np.fill_diagonal(probabilities, inside)
    return of(nx.stochastic_block_model(sizes, probabilities, seed=seed))


def union(*graphs: Graph) -> Graph:
    offsets = np.cumsum([0] + [graph.num_nodes for graph in graphs])
    pairs = torch.cat([graph.pairs + int(start) for graph, start in zip(graphs, offsets[:-1], strict=True)], dim=1)
    return Graph.from_edge_index(pairs, num_nodes=int(offsets[-1]))


def relabel(graph: Graph, permutation: torch.Tensor) -> tuple[Graph, torch.Tensor]:
    """The graph with node i called ``permutation[i]``, and the place there of each pair of ``graph``."""
    other = Graph.from_edge_index(permutation[graph.pairs], graph.num_nodes, graph.weight)
    return other, other.arc_pair


def weighted(graph: Graph, seed: int = 0) -> Graph:
    generator = torch.Generator().manual_seed(seed)
    weight = torch.rand(graph.num_edges, generator=generator, dtype=torch.float64) + 0.1
    return Graph.from_edge_index(graph.pairs, graph.num_nodes, weight)


ZOO = {
    "path": path(9),
    "cycle": cycle(10),
    "complete": complete(6),
    "star": star(7),
    "cliques": two_cliques(5),
    "karate": of(nx.karate_club_graph()),
    "grid": of(nx.grid_2d_graph(4, 5)),
    "clusters": clusters([8, 8, 8], 0.7, 0.05),
    "weighted": weighted(clusters([10, 12], 0.5, 0.1)),
    "parts": union(two_cliques(4), path(6), complete(3), Graph.from_edge_index([[0], [1]], 3)),
}


@st.composite
def edge_lists(draw: st.DrawFn) -> tuple[np.ndarray, int]:
    """Arcs in any direction, with duplicates and self-loops, on up to 12 nodes."""
    n = draw(st.integers(1, 12))
    ends = st.integers(0, n - 1)
    arcs = draw(st.lists(st.tuples(ends, ends), max_size=40))
    return np.array(arcs, dtype=np.int64).reshape(-1, 2).T, n
