"""The coin: whether an edge is kept, as a pure function of (seed, epoch, stream, pair).

Coins are made of integer arithmetic only. So they are the same on CPU and GPU, alone or in a batch of seeds, before
and after a resume, and on every worker. There is no state to save.

Every pair m has a fixed random-looking key h_m (SplitMix64 of its two node ids, or of its number); every (seed, epoch,
stream) has an odd multiplier a and an offset b (SplitMix64 again). The coin is the word a · h_m + b mod 2⁶⁴: for each
pair uniform over seeds and epochs, and pairwise independent. An edge is kept when the coin's upper 53 bits, read as a
number in [0, 1), are below its probability.

Streams separate independent uses of one seed and epoch: the views of one step, the relations of a graph of many, the
forests of ``connected``, the noise of a network.
"""

from __future__ import annotations

from functools import lru_cache

import torch
from torch import Tensor

from tadropedge.operators.kernels import kernels
from tadropedge.operators.kernels.words import GOLDEN, Seed, coins_of, mix_tensor, signed

FOREST = 1_000_000  # what is added to a stream for the forests of its masks
RELATION = 2**32  # what is added to a stream for each relation of a graph after the first


def sample(keys: Tensor, prob: Tensor, seed: Seed, epoch: Seed = 0, stream: int = 0) -> Tensor:
    """Keep each edge with its probability: bool ``[..., M]``, for ``keys [M]`` and float64 ``prob [..., M]``.

    Axes of ``prob`` and of ``seed`` broadcast; a last axis of 1 is one probability for all.

    >>> prob = torch.tensor([0.0, 0.5, 0.5, 1.0], dtype=torch.float64)
    >>> sample(numbered_keys(4, prob.device), prob, seed=0, epoch=3).tolist()
    [False, False, True, True]
    """
    kept: Tensor = kernels(prob).coins(keys, seed, epoch, prob, stream)
    return kept


def uniform(keys: Tensor, seed: Seed, epoch: Seed = 0, stream: int = 0) -> Tensor:
    """The coins themselves, float64 ``[..., M]`` in [0, 1): an edge is kept where its coin is below its probability.

    >>> uniform(numbered_keys(4, torch.device("cpu")), seed=0, epoch=3).round(decimals=3).tolist()
    [0.793, 0.574, 0.156, 0.34]
    """
    return (coins_of(keys, seed, epoch, stream) + 2**52).to(torch.float64) * 2.0**-53


# -- the keys of pairs -----------------------------------------------------------------------------------


@lru_cache(maxsize=16)
def numbered_keys(count: int, device: torch.device) -> Tensor:
    """The keys h_0 … h_(count − 1) of edges that are known by their number alone, where there is no graph."""
    return mix_tensor(torch.arange(1, count + 1, device=device) * signed(GOLDEN))
