"""Effective resistance: the electrical resistance between the ends of each edge, made of all modes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from tadropedge._old.blocks import Block, Floats, blocks
from tadropedge._old.bridges import bridges
from tadropedge._old.cache import Arrays
from tadropedge._old.checks import check_positive, check_seed
from tadropedge._old.electrical import METHODS, exact, sketch
from tadropedge._old.errors import lookup
from tadropedge._old.graph import Graph
from tadropedge._old.progress import Show
from tadropedge._old.scores.solve import InParts, Report, solve


@dataclass(frozen=True)
class Effective:
    """The settings of :func:`effective_resistance`."""

    method: str = "auto"
    relative_error: float = 0.1
    seed: int = 0

    def __post_init__(self) -> None:
        lookup("method", self.method, METHODS)
        object.__setattr__(self, "relative_error", check_positive("relative_error", self.relative_error, below=1))
        object.__setattr__(self, "seed", check_seed(self.seed))

    def begin(self, graph: Graph) -> tuple[Floats, Iterable[Block]]:
        """Bridges have their resistance already; the parts are what is left without them."""
        weight = np.ones(graph.num_edges) if graph.weight is None else graph.weight.cpu().numpy()
        on_cycles = np.flatnonzero(~bridges(graph).cpu().numpy())
        core = Graph(graph.pairs.cpu()[:, on_cycles], graph.num_nodes, torch.from_numpy(weight[on_cycles]))
        return 1 / weight, (replace(block, edges=on_cycles[block.edges]) for block in blocks(core))

    def part(self, block: Block, device: torch.device, report: Report) -> Arrays:
        """Exact up to the size that the method inverts."""
        if block.size <= METHODS[self.method]:
            return {"scores": exact(block)}
        return {"scores": sketch(block, self.relative_error, self.seed, device, report)}


effective = InParts("effective", Effective)


def effective_resistance(
    graph: Graph,
    *,
    method: str = "auto",
    relative_error: float = 0.1,
    seed: int = 0,
    cache_dir: str | Path | None = None,
    progress: Show = None,
    device: torch.device | str | None = None,
) -> Tensor:
    """Effective resistance between the ends of each edge, float64 ``[M]`` in the order of ``graph.pairs``.

    R_m = (e_i − e_j)ᵀ L⁺ (e_i − e_j), with L = D − A. On unweighted graphs it is 1 on bridges, less elsewhere, and
    Σ R = N − (number of components): R_m is the probability that edge m lies in a random spanning tree.

    Bridges are found first: their resistance is exactly one over their weight, and without them the graph
    falls into parts that do not influence each other. ``exact`` inverts the Laplacian of each part;
    ``sketch`` projects on random signs (Johnson and Lindenstrauss): k = ⌈2 / relative_error²⌉ Laplacian
    solves estimate every R_m without bias, with a standard error of ``relative_error`` · R_m, and the sum is
    then made right. ``auto`` is exact for parts of up to 4,096 nodes and sketches larger ones; ``sketch`` still
    inverts parts of up to 512 nodes, where that is cheaper. ``device`` says where large parts are solved, by default
    where the graph lies; the same seed gives the same estimates there, up to the accuracy of the solves.

    >>> graph = Graph.from_edge_index([[0, 1, 2, 2], [1, 2, 0, 3]])  # a triangle with a tail
    >>> effective_resistance(graph).round(decimals=4).tolist()
    [0.6667, 0.6667, 0.6667, 1.0]
    """
    settings = {"method": method, "relative_error": relative_error, "seed": seed}
    return solve(graph, effective, settings, cache_dir=cache_dir, progress=progress, device=device).told()
