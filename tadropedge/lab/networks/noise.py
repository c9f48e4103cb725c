"""The random numbers of a training step, each a pure function of (seed, step, stream, place), like the coins of edges.

So a trial sees the same noise alone or in a batch, on every device, after a resume, and in a mini-batch that holds some
of the rows.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from tadropedge.operators.kernels import kernels, reference, runs_kernels
from tadropedge.operators.kernels.words import GOLDEN, MASK, Dropout, mix_tensor, signed
from tadropedge.sampling.coins import numbered_keys

DROPOUT, WORDS = 1_000, 10_000  # streams below the first belong to the coins of edges


class Noise:
    """Dropout and random words of T trials: their rates ``[T]``, seeds ``[T]`` (int64), and a tensor with the step.

    ``names [n]`` say which rows of the whole signal the rows of a signal are; without, they are all of them in order.

    >>> noise = Noise(torch.tensor([0.5]), torch.tensor([7]), torch.tensor(0))
    >>> noise.drop(torch.ones(1, 3, 2), 0).tolist()
    [[[0.0, 2.0], [0.0, 2.0], [2.0, 2.0]]]
    >>> noise.of(torch.tensor([2, 0])).drop(torch.ones(1, 2, 2), 0).tolist()
    [[[2.0, 2.0], [0.0, 2.0]]]
    """

    def __init__(self, rate: Tensor, seeds: Tensor, step: Tensor, names: Tensor | None = None) -> None:
        self.rate, self.seeds, self.step, self.names = rate, seeds, step, names
        self.scale = torch.where(rate < 1, 1 / (1 - rate).clamp_min(1e-12), 0.0)[:, None, None].to(torch.float32)
        # Kept where the signed coin is below this; a rate of 0 keeps all, and 1 keeps none.
        share = (1 - rate.double()) - 0.5
        limit = (share * 2.0**64).clamp(-(2.0**63), 2.0**63 - 1024).to(torch.int64)
        self.limit = torch.where(rate <= 0, torch.iinfo(torch.int64).max, limit)[:, None]
        self._places: dict[int, Tensor] = {}  # held here: a CUDA graph reads them again

    def of(self, names: Tensor) -> Noise:
        """The same noise for the rows of a signal that have these ``names [n]``, their places in the whole one."""
        return Noise(self.rate, self.seeds, self.step, names)

    def at(self, rate: Tensor) -> Noise:
        """The same noise with other rates ``[T]``; a layer number that nobody else uses makes it independent."""
        return Noise(rate, self.seeds, self.step, self.names)

    # -- random words -------------------------------------------------------------------------------------

    def words(self, count: int, stream: int = 0) -> Tensor:
        """64 random bits for each of ``count`` places, int64 ``[T, count]``.

        Coins are pairwise independent, which is enough for edges and dropout. Here the whole hash is applied to every
        number: the order of many, or the sum of many samples, needs more.
        """
        if count not in self._places:
            self._places[count] = numbered_keys(count, self.seeds.device)
        first = signed((WORDS + stream) * GOLDEN & MASK)
        state = mix_tensor(mix_tensor(self.seeds + first) + self.step * signed(GOLDEN))
        return mix_tensor(self._places[count] + state[:, None])

    def uniform(self, count: int, stream: int = 0, dtype: torch.dtype = torch.float32) -> Tensor:
        """Uniform numbers strictly between 0 and 1, ``[T, count]``: 23 bits and a half, or 52 in float64."""
        bits = 23 if dtype == torch.float32 else 52
        upper = (self.words(count, stream) >> (64 - bits)) & (2**bits - 1)
        numbers: Tensor = (upper.to(dtype) + 0.5) * 2.0**-bits
        return numbers

    # -- dropout ------------------------------------------------------------------------------------------

    def drop(self, h: Tensor, layer: int) -> Tensor:
        """``h [T, n, F]`` with entries dropped and the others scaled up; layers are known by their numbers."""
        coins = self.coins(layer)
        if runs_kernels(h) and self.names is None:
            dropped: Tensor = _Dropped.apply(h, coins)  # type: ignore[no-untyped-call]
            return dropped
        found: Tensor = (reference if runs_kernels(h) else kernels(h)).dropout(h, coins)
        return found

    def coins(self, layer: int) -> Dropout:
        """What the dropout of a layer is drawn from."""
        multiplier, offset = kernels(self.scale).draw_keys(self.seeds, self.step, DROPOUT + layer)
        return Dropout(multiplier[:, None], offset[:, None], self.limit, self.scale, self.names)


class _Dropped(torch.autograd.Function):
    """In Triton's kernel the mask is drawn again in the backward pass: cheaper than keeping it."""

    @staticmethod
    def forward(ctx: Any, h: Tensor, coins: Dropout) -> Tensor:
        from tadropedge.operators.kernels.fused import dropout

        ctx.coins = coins
        return dropout(h.contiguous(), coins)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        from tadropedge.operators.kernels.fused import dropout

        return dropout(gradient.contiguous(), ctx.coins), None
