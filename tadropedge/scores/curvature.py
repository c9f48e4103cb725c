"""Curvature: edges in dense places are curved upwards, bridges and edges between hubs downwards."""

from __future__ import annotations

import torch
from torch import Tensor

from tadropedge.graph import Graph
from tadropedge.scores._triangles import triangles
from tadropedge.scores.degree import degrees


def forman(graph: Graph) -> Tensor:
    """Largest F − F for every edge, float64 ``[M]``, with F = 4 − d_u − d_v + 3 t, t the triangles through the edge.

    F is the augmented Forman curvature: low on bridges and between hubs. It is turned round, so that bridges score
    high and the most curved edge of the graph scores 0. Scores are whole numbers. Edge weights do not enter.

    * Source: Samal et al., *Comparative analysis of two discretizations of Ricci curvature* (2018); used against
      over-squashing by Fesser and Weber (LoG 2023).
    * Cost: that of counting triangles, near O(M).
    * Good for: keeping long-range connections. The degrees dominate it in graphs with hubs: where edges between
      hubs should go, take its inverse, or ``degree``.

    >>> forman(Graph.from_edge_index([[0, 1, 2, 2], [1, 2, 0, 3]])).tolist()  # a triangle with a tail
    [0.0, 1.0, 1.0, 3.0]
    """
    curvature = 4 - degrees(graph)[graph.pairs].sum(0) + 3 * triangles(graph)
    return (curvature.max() - curvature).to(torch.float64)
