"""How far a sparser graph is from the graph it was made of: a certificate that is measured, not promised by a theorem.

With the Laplacians L before and L' after, the quotients xᵀL'x / xᵀLx of all x outside the kernel of L lie between the
extreme eigenvalues of L' x = λ L x. Both being 1 would mean that nothing changed; 1 ± ε is a spectral sparsifier.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import astuple, dataclass
from functools import partial
from pathlib import Path

import numpy as np
import torch

from tadropedge._old.blocks import Block, Floats, Integers, blocks
from tadropedge._old.cache import Arrays, cached
from tadropedge._old.checks import check_device, check_kind, check_path, check_progress, check_runs_on
from tadropedge._old.errors import TadropedgeError
from tadropedge._old.fingerprint import fingerprint
from tadropedge._old.graph import Graph, check_graph
from tadropedge._old.memory import within_memory
from tadropedge._old.pencil import Extreme, Report, extremes, largest, smallest
from tadropedge._old.progress import Progress, Show
from tadropedge._old.watching import Safe, tell

VERSION = 1  # raise it when a change of the method changes the numbers
QUANTILES = {"5 %": 0.05, "50 %": 0.5, "95 %": 0.95}


@dataclass(frozen=True, kw_only=True)
class Certificate:
    """What a sparser graph has kept of the graph it was made of.

    * ``lambda_min``, ``lambda_max``: the range of xᵀL'x / xᵀLx over all x outside the kernel of L. λ_min is exactly 0
      where a component fell apart: the indicator of a piece has no energy left;
    * edges, components (isolated nodes included) and isolated nodes, before and after;
    * ``degree_ratio``: weighted degree after over before, of all nodes that had edges: its mean, three quantiles, the
      least and the largest.
    """

    lambda_min: Extreme
    lambda_max: Extreme
    edges_before: int
    edges_after: int
    components_before: int
    components_after: int
    isolated_before: int
    isolated_after: int
    degree_ratio: Mapping[str, float]


@within_memory("a certificate", "certificate=False does without")
def certify(
    before: Graph,
    after: Graph,
    *,
    cache_dir: str | Path | None = None,
    progress: Show = None,
    device: torch.device | str | None = None,
) -> Certificate:
    """Measure how far ``after``, whose edges are some of those of ``before`` with other weights, is from ``before``.

    ``cache_dir``, ``progress`` and ``device`` as in :func:`tadropedge.edge_scores`.

    >>> before = Graph.from_edge_index([[0, 1, 2], [1, 2, 0]])  # a triangle
    >>> found = certify(before, Graph.from_edge_index([[0, 1], [1, 2]], edge_weight=[1.5, 1.5]))
    >>> round(found.lambda_min.value, 6), round(found.lambda_max.value, 6)  # ½ and 3/2
    (0.5, 1.5)
    """
    check_graph(before)
    check_kind("after", after, Graph)
    check_device("after", after.pairs, before.device, "before")
    where, progress = check_runs_on(device, before.device), check_progress(progress)
    cache_dir = None if cache_dir is None else check_path("cache_dir", cache_dir)
    weight = spread_weight(before, after)
    pieces = after.components.labels.cpu().numpy()
    low, high, judged = [], [], 0
    with Progress("certificate", before.num_edges, progress) as bar:
        bar.advance(0)
        for block in blocks(before):
            bar.note(f"{block.count} × {block.size} nodes")
            mine = weight[block.edges]
            part = ("", "") if cache_dir is None else (block.fingerprint, fingerprint(weight=mine))
            key = {"certificate": VERSION, "part": part, "device": where.type}
            with bar.step(len(block.edges)) as report:
                found = cached(cache_dir, key, partial(_part, block, mine, pieces[block.nodes], where, report))
            low.append(_extreme(found["low"]))
            high.append(_extreme(found["high"]))
            judged += len(block.edges)
            if cache_dir is not None:
                tell(Safe("certificate", judged, before.num_edges))
    return Certificate(
        lambda_min=smallest(low),
        lambda_max=largest(high),
        edges_before=before.num_edges,
        edges_after=after.num_edges,
        components_before=before.components.count,
        components_after=after.components.count,
        isolated_before=before.components.num_isolated,
        isolated_after=after.components.num_isolated,
        degree_ratio=degree_ratio(before, after),
    )


def spread_weight(before: Graph, after: Graph) -> Floats:
    """The weight ``[M]`` that every edge of ``before`` has in ``after``, 0 where it is not there.

    >>> before = Graph.from_edge_index([[0, 1, 2], [1, 2, 0]])
    >>> spread_weight(before, Graph.from_edge_index([[2], [1]], edge_weight=[3.0])).tolist()
    [0.0, 0.0, 3.0]
    """
    keys = [graph.pairs[0].cpu() * before.num_nodes + graph.pairs[1].cpu() for graph in (before, after)]
    place = torch.searchsorted(keys[0], keys[1])
    fits = after.num_nodes == before.num_nodes and bool((place < before.num_edges).all())
    if not fits or not torch.equal(keys[0][place], keys[1]):
        raise TadropedgeError(f"the edges of {after} must be some of those of {before}, on the same nodes")
    weight = np.zeros(before.num_edges)
    weight[place.numpy()] = 1.0 if after.weight is None else after.weight.cpu().numpy()
    return weight


def degree_ratio(before: Graph, after: Graph) -> dict[str, float]:
    """Weighted degrees after over before, of nodes that had edges: mean, quantiles and extremes.

    >>> before = Graph.from_edge_index([[0, 1, 2], [1, 2, 0]])
    >>> degree_ratio(before, Graph.from_edge_index([[0, 1], [1, 2]], edge_weight=[1.5, 1.5]))["50 %"]
    0.75
    """
    had, has = (np.asarray(graph.adjacency().sum(axis=1)).ravel() for graph in (before, after))
    ratio = has[had > 0] / had[had > 0]
    middle = dict(zip(QUANTILES, np.quantile(ratio, list(QUANTILES.values())).tolist(), strict=True))
    return {"mean": float(ratio.mean()), "least": float(ratio.min()), **middle, "largest": float(ratio.max())}


def _part(block: Block, weight: Floats, pieces: Integers, device: torch.device, report: Report) -> Arrays:
    """The extreme eigenvalues of one block, to be kept on disk."""
    low, high = extremes(block, weight, pieces, device, report)
    return {"low": np.array(astuple(low)), "high": np.array(astuple(high))}


def _extreme(kept: Floats) -> Extreme:
    value, error, low, high = kept.tolist()
    return Extreme(value=value, error=error, low=low, high=high)
