"""The random numbers of a training step, each a pure function of (seed, step, stream, place), like the coins of edges.

So a trial sees the same noise alone or in a batch, on every device, after a resume, and in a mini-batch that holds some
of the rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from tadropedge.operators.kernels import runs_kernels
from tadropedge.sampling.coins import GOLDEN, MASK, draw_key, mix_tensor, numbered_keys, signed

if TYPE_CHECKING:
    from tadropedge.operators.kernels.fused import Coins

DROPOUT, WORDS = 1_000, 10_000  # streams below the first belong to the coins of edges
BLOCK = 2**17  # entries whose coins are drawn together on a CPU: they stay in its cache


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
        if runs_kernels(h) and self.names is None:
            dropped: Tensor = _Dropped.apply(h, self.coins(layer))  # type: ignore[no-untyped-call]
            return dropped
        factors = torch.empty(h.shape, device=h.device)
        for place, block in self.blocks(h.shape, layer):
            factors[place] = block
        return h * factors

    def rectified(self, h: Tensor, bias: Tensor, layer: int) -> Tensor:
        """``dropout(relu(h + bias))`` in the memory of ``h [T, n, F]``, for ``bias [T, F]``."""
        rectified: Tensor = _Rectified.apply(h, bias, self, layer)  # type: ignore[no-untyped-call]
        return rectified

    def coins(self, layer: int) -> Coins:
        """What a kernel draws the same dropout from."""
        from tadropedge.operators.kernels.fused import Coins

        return Coins(*self._key(layer), self.limit, self.scale)

    def blocks(self, shape: torch.Size, layer: int) -> Iterator[tuple[tuple[slice, slice], Tensor]]:
        """The places of blocks, and ``scale`` for the entries whose coin ``a · word + b`` is below the limit, else 0.

        The same memory is used for every block.
        """
        multiplier, offset = self._key(layer)
        device = multiplier.device
        coins, factors = torch.empty(0, dtype=torch.int64, device=device), torch.empty(0, device=device)
        for trials, rows in _blocks(shape, device):
            own = self._keys_of(shape, rows)
            torch.mul(own, multiplier[trials], out=coins.resize_(len(multiplier[trials]), len(own)))
            coins += offset[trials]
            factors.resize_(coins.shape).copy_(coins < self.limit[trials])
            yield (trials, rows), factors.view(len(coins), -1, shape[2]).mul_(self.scale[trials])

    def _key(self, layer: int) -> tuple[Tensor, Tensor]:
        if runs_kernels(self.seeds):
            from tadropedge.operators.kernels.gpu import keys

            multiplier, offset = keys(self.seeds, self.step, DROPOUT + layer)
            return multiplier[:, None], offset[:, None]
        found, offset = draw_key(self.seeds, self.step, DROPOUT + layer, self.seeds.device)
        return torch.as_tensor(found), offset

    def _keys_of(self, shape: torch.Size, rows: slice) -> Tensor:
        """The keys of the entries of some rows, flat."""
        device = self.seeds.device
        if self.names is None:
            return numbered_keys(shape[1] * shape[2], device).view(shape[1:])[rows].flatten()
        places = self.names[: shape[1]][rows, None] * shape[2] + torch.arange(1, shape[2] + 1, device=device)
        return mix_tensor(places.flatten() * signed(GOLDEN))


def _blocks(shape: torch.Size, device: torch.device) -> Iterator[tuple[slice, slice]]:
    """Places that cut ``[T, n, F]`` into blocks of trials, and of rows where one trial alone is too large."""
    trials, nodes, width = shape
    most = BLOCK if device.type == "cpu" else max(1, shape.numel())
    rows = max(1, min(nodes, most // max(1, width)))
    several = max(1, most // max(1, rows * width))
    for first in range(0, trials, several):
        for begin in range(0, nodes, rows):
            yield slice(first, first + several), slice(begin, begin + rows)


class _Rectified(torch.autograd.Function):
    """Bias, ReLU and dropout of one block after the other: a signal is read and written once, not eight times."""

    @staticmethod
    def forward(ctx: Any, h: Tensor, bias: Tensor, noise: Noise, layer: int) -> Tensor:
        ctx.mark_dirty(h)
        for (trials, rows), factors in noise.blocks(h.shape, layer):
            h[trials, rows].add_(bias[trials, None]).relu_().mul_(factors)
        ctx.save_for_backward(h)
        ctx.scale = noise.scale
        return h

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor, None, None]:
        (out,) = ctx.saved_tensors
        slope = torch.empty_like(out)
        for place in _blocks(out.shape, out.device):
            # A kept entry is positive where ReLU let it pass, and a dropped one is 0.
            mine = slope[place]
            torch.ops.aten.threshold_backward.grad_input(gradient[place], out[place], 0, grad_input=mine)
            mine *= ctx.scale[place[0]]
        return slope, slope.sum(dim=1), None, None


class _Dropped(torch.autograd.Function):
    """In a kernel the mask is drawn again in the backward pass: cheaper than keeping it."""

    @staticmethod
    def forward(ctx: Any, h: Tensor, coins: Coins) -> Tensor:
        from tadropedge.operators.kernels.fused import dropout

        ctx.coins = coins
        return dropout(h.contiguous(), coins)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        from tadropedge.operators.kernels.fused import dropout

        return dropout(gradient.contiguous(), ctx.coins), None
