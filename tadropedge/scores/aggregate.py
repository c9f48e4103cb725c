"""Aggregate resistance, the paper's score: how much each edge holds its component together (Phase II)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from tadropedge._support.cache import Arrays
from tadropedge.graph import Graph
from tadropedge.scores.parts import InParts, Report, solved_by
from tadropedge.scores.solve import edge_scores
from tadropedge.spectrum import ModeRequest, Subspaces, check_modes, execute, given_modes, plan
from tadropedge.spectrum.blocks import Block, Floats


@dataclass(frozen=True, eq=False)
class Aggregate(InParts):
    """Aggregate resistance, part by part: which modes are wanted, or ``modes [N, k]`` of the user's own."""

    request: ModeRequest
    modes: Floats | None = None

    @classmethod
    def of(cls, graph: Graph, modes: object = None, **request: Any) -> Aggregate:
        """The settings of :func:`aggregate`, checked."""
        return cls(ModeRequest.of(**request), None if modes is None else check_modes(modes, graph))

    def __str__(self) -> str:
        return str(self.request)

    @property
    def cacheable(self) -> bool:
        """Own modes belong to the nodes of one graph, and need no solving."""
        return self.modes is None

    def begin(self, graph: Graph) -> tuple[Floats, Iterable[Block]]:
        """Components with too few nodes stay NaN."""
        return np.full(graph.num_edges, np.nan), self.request.parts(graph)

    def part(self, block: Block, device: torch.device, report: Report) -> Arrays:
        """The scores of a block, the modes of its components and the lowest eigenvalues of the first of them."""
        listen = report if block.count == 1 else lambda share: None  # many small ones are soon done
        if self.modes is None:
            found = [execute(step, listen) for step in plan([block], self.request, device)]
        else:
            found = [given_modes(block.one(member), self.modes, self.request) for member in range(block.count)]
        first = found[0]
        # Values beyond these need not have converged, and how many there are depends on the solver.
        seen = max(int(first.counts[0]) + 1, self.request.pairs_needed) if self.modes is None else first.counts[0]
        values = first.values[0, 1:seen]
        return {
            "scores": np.concatenate([modal_scores(modes) for modes in found]),
            "modes": np.concatenate([modes.counts for modes in found]),
            "widened": np.concatenate([modes.widened for modes in found]),
            "solvers": np.repeat([modes.solver for modes in found], [modes.block.count for modes in found]),
            "eigenvalues": np.concatenate(([0.0], values)),  # the first is known
        }


@solved_by(Aggregate)
def aggregate(
    graph: Graph,
    q: int | None = None,
    *,
    desired_clusters: int | None = None,
    laplacian: str = "combinatorial",
    solver: str = "auto",
    tolerance: float = 1e-8,
    modes: Tensor | npt.ArrayLike | None = None,
) -> Tensor:
    """Aggregate resistance ω of every edge, float64 ``[M]``: its share in the q slowest modes of its component.

    ω_m = [Dᵀ V Vᵀ D]_mm = Σ_(ℓ<q) (u_ℓ[i_m] − u_ℓ[j_m])², where u_0 … u_(q−1) are the eigenvectors of the
    q lowest eigenvalues of the Laplacian of the edge's component and D is its ±1 incidence matrix.

    * Components with fewer than q nodes get the lowest score seen in the others.
    * ``desired_clusters=α`` chooses q for each component, at its largest eigengap from α − ⌊α/2⌋ to α + ⌊α/2⌋. With
      neither, the eigengap is searched near 7.
    * Where q falls inside a repeated eigenvalue the q vectors are not unique. Then the whole eigenspace is
      used and a :class:`~tadropedge.RepeatedEigenvalueWarning` says so, once per call.
    * ``laplacian``: ``"combinatorial"`` (D − A, the paper's text) or ``"normalized"`` (I − D^-1/2 A D^-1/2,
      which fits the paper's γ better). Edge weights of the graph enter the Laplacian.
    * ``solver``: ``"auto"``, or a name of ``tadropedge.spectrum.SOLVERS``. Every answer is checked by its residual;
      ``auto`` looks at each component first, goes on to the next solver when one fails, and at the end raises a
      :class:`~tadropedge.ConvergenceError`.
    * ``tolerance`` bounds the absolute error of every score, as far as float64 allows; where it does not, the
      ``tadropedge`` logger warns and says which bound holds. Scores below the numerical floor are exact zeros, and
      scores that differ by rounding alone are equal: ties, not noise.
    * ``modes [N, k]``: eigenvectors that were computed elsewhere. They are checked by their residual, and used instead
      of a solver; without ``q`` all of them are.

    * Source: the paper of TADropEdge (arXiv 2106.02892).
    * Cost: near O(q M) on most graphs, by multigrid and Davidson's method; minutes for 10⁷ edges.
    * Good for: keeping clusters connected. The few edges between them score high, those inside them near 0.

    Two triangles and the edge that joins them:

    >>> graph = Graph.from_edge_index([[0, 0, 1, 2, 3, 3, 4], [1, 2, 2, 3, 4, 5, 5]])
    >>> aggregate(graph, q=2).round(decimals=3).tolist()
    [0.0, 0.042, 0.042, 0.272, 0.042, 0.042, 0.0]
    """
    return edge_scores(
        graph,
        aggregate,
        q=q,
        desired_clusters=desired_clusters,
        laplacian=laplacian,
        solver=solver,
        tolerance=tolerance,
        modes=modes,
    )


def modal_scores(modes: Subspaces) -> Floats:
    """ω of every edge of a block, in the order of ``modes.block.edges``, before ties are made equal."""
    block = modes.block
    low, high = (block.member, block.low), (block.member, block.high)
    values = modes.local[low] + modes.local[high]
    twins = modes.twin_group[low] == modes.twin_group[high]
    values[twins & (values > 0)] = 2.0  # all that tells them apart is among the modes
    for column in range(modes.vectors.shape[2]):
        mode = modes.vectors[:, :, column]
        values += (mode[low] - mode[high]) ** 2
    values[values <= modes.floor[block.member]] = 0.0
    values[modes.counts[block.member] == block.size] = 2.0  # all modes: P = I
    return values
