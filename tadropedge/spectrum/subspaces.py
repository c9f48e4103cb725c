"""The subspaces of the lowest modes: what aggregate resistance is made of."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tadropedge.blocks import Block
from tadropedge.errors import ConvergenceError
from tadropedge.spectrum.clusters import ROUNDING, Clusters, cluster_counts

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

EPSILON = float(np.finfo(np.float64).eps)


@dataclass(frozen=True, kw_only=True)
class Subspaces:
    """The modes of the B components of a block.

    ``values [B, k]``: the lowest eigenvalues, more than were asked for; ``vectors [B, n, r]``: the modes that
    are used, zero columns after the first ``counts [B]``; ``error [B]``: a bound on the sine of the angle by
    which each subspace may be wrong; ``widened [B]``: where q fell inside a repeated eigenvalue; ``local [B, n]``: what
    modes that differ between twin leaves alone add to the diagonal of the projector, P_ii = Σ_ℓ u_ℓ[i]² + local[i];
    ``floor [B]``: edge scores below it cannot be told from zero; ``solver``: who found them.
    """

    block: Block
    values: Floats
    vectors: Floats
    counts: Integers
    error: Floats
    widened: Flags
    local: Floats
    floor: Floats
    solver: str


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
    above = np.concatenate((values, np.full((block.count, 1), np.inf)), axis=1)
    rows = np.arange(block.count)
    gap = above[rows, counts] - values[rows, counts - 1]
    error = 8 * EPSILON * norms / gap
    return Subspaces(
        block=block,
        values=values,
        vectors=np.where(used[:, None, :], vectors, 0.0)[:, :, : counts.max()],
        counts=counts,
        error=error,
        widened=widened,
        local=np.zeros(block.nodes.shape),
        floor=floor(block, laplacian, np.where(np.isfinite(gap), above[rows, counts], 0.0), error),
        solver="dense",
    )


def floor(block: Block, laplacian: str, above: Floats, error: Floats) -> Floats:
    """The mean score that a wrong subspace would give to edges of score zero, ``[B]``.

    With r the residual, what is wrong is Σ_j ⟨r, u_j⟩ / (λ_j − θ) u_j over the modes that are not used. Its energy is
    at most λ ‖r‖² / gap² = λ · error², where λ, ``above``, is the lowest eigenvalue that is not used: slow modes are
    smooth. Spread over all edges that is λ · error² / Σw; in the normalised Laplacian entries grow with √degree.
    """
    total = np.bincount(block.member, weights=block.weight, minlength=block.count)
    each = 2 / block.size if laplacian == "normalized" else 1 / total
    rounding = 8 * EPSILON**2 / block.size  # of the entries themselves
    return np.maximum(above * error**2 * each, rounding)
