"""The relative error E between a graph and a subgraph: S − S' = E S + S E with E symmetric (Theorem 1).

With S = V diag(λ) Vᵀ and Δ = S − S' the equation falls apart into numbers: [Vᵀ E V]_ij (λ_i + λ_j) = [Vᵀ Δ V]_ij.
Where λ_i + λ_j = 0 there is no such E unless the right side is zero too. So E exists for every S' only when no two
eigenvalues of S add up to zero; positive definite operators are of that kind, adjacency matrices in general are not.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from tadropedge._old.checks import check_device, check_positive, check_tensor
from tadropedge._old.errors import TadropedgeError
from tadropedge._old.memory import within_memory
from tadropedge._old.shift import ShiftOperator

Matrix = Tensor | ShiftOperator

SINGULAR = 1e-9  # |λ_i + λ_j| up to this share of the largest |λ| counts as zero
DENSE = ("dense matrices of all pairs of nodes", "take a smaller graph or fewer subgraphs")  # that ran out of memory
ASYMMETRY = 1e-6  # of the largest entry: what float32 values may differ by


@dataclass(frozen=True, eq=False)
class RelativeError:
    """What :func:`relative_error` found, for one subgraph or a batch of them ``[...]``.

    * ``norm``: ‖E‖₂, the largest |eigenvalue| of E;
    * ``residual``: ‖S − S' − E S − S E‖_F, the part of the change that no E represents;
    * ``change``: ‖S − S'‖_F, what the residual is to be compared with;
    * ``matrix``: E itself ``[..., N, N]``, symmetric.
    """

    norm: Tensor
    residual: Tensor
    change: Tensor
    matrix: Tensor


class ErrorModel:
    """Relative errors of many subgraphs of one graph: S is decomposed once, O(N³) and N² numbers.

    Each S' then costs two dense products and one symmetric eigenvalue problem, O(N³) as well: seconds for N = 2,500 on
    two cores, so this is for graphs of up to a few thousand nodes. All arithmetic is in float64.

    Where |λ_i + λ_j| is at most ``singular`` times the largest |λ|, E is zero in that direction: among all E that fit
    best, in the sense of least squares, this is the one of smallest Frobenius norm.

    >>> S = torch.tensor([[2.0, 1.0], [1.0, 2.0]])
    >>> model = ErrorModel(S)
    >>> round(model.of(0.5 * S).norm.item(), 12)  # E = I / 4
    0.25
    """

    @within_memory(*DENSE)
    def __init__(self, shift: Matrix, singular: float = SINGULAR) -> None:
        singular = check_positive("singular", singular, below=1)
        self.shift = _dense("shift", shift)
        if self.shift.dim() != 2:
            raise TadropedgeError(f"shift must be one matrix [N, N], got shape {list(self.shift.shape)}")
        self.values, self.vectors = torch.linalg.eigh(self.shift)
        sums = self.values[:, None] + self.values
        self.solvable = sums.abs() > singular * self.values.abs().max()
        self._inverse = torch.where(self.solvable, 1 / torch.where(self.solvable, sums, 1.0), 0.0)

    @property
    def unique(self) -> bool:
        """Whether every S' has exactly one E: no two eigenvalues of S add up to zero."""
        return bool(self.solvable.all())

    @property
    def smallest_sum(self) -> float:
        """The smallest |λ_i + λ_j| that is not zero: ‖E‖_F is at most ‖S − S'‖_F over this."""
        sums = (self.values[:, None] + self.values).abs()
        return float(sums[self.solvable].min()) if bool(self.solvable.any()) else float("nan")

    @within_memory(*DENSE)
    def of(self, other: Matrix) -> RelativeError:
        """The relative error of S', ``[N, N]`` or a batch ``[..., N, N]``."""
        change = self.shift - _dense("other", other, like=self.shift)
        turned = self.vectors.T @ change @ self.vectors
        error = turned * self._inverse
        rest = torch.where(self.solvable, 0.0, turned)
        return RelativeError(
            norm=spectral_norm(error),
            residual=torch.linalg.matrix_norm(rest),
            change=torch.linalg.matrix_norm(change),
            matrix=self.vectors @ error @ self.vectors.T,
        )


def relative_error(shift: Matrix, other: Matrix, singular: float = SINGULAR) -> RelativeError:
    """E of S − S' = E S + S E, its norm ‖E‖₂, and the part of S − S' that it cannot represent.

    ``shift`` is S, ``other`` is S' or a batch of them: symmetric matrices, or shift operators of this package (with
    ``dtype=torch.float64`` where eigenvalues may nearly cancel). For many S' of one S keep an :class:`ErrorModel`.

    >>> from tadropedge._old import Graph, shift_operator
    >>> graph = Graph.from_edge_index([[0, 1, 2], [1, 2, 0]])
    >>> keep = torch.tensor([[True, True, True], [True, True, False]])
    >>> whole, less = shift_operator(graph, keep, normalization="gcn-residual", dtype=torch.float64).to_dense()
    >>> found = relative_error(whole, less)
    >>> round(found.norm.item(), 4), found.residual.item()
    (0.25, 0.0)
    """
    return ErrorModel(shift, singular).of(other)


@within_memory(*DENSE)
def misalignment(error: Tensor, vectors: Tensor) -> Tensor:
    """δ = (‖U − V‖₂ + 1)² − 1 of Lemma 1, between the eigenvectors U of E and those V of S.

    Eigenvectors have no sign and the lemma names none: here both are in order of their eigenvalues, and each column of
    U has the sign that makes u_i · v_i positive. ``error [..., N, N]``, ``vectors [N, N]``; at most 8.
    """
    error = _dense("error", error)
    nodes = error.shape[-1]
    if check_tensor("vectors", vectors).shape != (nodes, nodes) or not bool(torch.isfinite(vectors).all()):
        raise TadropedgeError(f"vectors must be finite, of shape [{nodes}, {nodes}], got shape {list(vectors.shape)}")
    check_device("vectors", vectors, error.device, "error")
    vectors = vectors.to(torch.float64)
    _, own = torch.linalg.eigh(error)
    agree = (own * vectors).sum(dim=-2, keepdim=True)
    overlap = torch.where(agree < 0, -own, own).mT @ vectors
    # ‖U − V‖₂² is the largest eigenvalue of 2 I − Uᵀ V − Vᵀ U.
    distance = (2 - torch.linalg.eigvalsh(overlap + overlap.mT)[..., 0]).clamp_min(0).sqrt()
    delta: Tensor = (distance + 1) ** 2 - 1
    return delta


def spectral_norm(matrix: Tensor) -> Tensor:
    """The largest |eigenvalue| of symmetric matrices ``[..., N, N]``."""
    most: Tensor = torch.linalg.eigvalsh(matrix).abs().amax(dim=-1)
    return most


def _dense(name: str, matrix: Matrix, like: Tensor | None = None) -> Tensor:
    """Check that ``matrix`` is square and symmetric, and return it dense in float64."""
    dense = matrix.to_dense() if isinstance(matrix, ShiftOperator) else matrix
    if check_tensor(name, dense).dim() < 2 or dense.shape[-1] != dense.shape[-2] or not dense.shape[-1]:
        raise TadropedgeError(f"{name} must be square matrices [..., N, N], got {list(dense.shape)}")
    if dense.dtype == torch.bool:
        raise TadropedgeError(f"{name} must be matrices of numbers, got {dense.dtype}")
    if like is not None:
        check_device(name, dense, like.device, "shift")
        if dense.shape[-1] != like.shape[-1]:
            raise TadropedgeError(f"{name} has {dense.shape[-1]} nodes, but shift has {like.shape[-1]}")
    dense = dense.to(torch.float64)
    if not bool(((dense - dense.mT).abs() <= ASYMMETRY * dense.abs().max()).all()):  # NaN fails too
        raise TadropedgeError(
            f"{name} must be symmetric and finite; 'random-walk' and directed masks are not symmetric"
        )
    return dense
