"""The subspaces of the lowest modes, block by block: what aggregate resistance is made of."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch

from tadropedge.blocks import DENSE_NODES, Block, blocks
from tadropedge.errors import ConvergenceError, lookup
from tadropedge.graph import Graph
from tadropedge.progress import Progress, Show
from tadropedge.spectrum.clusters import ROUNDING, Clusters, cluster_counts
from tadropedge.spectrum.ladder import EPSILON, climb
from tadropedge.spectrum.survey import DENSE_SHARE

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

LAPLACIANS = {"combinatorial": "D − A", "normalized": "I − D^-1/2 A D^-1/2"}


@dataclass(frozen=True)
class Subspaces:
    """The modes of the B components of a block.

    ``values [B, k]``: the lowest eigenvalues, more than were asked for; ``vectors [B, n, r]``: the modes that
    are used, zero columns after the first ``counts [B]``; ``error [B]``: a bound on the sine of the angle by
    which each subspace may be wrong; ``widened [B]``: where q fell inside a repeated eigenvalue; ``local [B, n]``: what
    modes that differ between twin leaves alone add to P_ii, on top of the vectors; ``floor [B]``: weights below it
    cannot be told from zero; ``solver``: who found them.
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


def cluster_subspaces(
    graph: Graph,
    clusters: Clusters,
    laplacian: str = "combinatorial",
    solver: str = "auto",
    tolerance: float = 1e-8,
    progress: Show = None,
    device: torch.device | str = "cpu",
) -> Iterator[Subspaces]:
    """Yield the subspaces of the lowest modes of every component that has enough nodes.

    >>> graph = Graph.from_edge_index([[0, 1, 2], [1, 2, 3]])
    >>> (path,) = cluster_subspaces(graph, Clusters(q=2))
    >>> path.values[0, 1:].round(4).tolist(), path.vectors.shape
    ([0.5858, 2.0, 3.4142], (1, 4, 2))
    """
    lookup("laplacian", laplacian, LAPLACIANS)
    with Progress("eigenvectors", graph.num_nodes, progress) as bar:
        for block in blocks(graph, least=clusters.least_nodes):
            bar.note(f"{block.count} × {block.size} nodes")
            tiny = block.size <= DENSE_SHARE * clusters.pairs_needed  # no work for an iterative solver
            if block.size <= DENSE_NODES and (tiny or solver in ("auto", "dense")):
                yield _dense_batch(block, clusters, laplacian)
                bar.advance(block.nodes.size)
            else:
                yield from _one_by_one(block, clusters, laplacian, solver, tolerance, torch.device(device), bar)


def _dense_batch(block: Block, clusters: Clusters, laplacian: str) -> Subspaces:
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
    vectors = np.where(used[:, None, :], vectors, 0.0)[:, :, : counts.max()]
    above = np.concatenate((values, np.full((block.count, 1), np.inf)), axis=1)
    rows = np.arange(block.count)
    gap = above[rows, counts] - values[rows, counts - 1]
    error, local = 8 * EPSILON * norms / gap, np.zeros(block.nodes.shape)
    floor = _floor(block, laplacian, np.where(np.isfinite(gap), above[rows, counts], 0.0), error)
    return Subspaces(block, values, vectors, counts, error, widened, local, floor, "dense")


def _floor(block: Block, laplacian: str, above: Floats, error: Floats) -> Floats:
    """The mean weight that a wrong subspace would give to edges of weight zero, ``[B]``.

    With r the residual, what is wrong is Σ_j ⟨r, u_j⟩ / (λ_j − θ) u_j over the modes that are not used. Its energy is
    at most λ ‖r‖² / gap² = λ · error², where λ, ``above``, is the lowest eigenvalue that is not used: slow modes are
    smooth. Spread over all edges that is λ · error² / Σw; in the normalised Laplacian entries grow with √degree.
    """
    total = np.bincount(block.member, weights=block.weight, minlength=block.count)
    each = 2 / block.size if laplacian == "normalized" else 1 / total
    rounding = 8 * EPSILON**2 / block.size  # of the entries themselves
    return np.maximum(above * error**2 * each, rounding)


def _one_by_one(
    block: Block,
    clusters: Clusters,
    laplacian: str,
    solver: str,
    tolerance: float,
    device: torch.device,
    bar: Progress,
) -> Iterator[Subspaces]:
    """Sparse solvers, one component after the other."""
    for member in range(block.count):
        part = block.one(member)
        null = np.sqrt(part.degrees()[0]) if laplacian == "normalized" else np.ones(part.size)
        with bar.step(part.size) as report:
            found = climb(
                part.sparse_laplacian(laplacian),
                null / np.linalg.norm(null),
                float(part.norms(laplacian)[0]),
                clusters,
                solver,
                tolerance,
                device,
                report,
            )
        error = np.array([found.error])
        above = found.values[found.count : found.count + 1]
        yield Subspaces(
            part,
            found.values[None],
            found.vectors[None],
            np.array([found.count]),
            error,
            np.array([found.widened]),
            found.local[None],
            _floor(part, laplacian, above if len(above) else np.zeros(1), error),
            found.solver,
        )
