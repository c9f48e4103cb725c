"""Random numbers for networks that sample: each is a pure function of (seed, step, stream, entity), like the coins.

Here the whole hash of ``sampling`` is applied to each number. The coins of the edges are pairwise independent, which
is enough for them; the order of many numbers, or the sum of many samples, needs more.
"""

from __future__ import annotations

import torch
from torch import Tensor

from tadropedge._old.sampling import GOLDEN, mix_tensor, pair_words, signed

STREAM = 10_000  # streams below this number belong to the coins of the edges and to dropout


class Draws:
    """Random numbers of a batch of trials: seeds ``[T]``, and a tensor that counts the steps.

    >>> both, one = (Draws(torch.tensor(seeds), torch.tensor(0)).uniform(2) for seeds in ([3, 4], [4]))
    >>> both.shape, bool((both[1] == one).all())
    (torch.Size([2, 2]), True)
    """

    def __init__(self, seeds: Tensor, step: Tensor) -> None:
        self.seeds, self.step = seeds, step
        self._entities: dict[int, Tensor] = {}  # held here: a CUDA graph reads them again

    def words(self, count: int, stream: int = 0) -> Tensor:
        """64 random bits for each of ``count`` entities, int64 ``[T, count]``."""
        if count not in self._entities:
            self._entities[count] = pair_words(count, self.seeds.device)
        first = signed((STREAM + stream) * GOLDEN & (2**64 - 1))
        state = mix_tensor(mix_tensor(self.seeds + first) + self.step * signed(GOLDEN))
        return mix_tensor(self._entities[count] + state[:, None])

    def uniform(self, count: int, stream: int = 0, dtype: torch.dtype = torch.float32) -> Tensor:
        """Uniform numbers strictly between 0 and 1, ``[T, count]``: 23 bits and a half, or 52 in float64."""
        bits = 23 if dtype == torch.float32 else 52
        upper = (self.words(count, stream) >> (64 - bits)) & (2**bits - 1)
        numbers: Tensor = (upper.to(dtype) + 0.5) * 2.0**-bits
        return numbers

    def importance(self, q: Tensor, samples: Tensor, most: int, stream: int = 0) -> Tensor:
        """Draw ``samples [T]`` nodes with probabilities ``q [T, N]``, with replacement: their weights ``[T, N]``.

        ``s_u = (times u was drawn) / (samples · q_u)``, so ``E[s_u] = 1`` wherever q is positive and ``Σ_u s_u z_u`` is
        the Monte Carlo estimate of ``Σ_u z_u``. ``q`` needs no normalisation. ``most`` is the largest of ``samples``.
        """
        with torch.no_grad():
            cumulated = q.to(torch.float64).cumsum(dim=-1)
            total = cumulated[:, -1:]
            places = torch.searchsorted(cumulated, self.uniform(most, stream, torch.float64) * total, right=True)
            inside = torch.arange(most, device=q.device) < samples[:, None]
            counts = torch.zeros_like(q).scatter_add_(1, places.clamp_max(q.shape[1] - 1), inside.to(q.dtype))
            scale = total.to(q.dtype) / samples[:, None]
            return torch.where(q > 0, counts * scale / q, 0.0)
