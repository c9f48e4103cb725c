"""Aggregate resistance, the paper's score: how much each edge holds its component together (Phase II)."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from tadropedge._old.blocks import Block, Floats
from tadropedge._old.cache import Arrays
from tadropedge._old.graph import PIECE, Graph
from tadropedge._old.progress import Show
from tadropedge._old.scores.solve import InParts, Report, solve
from tadropedge._old.spectrum import Subspaces
from tadropedge._old.spectrum.ladder import execute
from tadropedge._old.spectrum.plan import Wish, plan


class Aggregate(Wish):
    """Aggregate resistance, part by part; its settings are those of :func:`aggregate_resistance`."""

    def begin(self, graph: Graph) -> tuple[Floats, Iterable[Block]]:
        """Components with too few nodes stay NaN."""
        return np.full(graph.num_edges, np.nan), self.parts(graph)

    def part(self, block: Block, device: torch.device, report: Report) -> Arrays:
        """The scores of a block, the modes of its components and the lowest eigenvalues of the first of them."""
        listen = report if block.count == 1 else lambda share: None  # many small ones are soon done
        found = [execute(step, listen) for step in plan([block], self, device)]
        first = found[0]
        # Values beyond these need not have converged, and how many there are depends on the solver.
        values = first.values[0, 1 : max(int(first.counts[0]) + 1, self.pairs_needed)]
        return {
            "scores": np.concatenate([modal_scores(modes) for modes in found]),
            "modes": np.concatenate([modes.counts for modes in found]),
            "widened": np.concatenate([modes.widened for modes in found]),
            "solvers": np.repeat([modes.solver for modes in found], [modes.block.count for modes in found]),
            "eigenvalues": np.concatenate(([0.0], values)),  # the first is known
        }


aggregate = InParts("aggregate", Aggregate)


def aggregate_resistance(
    graph: Graph,
    q: int | None = None,
    *,
    desired_clusters: int | None = None,
    laplacian: str = "combinatorial",
    solver: str = "auto",
    tolerance: float = 1e-8,
    ranks: int | None = None,
    cache_dir: str | Path | None = None,
    progress: Show = None,
    device: torch.device | str | None = None,
) -> Tensor:
    """Aggregate resistance ω of every edge, float64 ``[M]`` in the order of ``graph.pairs``.

    ω_m = [Dᵀ V Vᵀ D]_mm = Σ_(ℓ<q) (u_ℓ[i_m] − u_ℓ[j_m])², where u_0 … u_(q−1) are the eigenvectors of the
    q lowest eigenvalues of the Laplacian of the edge's component and D is its ±1 incidence matrix.

    * Components with fewer than q nodes get the lowest score seen in the others.
    * ``desired_clusters=α`` chooses q for each component, at its largest eigengap from α − ⌊α/2⌋ to α + ⌊α/2⌋
      (see :func:`tadropedge._old.spectrum.gap_window`).
    * Where q falls inside a repeated eigenvalue the q vectors are not unique. Then the whole eigenspace is
      used and a :class:`RepeatedEigenvalueWarning` says so, once per call.
    * ``laplacian``: ``"combinatorial"`` (D − A, the paper's text) or ``"normalized"`` (I − D^-1/2 A D^-1/2,
      which fits the paper's γ better). Edge weights of the graph enter the Laplacian.
    * ``solver``: ``"auto"``, or one of ``dense``, ``shift-invert``, ``davidson``, ``lanczos``, ``short-lanczos``,
      or ``slepc``, which runs on ``ranks`` processes under MPI (1 by default), each of which holds its rows.
      Every answer is checked by its residual; ``auto`` looks at each component first
      (:func:`tadropedge._old.spectrum.explain` returns the plan), goes on to the next solver when one fails, and at the
      end raises a :class:`ConvergenceError`, or a :class:`NotEnoughMemoryError` before it begins.
    * ``tolerance`` bounds the absolute error of every score, as far as float64 allows; where it does not, the
      ``tadropedge`` logger warns and says which bound holds. Scores below the numerical floor are exact zeros, and
      scores that differ by rounding alone are equal: ties, not noise.
    * ``cache_dir`` keeps results on disk, by the content of graph and settings.
    * ``device``: where large components are solved, ``"cpu"`` or ``"cuda"``; by default where the graph lies.

    Two triangles and the edge that joins them:

    >>> graph = Graph.from_edge_index([[0, 0, 1, 2, 3, 3, 4], [1, 2, 2, 3, 4, 5, 5]])
    >>> aggregate_resistance(graph, q=2).round(decimals=3).tolist()
    [0.0, 0.042, 0.042, 0.272, 0.042, 0.042, 0.0]
    """
    settings = {"laplacian": laplacian, "solver": solver, "tolerance": tolerance, "ranks": ranks}
    wanted = {"q": q, "desired_clusters": desired_clusters}
    return solve(graph, aggregate, wanted | settings, cache_dir=cache_dir, progress=progress, device=device).told()


def modal_scores(modes: Subspaces) -> Floats:
    """ω of every edge of a block, in the order of ``modes.block.edges``, before ties are made equal."""
    values, floor = np.empty(len(modes.block.edges)), modes.floor
    for first in range(0, len(values), PIECE):
        some = slice(first, first + PIECE)
        values[some] = _some_scores(modes, modes.block.some(some), floor)
    return values


def _some_scores(modes: Subspaces, block: Block, floor: Floats) -> Floats:
    """The same of some edges of the block."""
    values = modes.local[block.member, block.low] + modes.local[block.member, block.high]
    twins = modes.kin[block.member, block.low] == modes.kin[block.member, block.high]
    values[twins & (values > 0)] = 2.0  # all that tells them apart is among the modes
    for column in range(modes.vectors.shape[2]):
        mode = modes.vectors[:, :, column]
        values += (mode[block.member, block.low] - mode[block.member, block.high]) ** 2
    values[values <= floor[block.member]] = 0.0
    values[modes.counts[block.member] == block.size] = 2.0  # all modes: P = I
    return values
