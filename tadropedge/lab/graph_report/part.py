"""The part of a graph that a report speaks of, and the part of a large one that is drawn.

Scores of small components are not comparable with those of large ones: in an island of ten nodes nearly every edge
holds something together. So one component is looked at, and a line says how many edges elsewhere would reach its γ.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch

from tadropedge.graph import Graph

Integers = npt.NDArray[np.int64]


@dataclass(frozen=True, kw_only=True, eq=False)
class Part:
    """Some nodes of a graph with the edges between them, by their numbers in it; ``words`` is what it is called.

    ``rank`` is the number by size of the component that it is, 1 for the largest; ``None`` of anything else.
    """

    nodes: Integers
    edges: Integers
    words: str
    rank: int | None = None

    def of(self, graph: Graph) -> Graph:
        """The part as a graph of its own, which keeps the names of its nodes.

        >>> path = Graph.from_edge_index([[0, 1, 2], [1, 2, 3]])
        >>> part = Part(nodes=np.array([1, 2, 3]), edges=np.array([1, 2]), words="the end")
        >>> part.of(path).pairs.tolist(), part.of(path).node_ids
        ([[0, 1], [1, 2]], (1, 2, 3))
        """
        called = range(graph.num_nodes) if graph.node_ids is None else graph.node_ids
        place = torch.zeros(graph.num_nodes, dtype=torch.int64)
        place[torch.from_numpy(self.nodes)] = torch.arange(len(self.nodes))
        edges = torch.from_numpy(self.edges)
        return Graph(
            place[graph.pairs[:, edges]],
            len(self.nodes),
            None if graph.weight is None else graph.weight[edges],
            torch.arange(len(edges)),
            tuple(called[node] for node in self.nodes.tolist()),
        )


def ranks(graph: Graph) -> Integers:
    """The rank of each node's component by size, ``[N]``: 1 is the largest; among equals the one of the first node.

    >>> ranks(Graph.from_edge_index([[0, 2, 3], [1, 3, 4]], num_nodes=6)).tolist()
    [2, 2, 1, 1, 1, 3]
    """
    components = graph.components
    order = np.argsort(-components.sizes.cpu().numpy(), kind="stable")
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(1, len(order) + 1)
    found: Integers = rank[components.labels.cpu().numpy()]
    return found


def component(graph: Graph, number: int = 1) -> Part:
    """A component by its number by size: 1 is the largest.

    >>> graph = Graph.from_edge_index([[0, 2, 3], [1, 3, 4]])
    >>> component(graph).words, component(graph, 2).edges.tolist()
    ('the largest of 2 components', [0])
    """
    inside, count = ranks(graph) == number, graph.components.count
    nodes, edges = np.flatnonzero(inside), np.flatnonzero(inside[graph.pairs[0].cpu().numpy()])
    called = "the largest" if number == 1 else f"number {number:,} by size"
    words = "the whole graph" if count == 1 else f"{called} of {count:,} components"
    return Part(nodes=nodes, edges=edges, words=words, rank=number)


def around(graph: Graph, edges: Integers, most_nodes: int, most_edges: int) -> Part:
    """What can be drawn of a large graph: the ends of some ``edges``, then their neighbours, and so on, while they fit.

    >>> path = Graph.from_edge_index([[0, 1, 2, 3], [1, 2, 3, 4]])
    >>> around(path, np.array([1]), most_nodes=4, most_edges=9).nodes.tolist()
    [0, 1, 2, 3]
    """
    matrix = graph.adjacency()
    inside = np.zeros(graph.num_nodes, dtype=bool)
    ring = np.unique(graph.pairs[:, torch.from_numpy(edges)].numpy().T.ravel())[:most_nodes]
    inside[ring] = True
    while len(ring):
        found = np.unique(matrix[ring].indices)
        ring = found[~inside[found]][: most_nodes - int(inside.sum())]
        grown = inside.copy()
        grown[ring] = True
        if len(_within(graph, grown)) > most_edges:
            break
        inside = grown
    nodes, shown = np.flatnonzero(inside), _within(graph, inside)[:most_edges]
    words = f"{len(nodes):,} of {graph.num_nodes:,} nodes, around the edges of largest score"
    return Part(nodes=nodes, edges=shown, words=words)


def _within(graph: Graph, inside: npt.NDArray[np.bool_]) -> Integers:
    """The edges between nodes that are inside."""
    low, high = graph.pairs.numpy()
    return np.flatnonzero(inside[low] & inside[high])
