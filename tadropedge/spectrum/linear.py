"""Linear equations in Laplacians, L⁺ b, and the effective resistances that they give, exact or sketched."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import scipy.linalg
import scipy.sparse as sp
import torch
from scipy.sparse.linalg import splu

from tadropedge._support.memory import check_memory
from tadropedge.errors import ConvergenceError
from tadropedge.graph import Graph
from tadropedge.operators.kernels import kernels
from tadropedge.operators.kernels.words import GOLDEN, MASK, mix, signed
from tadropedge.spectrum.blocks import DENSE_NODES, Block, Floats, blocks
from tadropedge.spectrum.matrix import SparseMatrix
from tadropedge.spectrum.multigrid import Multigrid
from tadropedge.spectrum.plan import NARROW, Survey
from tadropedge.spectrum.solvers import grounded_inverse
from tadropedge.spectrum.target import few_threads
from tadropedge.spectrum.twins import System

# The largest part, in nodes, that each method inverts; larger ones are sketched.
METHODS: dict[str, float] = {"auto": 4_096, "exact": np.inf, "sketch": DENSE_NODES}
COLUMNS = 32  # right-hand sides drawn together
SLICE = 16  # and solved together on a CPU: products read the matrix less often, vectors stay small
MOST_STEPS = 1_000  # of conjugate gradients
SOLVED = 0.0125  # error of the solves of a sketch, in energy, as a share of the error that was asked for
WIDEST = 1e8  # ratio of edge weights in one part up to which solves of a sketch can be trusted
SUM_TOLERANCE = 1e-6
TOO_WIDE = "its edge weights span too many orders of magnitude: scale or clip them"
TINY = float(np.finfo(np.float64).tiny)

Solve = Callable[[Floats], Floats]


# -- L⁺ b ------------------------------------------------------------------------------------------------


def laplacian_solver(graph: Graph, device: torch.device | str = "cpu", tolerance: float = 1e-8) -> Solve:
    """The map b ↦ L⁺ b for ``b [N]`` or ``[N, k]``, where L = D − A has any number of components.

    Whatever b is, its mean over each component is taken out first and the solution has mean 0 there; isolated nodes
    give 0. What can be done once, factorisations and coarse graphs, is done here. Where a factorisation does not stay
    sparse, the residual is at most ``tolerance`` · ‖b‖.

    Cost: components of up to 512 nodes, and long thin ones, are factorised; a solve is then linear in the size of the
    factor. Others take some tens of products with L and multigrid cycles per solve.

    >>> path = Graph.from_edge_index([[0, 1], [1, 2]], num_nodes=4)
    >>> laplacian_solver(path)(np.array([1.0, 0.0, -1.0, 5.0])).tolist()
    [1.0, 0.0, -1.0, 0.0]
    """
    parts = []
    for block in blocks(graph):
        if block.size <= DENSE_NODES:
            parts.append((block.nodes.ravel(), _factorised(block)))
        else:
            L = block.sparse_laplacian("combinatorial")
            parts.append((block.nodes[0], component_solver(L, device, tolerance)))

    def solve(b: Floats) -> Floats:
        x = np.zeros_like(b, dtype=np.float64)
        for nodes, part in parts:
            x[nodes] = part(b[nodes])
        return x

    return solve


def _factorised(block: Block) -> Solve:
    """L⁺ b for a batch of small components by one factorisation of L without the first node of each."""
    count, n = block.nodes.shape
    inner = np.flatnonzero(np.arange(count * n) % n)
    L = block.sparse_laplacian("combinatorial")[inner][:, inner]
    factor = splu(L.tocsc(), permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options={"SymmetricMode": True})

    def centred(b: Floats) -> Floats:
        each = b.reshape(count, n, -1)
        return (each - each.mean(axis=1, keepdims=True)).reshape(b.shape)  # type: ignore[no-any-return]

    def solve(b: Floats) -> Floats:
        x = np.zeros_like(b, dtype=np.float64)
        x[inner] = factor.solve(centred(b)[inner])
        return centred(x)

    return solve


def component_solver(
    L: sp.csr_matrix, device: torch.device | str = "cpu", tolerance: float = 1e-8, *, energy: bool = False
) -> Solve:
    """The map b ↦ L⁺ b of one component: one factorisation when it stays sparse, else conjugate gradients.

    Twins are merged first: L⁺ b = S (Sᵀ L S)⁺ Sᵀ b + (b − S Sᵀ b) / λ, with λ the eigenvalue of their differences.
    """
    system = System.merged(L, np.full(L.shape[0], L.shape[0] ** -0.5))
    if Survey.of(system.L).separator <= NARROW:
        solve = grounded_inverse(system.L, system.null)
    else:
        solve = conjugate_gradients(system.L, system.null, device, tolerance, energy=energy)
    twins, spread = system.twins, system.twins.spread()
    share = np.where(twins.copies > 1, 1 / np.maximum(twins.values, TINY), 0.0)[twins.group]

    def inverse(b: Floats) -> Floats:
        inside = spread.T @ b
        x: Floats = spread @ solve(inside)
        if twins.merged:
            x += (share * (b - spread @ inside).T).T
        return x

    return solve if twins.plain else inverse


def conjugate_gradients(
    L: sp.csr_matrix,
    null: Floats,
    device: torch.device | str = "cpu",
    tolerance: float = 1e-8,
    *,
    energy: bool = False,
    most_steps: int = MOST_STEPS,
) -> Solve:
    """The map b ↦ L⁺ b of one component with the unit null vector ``null [n]``, for ``b [n]`` or ``[n, k]``.

    Conjugate gradients with a multigrid cycle M ≈ L⁺ as preconditioner, the one that finds eigenvectors of large
    graphs; all columns share each product with L. The cycle is in float32, so the direction is corrected as for a
    preconditioner that changes (Polak and Ribière).

    They stop at a residual r of at most ``tolerance`` · ‖b‖; with ``energy`` when the error e of the solution x has
    √(eᵀ L e / xᵀ L x) of about ``tolerance``: of that, √(rᵀ M r / bᵀ M b) is an estimate, which may be a few times too
    small where cycles see the slowest modes badly.
    """
    matrix, precondition = SparseMatrix.of(L, device), Multigrid(L, null, device)
    zero = torch.from_numpy(null).to(device)[:, None]

    def solve_block(b: Floats) -> Floats:
        r = torch.from_numpy(b).to(device)
        r = r - zero * (zero.T @ r)
        x = torch.zeros_like(r)
        p = z = precondition(r)
        rho = (r * z).sum(dim=0)
        target = tolerance**2 * (rho if energy else (r * r).sum(dim=0))
        for _ in range(most_steps):
            image = matrix @ p
            alpha = rho / (p * image).sum(dim=0).clamp(min=TINY)
            x.addcmul_(alpha, p)
            before, r = r, torch.addcmul(r, alpha, image, value=-1)
            if not energy and bool(((r * r).sum(dim=0) <= target).all()):
                break
            z = precondition(r)
            turned = ((r - before) * z).sum(dim=0)
            p = torch.addcmul(z, turned / rho.clamp(min=TINY), p)
            rho = (r * z).sum(dim=0)
            if energy and bool((rho <= target).all()):
                break
        else:
            raise ConvergenceError(
                f"conjugate gradients did not reach a relative residual of {tolerance:g} in {most_steps} steps "
                f"on a part of {len(b)} nodes; {TOO_WIDE}"
            )
        solution: Floats = (x - zero * (zero.T @ x)).cpu().numpy()
        return solution

    def solve(b: Floats) -> Floats:
        with few_threads(len(b)):
            if b.ndim == 1:
                return solve_block(b[:, None])[:, 0]
            if matrix.values.is_cuda:
                return solve_block(b)
            x = np.empty_like(b)
            for first in range(0, b.shape[1], SLICE):
                some = slice(first, first + SLICE)
                x[:, some] = solve_block(np.ascontiguousarray(b[:, some]))
            return x

    return solve


# -- effective resistance --------------------------------------------------------------------------------


def exact(block: Block) -> Floats:
    """The effective resistance R_m = (e_i − e_j)ᵀ L⁺ (e_i − e_j) of every edge of a block.

    Through the inverse of L + c J, which is L⁺ + J / (c n²): the second term cancels in differences. Checked by the
    sum of w_m R_m, which is n − 1 in every component. Cost: O(n³) time and O(n²) memory.

    >>> triangle = Graph.from_edge_index([[0, 1, 2], [1, 2, 0]])
    >>> exact(next(blocks(triangle))).round(4).tolist()
    [0.6667, 0.6667, 0.6667]
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
    """Estimates of R_m of every edge of a block of one component, with a standard error of ``error`` · R_m.

    R_m = ‖W^½ D L⁺ (e_i − e_j)‖², and random signs Q keep lengths on average (Johnson and Lindenstrauss): the estimate
    is ‖Q W^½ D L⁺ (e_i − e_j)‖² / k with k = ⌈2 / error²⌉ rows. The sum is then made right.
    Cost: k Laplacian solves.
    """
    spread = float(block.weight.max() / block.weight.min())
    if spread > WIDEST:
        raise ConvergenceError(f"a part of {block.size} nodes has edge weights of ratio {spread:.1e}; {TOO_WIDE}")
    rows = int(np.ceil(2 / error**2))
    columns = min(COLUMNS, rows)
    edges = len(block.edges)
    # Laplacian and coarse graphs; the vectors of conjugate gradients; the numbers of each edge.
    check_memory(150 * edges + 8 * 10 * columns * block.size, f"a sketch of {block.size} nodes and {edges} edges")
    # Σ_m w_m (error of a difference)² is the energy of the error of a solution: it adds this to what the signs leave.
    solve = component_solver(block.sparse_laplacian("combinatorial"), device, SOLVED * error, energy=True)
    low, high, root = (torch.from_numpy(each) for each in (block.low, block.high, np.sqrt(block.weight)))
    on_edges, total = kernels(root), torch.zeros(edges, dtype=torch.float64)
    for first in range(0, rows, columns):
        width = min(columns, rows - first)
        word = signed(mix((mix(seed & MASK) + (first + 1) * GOLDEN) & MASK))
        potential = solve(on_edges.signed_sums(low, high, root, word, block.size, width).numpy())
        total += on_edges.squared_differences(low, high, torch.from_numpy(potential))
        report((first + width) / rows)
    return _fit_total(total.numpy() / rows * block.weight, block.size - 1) / block.weight


def _fit_total(share: Floats, total: int) -> Floats:
    """Scale estimates of w_m R_m so that they sum to ``total`` and none exceeds one, as the true ones do."""
    for _ in range(100):
        free = share < 1
        if not free.any():
            break
        scale = (total - np.count_nonzero(~free)) / share[free].sum()
        share[free] *= scale
        if abs(scale - 1) < 1e-12:
            break
    return np.minimum(share, 1.0)
