"""Dropout whose noise is a pure function of (seed, epoch, layer, entry), like the coins of the edges.

So a trial sees the same noise alone or in a batch, on every device, with every method it is compared with.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from tadropedge.sampling import key_tensor, pair_words

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

    def __call__(self, h: Tensor, layer: int) -> Tensor:
        """Return ``h`` with entries dropped and the others scaled up."""
        multiplier, offset = key_tensor(self.seeds, self.epoch, STREAM + layer)
        dropped: Tensor = _Dropped.apply(  # type: ignore[no-untyped-call]
            h, multiplier[:, None], offset[:, None], self.limit, self.scale
        )
        return dropped


class _Dropped(torch.autograd.Function):
    """The mask is drawn again in the backward pass: cheaper than keeping it."""

    @staticmethod
    def forward(ctx: Any, h: Tensor, multiplier: Tensor, offset: Tensor, limit: Tensor, scale: Tensor) -> Tensor:
        ctx.save_for_backward(multiplier, offset, limit, scale)
        return dropped(h, multiplier, offset, limit, scale)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None, None, None]:
        return dropped(gradient, *ctx.saved_tensors), None, None, None, None


def dropped(h: Tensor, multiplier: Tensor, offset: Tensor, limit: Tensor, scale: Tensor) -> Tensor:
    """``h · scale`` where the coin ``a · word + b`` is below the limit, else 0."""
    if h.is_cuda:
        from tadropedge.kernels import dropout

        return dropout(h.contiguous(), multiplier, offset, limit, scale)
    coins: Tensor = pair_words(h.shape[1] * h.shape[2], h.device) * multiplier
    coins += offset
    return h * (coins < limit).view(h.shape) * scale
