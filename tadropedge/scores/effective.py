"""Effective resistance: the electrical resistance between the ends of each edge, made of all modes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from tadropedge._support.cache import Arrays
from tadropedge._support.checks import check_number, check_seed
from tadropedge.errors import lookup
from tadropedge.graph import Graph
from tadropedge.scores.parts import InParts, Report, solved_by
from tadropedge.scores.solve import edge_scores
from tadropedge.spectrum.blocks import Block, Floats, blocks
from tadropedge.spectrum.bridges import bridges
from tadropedge.spectrum.linear import METHODS, exact, sketch

LEAST_ERROR = 1e-3  # two million solves


@dataclass(frozen=True)
class Effective(InParts):
    """The settings of :func:`effective`."""

    method: str
    relative_error: float
    seed: int

    @classmethod
    def of(cls, graph: Graph, **settings: Any) -> Effective:
        """The settings, checked."""
        lookup("method", settings["method"], METHODS)
        error = check_number("relative_error", settings["relative_error"], LEAST_ERROR, 1)
        return cls(settings["method"], error, check_seed(settings["seed"]))

    def begin(self, graph: Graph) -> tuple[Floats, Iterable[Block]]:
        """Bridges have their resistance already; the parts are what is left without them."""
        here = graph.to("cpu")
        on_cycles = ~bridges(here)
        known = np.ones(here.num_edges) if here.weight is None else 1 / here.weight.numpy()
        places = np.flatnonzero(on_cycles)
        return known, (replace(block, edges=places[block.edges]) for block in blocks(here.subgraph(on_cycles)))

    def part(self, block: Block, device: torch.device, report: Report) -> Arrays:
        """Exact up to the size that the method inverts."""
        if block.size <= METHODS[self.method]:
            return {"scores": exact(block)}
        return {"scores": sketch(block, self.relative_error, self.seed, device, report)}


@solved_by(Effective)
def effective(graph: Graph, *, method: str = "auto", relative_error: float = 0.1, seed: int = 0) -> Tensor:
    """Effective resistance between the ends of each edge, float64 ``[M]`` in the order of ``graph.pairs``.

    R_m = (e_i − e_j)ᵀ L⁺ (e_i − e_j), with L = D − A. On unweighted graphs it is 1 on bridges, less elsewhere, and
    Σ R = N − (number of components): R_m is the probability that edge m lies in a random spanning tree.

    Bridges are found first: their resistance is exactly one over their weight, and without them the graph
    falls into parts that do not influence each other. ``exact`` inverts the Laplacian of each part;
    ``sketch`` projects on random signs (Johnson and Lindenstrauss): k = ⌈2 / relative_error²⌉ Laplacian
    solves estimate every R_m without bias, with a standard error of ``relative_error`` · R_m, and the sum is
    then made right. ``auto`` is exact for parts of up to 4,096 nodes and sketches larger ones; ``sketch`` still
    inverts parts of up to 512 nodes, where that is cheaper. The same seed gives the same estimates, up to the accuracy
    of the solves.

    * Source: Spielman and Srivastava, *Graph sparsification by effective resistances* (SIAM J. Comput. 2011).
    * Cost: O(n³) for an exact part of n nodes; near O(M) per solve for a sketched one, 200 solves by default.
    * Good for: keeping the graph connected and its spectrum close. It is the score of spectral sparsifiers.

    >>> graph = Graph.from_edge_index([[0, 1, 2, 2], [1, 2, 0, 3]])  # a triangle with a tail
    >>> effective(graph).round(decimals=4).tolist()
    [0.6667, 0.6667, 0.6667, 1.0]
    """
    return edge_scores(graph, effective, method=method, relative_error=relative_error, seed=seed)
