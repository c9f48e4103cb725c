"""Centralities of GCA: an edge matters as much as its two ends do."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
import torch
from torch import Tensor

from tadropedge.graph import Graph
from tadropedge.scores.solve import merge_ties

Floats = npt.NDArray[np.float64]

DAMPING = 0.85
CHEBYSHEV_STEPS = 80  # 0.56 to this power is 1e-20: accurate to rounding, with room for hubs of any degree
POWER_STEPS = 200
SHIFT = 0.1  # as a share of the largest eigenvalue; that of −λ falls to 0.8 per step, the others hardly slow down
FLOOR = 1e-8  # added to eigenvector centrality, so that it has a logarithm


def pagerank(graph: Graph) -> Tensor:
    """(log σ_u + log σ_v) / 2 for every edge (u, v), float64 ``[M]``, shifted so that the smallest is 0.

    σ = 0.85 A D⁻¹ σ + 1 is PageRank; edge weights enter A and D. GCA takes the logarithm of the target of each arc:
    here both directions of an edge share their mean. It is solved on the CPU, so every device has the same bits;
    scores that differ by rounding alone are equal.

    * Source: Zhu et al., *Graph contrastive learning with adaptive augmentation* (GCA, WWW 2021). Its program makes
      ten steps of a lazy random walk instead; this is the PageRank of its text.
    * Cost: O(M), 80 products with the adjacency matrix.
    * Good for: keeping what lies between important nodes. On undirected graphs it is close to the logarithm of the
      degrees, the opposite of ``degree``: hubs stay, leaves go.

    >>> graph = Graph.from_edge_index([[0, 1, 2, 2], [1, 2, 0, 3]])  # a triangle with a tail
    >>> pagerank(graph).round(decimals=4).tolist()
    [0.0769, 0.2767, 0.2767, 0.0]
    """
    return _mean_log(graph, _pagerank(graph.adjacency()))


def eigenvector(graph: Graph) -> Tensor:
    """(log x_u + log x_v) / 2 for every edge (u, v), float64 ``[M]``, shifted so that the smallest is 0.

    x is eigenvector centrality: in each component the eigenvector of the largest eigenvalue of A, which is positive and
    unique, with mean square 1; 1e-8 is added before the logarithm, as in GCA. Edge weights enter A. The leading
    eigenvector of the whole graph would be zero in all components but one, and not unique where two are alike. It is
    solved on the CPU, so every device has the same bits; scores that differ by rounding alone are equal.

    It is what 200 steps of the power iteration make of a vector of ones (GCA itself makes ten). Where the two largest
    eigenvalues of a component are close together, as in long paths and grids, these spread less far than the
    eigenvector would: the error falls to (λ₂ / λ₁)^180 or so.

    * Source: Bonacich (1972); Zhu et al., *Graph contrastive learning with adaptive augmentation* (GCA, WWW 2021).
    * Cost: O(M), 200 products with the adjacency matrix.
    * Good for: the dense core. The scores fall by orders of magnitude away from it.

    >>> graph = Graph.from_edge_index([[0, 1, 2, 2], [1, 2, 0, 3]])  # a triangle with a tail
    >>> eigenvector(graph).round(decimals=4).tolist()
    [0.2303, 0.3088, 0.3088, 0.0]
    """
    return _mean_log(graph, _leading(graph) + FLOOR)


def _mean_log(graph: Graph, centrality: Floats) -> Tensor:
    """The mean of the logarithms of both ends, from 0."""
    low, high = graph.pairs.cpu().numpy()
    # Ties are found among the means themselves: after the shift the smallest has no scale to compare with.
    mean = merge_ties(np.sqrt(centrality[low]) * np.sqrt(centrality[high]))
    return torch.from_numpy(np.log(mean / mean.min())).to(graph.device)


def _pagerank(A: sp.csr_matrix) -> Floats:
    """σ = α A D⁻¹ σ + 1 ``[N]``.

    The eigenvalues of A D⁻¹ are real and lie in [−1, 1], so Chebyshev's recurrence needs a third of the steps of the
    power iteration: the error falls by α / (1 + √(1 − α²)) = 0.56 per step instead of 0.85.
    """
    degrees = np.asarray(A.sum(axis=1)).ravel()
    scale = DAMPING / np.where(degrees > 0, degrees, 1)
    before, now = np.zeros(len(degrees)), np.ones(len(degrees))
    weight = 2.0
    for _ in range(CHEBYSHEV_STEPS):
        weight = 1 / (1 - weight * DAMPING**2 / 4)
        before, now = now, weight * (A @ (scale * now) + 1 - before) + before
    return now


def _leading(graph: Graph) -> Floats:
    """The leading eigenvectors of all components ``[N]``, each of mean square 1: power steps of A + λ₁ / 10.

    All numbers stay positive, so the accuracy of large entries is carried outwards to small ones, which the logarithm
    asks for. Without the shift, bipartite components would swing between λ₁ and −λ₁.
    """
    A, components = graph.adjacency(), graph.connections.components
    label, nodes = components.labels.cpu().numpy(), components.sizes.cpu().numpy()

    def scaled(x: Floats) -> Floats:
        size = np.sqrt(np.bincount(label, x * x) / nodes)[label]
        unit: Floats = np.divide(x, size, out=np.zeros_like(x), where=size > 0)  # 0 where nothing is connected
        return unit

    x = np.ones(graph.num_nodes)
    for _ in range(POWER_STEPS):
        x = scaled(A @ x) + SHIFT * x
    return scaled(x)
