"""Dropout whose noise is a pure function of (seed, epoch, layer, entry), like the coins of the edges.

So a trial sees the same noise alone or in a batch, on every device, and whatever its method.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from tadropedge.sampling import key_tensor, pair_words

if TYPE_CHECKING:
    from tadropedge.kernels import Coins

STREAM = 1_000  # streams below this number belong to the coins of the edges


class Dropout:
    """Drop entries of ``[T, N, F]`` signals, each trial with its own rate ``[T]`` and seed ``[T]``."""

    def __init__(self, rate: Tensor, seeds: Tensor, epoch: Tensor) -> None:
        self.seeds, self.epoch = seeds, epoch
        self.scale = torch.where(rate < 1, 1 / (1 - rate).clamp_min(1e-12), 0.0)[:, None, None].to(torch.float32)
        # Kept where the signed coin is below this; a rate of 0 keeps all, and 1 keeps none.
        share = (1 - rate.double()) - 0.5
        limit = (share * 2.0**64).clamp(-(2.0**63), 2.0**63 - 1024).to(torch.int64)
        self.limit = torch.where(rate <= 0, torch.iinfo(torch.int64).max, limit)[:, None]

    def _keys(self, layer: int) -> tuple[Tensor, Tensor]:
        multiplier, offset = key_tensor(self.seeds, self.epoch, STREAM + layer)
        return multiplier[:, None], offset[:, None]

    def coins(self, layer: int) -> Coins:
        """What a kernel draws the same noise from."""
        from tadropedge.kernels import Coins

        return Coins(*self._keys(layer), self.limit, self.scale)

    def __call__(self, h: Tensor, layer: int) -> Tensor:
        """Return ``h`` with entries dropped and the others scaled up."""
        multiplier, offset = self._keys(layer)
        if not h.is_cuda:
            return h * self._factors(h.shape, multiplier, offset)
        dropped: Tensor = _Dropped.apply(h, multiplier, offset, self.limit, self.scale)  # type: ignore[no-untyped-call]
        return dropped

    def _factors(self, shape: torch.Size, multiplier: Tensor, offset: Tensor) -> Tensor:
        """``scale`` where the coin ``a · word + b`` is below the limit, else 0; kept for the backward pass."""
        coins: Tensor = pair_words(shape[1] * shape[2], self.limit.device) * multiplier
        coins += offset
        return (coins < self.limit).to(torch.float32).view(shape).mul_(self.scale)


class _Dropped(torch.autograd.Function):
    """On a GPU the mask is drawn again in the backward pass: cheaper than keeping it."""

    @staticmethod
    def forward(ctx: Any, h: Tensor, multiplier: Tensor, offset: Tensor, limit: Tensor, scale: Tensor) -> Tensor:
        from tadropedge.kernels import dropout

        ctx.save_for_backward(multiplier, offset, limit, scale)
        return dropout(h.contiguous(), multiplier, offset, limit, scale)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None, None, None]:
        from tadropedge.kernels import dropout

        return dropout(gradient.contiguous(), *ctx.saved_tensors), None, None, None, None
