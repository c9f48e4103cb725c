"""The part of a graph that a report speaks of: its largest component unless another is asked for.

Scores of small components are not comparable with those of large ones: in an island of ten nodes nearly every edge
holds something together. So one component is looked at, and a line says how many edges elsewhere would reach its γ.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import torch

from tadropedge._old.errors import TadropedgeError, show
from tadropedge._old.graph import PIECE, Components, Graph
from tadropedge._old.scores.solve import Scored

Integers = npt.NDArray[np.int64]
LARGEST, ALL = "largest", "all"


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


@dataclass(frozen=True, kw_only=True, eq=False)
class Part:
    """The component of a rank, or with rank None the whole graph; ``nodes`` and ``edges`` are their numbers in it."""

    rank: int | None
    count: int
    nodes: Integers
    edges: Integers

    @classmethod
    def chosen(cls, graph: Graph, component: str = LARGEST, node: str | None = None) -> Part:
        """The part called ``largest``, ``all`` or by its rank, or the component of a ``node`` by its name.

        >>> graph = Graph.from_edge_index([[0, 2, 3], [1, 3, 4]])
        >>> Part.chosen(graph).nodes.tolist(), Part.chosen(graph, "2").edges.tolist()
        ([2, 3, 4], [0])
        >>> Part.chosen(graph, node="0").rank
        2
        """
        rank = ranks(graph)
        count = int(rank.max())
        if component == ALL and node is None:
            return cls(rank=None, count=count, nodes=np.arange(graph.num_nodes), edges=np.arange(graph.num_edges))
        wanted = int(rank[_named(graph, node)]) if node is not None else _rank(component, count)
        inside = rank == wanted
        nodes, edges = np.flatnonzero(inside), np.flatnonzero(inside[graph.pairs[0].cpu().numpy()])
        if graph.num_edges and not len(edges):
            least = int(rank[graph.pairs[0].cpu().numpy()].max())
            raise TadropedgeError(
                f"component {wanted} of {count:,} is a single node without edges: choose one from 1 to {least:,}"
            )
        return cls(rank=wanted, count=count, nodes=nodes, edges=edges)

    @property
    def whole(self) -> bool:
        """Whether nothing is left out."""
        return self.rank is None or self.count == 1

    @property
    def words(self) -> str:
        """What it is called in a sentence.

        >>> Part.chosen(Graph.from_edge_index([[0, 2, 3], [1, 3, 4]])).words
        'the largest of 2 components'
        """
        if self.whole:
            return "the whole graph"
        return ("the largest" if self.rank == 1 else f"number {self.rank:,} by size") + f" of {self.count:,} components"

    def of(self, scored: Scored, again: Callable[[Graph], Scored] | None = None) -> Scored:
        """What was found in this part alone, by the names of the whole graph.

        Eigenvalues are known of the largest component; ``again`` solves another one, where it has modes of its own.
        """
        if self.whole:
            return scored
        spoken = self._restricted(scored)
        if again is None or len(spoken.eigenvalues) or not len(scored.eigenvalues) or not spoken.modes.any():
            return spoken
        alone = again(spoken.graph)
        return replace(spoken, eigenvalues=alone.eigenvalues, solvers=alone.solvers)

    def _restricted(self, scored: Scored) -> Scored:
        graph = scored.graph
        called: Sequence[Hashable] = range(graph.num_nodes) if graph.node_ids is None else graph.node_ids
        place = torch.zeros(graph.num_nodes, dtype=torch.int64)
        place[torch.from_numpy(self.nodes)] = torch.arange(len(self.nodes))
        edges = torch.from_numpy(self.edges)
        pairs = torch.empty((2, len(edges)), dtype=torch.int64)
        for end, ends in enumerate(graph.pairs):
            for first in range(0, len(edges), PIECE):
                some = slice(first, first + PIECE)
                pairs[end, some] = place[ends[edges[some]]]
        inside = Graph(
            pairs,
            len(self.nodes),
            None if graph.weight is None else graph.weight[edges],
            node_ids=tuple(called[node] for node in self.nodes.tolist()),
        )
        if self.rank is not None:  # known, so that nobody looks for it again
            sizes = torch.tensor([len(self.nodes)])
            inside.__dict__["components"] = Components(torch.zeros(len(self.nodes), dtype=torch.int64), sizes)
        every = len(edges) == graph.num_edges  # what is left out are nodes without edges
        own = int(graph.components.labels[int(self.nodes[0])])
        largest = own == int(graph.components.sizes.argmax())
        return replace(
            scored,
            graph=inside,
            values=scored.values if every else scored.values[edges],
            modes=scored.modes[[own]],
            widened=scored.widened[[own]],
            eigenvalues=scored.eigenvalues if largest else np.empty(0),
            solvers=scored.solvers if largest else {},
        )


def _rank(component: str, count: int) -> int:
    if component == LARGEST:
        return 1
    if not component.isdecimal() or not 1 <= int(component) <= count:
        raise TadropedgeError(
            f"component {show(component, typed=False)} is not known: give {LARGEST}, {ALL}, or a number from 1, the "
            f"largest, to {count:,}"
        )
    return int(component)


def _named(graph: Graph, node: str) -> int:
    """The number of a node by its name, as it would be written in a file."""
    if graph.node_ids is None:
        if node.isdecimal() and int(node) < graph.num_nodes:
            return int(node)
        raise TadropedgeError(f"there is no node {node!r}: nodes are numbered from 0 to {graph.num_nodes - 1:,}")
    for place, name in enumerate(graph.node_ids):
        if str(name) == node:
            return place
    raise TadropedgeError(f"there is no node {node!r} in this graph")
