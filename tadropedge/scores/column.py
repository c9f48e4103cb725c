"""A column of the user's own: one number for each listed edge, as a score."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from tadropedge.graph import Graph


def column(graph: Graph, column: Any) -> Tensor:
    """The user's own numbers, float64 ``[M]`` in the order of ``graph.pairs``: at least 0, high for edges to keep.

    ``column`` has one number for each edge as it was listed, ``[A]``: an edge that is listed several times gets their
    mean, and self-loops do not count. For a graph of other than M listed edges it may have one for each edge, ``[M]``.

    * Source: the user.
    * Cost: O(A).
    * Good for: what is known of the edges: trust, the number of contacts, the strength of a measurement.

    >>> graph = Graph.from_edge_index([[0, 1, 1], [1, 0, 2]])
    >>> column(graph, [3, 1, 7]).tolist()
    [2.0, 7.0]
    """
    return graph.to_pairs(column, "column")
