"""Which solver would be tried on which component, why, and what it would need: the ladder's choice as data."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from tadropedge.blocks import DENSE_NODES, Block, blocks
from tadropedge.errors import check_runs_on, lookup
from tadropedge.graph import Graph, check_graph
from tadropedge.spectrum.clusters import Clusters
from tadropedge.spectrum.solvers import SOLVERS
from tadropedge.spectrum.subspaces import LAPLACIANS
from tadropedge.spectrum.survey import DENSE_SHARE, Survey, whiskers
from tadropedge.spectrum.twins import Twins


@dataclass(frozen=True)
class Explanation:
    """What will be done with ``count`` components of ``nodes`` nodes and about ``edges`` edges each.

    ``leaves`` are the nodes of degree one, ``whiskers`` all nodes of trees that hang off the core (0 where dense
    batches need not know), and ``twins`` the leaves that are merged with others of the same hub, all for one component.
    ``rungs`` are the solvers in the order in which they are tried, ``reason`` says why in one sentence, ``memory``
    estimates the bytes that the first one needs at its peak, and ``device`` is where it runs.
    """

    nodes: int
    edges: int
    count: int
    leaves: int
    whiskers: int
    twins: int
    rungs: tuple[str, ...]
    reason: str
    memory: int
    device: str


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
    lookup("solver", solver, {"auto": None, **SOLVERS})
    where = check_runs_on(device, graph.device)
    found: list[Explanation] = []
    for block in blocks(graph, least=clusters.least_nodes):
        tiny = block.size <= DENSE_SHARE * clusters.pairs_needed
        if block.size <= DENSE_NODES and (tiny or solver in ("auto", "dense")):
            found.append(_batch(block))
        else:
            found += (_alone(block.one(member), clusters, laplacian, solver, where) for member in range(block.count))
    return found


def _batch(block: Block) -> Explanation:
    """A block that is solved as one dense batch."""
    ends = np.tile(block.member * block.size, 2) + np.concatenate((block.low, block.high))
    degrees = np.bincount(ends, minlength=block.nodes.size)
    small = Survey(block.size, len(block.edges) // block.count, int((degrees == 1).sum()) // block.count, 0)
    memory = block.count * small.memory("dense", block.size)
    return _explanation(small, block.count, 0, 0, ("dense",), small.reason(), memory, "cpu")


def _alone(block: Block, clusters: Clusters, laplacian: str, solver: str, device: torch.device) -> Explanation:
    """A component with a ladder of its own."""
    L = block.sparse_laplacian(laplacian)
    whole, twins = Survey.of(L), Twins.of(L)
    survey = whole
    if twins.merged:
        spread = twins.spread()
        survey = Survey.of((spread.T @ L @ spread).tocsr())
    k = min(survey.nodes, clusters.pairs_needed)
    rungs, reason = survey.rungs(solver, k, device), survey.reason(solver, k)
    if twins.merged:
        reason = f"{twins.merged:,} twin leaves are merged; {reason}"
    memory = survey.memory(rungs[0], k)
    runs_on = str(device) if rungs[0] == "davidson" else "cpu"
    return _explanation(whole, 1, whiskers(L), twins.merged, rungs, reason, memory, runs_on)


def _explanation(
    whole: Survey, count: int, whiskers: int, twins: int, rungs: tuple[str, ...], reason: str, memory: int, device: str
) -> Explanation:
    return Explanation(
        nodes=whole.nodes,
        edges=whole.edges,
        count=count,
        leaves=whole.leaves,
        whiskers=whiskers,
        twins=twins,
        rungs=rungs,
        reason=reason,
        memory=memory,
        device=device,
    )
