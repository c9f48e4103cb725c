"""The coins of some edges: tossed by the number of the pair in the whole graph, so they are those of the whole graph.

No mask of all edges is made: what is asked for is computed from (seed, epoch, pair) alone, see ``sampling.py``.
"""

from __future__ import annotations

import torch
from torch import Tensor

from tadropedge._old.sampling import BLOCK, GOLDEN, key, mix_tensor, signed, thresholds


class PairCoins:
    """Which edges, of those that are asked for by their numbers, exist in an epoch.

    ``prob`` are the keep probabilities, float64 ``[L, M]``: one row for all subgraphs, or one for each (``nested``).
    None keeps all. ``layers`` subgraphs are drawn in an epoch; each has coins of its own unless they are ``nested``.

    >>> coins = PairCoins(torch.full((1, 100), 0.5, dtype=torch.float64), seed=0)
    >>> coins.kept(torch.tensor([2, 1]), epoch=3).tolist()  # as sample_edges(prob, seed=0, epoch=3)[[2, 1]]
    [True, False]
    """

    def __init__(self, prob: Tensor | None, seed: int, *, layers: int = 1, nested: bool = False) -> None:
        self.seed, self.layers, self.nested = seed, layers, nested
        self.prob = prob
        self._below = None if prob is None else [_thresholds(row) for row in prob]

    def kept(self, pairs: Tensor, epoch: int, layer: int = 0) -> Tensor:
        """Whether the edges of numbers ``pairs [K]`` are kept, bool ``[K]``."""
        if self._below is None:
            return torch.ones(pairs.shape, dtype=torch.bool, device=pairs.device)
        below = self._below[layer if self.nested else 0]
        below = below if below.dim() == 0 else below.index_select(0, pairs)
        return toss_numbers(pairs, below, *key(self.seed, epoch, 0 if self.nested else layer))

    def inverse(self, pairs: Tensor, layer: int = 0) -> Tensor:
        """One over the keep probabilities of these edges, float32 ``[K]``."""
        if self.prob is None:
            return torch.ones(pairs.shape, device=pairs.device)
        return 1 / self.prob[layer if self.nested else 0].index_select(0, pairs).to(torch.float32)


def toss_numbers(pairs: Tensor, below: Tensor, multiplier: int, offset: int) -> Tensor:
    """The coins ``a · h_m + b`` of pairs by their numbers ``[K]``, and whether each is below its threshold.

    ``below`` are :func:`tadropedge._old.sampling.thresholds` of these pairs ``[K]``, or one number for all.
    """
    if not pairs.is_cuda and len(pairs) > BLOCK:  # in the cache, as everywhere
        limits = below.split(BLOCK) if below.dim() else [below] * -(-len(pairs) // BLOCK)
        parts = zip(pairs.split(BLOCK), limits, strict=True)
        return torch.cat([toss_numbers(part, limit, multiplier, offset) for part, limit in parts])
    coins = mix_tensor((pairs + 1) * signed(GOLDEN))
    coins *= multiplier
    coins += offset
    coins >>= 11
    return coins < below


def _thresholds(prob: Tensor) -> Tensor:
    """What coins must be below, int64 ``[M]``; one number where all edges have one probability."""
    found = thresholds(prob)
    same = len(found) > 0 and bool((found == found[0]).all())
    return found[0].clone() if same else found


def ranks_of(entries: Tensor, seed: int, epoch: int, stream: int) -> Tensor:
    """Random numbers by which the neighbours of a node are put in order, int64 ``[K]`` in [0, 2³¹).

    Each is a pure function of (seed, epoch, stream, entry): which neighbours are sampled does not depend on who asks.
    """
    if not entries.is_cuda and len(entries) > BLOCK:
        return torch.cat([ranks_of(part, seed, epoch, stream) for part in entries.split(BLOCK)])
    state, _ = key(seed, epoch, stream)
    words = mix_tensor((entries + 1) * signed(GOLDEN) + state)  # SplitMix64, started from (seed, epoch, stream)
    words >>= 33
    words &= 2**31 - 1
    return words
