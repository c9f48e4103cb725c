"""How far a sparser graph is from the graph it was made of: a certificate that is measured, not promised by a theorem.

With the Laplacians L before and L' after, the quotients xᵀL'x / xᵀLx of all x outside the kernel of L lie between the
extreme eigenvalues of L' x = λ L x. Both being 1 would mean that nothing changed; 1 ± ε is a spectral sparsifier.

Small graphs are solved densely. In large ones λ_max is the largest eigenvalue of L⁺ L', which is symmetric in the inner
product of L: Lanczos finds it, with one solve per step. λ_min is found as 1 / λ_max of the pair (L, L').
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import scipy.linalg
import torch
from scipy.sparse.csgraph import laplacian
from scipy.sparse.linalg import ArpackError, LinearOperator, eigsh

from tadropedge._support.memory import within_memory
from tadropedge.errors import ConvergenceError, TadropedgeError
from tadropedge.graph import Graph, check_graph
from tadropedge.spectrum.linear import laplacian_solver

Floats = npt.NDArray[np.float64]

DENSE_NODES = 1_000
SOLVED = 1e-6  # relative residual of a solve; what is found is checked, so a few digits do
TOLERANCE = 1e-4  # of an eigenvalue, as a share of it
VECTORS = 40  # that Lanczos holds before it starts again with the best of them
EPSILON = float(np.finfo(np.float64).eps)
QUANTILES = {"5 %": 0.05, "50 %": 0.5, "95 %": 0.95}


@dataclass(frozen=True, kw_only=True)
class Certificate:
    """What a sparser graph has kept of the graph it was made of.

    * ``lambda_min``, ``lambda_max``: the range of xᵀL'x / xᵀLx over all x outside the kernel of L. Both are quotients
      of vectors that were found, so they are attained. λ_min is exactly 0 where a component fell apart: the indicator
      of a piece has no energy left;
    * ``error``: an eigenvalue lies within this share of each of the two;
    * edges, components (isolated nodes included) and isolated nodes, before and after; an edge of weight 0 is none;
    * ``degree_ratio``: weighted degree after over before, of all nodes that had edges: its mean, three quantiles, the
      least and the largest.
    """

    lambda_min: float
    lambda_max: float
    error: float
    edges_before: int
    edges_after: int
    components_before: int
    components_after: int
    isolated_before: int
    isolated_after: int
    degree_ratio: Mapping[str, float]

    @property
    def epsilon(self) -> float:
        """The least ε for which (1 − ε) xᵀLx ≤ xᵀL'x ≤ (1 + ε) xᵀLx for all x."""
        return max(1 - self.lambda_min, self.lambda_max - 1)


@within_memory("a certificate")
def certify(graph: Graph, thinned: Graph) -> Certificate:
    """Measure how far ``thinned``, whose edges are some of those of ``graph`` with other weights, is from ``graph``.

    Cost: dense eigenvalues up to 1,000 nodes, O(N³); beyond, some tens of solves with each of the two Laplacians.

    >>> triangle = Graph.from_edge_index([[0, 1, 2], [1, 2, 0]])
    >>> found = certify(triangle, Graph.from_edge_index([[0, 1], [1, 2]], edge_weight=[1.5, 1.5]))
    >>> round(found.lambda_min, 6), round(found.lambda_max, 6), round(found.epsilon, 6)
    (0.5, 1.5, 0.5)
    """
    before, after = check_graph(check_graph(graph).connections), check_graph(thinned, edges=False).connections
    _check_inside(before, after)
    whole = after.components.count == before.components.count
    low, high, error = (_dense if before.num_nodes <= DENSE_NODES else _iterated)(before, after, whole)
    return Certificate(
        lambda_min=low,
        lambda_max=high,
        error=error,
        edges_before=before.num_edges,
        edges_after=after.num_edges,
        components_before=before.components.count,
        components_after=after.components.count,
        isolated_before=int((before.components.sizes == 1).sum()),
        isolated_after=int((after.components.sizes == 1).sum()),
        degree_ratio=degree_ratio(before, after),
    )


def degree_ratio(before: Graph, after: Graph) -> dict[str, float]:
    """Weighted degrees after over before, of nodes that had edges: mean, quantiles and extremes.

    >>> triangle = Graph.from_edge_index([[0, 1, 2], [1, 2, 0]])
    >>> degree_ratio(triangle, Graph.from_edge_index([[0, 1], [1, 2]], edge_weight=[1.5, 1.5]))["50 %"]
    0.75
    """
    had, has = (np.asarray(graph.adjacency().sum(axis=1)).ravel() for graph in (before, after))
    ratio = has[had > 0] / had[had > 0]
    middle = dict(zip(QUANTILES, np.quantile(ratio, list(QUANTILES.values())).tolist(), strict=True))
    return {"mean": float(ratio.mean()), "least": float(ratio.min()), **middle, "largest": float(ratio.max())}


def _check_inside(before: Graph, after: Graph) -> None:
    """Refuse edges that were not there: their quotient is infinite where they join two components."""
    keys = [graph.pairs[0].cpu() * before.num_nodes + graph.pairs[1].cpu() for graph in (before, after)]
    place = torch.searchsorted(keys[0], keys[1]).clamp_max(before.num_edges - 1)
    if after.num_nodes != before.num_nodes or not torch.equal(keys[0][place], keys[1]):
        raise TadropedgeError(
            f"the edges of {after} must be some of those of {before}, on the same nodes", argument="thinned"
        )


def _dense(before: Graph, after: Graph, whole: bool) -> tuple[float, float, float]:
    """λ_min, λ_max and their error by all eigenvalues of L' x = λ (L + c J) x, in which J joins each component.

    The indicators of the components of L have the eigenvalue 0 in it, and all others stay what they are.
    """
    L, changed = (laplacian(graph.adjacency()).toarray() for graph in (before, after))
    labels, sizes = before.components.labels.cpu().numpy(), before.components.sizes.cpu().numpy()
    scale = np.where(sizes > 1, np.bincount(labels, L.diagonal()) / sizes**2, 1.0)  # like that of L
    joined = L + np.where(labels[:, None] == labels, scale[labels], 0.0)
    values = scipy.linalg.eigh(changed, joined, eigvals_only=True)
    high = float(values[-1]) if after.num_edges else 0.0
    low = max(float(values[len(sizes)]), 0.0) if whole else 0.0
    rounding = before.num_nodes * EPSILON
    return low, high, rounding * high / low if low else rounding


def _iterated(before: Graph, after: Graph, whole: bool) -> tuple[float, float, float]:
    """λ_min, λ_max and their error by Lanczos; λ_min is searched only where it is not 0."""
    high, error = _largest(after, before)
    if not whole:
        return 0.0, high, error
    turned, missed = _largest(before, after)
    return 1 / turned, high, max(error, missed)


def _largest(upper: Graph, lower: Graph) -> tuple[float, float]:
    """The largest eigenvalue of U x = λ L x, and its error as a share of it; all components of L are those of U.

    L + c P takes the place of L, in which P takes the mean over each component: it is definite, and U does not see what
    it adds. With L alone rounding would grow without bound along the indicators of components, which have no energy.
    """
    if upper.num_edges == 0:
        return 0.0, 0.0
    U, L = (laplacian(graph.adjacency()).tocsr() for graph in (upper, lower))
    labels, sizes = lower.components.labels.cpu().numpy(), lower.components.sizes.cpu().numpy()
    scale = float(L.diagonal().mean())
    solve = laplacian_solver(lower, lower.device, SOLVED)

    def means(x: Floats) -> Floats:
        return (np.bincount(labels, x) / sizes)[labels]  # type: ignore[no-any-return]

    joined = LinearOperator(L.shape, matvec=lambda x: L @ x + scale * means(x), dtype=np.float64)
    inverse = LinearOperator(L.shape, matvec=lambda b: solve(b) + means(b) / scale, dtype=np.float64)
    start = np.random.default_rng(0).standard_normal(len(labels))
    try:
        _, vectors = eigsh(U, k=1, M=joined, Minv=inverse, which="LA", v0=start, ncv=VECTORS, tol=TOLERANCE)
    except ArpackError as error:
        raise ConvergenceError(f"the eigenvalues of a certificate were not found: {error}") from error
    x = vectors[:, 0]
    energy = x @ (L @ x)
    value = float(x @ (U @ x) / energy)
    residual = U @ x - value * (L @ x)
    return value, float(np.sqrt(max(residual @ solve(residual), 0.0) / energy)) / value
