"""Block Davidson with multigrid: the solver for large graphs that no factorisation fits, on any device."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from tadropedge.spectrum.blocks import Floats
from tadropedge.spectrum.matrix import SparseMatrix
from tadropedge.spectrum.multigrid import Multigrid
from tadropedge.spectrum.target import EXACT, Eigenpairs, Target, few_threads, largest_bound, with_null

GUARD = 3  # vectors beyond those that are wanted: the last one wanted converges like the first
BLOCKS = 4  # the basis holds this many blocks, then shrinks to the last two
MOST_STEPS = 600
TRIAL = 10  # steps with the diagonal alone between two looks at the rate
MANY = 40  # steps to go that are worth building a hierarchy
CLEAR = 0.03  # share of new rows that the basis lacks from which on one projection leaves nothing but rounding
PIECE = 4_096  # entries of a vector that are multiplied at once: some tens of rows fit into a cache
PATIENCE = 60  # steps without progress after which rounding, or the graph, has won


def davidson(L: sp.csr_matrix, null: Floats, k: int, target: Target = EXACT) -> Eigenpairs:
    """Rayleigh and Ritz in a growing basis, which M (L x − θ x), the preconditioned residuals, extend.

    M is the inverse diagonal at first. Where that turns out to be slow, as on all graphs with long whiskers or far-off
    corners, M becomes one multigrid cycle. The basis shrinks to the current and the previous Ritz vectors, which keeps
    what conjugate gradients would remember. Only pairs that are not good enough yet cost products and cycles.
    """
    with few_threads(L.shape[0]):
        return _iterate(L, null, k, target)


def _iterate(L: sp.csr_matrix, null: Floats, k: int, target: Target) -> Eigenpairs:
    search = _Search(L, null, k, target.device)
    norm = largest_bound(L)
    best, best_step, first = np.inf, 0, 1.0
    for step in range(MOST_STEPS):
        values, residual = search.extract()
        sizes = torch.linalg.vector_norm(residual, dim=1).cpu().numpy()
        if not np.isfinite(sizes).all():
            raise RuntimeError("the iteration broke down")
        ratio = sizes / target.limits(np.concatenate(([0.0], values)), norm)[1:]
        worst = float(ratio.max())
        if worst <= 1:
            break
        # The limits follow the gap as it comes into sight, so progress is read off the residual itself.
        largest = float(sizes[ratio > 1].max())
        first = largest if step == 0 else first
        gained, to_go = float(np.log(first / largest)), float(np.log(worst))
        target.report(gained / (gained + to_go))
        if step == TRIAL and to_go * TRIAL > MANY * gained:
            search.precondition = Multigrid(L, null, target.device)
        if largest < best / 2:
            best, best_step = largest, step
        if step - best_step > PATIENCE:
            raise RuntimeError(f"stalled at {worst:.1f} times the wanted residual after {step} steps")
        search.extend(residual[torch.from_numpy(ratio > 1).to(residual.device)].T.contiguous())
    else:
        raise RuntimeError(f"still at {worst:.1f} times the wanted residual after {MOST_STEPS} steps")
    return with_null(values, search.vectors().cpu().numpy(), null)


class _Search:
    """The basis V, its image W = V L, their product H = V Wᵀ; row 0 of V is the null vector, for ever.

    Vectors are rows: products along them are then read in order, which makes them four times faster than by columns.
    """

    def __init__(self, L: sp.csr_matrix, null: Floats, k: int, device: torch.device) -> None:
        n, self.wanted, self.block = L.shape[0], k - 1, k - 1 + GUARD
        self.L = SparseMatrix.of(L, device)
        inverse = 1 / torch.from_numpy(L.diagonal()).to(device)[:, None]
        self.precondition: Callable[[Tensor], Tensor] = lambda r: inverse * r
        room = min(n, BLOCKS * self.block + 2)
        self.V = inverse.new_empty(room, n)
        self.W = inverse.new_empty(room, n)
        self.H = inverse.new_zeros(room, room)
        self.V[0], self.W[0] = torch.from_numpy(null).to(device), 0.0
        self.size = 1
        start = torch.randn(n, self.block, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
        self.previous = self.Y = inverse.new_zeros(1, 0)
        self.extend(start.to(device))

    def extract(self) -> tuple[Floats, Tensor]:
        """The wanted Ritz values ``[k − 1]`` and their residuals ``[k − 1, n]``; makes room for the next block."""
        d, device = self.size, self.H.device
        values, turn = torch.linalg.eigh(self.H[:d, :d].cpu())  # a small matrix is faster there
        self.previous, self.Y = self.Y, turn[:, 1 : self.block + 1].to(device)
        theta = values[1 : self.wanted + 1]
        slope = theta.to(device)[:, None]
        if d + self.wanted > len(self.V):
            self._shrink()  # Ritz vectors are rows now
            mine = slice(1, 1 + self.wanted)
            return theta.numpy(), torch.addcmul(self.W[mine], slope, self.V[mine], value=-1)
        Y = self.Y[:, : self.wanted].T
        return theta.numpy(), _less(Y @ self.W[:d], slope * Y, self.V[:d])

    def vectors(self) -> Tensor:
        """The wanted Ritz vectors ``[n, k − 1]``."""
        return (self.Y[:, : self.wanted].T @ self.V[: self.size]).T

    def extend(self, residual: Tensor) -> None:
        """Add M · residual ``[n, e]`` to the basis."""
        T = self.precondition(residual).T.contiguous()
        d, e = self.size, self.size + len(T)
        for _ in range(2):
            T /= torch.linalg.vector_norm(T, dim=1, keepdim=True).clamp(min=torch.finfo(T.dtype).tiny)
            T = _less(T, _inner(T, self.V[:d]), self.V[:d])
            T, new = _orthonormal(T)
            if new > CLEAR:  # else once more removes what rounding left
                break
        self.V[d:e], self.size = T, e
        self.W[d:e] = (self.L @ T.T.contiguous()).T
        across = _inner(self.W[d:e], self.V[:e])
        self.H[d:e, :e], self.H[:d, d:e] = across, across[:, :d].T

    def _shrink(self) -> None:
        """Keep the null vector, the Ritz vectors and those of the step before."""
        d = self.size
        before = torch.nn.functional.pad(self.previous, (0, 0, 0, d - self.previous.shape[0]))
        null = torch.eye(d, 1, dtype=self.Y.dtype, device=self.Y.device)
        C = torch.linalg.qr(torch.cat((null, self.Y, before), dim=1))[0]
        c = C.shape[1]
        self.V[:c], self.W[:c] = C.T @ self.V[:d], C.T @ self.W[:d]
        H = C.T @ self.H[:d, :d] @ C
        self.H[:c, :c] = (H + H.T) / 2
        self.Y, self.size = C.T @ self.Y, c


def _inner(T: Tensor, V: Tensor) -> Tensor:
    """``T Vᵀ`` of a few long rows ``[e, n]`` and ``[d, n]``, piece by piece, since long products leave the cache."""
    pieces = T.shape[1] // PIECE
    if pieces < 2 or T.is_cuda:
        return T @ V.T
    end = pieces * PIECE
    one, other = (x[:, :end].view(len(x), pieces, PIECE).transpose(0, 1) for x in (T, V))
    return torch.bmm(one, other.transpose(1, 2)).sum(dim=0) + T[:, end:] @ V[:, end:].T


def _less(T: Tensor, factor: Tensor, V: Tensor) -> Tensor:
    """``T − factor V``, in the place of T."""
    if T.is_cuda:  # torch 2.11 takes a T of one row for a bias, and cuBLASLt has none in float64
        return T.sub_(factor @ V)
    return T.addmm_(factor, V, alpha=-1)


def _orthonormal(T: Tensor) -> tuple[Tensor, float]:
    """An orthonormal basis of the rows, and how much of each is not in those before it, at least.

    By Cholesky, which reads T once, or by QR where they are dependent.
    """
    factor, failed = torch.linalg.cholesky_ex(_inner(T, T))
    if bool(failed):
        return torch.linalg.qr(T.T)[0].T.contiguous(), 0.0
    least = float(factor.diagonal().min())
    if T.is_cuda:  # where solving for 10⁶ columns takes more than twenty seconds, unlike a product
        one = torch.eye(len(T), dtype=T.dtype, device=T.device)
        return torch.linalg.solve_triangular(factor, one, upper=False) @ T, least
    return torch.linalg.solve_triangular(factor, T, upper=False), least
