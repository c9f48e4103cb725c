"""A graph in parts that are solved one after the other: what is lost by a kill is one part, never the whole."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch

from tadropedge.blocks import DENSE_NODES
from tadropedge.graph import Graph

Integers = npt.NDArray[np.int64]

MOST_WORK = 5e9  # Σ n³ over the small components of one part: a few seconds of dense solves
MOST_NODES = 500_000


@dataclass(frozen=True)
class Part:
    """Whole components as a graph of their own.

    Its edges stand at ``edges`` in the large graph, its components at ``components``; both keep their order.
    """

    graph: Graph
    edges: Integers
    components: Integers


def parts(graph: Graph, least: int = 2) -> Iterator[Part]:
    """Cut the components of at least ``max(least, 2)`` nodes into parts, small ones first.

    Components of more than 512 nodes come alone, smaller ones together until there is work for a few seconds.

    >>> graph = Graph.from_edge_index([[0, 1, 3, 5], [1, 2, 4, 6]])
    >>> [(part.graph, part.edges.tolist(), part.components.tolist()) for part in parts(graph, least=3)]
    [(Graph(num_nodes=3, num_edges=2), [0, 1], [0])]
    """
    labels = graph.components.labels.cpu().numpy()
    sizes = graph.components.sizes.cpu().numpy()
    part = _part_of_component(sizes, least)
    low, high = graph.pairs.cpu().numpy()
    of_node, of_edge = part[labels], part[labels[low]]
    # Stable sorts: inside a part nodes, edges and components keep their order, so pairs stay sorted.
    node_order, edge_order = np.argsort(of_node, kind="stable"), np.argsort(of_edge, kind="stable")
    component_order = np.argsort(part, kind="stable")
    count = int(part.max()) + 1
    node_cuts = np.searchsorted(of_node[node_order], np.arange(count + 1))
    edge_cuts = np.searchsorted(of_edge[edge_order], np.arange(count + 1))
    component_cuts = np.searchsorted(part[component_order], np.arange(count + 1))
    local = np.empty_like(labels)
    local[node_order] = np.arange(len(labels)) - node_cuts[np.maximum(of_node[node_order], 0)]
    weight = None if graph.weight is None else graph.weight.cpu()
    for number in range(count):
        edges = edge_order[edge_cuts[number] : edge_cuts[number + 1]]
        pairs = torch.from_numpy(np.stack((local[low[edges]], local[high[edges]])))
        nodes = int(node_cuts[number + 1] - node_cuts[number])
        yield Part(
            Graph(pairs, nodes, None if weight is None else weight[torch.from_numpy(edges)]),
            edges,
            component_order[component_cuts[number] : component_cuts[number + 1]],
        )


def _part_of_component(sizes: Integers, least: int) -> Integers:
    """The part of each component, numbered in the order in which they are solved; −1 for those left out."""
    part = np.full(len(sizes), -1)
    number, work, nodes = -1, np.inf, 0
    for component in np.argsort(sizes, kind="stable"):
        size = int(sizes[component])
        if size < max(least, 2):
            continue
        if size > DENSE_NODES or work + size**3 > MOST_WORK or nodes + size > MOST_NODES:
            number, work, nodes = number + 1, 0.0, 0
        part[component] = number
        work, nodes = work + float(size) ** 3, nodes + size
    return part
