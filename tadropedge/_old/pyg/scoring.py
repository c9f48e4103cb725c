"""Scores of the edges of one graph among many: small graphs are no errors here."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from tadropedge._old.graph import Graph
from tadropedge._old.pyg.once import Once
from tadropedge._old.scores.solve import Score, check_settings, solve
from tadropedge._old.spectrum.clusters import Clusters


def scores_of(
    graph: Graph, score: Score, settings: Mapping[str, Any], *, cache_dir: str | Path | None, once: Once
) -> Tensor:
    """:func:`tadropedge.edge_scores`, but a graph without a component of q nodes gets equal scores: 0.

    Where some components have q nodes, the edges of the others get the lowest score seen in these, as everywhere. What
    is to be said about graphs of a dataset is said once.

    >>> import warnings
    >>> pair = Graph.from_edge_index([[0], [1]])
    >>> with warnings.catch_warnings(record=True, action="always") as told:
    ...     scores_of(pair, "aggregate", {"q": 3}, cache_dir=None, once=Once())
    tensor([0.], dtype=torch.float64)
    >>> print(told[0].message)
    the score 'aggregate' with q=3 needs a component of 3 nodes, and the largest here has 2: all edges of this graph \
get the score 0, and so do those of every other graph this small, without a further warning
    """
    work: object = check_settings(score, settings)
    if isinstance(work, Clusters) and work.least_nodes > (largest := graph.components.largest):
        called = score if isinstance(score, str) else getattr(score, "__name__", "score")
        once.warn(
            "scores",
            f"the score {called!r} with {work} needs a component of {work.least_nodes} nodes, and the largest here has "
            f"{largest}: all edges of this graph get the score 0, and so do those of every other graph this small, "
            "without a further warning",
        )
        return torch.zeros(graph.num_edges, dtype=torch.float64, device=graph.device)
    found = solve(graph, score, settings, cache_dir=cache_dir)
    return found.told() if found.widened.any() and once.first("repeated") else found.values
