"""Dropout on the nodes of one process: every entry has the coin that it has where one process holds all nodes."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from tadropedge._old.sampling import number_words
from tadropedge._old.training.noise import Dropout

BLOCK = 2**22  # entries whose coins are tossed together on a GPU


class SpreadDropout(Dropout):
    """Dropout on rows with ``numbers [n]`` in the whole: those of nodes; ``entries [E]`` are those of pattern entries.

    >>> whole = Dropout(torch.tensor([0.5]), torch.tensor([3]), torch.tensor(7))
    >>> mine = SpreadDropout(whole, torch.tensor([1, 4]), torch.tensor([0]))
    >>> x = torch.ones(1, 6, 5)
    >>> bool((mine(x[:, :2], 0) == whole(x, 0)[:, [1, 4]]).all())
    True
    """

    named = True

    def __init__(self, like: Dropout, numbers: Tensor, entries: Tensor) -> None:
        vars(self).update(vars(like))
        self.numbers, self.entries = numbers, entries
        self._known: dict[int, Tensor] = {}

    def at(self, rate: Tensor) -> SpreadDropout:
        """The same coins with other rates ``[T]``, for the entries of the pattern."""
        return SpreadDropout(super().at(rate), self.entries, self.entries)

    def _words(self, shape: torch.Size, rows: slice) -> Tensor:
        if shape[2] not in self._known:
            self._known[shape[2]] = _row_words(self.numbers, shape[2])
        return self._known[shape[2]][rows].flatten()

    def __call__(self, h: Tensor, layer: int) -> Tensor:
        """Return ``h`` with entries dropped and the others scaled up."""
        if not h.is_cuda:
            return super().__call__(h, layer)
        dropped: Tensor = _Dropped.apply(h, self, layer)  # type: ignore[no-untyped-call]
        return dropped

    def rectified(self, h: Tensor, bias: Tensor, layer: int) -> Tensor:
        """``dropout(relu(h + bias))``."""
        return self((h + bias[:, None, :]).relu_(), layer) if h.is_cuda else super().rectified(h, bias, layer)

    def drop(self, h: Tensor, layer: int) -> Tensor:
        """The same on any device without gradients, block by block of rows: no word is kept."""
        trials, rows, width = h.shape
        multiplier, offset = self._keys(layer)
        out = torch.empty_like(h)
        step = max(1, BLOCK // max(1, trials * width))
        for begin in range(0, rows, step):
            place = slice(begin, begin + step)
            coins = _row_words(self.numbers[place], width).flatten() * multiplier + offset
            kept = (coins < self.limit).view(trials, -1, width)
            torch.mul(h[:, place], kept * self.scale, out=out[:, place])
        return out


def _row_words(numbers: Tensor, width: int) -> Tensor:
    """The words ``[n, width]`` of all entries in the rows with these ``numbers [n]``."""
    return number_words(numbers[:, None] * width + torch.arange(width, device=numbers.device))


class _Dropped(torch.autograd.Function):
    """The coins are tossed again in the backward pass: nothing as large as the signal is kept for them."""

    @staticmethod
    def forward(ctx: Any, h: Tensor, noise: SpreadDropout, layer: int) -> Tensor:
        ctx.noise, ctx.layer = noise, layer
        return noise.drop(h.contiguous(), layer)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        return ctx.noise.drop(gradient.contiguous(), ctx.layer), None, None
