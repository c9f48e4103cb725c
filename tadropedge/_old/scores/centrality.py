"""Centralities of GCA: an edge matters as much as its two ends do."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import scipy.sparse as sp
import torch
from scipy.sparse.linalg import ArpackError, eigsh
from torch import Tensor

from tadropedge._old.blocks import DENSE_NODES, Block, Floats, blocks
from tadropedge._old.errors import ConvergenceError
from tadropedge._old.graph import Graph
from tadropedge._old.scores.solve import settled

DAMPING = 0.85
CHEBYSHEV_STEPS = 80  # 0.56 to this power is 1e-20: accurate to rounding, with room for hubs of any degree
FLOOR = 1e-8  # added to eigenvector centrality, so that it has a logarithm
RESTARTS = 40  # of Lanczos with 32 vectors, before a factorisation is tried
STEPS = 200  # of the power iteration that makes small entries accurate
SMALL_CHANGE = 1e-13  # that ends it


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

    * Source: Bonacich (1972); Zhu et al., *Graph contrastive learning with adaptive augmentation* (GCA, WWW 2021).
    * Cost: some 100 products with the adjacency matrix on graphs with hubs or clusters; more where the two largest
      eigenvalues are close together, as in long paths and grids, where a factorisation helps.
    * Good for: the dense core. The scores fall by orders of magnitude away from it.

    >>> graph = Graph.from_edge_index([[0, 1, 2, 2], [1, 2, 0, 3]])  # a triangle with a tail
    >>> eigenvector(graph).round(decimals=4).tolist()
    [0.2303, 0.3088, 0.3088, 0.0]
    """
    centrality = np.ones(graph.num_nodes)
    for block in blocks(graph):
        centrality[block.nodes] = _dense_leading(block) if block.size <= DENSE_NODES else _leading(block)
    return _mean_log(graph, centrality + FLOOR)


def _mean_log(graph: Graph, centrality: Floats) -> Tensor:
    """The mean of the logarithms of both ends, from 0."""
    low, high = graph.pairs.cpu().numpy()
    # Ties are found among the means themselves: after the shift the smallest has no scale to compare with.
    mean = settled(np.sqrt(centrality[low]) * np.sqrt(centrality[high]))
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


def _dense_leading(block: Block) -> Floats:
    """The leading eigenvectors of many small components, ``[B, n]``."""
    A = np.zeros((block.count, block.size, block.size))
    A[block.member, block.low, block.high] = A[block.member, block.high, block.low] = block.weight
    values, vectors = np.linalg.eigh(A)
    return _polished(lambda x: (A @ x[:, :, None])[:, :, 0], values[:, -1:], vectors[:, :, -1])


def _leading(block: Block) -> Floats:
    """The leading eigenvector of one large component, ``[1, n]``."""
    rows, cols = np.concatenate((block.low, block.high)), np.concatenate((block.high, block.low))
    A = sp.csr_matrix((np.tile(block.weight, 2), (rows, cols)), shape=(block.size, block.size))
    degrees = block.degrees()[0]
    try:
        values, vectors = eigsh(A, k=1, which="LA", v0=np.sqrt(degrees), ncv=32, maxiter=RESTARTS, tol=0)
    except ArpackError:
        values, vectors = _inverted(A, float(degrees.max()), np.sqrt(degrees))
    return _polished(lambda x: (A @ x[0])[None], values[None], vectors.T)


def _inverted(A: sp.csr_matrix, bound: float, start: Floats) -> tuple[Floats, Floats]:
    """The leading pair by inverse iteration above the spectrum; graphs that converge slowly fill in little."""
    try:
        values, vectors = eigsh(A.tocsc(), k=1, sigma=bound * (1 + 1e-9), which="LM", v0=start, tol=0)
    except (ArpackError, RuntimeError, MemoryError) as error:
        raise ConvergenceError(
            f"the eigenvector centrality of a component of {A.shape[0]} nodes did not converge: {error}; "
            "take the score 'pagerank' or 'degree'"
        ) from error
    return values, vectors


def _polished(multiply: Callable[[Floats], Floats], value: Floats, vector: Floats) -> Floats:
    """The eigenvectors ``[B, n]`` as positive vectors of mean square 1, with small entries made accurate.

    The error of a solver is relative to the largest entry; the logarithm asks for one relative to each entry. A power
    step adds positive numbers alone, and carries the accuracy of large entries outwards to small ones.
    """
    vector = _scaled(np.abs(vector))
    for _ in range(STEPS):
        step = _scaled(multiply(vector) + value * vector)  # A + λ I: bipartite graphs swing without it
        change = np.abs(step - vector) / (step + FLOOR)
        vector = step
        if change.max() < SMALL_CHANGE:
            break
    return vector


def _scaled(vector: Floats) -> Floats:
    scaled: Floats = vector / np.sqrt((vector**2).mean(axis=1, keepdims=True))
    return scaled
