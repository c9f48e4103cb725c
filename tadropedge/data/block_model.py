"""The stochastic block model: communities of equal size, dense inside and sparse between."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tadropedge.errors import TadropedgeError
from tadropedge.graph import Graph

ATTEMPTS = 1000


def block_model(community: npt.NDArray[np.int64], inside: float, between: float, random: np.random.Generator) -> Graph:
    """Draw each pair of nodes with probability ``inside`` or ``between`` their communities.

    >>> graph = block_model(np.array([0, 0, 0, 1, 1]), 1.0, 0.0, np.random.default_rng(0))
    >>> graph.pairs.tolist()
    [[0, 0, 1, 3], [1, 2, 2, 4]]
    """
    for name, value in (("inside", inside), ("between", between)):
        if not 0 <= value <= 1:
            raise TadropedgeError(f"{name} must be a probability in [0, 1], got {value}")
    low, high = np.triu_indices(len(community), 1)
    probability = np.where(community[low] == community[high], inside, between)
    chosen = random.random(len(low)) < probability
    return Graph.from_edge_index(np.stack((low[chosen], high[chosen])), num_nodes=len(community))


def connected_block_model(
    community: npt.NDArray[np.int64], inside: float, between: float, random: np.random.Generator
) -> Graph:
    """Draw block models until one is connected."""
    for _ in range(ATTEMPTS):
        graph = block_model(community, inside, between, random)
        if graph.components.count == 1:
            return graph
    raise TadropedgeError(
        f"none of {ATTEMPTS} graphs of {len(community)} nodes with inside={inside} and between={between} was "
        "connected: raise one of them"
    )
