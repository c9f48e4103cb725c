"""Eq. 7: the signal X' that does on the whole graph what X does on a subgraph, Φ(X'; S) = Φ(X; S')."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import torch
from scipy.optimize import nnls
from torch import Tensor

Network = Callable[[Tensor], Tensor]  # one signal [N, F] -> its output [N, F_L]
Spectrum = tuple[Tensor, Tensor]  # of S: eigenvalues [N] and eigenvectors [N, N]

NO_RESPONSE = 1e-10  # a response of a filter below this share of the largest counts as zero
STEPS = 30


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
