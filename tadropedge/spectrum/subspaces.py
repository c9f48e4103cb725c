"""The subspaces of the lowest modes: what aggregate resistance is made of."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tadropedge.blocks import Block, Flags, Floats, Integers
from tadropedge.errors import ConvergenceError
from tadropedge.spectrum.clusters import ROUNDING, Clusters, cluster_counts

EPSILON = float(np.finfo(np.float64).eps)


@dataclass(frozen=True, kw_only=True)
class Subspaces:
    """The modes of the B components of a block.

    ``values [B, k]``: the lowest eigenvalues, more than were asked for; ``vectors [B, n, r]``: the modes that
    are used, zero columns after the first ``counts [B]``; ``error [B]``: a bound on the sine of the angle by
    which each subspace may be wrong; ``widened [B]``: where q fell inside a repeated eigenvalue; ``local [B, n]``: what
    modes that differ between twin leaves alone add to the diagonal of the projector, P_ii = Σ_ℓ u_ℓ[i]² + local[i];
    ``solver``: who found them.
    """

    block: Block
    laplacian: str
    values: Floats
    vectors: Floats
    counts: Integers
    error: Floats
    widened: Flags
    local: Floats
    solver: str

    @property
    def floor(self) -> Floats:
        """The mean score that a wrong subspace would give to edges of score zero, ``[B]``: less is nothing.

        With r the residual, what is wrong is Σ_j ⟨r, u_j⟩ / (λ_j − θ) u_j over the modes that are not used. Its energy
        is at most λ ‖r‖² / gap² = λ · error², where λ is the lowest eigenvalue that is not used: slow modes are smooth.
        Spread over all edges that is λ · error² / Σw; in the normalised Laplacian entries grow with √degree.
        """
        block = self.block
        above = np.pad(self.values, ((0, 0), (0, 1)))[np.arange(block.count), self.counts]  # 0 where all are used
        total = np.bincount(block.member, weights=block.weight, minlength=block.count)
        each = 2 / block.size if self.laplacian == "normalized" else 1 / total
        rounding = 8 * EPSILON**2 / block.size  # of the entries themselves
        return np.maximum(above * self.error**2 * each, rounding)


def dense_batch(block: Block, clusters: Clusters, laplacian: str) -> Subspaces:
    """All components of a block at once, by LAPACK."""
    norms = block.norms(laplacian)
    L = block.dense_laplacian(laplacian)
    values, vectors = np.linalg.eigh(L)
    residual = np.linalg.norm(L @ vectors - vectors * values[:, None, :], axis=(1, 2))
    if not (residual <= ROUNDING * block.size * norms).all():  # NaN fails too
        raise ConvergenceError(
            f"the dense eigensolver failed on a component of {block.size} nodes (residual {residual.max():.1e}); "
            "its edge weights may span too many orders of magnitude"
        )
    counts, widened = cluster_counts(values, block.size, norms, clusters)
    used = np.arange(block.size) < counts[:, None]
    rows = np.arange(block.count)
    gap = np.pad(values, ((0, 0), (0, 1)), constant_values=np.inf)[rows, counts] - values[rows, counts - 1]
    return Subspaces(
        block=block,
        laplacian=laplacian,
        values=values,
        vectors=np.where(used[:, None, :], vectors, 0.0)[:, :, : counts.max()],
        counts=counts,
        error=8 * EPSILON * norms / gap,
        widened=widened,
        local=np.zeros(block.nodes.shape),
        solver="dense",
    )
