"""A zoo of small graphs, most of them with closed forms: what the contract suites are run on."""

from __future__ import annotations

import networkx  # torch requires it
import numpy as np
import torch
from torch import Tensor

from tadropedge.graph import Graph


def path(n: int) -> Graph:
    """A path of n nodes."""
    return Graph.from_edge_index(np.stack((np.arange(n - 1), np.arange(1, n))), n)


def cycle(n: int) -> Graph:
    """A cycle of n nodes: every node has two neighbours."""
    return Graph.from_edge_index(np.stack((np.arange(n), np.roll(np.arange(n), -1))), n)


def complete(n: int) -> Graph:
    """All n (n − 1) / 2 edges among n nodes."""
    return Graph.from_edge_index(np.stack(np.triu_indices(n, 1)), n)


def star(leaves: int) -> Graph:
    """Node 0 and its leaves 1, 2, …: a tree."""
    return Graph.from_edge_index(np.stack((np.zeros(leaves, dtype=int), np.arange(1, leaves + 1))))


def spider(legs: int, length: int) -> Graph:
    """``legs`` paths that meet in node 0: the lowest positive eigenvalue is repeated ``legs − 1`` times."""
    node = np.arange(1, legs * length + 1)
    return Graph.from_edge_index(np.stack((np.where(node % length == 1 % length, 0, node - 1), node)))


def bipartite(left: int, right: int) -> Graph:
    """The complete bipartite graph: no triangles, and twins on both sides."""
    return Graph.from_edge_index(np.stack((np.repeat(np.arange(left), right), left + np.tile(np.arange(right), left))))


def grid(rows: int, columns: int) -> Graph:
    """A grid of ``rows × columns`` nodes, numbered row by row."""
    node = np.arange(rows * columns).reshape(rows, columns)
    across, down = (node[:, :-1], node[:, 1:]), (node[:-1], node[1:])
    return Graph.from_edge_index(
        np.concatenate([np.stack([end.ravel() for end in ends]) for ends in (across, down)], 1)
    )


def circulant(n: int, steps: tuple[int, ...]) -> Graph:
    """Node i is joined to i ± s for every step s: a regular graph of degree 2 · (number of steps)."""
    return Graph.from_edge_index(np.concatenate([np.stack((np.arange(n), (np.arange(n) + s) % n)) for s in steps], 1))


def two_cliques(n: int) -> Graph:
    """Two complete graphs of n nodes and the edge (n − 1, n) between them."""
    return join(union(complete(n), complete(n)), [[n - 1], [n]])


def clusters(sizes: list[int], inside: float, between: float, seed: int = 0) -> Graph:
    """A block model: an edge inside a cluster with one probability, between two clusters with another."""
    cluster = np.repeat(np.arange(len(sizes)), sizes)
    low, high = np.triu_indices(len(cluster), 1)
    chance = np.where(cluster[low] == cluster[high], inside, between)
    there = np.random.default_rng(seed).random(len(low)) < chance
    return Graph.from_edge_index(np.stack((low[there], high[there])), len(cluster))


def karate() -> Graph:
    """Zachary's karate club: 34 nodes, 78 edges."""
    return Graph.from_edge_index(np.array(sorted(networkx.karate_club_graph().edges)).T)


def union(*graphs: Graph) -> Graph:
    """The graphs beside each other, without edges between them."""
    starts = np.cumsum([0, *(graph.num_nodes for graph in graphs)]).tolist()
    pairs = torch.cat([graph.pairs + start for graph, start in zip(graphs, starts, strict=False)], dim=1)
    weighs = any(graph.weight is not None for graph in graphs)
    weight = torch.cat([_weights(graph) for graph in graphs]) if weighs else None
    return Graph.from_edge_index(pairs, starts[-1], weight)


def join(graph: Graph, edges: list[list[int]]) -> Graph:
    """The graph with further edges ``[2, K]`` of weight one."""
    pairs = torch.cat((graph.pairs, torch.tensor(edges)), dim=1)
    weight = None if graph.weight is None else torch.cat((graph.weight, graph.weight.new_ones(len(edges[0]))))
    return Graph.from_edge_index(pairs, graph.num_nodes, weight)


def weighted(graph: Graph, seed: int = 0, zeros: float = 0.0) -> Graph:
    """The graph with edge weights between 0.1 and 1.1; about the share ``zeros`` of them is 0."""
    generator = torch.Generator().manual_seed(seed)
    weight = torch.rand(graph.num_edges, generator=generator, dtype=torch.float64) + 0.1
    weight[torch.rand(graph.num_edges, generator=generator) < zeros] = 0
    return Graph.from_edge_index(graph.pairs, graph.num_nodes, weight)


def listed_twice(graph: Graph, seed: int = 0) -> Graph:
    """The same edges from another list: each in both directions, some a third time, self-loops, in any order."""
    loops = torch.arange(0, graph.num_nodes, 3).expand(2, -1)
    arcs = torch.cat((graph.pairs, graph.pairs.flip(0), graph.pairs[:, ::3], loops), dim=1)
    given = _weights(graph)
    weight = torch.cat((given, given, given[::3], torch.full((loops.shape[1],), 9.0, dtype=torch.float64)))
    order = torch.randperm(arcs.shape[1], generator=torch.Generator().manual_seed(seed))
    return Graph.from_edge_index(arcs[:, order], graph.num_nodes, None if graph.weight is None else weight[order])


def relabel(graph: Graph, permutation: Tensor) -> tuple[Graph, Tensor]:
    """The graph with node i called ``permutation[i]``, and the place there of each edge of ``graph``, ``[M]``."""
    other = Graph.from_edge_index(permutation[graph.pairs], graph.num_nodes, graph.weight)
    return other, other.arc_pair


def _weights(graph: Graph) -> Tensor:
    return torch.ones(graph.num_edges, dtype=torch.float64) if graph.weight is None else graph.weight


ZOO = {
    "path": path(9),  # a tree
    "cycle": cycle(10),  # regular, its eigenvalues repeated
    "complete": complete(6),
    "star": star(7),  # a tree of twins
    "bipartite": bipartite(3, 4),
    "regular": circulant(13, (1, 3, 4)),
    "cliques": two_cliques(5),
    "karate": karate(),
    "grid": grid(4, 5),
    "clusters": clusters([8, 8, 8], 0.7, 0.05),
    "weighted": weighted(clusters([10, 12], 0.5, 0.1)),
    "listed-twice": listed_twice(weighted(two_cliques(4))),  # both directions, duplicates, self-loops
    "parts": union(
        two_cliques(4), path(6), complete(3), path(2), Graph.from_edge_index([[], []], 1)
    ),  # and an isolated node
}
