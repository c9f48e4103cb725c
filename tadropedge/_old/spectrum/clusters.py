"""How many eigenvectors: q as given, or at the largest eigengap near a desired count, never inside an eigenspace."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from tadropedge._old.blocks import EPSILON, Block, Flags, Floats, Integers, blocks
from tadropedge._old.checks import check_integer
from tadropedge._old.errors import TadropedgeError
from tadropedge._old.graph import Graph

# Two eigenvalues closer than this are one repeated eigenvalue: a millionth of the larger one, or rounding.
RELATIVE_GAP = 1e-6
ROUNDING = 64 * EPSILON
EQUAL_GAPS = 1e-9  # gaps that differ by less are equal, so rounding never decides between them


@dataclass(frozen=True)
class Clusters:
    """The wish: exactly ``q`` clusters per component, or about ``desired_clusters`` of them."""

    q: int | None = None
    desired_clusters: int | None = None

    def __post_init__(self) -> None:
        if (self.q is None) == (self.desired_clusters is None):
            raise TadropedgeError(
                f"give either q or desired_clusters, got q={self.q} and desired_clusters={self.desired_clusters}"
            )
        name = "desired_clusters" if self.q is None else "q"
        object.__setattr__(self, name, check_integer(name, getattr(self, name), least=1))  # of any library

    def __str__(self) -> str:
        """As the user asked for it."""
        return f"desired_clusters={self.desired_clusters}" if self.q is None else f"q={self.q}"

    @property
    def least_nodes(self) -> int:
        """Components with fewer nodes than this have no spectrum."""
        return self.q or self.desired_clusters or 1

    @property
    def pairs_needed(self) -> int:
        """Eigenpairs to start with: the gap above the last candidate must be seen."""
        return (self.q or gap_window(self.least_nodes)[1]) + 1

    def parts(self, graph: Graph) -> Iterator[Block]:
        """The components that have enough nodes, of which there must be one."""
        if self.least_nodes > (largest := graph.components.largest):
            raise TadropedgeError(f"{self} is larger than every component; the largest has {largest} nodes")
        return blocks(graph, self.least_nodes)


def gap_window(alpha: int) -> tuple[int, int]:
    """The neighbourhood of the (α − 1)th eigenvalue in which the largest gap is searched.

    The paper's Remark leaves the neighbourhood open. Here q may lie from α − ⌊α/2⌋ to α + ⌊α/2⌋, but never
    below 2 when α ≥ 2: the gap above the constant vector alone says nothing about clusters.

    >>> gap_window(1), gap_window(2), gap_window(3), gap_window(7)
    ((1, 1), (2, 3), (2, 4), (4, 10))
    """
    alpha = check_integer("alpha", alpha, least=1)
    half = alpha // 2
    return min(alpha, max(2, alpha - half)), alpha + half


def cluster_counts(values: Floats, size: int, norms: Floats, clusters: Clusters) -> tuple[Integers, Flags]:
    """How many eigenvectors each of B components uses, and where a repeated eigenvalue enlarged the number.

    ``values [B, k]`` are the lowest eigenvalues in increasing order of components of ``size`` nodes. A count
    of 0 says that the k values end inside an eigenspace, so that more are needed.

    >>> path = 2 - 2 * np.cos(np.pi * np.arange(4) / 4)
    >>> star = np.array([0.0, 1.0, 1.0, 4.0])  # q = 2 would cut the double eigenvalue 1
    >>> cluster_counts(np.stack((path, star)), 4, np.full(2, 8.0), Clusters(q=2))
    (array([2, 3]), array([False,  True]))
    """
    k = values.shape[1]
    gaps = np.diff(values, axis=1)
    separated = gaps > RELATIVE_GAP * values[:, 1:] + ROUNDING * norms[:, None]
    if k == size:  # above the last eigenvalue of all there is nothing
        separated = np.concatenate((separated, np.ones((len(values), 1), dtype=bool)), axis=1)
    start = _wanted_counts(gaps, size, clusters)
    places = np.arange(1, separated.shape[1] + 1)
    allowed = separated & (places >= start[:, None])
    counts = np.where(allowed.any(axis=1), allowed.argmax(axis=1) + 1, 0)
    return counts, counts != start


def _wanted_counts(gaps: Floats, size: int, clusters: Clusters) -> Integers:
    """The count before repeated eigenvalues are looked at, ``[B]``."""
    if clusters.q is not None:
        return np.full(len(gaps), clusters.q)
    alpha = clusters.least_nodes
    lower, upper = gap_window(alpha)
    upper = min(upper, size - 1)
    if upper < lower:  # a component of exactly α nodes that has no gap to look at
        return np.full(len(gaps), min(alpha, size))
    # The gap above q eigenvalues is λ_q − λ_(q−1); among equal gaps the count nearest to α, then the smaller.
    candidates = np.array(sorted(range(lower, upper + 1), key=lambda q: (abs(q - alpha), q)))
    window = gaps[:, candidates - 1]
    near_best = window >= (1 - EQUAL_GAPS) * window.max(axis=1, keepdims=True)
    chosen: Integers = candidates[near_best.argmax(axis=1)]
    return chosen
