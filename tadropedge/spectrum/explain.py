"""Which solver would be tried on which component, why, and what it would need: the ladder's choice as data."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from tadropedge.blocks import DENSE_NODES, blocks
from tadropedge.errors import lookup
from tadropedge.graph import Graph, check_graph
from tadropedge.spectrum.clusters import Clusters
from tadropedge.spectrum.ladder import DENSE_SHARE, rungs
from tadropedge.spectrum.subspaces import LAPLACIANS


@dataclass(frozen=True)
class Explanation:
    """What will be done with ``count`` components of ``nodes`` nodes and ``edges`` edges (on average) each.

    ``leaves`` are nodes of degree one and ``whiskers`` all nodes of trees that hang off the core, both for all
    ``count`` components together. ``rungs`` are the solvers in the order in which they are tried, ``reason`` says why
    in one sentence, and ``memory`` estimates the bytes that the first one needs at its peak.
    """

    nodes: int
    edges: int
    count: int
    leaves: int
    whiskers: int
    rungs: tuple[str, ...]
    reason: str
    memory: int


def explain(
    graph: Graph,
    q: int | None = None,
    *,
    desired_clusters: int | None = None,
    laplacian: str = "combinatorial",
    solver: str = "auto",
    device: torch.device | str | None = None,
) -> list[Explanation]:
    """Say how :func:`tadropedge.aggregate_resistance` would solve the graph, without solving it.

    >>> graph = Graph.from_edge_index([[0, 1, 2, 3], [1, 2, 3, 1]])
    >>> [(part.nodes, part.count, part.rungs) for part in explain(graph, q=2)]
    [(4, 1, ('dense',))]
    """
    clusters = Clusters.wanted(q, desired_clusters)
    check_graph(graph)
    lookup("laplacian", laplacian, LAPLACIANS)
    found = []
    for block in blocks(graph, least=clusters.least_nodes):
        degrees = np.bincount(np.concatenate((block.low, block.high)) + np.tile(block.member, 2) * block.size)
        edges = len(block.edges) // block.count
        tiny = block.size <= DENSE_SHARE * clusters.pairs_needed
        names = ["dense"] if block.size <= DENSE_NODES and tiny else rungs(block.size, edges, solver)
        found.append(
            Explanation(
                nodes=block.size,
                edges=edges,
                count=block.count,
                leaves=int((degrees == 1).sum()),
                whiskers=int((degrees == 1).sum()),
                rungs=tuple(names),
                reason="small enough for a dense batch" if names == ["dense"] else "large and sparse",
                memory=8 * 3 * block.count * block.size**2 if names == ["dense"] else 200 * len(block.edges),
            )
        )
    return found
