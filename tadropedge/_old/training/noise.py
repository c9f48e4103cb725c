"""Dropout whose noise is a pure function of (seed, epoch, layer, entry), like the coins of the edges.

So a trial sees the same noise alone or in a batch, on every device, and whatever its method.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from tadropedge._old.sampling import keys, number_words, pair_words

if TYPE_CHECKING:
    from tadropedge._old.kernels import Coins

STREAM = 1_000  # streams below this number belong to the coins of the edges
BLOCK = 2**17  # entries whose coins are tossed together on a CPU: they stay in its cache


class Dropout:
    """Drop entries of ``[T, N, F]`` signals, each trial with its own rate ``[T]`` and seed ``[T]``."""

    def __init__(self, rate: Tensor, seeds: Tensor, epoch: Tensor) -> None:
        self.seeds, self.epoch = seeds, epoch
        self.scale = torch.where(rate < 1, 1 / (1 - rate).clamp_min(1e-12), 0.0)[:, None, None].to(torch.float32)
        # Kept where the signed coin is below this; a rate of 0 keeps all, and 1 keeps none.
        share = (1 - rate.double()) - 0.5
        limit = (share * 2.0**64).clamp(-(2.0**63), 2.0**63 - 1024).to(torch.int64)
        self.limit = torch.where(rate <= 0, torch.iinfo(torch.int64).max, limit)[:, None]

    named = False  # entries are known by their places

    def at(self, rate: Tensor) -> Dropout:
        """The same coins with other rates ``[T]``; a number of a layer that nobody else uses makes them independent."""
        return Dropout(rate, self.seeds, self.epoch)

    def of(self, names: Tensor) -> NamedDropout:
        """The same coins for the rows ``[K]`` of a signal that are given by their places in the whole one."""
        return NamedDropout(names, self)

    def _keys(self, layer: int) -> tuple[Tensor, Tensor]:
        multiplier, offset = keys(self.seeds, self.epoch, STREAM + layer)
        return multiplier[:, None], offset[:, None]

    def coins(self, layer: int) -> Coins:
        """What a kernel draws the same noise from."""
        from tadropedge._old.kernels import Coins

        return Coins(*self._keys(layer), self.limit, self.scale)

    def __call__(self, h: Tensor, layer: int) -> Tensor:
        """Return ``h`` with entries dropped and the others scaled up."""
        if not h.is_cuda:
            return h * self._factors(h.shape, layer)
        dropped: Tensor = _Dropped.apply(h, *self._keys(layer), self.limit, self.scale)  # type: ignore[no-untyped-call]
        return dropped

    def rectified(self, h: Tensor, bias: Tensor, layer: int) -> Tensor:
        """``dropout(relu(h + bias))`` on a CPU, in the memory of ``h [T, N, F]``; ``bias [T, F]``."""
        rectified: Tensor = _Rectified.apply(h, bias, self, layer)  # type: ignore[no-untyped-call]
        return rectified

    def _factors(self, shape: torch.Size, layer: int) -> Tensor:
        """What entries are multiplied by; kept for the backward pass."""
        factors = torch.empty(shape)
        for place, block in self.blocks(shape, layer):
            factors[place] = block
        return factors

    def blocks(self, shape: torch.Size, layer: int) -> Iterator[tuple[tuple[slice, slice], Tensor]]:
        """The places of blocks, and ``scale`` for the entries whose coin ``a · word + b`` is below the limit, else 0.

        The same memory is used for every block.
        """
        multiplier, offset = self._keys(layer)
        coins, factors = torch.empty(0, dtype=torch.int64), torch.empty(0)
        for trials, rows in _blocks(shape):
            own = self._words(shape, rows)
            torch.mul(own, multiplier[trials], out=coins.resize_(len(multiplier[trials]), len(own)))
            coins += offset[trials]
            factors.resize_(coins.shape).copy_(coins < self.limit[trials])
            yield (
                (trials, rows),
                factors.view(len(coins), len(range(shape[1])[rows]), shape[2]).mul_(self.scale[trials]),
            )

    def _words(self, shape: torch.Size, rows: slice) -> Tensor:
        """The words of the entries of some rows, flat."""
        words: Tensor = pair_words(shape[1] * shape[2], self.limit.device)
        return words.view(shape[1:])[rows].flatten()


class NamedDropout(Dropout):
    """The same noise for some rows of a signal: row k is row ``names[k]`` of the signal of the whole graph.

    So an entry of a mini-batch is dropped where the whole graph would drop it.
    """

    named = True

    def __init__(self, names: Tensor, like: Dropout) -> None:
        self.names, self.like = names, like
        self.seeds, self.epoch, self.scale, self.limit = like.seeds, like.epoch, like.scale, like.limit

    def at(self, rate: Tensor) -> NamedDropout:
        """The same coins with other rates ``[T]``."""
        return NamedDropout(self.names, self.like.at(rate))

    def __call__(self, h: Tensor, layer: int) -> Tensor:
        """Return ``h`` with entries dropped and the others scaled up; its rows are the first that have names."""
        if not h.is_cuda:
            return h * self._factors(h.shape, layer)
        multiplier, offset = self._keys(layer)
        coins = self._words(h.shape, slice(None)) * multiplier + offset
        return h * ((coins < self.limit).view(h.shape) * self.scale)

    def _words(self, shape: torch.Size, rows: slice) -> Tensor:
        entries = self.names[: shape[1]][rows, None] * shape[2] + torch.arange(shape[2], device=self.names.device)
        return number_words(entries.flatten())


def _blocks(shape: torch.Size) -> Iterator[tuple[slice, slice]]:
    """Places that cut ``[T, N, F]`` into blocks of trials, and of nodes where one trial alone is too large."""
    trials, nodes, width = shape
    rows = min(nodes, max(1, BLOCK // max(1, width)))
    several = max(1, BLOCK // max(1, rows * width))
    for first in range(0, trials, several):
        for begin in range(0, nodes, max(1, rows)):
            yield slice(first, first + several), slice(begin, begin + rows)


class _Rectified(torch.autograd.Function):
    """Bias, ReLU and dropout of one block after the other: a signal is read and written once, not eight times."""

    @staticmethod
    def forward(ctx: Any, h: Tensor, bias: Tensor, noise: Dropout, layer: int) -> Tensor:
        ctx.mark_dirty(h)
        shape = (len(bias), 1, bias.shape[-1])
        bias = bias.view(shape).expand(len(h), -1, -1)
        for (trials, rows), factors in noise.blocks(h.shape, layer):
            h[trials, rows].add_(bias[trials]).relu_().mul_(factors)
        ctx.save_for_backward(h)
        ctx.scale, ctx.shape = noise.scale, shape
        return h

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor, None, None]:
        (out,) = ctx.saved_tensors
        slope = torch.empty_like(out)
        for place in _blocks(out.shape):
            # A kept entry is positive where ReLU let it pass, and a dropped one is 0.
            mine = slope[place]
            torch.ops.aten.threshold_backward.grad_input(gradient[place], out[place], 0, grad_input=mine)
            mine *= ctx.scale[place[0]]
        return slope, slope.sum_to_size(ctx.shape)[:, 0], None, None


class _Dropped(torch.autograd.Function):
    """On a GPU the mask is drawn again in the backward pass: cheaper than keeping it."""

    @staticmethod
    def forward(ctx: Any, h: Tensor, multiplier: Tensor, offset: Tensor, limit: Tensor, scale: Tensor) -> Tensor:
        from tadropedge._old.kernels import dropout

        ctx.save_for_backward(multiplier, offset, limit, scale)
        return dropout(h.contiguous(), multiplier, offset, limit, scale)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None, None, None]:
        from tadropedge._old.kernels import dropout

        return dropout(gradient.contiguous(), *ctx.saved_tensors), None, None, None, None
