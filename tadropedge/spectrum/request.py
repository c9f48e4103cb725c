"""What is wanted of the spectrum: how many modes, of which Laplacian, by which solver, how accurately.

How many: q as given, or at the largest eigengap near a desired count; never a part of an eigenspace.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tadropedge._support.checks import check_integer, check_number
from tadropedge.errors import TadropedgeError, TooSmallError, lookup
from tadropedge.graph import Graph
from tadropedge.spectrum.blocks import EPSILON, Block, Flags, Floats, Integers, blocks
from tadropedge.spectrum.solvers import SOLVERS

LAPLACIANS = {"combinatorial": "D − A", "normalized": "I − D^-1/2 A D^-1/2"}
USUAL_CLUSTERS = 7  # near which the eigengap is searched where nothing is asked for
LEAST_TOLERANCE = 1e-300  # above 0: what float64 cannot reach is said when it is found
# Two eigenvalues closer than this are one repeated eigenvalue: a millionth of the larger one, or rounding.
RELATIVE_GAP = 1e-6
ROUNDING = 64 * EPSILON
EQUAL_GAPS = 1e-9  # gaps that differ by less are equal, so rounding never decides between them


@dataclass(frozen=True, kw_only=True)
class ModeRequest:
    """The lowest modes of every component: ``q`` of them, or as many as the eigengap near ``desired_clusters`` says.

    With neither, the eigengap is searched near 7, or near the number of nodes in components of fewer. ``tolerance``
    bounds the error of every score that is made of the modes.

    Make one with :meth:`of`, which checks; ``ModeRequest(...)`` itself trusts what it is given.
    """

    q: int | None = None
    desired_clusters: int | None = None
    laplacian: str = "combinatorial"
    solver: str = "auto"
    tolerance: float = 1e-8

    @classmethod
    def of(cls, **wanted: Any) -> ModeRequest:
        """The request, checked.

        >>> ModeRequest.of(q=2, desired_clusters=3)
        Traceback (most recent call last):
        tadropedge.errors.TadropedgeError: give either q or desired_clusters, got q=2 and desired_clusters=3
        """
        found = cls(**wanted)
        q, desired = found.q, found.desired_clusters
        if q is not None and desired is not None:
            raise TadropedgeError(
                f"give either q or desired_clusters, got q={q} and desired_clusters={desired}", argument="q"
            )
        lookup("laplacian", found.laplacian, LAPLACIANS)
        lookup("solver", found.solver, {"auto": None, **SOLVERS})
        return replace(
            found,
            q=None if q is None else check_integer("q", q, least=1),
            desired_clusters=None if desired is None else check_integer("desired_clusters", desired, least=1),
            tolerance=check_number("tolerance", found.tolerance, least=LEAST_TOLERANCE),
        )

    def __str__(self) -> str:
        if self.q is not None:
            return f"q={self.q}"
        return "the eigengap" if self.desired_clusters is None else f"desired_clusters={self.desired_clusters}"

    @property
    def least_nodes(self) -> int:
        """Components with fewer nodes than this have no modes."""
        return self.q or self.desired_clusters or 2

    @property
    def pairs_needed(self) -> int:
        """Eigenpairs to start with: the gap above the last candidate must be seen."""
        return (self.q or gap_window(self.desired_clusters or USUAL_CLUSTERS)[1]) + 1

    def parts(self, graph: Graph) -> Iterator[Block]:
        """The components that have enough nodes, of which there must be one."""
        if self.least_nodes > (largest := graph.components.largest):
            raise TooSmallError(f"{self} is larger than every component; the largest has {largest} nodes")
        return blocks(graph, self.least_nodes)


def gap_window(alpha: int) -> tuple[int, int]:
    """The neighbourhood of the (α − 1)th eigenvalue in which the largest gap is searched.

    The paper's Remark leaves the neighbourhood open. Here q may lie from α − ⌊α/2⌋ to α + ⌊α/2⌋, but never
    below 2 when α ≥ 2: the gap above the constant vector alone says nothing about clusters.

    >>> gap_window(1), gap_window(2), gap_window(3), gap_window(7)
    ((1, 1), (2, 3), (2, 4), (4, 10))
    """
    half = alpha // 2
    return min(alpha, max(2, alpha - half)), alpha + half


def cluster_counts(values: Floats, size: int, norms: Floats, request: ModeRequest) -> tuple[Integers, Flags]:
    """How many eigenvectors each of B components uses, and where a repeated eigenvalue enlarged the number.

    ``values [B, k]`` are the lowest eigenvalues in increasing order of components of ``size`` nodes. A count
    of 0 says that the last of them lies inside an eigenspace, so that more are needed.

    >>> path = 2 - 2 * np.cos(np.pi * np.arange(4) / 4)
    >>> star = np.array([0.0, 1.0, 1.0, 4.0])  # q = 2 would cut the double eigenvalue 1
    >>> cluster_counts(np.stack((path, star)), 4, np.full(2, 8.0), ModeRequest(q=2))
    (array([2, 3]), array([False,  True]))
    """
    k = values.shape[1]
    gaps = np.diff(values, axis=1)
    separated = gaps > RELATIVE_GAP * values[:, 1:] + ROUNDING * norms[:, None]
    if k == size:  # above the last eigenvalue of all there is nothing
        separated = np.concatenate((separated, np.ones((len(values), 1), dtype=bool)), axis=1)
    start = _wanted_counts(gaps, size, request)
    counts = np.arange(1, separated.shape[1] + 1)
    allowed = separated & (counts >= start[:, None])
    found = np.where(allowed.any(axis=1), allowed.argmax(axis=1) + 1, 0)
    return found, found != start


def _wanted_counts(gaps: Floats, size: int, request: ModeRequest) -> Integers:
    """The count before repeated eigenvalues are looked at, ``[B]``."""
    if request.q is not None:
        return np.full(len(gaps), request.q)
    alpha = request.desired_clusters or min(USUAL_CLUSTERS, size)
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
