"""Effective resistance of a part without bridges: small ones by inversion, large ones by random projection."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import scipy.linalg
import scipy.sparse as sp
import torch

from tadropedge._old.blocks import DENSE_NODES, Block, Floats
from tadropedge._old.errors import ConvergenceError
from tadropedge._old.memory import check_memory
from tadropedge._old.sparse import multiply
from tadropedge._old.spectrum.machine import few_threads
from tadropedge._old.spectrum.multigrid import Multigrid, on_device
from tadropedge._old.spectrum.plan import NARROW, Survey
from tadropedge._old.spectrum.solvers import grounded_inverse
from tadropedge._old.spectrum.twins import System

# The largest part, in nodes, that each method inverts; larger ones are sketched.
METHODS: dict[str, float] = {"auto": 4_096, "exact": np.inf, "sketch": DENSE_NODES}
COLUMNS = 32  # right-hand sides drawn together
SLICE = 8  # and solved together on a CPU: more of them would not fit into its cache
AT_ONCE = 500_000  # edges whose signs are in memory
NEAR = 8_192  # edges whose differences are in a cache
WIDEST = 1e8  # ratio of edge weights in one part up to which solves of a sketch can be trusted
SUM_TOLERANCE = 1e-6
TOO_WIDE = "its edge weights span too many orders of magnitude: scale or clip them"
TINY = float(np.finfo(np.float64).tiny)


def exact(block: Block) -> Floats:
    """Through the inverse of L + c J, which is L⁺ + J / (c n²): the second term cancels in differences.

    Checked by the sum of w_m R_m, which is n − 1 in every component.
    """
    check_memory(4 * 8 * block.count * block.size**2, f"an exact answer for {block.size} nodes", "use method='sketch'")
    L = block.dense_laplacian("combinatorial")
    L += block.norms("combinatorial")[:, None, None] / block.size  # a scale like that of L: well conditioned
    try:
        inverse = np.linalg.inv(L) if block.size <= DENSE_NODES else _positive_inverse(L[0])[None]
    except np.linalg.LinAlgError as error:
        raise ConvergenceError(f"a Laplacian of {block.size} nodes could not be inverted; {TOO_WIDE}") from error
    ends = inverse[block.member, block.low, block.low] + inverse[block.member, block.high, block.high]
    between = inverse[block.member, block.low, block.high] + inverse[block.member, block.high, block.low]
    difference: Floats = ends - between
    total = np.zeros(block.count)
    np.add.at(total, block.member, block.weight * difference)
    if not (np.abs(total / (block.size - 1) - 1) <= SUM_TOLERANCE).all():
        worst = float(np.abs(total - block.size + 1).max())
        raise ConvergenceError(f"resistances of {block.size} nodes miss their known sum by {worst:.1e}; {TOO_WIDE}")
    return difference


def _positive_inverse(matrix: Floats) -> Floats:
    """The inverse of a positive definite matrix by Cholesky: a third of the work of a general one."""
    factor, failed = scipy.linalg.lapack.dpotrf(matrix, lower=1)
    inverse, failed = (factor, failed) if failed else scipy.linalg.lapack.dpotri(factor, lower=1)
    if failed:
        raise np.linalg.LinAlgError("not positive definite")
    whole: Floats = np.tril(inverse) + np.tril(inverse, -1).T
    return whole


def sketch(
    block: Block,
    error: float,
    seed: int,
    device: torch.device | str = "cpu",
    report: Callable[[float], None] = lambda share: None,
) -> Floats:
    """Estimate R_m = ‖W^½ D L⁺ (e_i − e_j)‖² of a block of one component by random signs Q: ‖Q W^½ D L⁺ (…)‖² / k."""
    spread = float(block.weight.max() / block.weight.min())
    if spread > WIDEST:
        raise ConvergenceError(f"a part of {block.size} nodes has edge weights of ratio {spread:.1e}; {TOO_WIDE}")
    rows = int(np.ceil(2 / error**2))
    columns = min(COLUMNS, rows)
    edges = len(block.edges)
    # Incidence, Laplacian and coarse graphs; the vectors of conjugate gradients; one piece of edges.
    need = 150 * edges + 8 * 10 * columns * block.size + 8 * 3 * columns * min(edges, AT_ONCE)
    check_memory(need, f"a sketch of {block.size} nodes and {edges} edges")
    incidence = _weighted_incidence(block)
    solve = laplacian_solver(block.sparse_laplacian("combinatorial"), device)
    random = np.random.default_rng(seed)
    parts = [slice(first, first + AT_ONCE) for first in range(0, edges, AT_ONCE)]
    total = np.zeros(edges)
    for first in range(0, rows, columns):
        width = min(columns, rows - first)
        b = np.zeros((block.size, width))
        for part in parts:
            coins = random.integers(0, 2, size=(len(block.edges[part]), width), dtype=np.int8)
            b += incidence[part].T @ (2 * coins - 1).astype(np.float64)
        potential = solve(b)
        for part in (slice(start, start + NEAR) for start in range(0, edges, NEAR)):
            difference = potential[block.low[part]] - potential[block.high[part]]
            total[part] += np.einsum("mk,mk->m", difference, difference)
        report((first + width) / rows)
    return _fit_total(total / rows * block.weight, block.size - 1) / block.weight


def _weighted_incidence(block: Block) -> sp.csr_matrix:
    """W^½ D ``[M, n]`` of a block of one component."""
    root, edges = np.sqrt(block.weight), len(block.edges)
    entries = np.stack((root, -root), axis=1).ravel()
    ends = np.stack((block.low, block.high), axis=1).ravel()
    return sp.csr_matrix((entries, ends, np.arange(0, 2 * edges + 1, 2)), shape=(edges, block.size))


def _fit_total(share: Floats, total: int) -> Floats:
    """Scale estimates of w_m R_m so that they sum to ``total`` and none exceeds one, as the true ones do."""
    for _ in range(100):
        share = np.minimum(share, 1.0)
        free = share < 1
        if not free.any():
            break
        scale = (total - np.count_nonzero(~free)) / share[free].sum()
        share[free] *= scale
        if abs(scale - 1) < 1e-12:
            break
    return np.minimum(share, 1.0)


def laplacian_solver(
    L: sp.csr_matrix, device: torch.device | str = "cpu", tolerance: float = 1e-8
) -> Callable[[Floats], Floats]:
    """The map b ↦ L⁺ b for blocks ``[n, k]``: one factorisation when it stays sparse, else conjugate gradients.

    Twins are merged first: L⁺ b = S (Sᵀ L S)⁺ Sᵀ b + (b − S Sᵀ b) / λ, with λ the eigenvalue of their differences.
    """
    system = System.merged(L, np.full(L.shape[0], L.shape[0] ** -0.5))
    if Survey.of(system.L).separator <= NARROW:
        solve = grounded_inverse(system.L, system.null)
    else:
        solve = ConjugateGradients(system.L, device, tolerance, null=system.null)
    twins, spread = system.twins, system.twins.spread()
    share = np.where(twins.copies > 1, 1 / np.maximum(twins.values, TINY), 0.0)[twins.place]

    def inverse(b: Floats) -> Floats:
        inside = spread.T @ b
        x: Floats = spread @ solve(inside)
        if twins.merged:
            x += share[:, None] * (b - spread @ inside)
        return x

    return solve if twins.plain else inverse


class ConjugateGradients:
    """Solve L x = b for every column of ``b [n, k]``, each made orthogonal to the null vector, by default the constant.

    Conjugate gradients with a multigrid cycle as preconditioner, the one that finds eigenvectors of large graphs; all
    columns share each product with L. The cycle is in float32, so the direction is corrected as for a preconditioner
    that changes (Polak and Ribière).
    """

    def __init__(
        self,
        L: sp.csr_matrix,
        device: torch.device | str = "cpu",
        tolerance: float = 1e-8,
        steps: int = 1_000,
        *,
        null: Floats | None = None,
    ) -> None:
        null = np.full(L.shape[0], L.shape[0] ** -0.5) if null is None else null
        self.places, self.entries = on_device(L, device)
        self.null = torch.from_numpy(null).to(device)[:, None]
        self.precondition = Multigrid(L, null, device)
        self.tolerance, self.steps = tolerance, steps

    def __call__(self, b: Floats) -> Floats:
        """``L⁺ b``."""
        with few_threads(len(b)):
            if self.entries.is_cuda or b.ndim == 1:
                return self._solve(b)
            x = np.empty_like(b)
            for first in range(0, b.shape[1], SLICE):
                some = slice(first, first + SLICE)
                x[:, some] = self._solve(np.ascontiguousarray(b[:, some]))
            return x

    def _solve(self, b: Floats) -> Floats:
        r = torch.from_numpy(b).to(self.entries.device)
        r = r - self.null * (self.null.T @ r)
        x, target = torch.zeros_like(r), self.tolerance * torch.linalg.vector_norm(r, dim=0)
        p = z = self.precondition(r)
        rho = (r * z).sum(dim=0)
        for _ in range(self.steps):
            image = multiply(self.places, self.entries, p)
            alpha = rho / (p * image).sum(dim=0).clamp(min=TINY)
            x.addcmul_(alpha, p)
            before, r = r, torch.addcmul(r, alpha, image, value=-1)
            if bool((torch.linalg.vector_norm(r, dim=0) <= target).all()):
                break
            z = self.precondition(r)
            turned = ((r - before) * z).sum(dim=0)
            p = torch.addcmul(z, turned / rho.clamp(min=TINY), p)
            rho = (r * z).sum(dim=0)
        else:
            raise ConvergenceError(
                f"conjugate gradients did not reach a relative residual of {self.tolerance:g} in {self.steps} steps "
                f"on a part of {len(b)} nodes; {TOO_WIDE}"
            )
        solution: Floats = (x - self.null * (self.null.T @ x)).cpu().numpy()
        return solution
