"""Dense operators, and the relative error E of Theorem 1: S − S' = E S + S E.

All arithmetic is dense and in float64: for graphs of up to a few thousand nodes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from scipy.stats import spearmanr
from torch import Tensor

from tadropedge import Graph, shift_operator

Array = npt.NDArray[np.float64]

SINGULAR = 1e-9  # |λ_i + λ_j| up to this share of the largest |λ| counts as zero


def dense(graph: Graph, normalization: str, keep: Tensor | None = None) -> Tensor:
    """S of a graph, or of subgraphs ``keep [..., M]``, as dense matrices ``[..., N, N]`` in float64."""
    return shift_operator(graph, keep, normalization=normalization, dtype=torch.float64).to_dense()


def largest_component(graph: Graph) -> Graph:
    """The largest component as its own graph, nodes in their old order.

    >>> largest_component(Graph.from_edge_index([[0, 2, 3], [1, 3, 4]])).pairs.tolist()
    [[0, 1], [1, 2]]
    """
    components = graph.components
    inside = components.labels == components.sizes.argmax()
    number = inside.cumsum(0) - 1
    return Graph.from_edge_index(number[graph.pairs[:, inside[graph.pairs[0]]]], num_nodes=int(inside.sum()))


def rank_correlation(first: Tensor, second: Tensor) -> float:
    """Spearman's; zero where one of the two is constant."""
    a, b = (values.cpu().numpy() for values in (first, second))
    return 0.0 if np.ptp(a) == 0 or np.ptp(b) == 0 else float(spearmanr(a, b).statistic)


@dataclass(frozen=True, eq=False)
class RelativeError:
    """E of S − S' = E S + S E for subgraphs ``[...]``.

    ``norm`` is ‖E‖₂, ``residual`` ‖S − S' − E S − S E‖_F, ``change`` ‖S − S'‖_F, ``matrix`` E itself ``[..., N, N]``.
    """

    norm: Tensor
    residual: Tensor
    change: Tensor
    matrix: Tensor


class ErrorModel:
    """Relative errors of many subgraphs of one graph: S is decomposed once.

    With S = V diag(λ) Vᵀ the equation falls apart into numbers, [Vᵀ E V]_ij (λ_i + λ_j) = [Vᵀ (S − S') V]_ij. Where
    λ_i + λ_j = 0 there is no such E unless the right side is zero, too: E is then zero there, which makes it the
    smallest of all that fit best.

    >>> S = torch.tensor([[2.0, 1.0], [1.0, 2.0]], dtype=torch.float64)
    >>> round(ErrorModel(S).of(0.5 * S).norm.item(), 12)  # E = I / 4
    0.25
    """

    def __init__(self, shift: Tensor) -> None:
        self.shift = shift
        self.values, self.vectors = torch.linalg.eigh(shift)
        self.sums = self.values[:, None] + self.values
        self.solvable = self.sums.abs() > SINGULAR * self.values.abs().max()

    @property
    def smallest_sum(self) -> float:
        """The smallest |λ_i + λ_j| that is not zero."""
        return float(self.sums.abs()[self.solvable].min())

    def of(self, other: Tensor) -> RelativeError:
        """E of S' ``[..., N, N]``."""
        change = self.shift - other
        turned = self.vectors.T @ change @ self.vectors
        error = torch.where(self.solvable, turned / torch.where(self.solvable, self.sums, 1.0), 0.0)
        return RelativeError(
            norm=spectral_norm(error),
            residual=torch.linalg.matrix_norm(turned.masked_fill(self.solvable, 0.0)),
            change=torch.linalg.matrix_norm(change),
            matrix=self.vectors @ error @ self.vectors.T,
        )


def spectral_norm(matrix: Tensor) -> Tensor:
    """The largest |eigenvalue| of symmetric matrices ``[..., N, N]``."""
    return torch.linalg.eigvalsh(matrix).abs().amax(dim=-1)


def misalignment(error: Tensor, vectors: Tensor) -> Tensor:
    """δ = (‖U − V‖₂ + 1)² − 1 of Lemma 1, between the eigenvectors U of E ``[..., N, N]`` and V of S; at most 8.

    Eigenvectors have no sign and the lemma names none: both are in order of their eigenvalues, and each column of U has
    the sign that makes u_i · v_i positive.
    """
    _, own = torch.linalg.eigh(error)
    agree = (own * vectors).sum(dim=-2, keepdim=True)
    overlap = torch.where(agree < 0, -own, own).mT @ vectors
    # ‖U − V‖₂² is the largest eigenvalue of 2 I − Uᵀ V − Vᵀ U
    distance = (2 - torch.linalg.eigvalsh(overlap + overlap.mT)[..., 0]).clamp_min(0).sqrt()
    return (distance + 1) ** 2 - 1
