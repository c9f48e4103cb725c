"""The quantities of the paper's analysis: relative errors, Lipschitz constants, α-realizability, output variance, X'.

All arithmetic is dense and in float64: for graphs of up to a few thousand nodes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from scipy.optimize import nnls
from scipy.stats import spearmanr
from torch import Tensor

from tadropedge import Graph, sample_edges, shift_operator

Array = npt.NDArray[np.float64]
Outputs = Callable[[Tensor], Tensor]  # masks [T, M] -> outputs [T, N, F]
Network = Callable[[Tensor], Tensor]  # one signal [N, F] -> its output [N, F_L]
Spectrum = tuple[Tensor, Tensor]  # of S: eigenvalues [N] and eigenvectors [N, N]

SINGULAR = 1e-9  # |λ_i + λ_j| up to this share of the largest |λ| counts as zero
NO_RESPONSE = 1e-10  # and so does a response of a filter below this share of the largest
STEPS = 30


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


# -- Theorem 1: the relative error -----------------------------------------------------------------------


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


# -- Theorem 1: filters ----------------------------------------------------------------------------------


def lipschitz(taps: Tensor, low: float, high: float) -> Tensor:
    """C_L = sup |λ h'(λ)| over [low, high], for h = Σ_k b_k λ^k with taps b ``[..., K + 1]``.

    On all of ℝ no polynomial but a constant has one.

    >>> lipschitz(torch.tensor([0.0, 1.0, -1.0]), 0.0, 1.0).item()  # |λ − 2 λ²| at λ = 1
    1.0
    """
    return _supremum(taps * torch.arange(taps.shape[-1]), low, high)


def response_bound(taps: Tensor, low: float, high: float) -> Tensor:
    """The largest |h(λ)| on [low, high]; Theorem 1 assumes that it is at most 1.

    >>> response_bound(torch.tensor([0.0, 1.0, -1.0]), 0.0, 1.0).item()  # λ − λ² at λ = 1/2
    0.25
    """
    return _supremum(taps, low, high)


def divided_lipschitz(taps: Tensor, values: Tensor) -> Tensor:
    """The constant of Definition 1 on a spectrum: max |h(λ_i) − h(λ_j)| · |λ_i + λ_j| / (2 |λ_i − λ_j|).

    The paper calls |λ h'| ≤ C_L equivalent to it, but that only follows from it: h = ln λ has |λ h'| = 1 and a larger
    constant here. The quotient is Σ_k b_k Σ_a λ_i^a λ_j^(k−1−a), which needs no division.

    >>> divided_lipschitz(torch.tensor([0.0, 0.0, 1.0]), torch.tensor([1.0, 3.0])).item()  # h = λ²: (λ_i + λ_j)² / 2
    18.0
    """
    left, right = values[:, None].double(), values[None, :].double()
    powers = torch.stack([sum((left**a * right ** (k - 1 - a) for a in range(k)), torch.zeros_like(left * right))
                          for k in range(taps.shape[-1])])  # fmt: skip
    quotients = torch.einsum("...k,kij->...ij", taps.double(), powers)
    return (quotients.abs() * (left + right).abs() / 2).amax(dim=(-2, -1))


def theorem_constant(C_L: float, widths: Sequence[int], nodes: int, delta: float) -> float:
    """C = 2 C_L (1 + δ √N) L Π F_ℓ, at the end of the proof of Theorem 1; ``widths`` are F_1 … F_L.

    >>> theorem_constant(0.5, [32], nodes=49, delta=1.0)
    256.0
    """
    return 2 * C_L * (1 + delta * math.sqrt(nodes)) * len(widths) * math.prod(widths)


def _supremum(taps: Tensor, low: float, high: float) -> Tensor:
    """The largest |Σ_k c_k λ^k| on [low, high]: at an end, or where the derivative has a root."""
    rows, most = taps.double().reshape(-1, taps.shape[-1]).numpy(), []
    for row in rows:
        slope = row[1:] * np.arange(1, len(row))
        roots = np.roots(np.where(np.abs(slope) > 1e-100 * np.abs(slope).max(initial=0.0), slope, 0.0)[::-1])
        places = np.concatenate(([low, high], np.clip(roots.real, low, high)))
        most.append(float(np.abs(np.polynomial.polynomial.polyval(places, row)).max()))
    return torch.tensor(most, dtype=torch.float64).reshape(taps.shape[:-1])


# -- Proposition 1 ---------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Realizability:
    """How well a q-partition fits subgraphs ``[...]``: the smallest α, infinite where λ_q = 0; β̄; and the modes."""

    alpha: Tensor
    mean_degree: Tensor
    modes: Tensor

    @property
    def largest_distance(self) -> float:
        """√min(q, N − q), which no distance of two subspaces exceeds: a larger bound says nothing."""
        nodes, q = self.modes.shape[-2:]
        return math.sqrt(min(q, nodes - q))


def alpha_realizable(graph: Graph, clusters: Tensor, keep: Tensor | None = None) -> Realizability:
    """The smallest α with β̄ ≤ α λ_q / √(2 q): how well the ``clusters [N]`` fit the graph, or subgraphs ``[..., M]``.

    β̄ is the root mean square of β(G_κ), the number of edges that leave cluster κ over the root of its size.

    >>> graph = Graph.from_edge_index([[0, 0, 1, 2, 3, 3, 4], [1, 2, 2, 3, 4, 5, 5]])  # two triangles and an edge
    >>> round(alpha_realizable(graph, torch.tensor([0, 0, 0, 1, 1, 1])).alpha.item(), 4)  # β̄ = 1 / √3, λ_2 = 3, q = 2
    0.3849
    """
    q, (low, high) = int(clusters.max()) + 1, clusters[graph.pairs]
    leaving = (low != high).double() if keep is None else (low != high) * keep.double()
    counts = leaving.new_zeros((*leaving.shape[:-1], q))
    for end in (low, high):
        counts.scatter_add_(-1, end.expand_as(leaving), leaving)
    mean = (counts.square() / torch.bincount(clusters)).mean(dim=-1).sqrt()
    values, modes = torch.linalg.eigh(dense(graph, "laplacian", keep))
    # an eigenvalue that is zero but for rounding means more than q components
    zero = values[..., q] <= 1e-12 * values[..., -1].clamp_min(1.0) * graph.num_nodes
    alpha = torch.where(zero, torch.inf, mean * math.sqrt(2 * q) / torch.where(zero, 1.0, values[..., q]))
    return Realizability(alpha, mean, modes[..., :q])


def subspace_distance(first: Tensor, second: Tensor) -> Tensor:
    """√(Σ_(κ<q) Σ_(i≥q) |u_κ · u'_i|²), the distance of two subspaces given by orthonormal bases ``[..., N, q]``.

    >>> plane = torch.eye(3)[:, :2]
    >>> subspace_distance(plane, plane[:, [1, 0]]).item(), subspace_distance(plane, torch.eye(3)[:, 1:]).item()
    (0.0, 1.0)
    """
    return torch.linalg.matrix_norm(second - first @ (first.mT @ second))


# -- the variance of outputs -----------------------------------------------------------------------------


def variance_terms(outputs: Outputs, prob: Tensor, *, samples: int, seed: int, batch: int = 8) -> Array:
    """Terms ``[samples − 1]`` whose mean is Σ_i (1/F) Σ_j var[Φ_ij] over subgraphs that keep edges with ``prob [M]``.

    In one pass (Welford): the squared distance of each output from the mean of those before it, times (s − 1) / s, is
    an estimate by itself. Two methods with one seed share their coins, so their terms come in pairs.

    >>> value = lambda keep: keep[:, None].double()  # one edge, whose output is its coin
    >>> terms = variance_terms(value, torch.tensor([0.5]), samples=2000, seed=0)
    >>> bool(abs(terms.mean() - 0.25) < 4 * terms.std() / 2000**0.5)  # p (1 − p)
    True
    """
    total: Tensor | float = 0.0
    terms: list[Tensor] = []
    for start in range(0, samples, batch):
        epochs = range(start, min(start + batch, samples))
        found = outputs(torch.stack([sample_edges(prob, seed=seed, epoch=epoch) for epoch in epochs])).double()
        before = torch.arange(start, epochs.stop, device=found.device)
        sums = found.cumsum(dim=0) + total
        mean = (sums - found) / before.clamp_min(1)[:, None, None]
        terms.append((found - mean).square().sum(dim=(1, 2)) / found.shape[-1] * (before / (before + 1)))
        total = sums[-1]
    return torch.cat(terms)[1:].cpu().numpy()  # before the first there is no mean


def reduction(mine: Array, other: Array) -> tuple[float, float]:
    """1 − mean(mine) / mean(other), and its standard error from the pairs.

    >>> reduction(np.array([1.0, 2.0]), np.array([2.0, 4.0]))
    (0.5, 0.0)
    """
    share = mine.mean() / other.mean()
    return float(1 - share), float((mine - share * other).std(ddof=1) / np.sqrt(len(mine)) / other.mean())


# -- Eq. 7: the signal X' that does on the whole graph what X does on a subgraph --------------------------


class Bank:
    """A layer Σ_k S^k X B_k without its nonlinearity, taken apart by the frequencies of one graph.

    With S = V diag(λ) Vᵀ the rows of VᵀX do not mix: row i is multiplied by M_i = Σ_k λ_i^k B_k ``[F, F']``. So the
    least squares problem falls apart into N small ones, and X' is exact for every right side if and only if each M_i
    has as many independent columns as there are features F'. ``layer`` are the taps ``[F', F, K + 1]``.

    >>> S = torch.tensor([[0.0, 1.0], [1.0, 0.0]])
    >>> filter = torch.tensor([[[1.0, 0.5]]])  # H(S) = I + S / 2
    >>> Bank(filter, torch.linalg.eigh(S)).signal(torch.tensor([[2.0], [2.5]])).round(decimals=6).tolist()
    [[1.0], [2.0]]
    """

    def __init__(self, layer: Tensor, spectrum: Spectrum) -> None:
        values, self.vectors = spectrum
        powers = values[:, None] ** torch.arange(layer.shape[-1], device=values.device)
        responses = torch.einsum("nk,ogk->ngo", powers, layer)  # M_i, [N, F, F']
        sizes = torch.linalg.svdvals(responses)  # [N, min(F, F')], the largest of each first
        self.condition = float(sizes.max() / sizes.min())
        self._inverse = torch.linalg.pinv(responses, atol=NO_RESPONSE * float(sizes.max()), rtol=0.0)

    def signal(self, outputs: Tensor) -> Tensor:
        """The X' ``[..., N, F]`` whose filtered signal is nearest to ``outputs [..., N, F']``, the smallest such."""
        return self.vectors @ ((self.vectors.T @ outputs)[..., None, :] @ self._inverse).squeeze(-2)


def signal_of_narrow(taps: Sequence[Tensor], spectrum: Spectrum, outputs: Tensor) -> Tensor:
    """An X' ``[..., N, F]`` whose last layer, before its nonlinearity, is nearest to ``outputs [..., N, F_L]``.

    From the last layer back, each asks the one before for features that ReLU lets through, none negative. Where layers
    are S H W and narrow, those exist as soon as S has an inverse and nonnegative multiples of the rows of each W, added
    up, reach everywhere: then X' is exact.

    >>> taps = [torch.stack((torch.zeros(2, 2), torch.eye(2)), dim=-1), torch.tensor([[[0.0, 1.0], [0.0, -1.0]]])]
    >>> spectrum = torch.linalg.eigh(torch.eye(2))
    >>> signal_of_narrow(taps, spectrum, torch.tensor([[3.0], [-2.0]])).round(decimals=6).tolist()
    [[3.0, 0.0], [0.0, 2.0]]
    """
    first, *later = taps
    plain = torch.tensor([[[0.0, 1.0]]]).to(outputs)  # S itself, which treats all features alike
    for layer in reversed(later):
        weight = layer[:, :, 1].cpu().numpy()  # [F', F]
        wanted = Bank(plain, spectrum).signal(outputs.mT[..., None]).squeeze(-1).mT  # S⁺ Y
        rows = [nnls(weight, row)[0] for row in wanted.flatten(0, -2).cpu().numpy()]
        outputs = torch.from_numpy(np.stack(rows)).to(outputs).view(*outputs.shape[:-1], -1)
    return Bank(first, spectrum).signal(outputs)


def nearest_signal(network: Network, target: Tensor, start: Tensor) -> Tensor:
    """X' ``[B, N, F]`` with a small ‖Φ(X') − target‖, from ``start`` by Levenberg's and Marquardt's damped steps.

    A step that makes matters worse is not taken, so no result is farther off than its start; it is a local minimum.

    >>> target = torch.tensor([[[4.0]], [[9.0]]])
    >>> nearest_signal(lambda x: x**2, target, torch.ones(2, 1, 1)).round(decimals=4).flatten().tolist()
    [2.0, 3.0]
    """
    each = torch.func.vmap(network)
    wide = start[0].numel() <= target[0].numel()
    slopes = torch.func.vmap((torch.func.jacfwd if wide else torch.func.jacrev)(network))
    x, rest = start, target - each(start)
    damping = torch.full((len(start), 1, 1), 1e-3, dtype=start.dtype, device=start.device)
    for _ in range(STEPS):
        step = _damped(slopes(x).reshape(len(x), rest[0].numel(), -1), rest.flatten(1)[..., None], damping)
        tried = x + step.view_as(x)
        left = target - each(tried)
        better = (left.flatten(1).norm(dim=1) < rest.flatten(1).norm(dim=1))[:, None, None]
        x, rest = torch.where(better, tried, x), torch.where(better, left, rest)
        damping = torch.where(better, damping / 4, damping * 4).clamp(1e-15, 1e15)
    return x


def _damped(slopes: Tensor, rest: Tensor, damping: Tensor) -> Tensor:
    """(JᵀJ + μ I)⁻¹ Jᵀ r ``[B, n, 1]``, with the smaller of JᵀJ and JJᵀ; μ counts in shares of their mean diagonal."""
    turned, tall = slopes.mT, slopes.shape[-2] >= slopes.shape[-1]
    square = turned @ slopes if tall else slopes @ turned
    scale = square.diagonal(dim1=-2, dim2=-1).mean(dim=-1).clamp_min(1e-30)[:, None, None]
    solid = square + damping * scale * torch.eye(square.shape[-1], dtype=square.dtype, device=square.device)
    return torch.linalg.solve(solid, turned @ rest) if tall else turned @ torch.linalg.solve(solid, rest)
