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

from tadropedge._support.checks import check_whole
from tadropedge.errors import TadropedgeError
from tadropedge.operators.kernels import runs_kernels

MASK = 2**64 - 1
# SplitMix64: what it adds from number to number, and the two factors of its finaliser.
GOLDEN = 0x9E3779B97F4A7C15
FIRST = 0xBF58476D1CE4E5B9
SECOND = 0x94D049BB133111EB
FOREST = 1_000_000  # what is added to a stream for the forests of its masks
RELATION = 2**32  # what is added to a stream for each relation of a graph after the first
BLOCK = 2**17  # coins that are looked at together on a CPU: they stay in its cache
CACHED = 2**20  # coins whose memory is at hand again in the next epoch, so that blocks gain nothing

Seed = int | Tensor  # one, or int64 tensors of any shape [...]


def sample(keys: Tensor, prob: Tensor, seed: Seed, epoch: Seed = 0, stream: int = 0) -> Tensor:
    """Keep each edge with its probability: bool ``[..., M]``, for ``keys [M]`` and ``prob [..., M]``.

    ``prob`` is float64, or int64 :func:`limits` of it, which are worth keeping between epochs. Axes of ``prob`` and of
    ``seed`` broadcast.

    >>> prob = torch.tensor([0.0, 0.5, 0.5, 1.0], dtype=torch.float64)
    >>> sample(numbered_keys(4, prob.device), prob, seed=0, epoch=3).tolist()
    [False, False, True, True]
    """
    if prob.dtype == torch.float64 and runs_kernels(keys):
        from tadropedge.operators.kernels.gpu import coins

        seeds, epochs = (torch.as_tensor(_word(each), device=keys.device) for each in (seed, epoch))
        return coins(keys, seeds, epochs, prob, stream)
    multiplier, offset = draw_key(seed, epoch, stream, keys.device)
    if max(prob.numel(), offset.numel() * keys.numel()) <= CACHED or keys.is_cuda:
        return _below(_coins(keys, multiplier, offset), prob)
    shape = torch.broadcast_shapes(keys.shape, prob.shape, offset.shape)  # which takes longer than a small mask
    # In the cache this takes a fifth of the time where fresh memory is slow to get.
    kept = torch.empty(shape, dtype=torch.bool, device=keys.device)
    width = max(1, BLOCK * shape[-1] // shape.numel())
    for begin in range(0, shape[-1], width):
        part = slice(begin, begin + width)
        kept[..., part] = _below(_coins(keys[part], multiplier, offset), prob[..., part])
    return kept


def _coins(keys: Tensor, multiplier: int | Tensor, offset: Tensor) -> Tensor:
    """The upper 53 bits of a · h + b, with a sign."""
    if isinstance(multiplier, int):  # one pass over the keys
        coins = torch.add(offset, keys, alpha=multiplier)
    else:
        coins = torch.add(offset, keys * multiplier)
    coins >>= 11
    return coins


def _below(coins: Tensor, prob: Tensor) -> Tensor:
    return coins < (prob if prob.dtype == torch.int64 else limits(prob))


def limits(prob: Tensor) -> Tensor:
    """Probabilities as int64: the coin of an edge, 53 bits with a sign, keeps it where it is below.

    53 bits are exact in float64 on every device: p = 1 always keeps and p = 0 never does.

    >>> limits(torch.tensor([0.0, 0.5, 1.0])).tolist() == [-(2**52), 0, 2**52]
    True
    """
    return ((prob.to(torch.float64) - 0.5) * 2.0**53).ceil().to(torch.int64)


def uniform(keys: Tensor, seed: Seed, epoch: Seed = 0, stream: int = 0) -> Tensor:
    """The coins themselves, float64 ``[..., M]`` in [0, 1): an edge is kept where its coin is below its probability.

    >>> uniform(numbered_keys(4, torch.device("cpu")), seed=0, epoch=3).round(decimals=3).tolist()
    [0.793, 0.574, 0.156, 0.34]
    """
    coins = _coins(keys, *draw_key(seed, epoch, stream, keys.device))
    return (coins + 2**52).to(torch.float64) * 2.0**-53


# -- the keys of pairs -----------------------------------------------------------------------------------


def pair_keys(pairs: Tensor, *, ordered: bool = False) -> Tensor:
    """The keys ``[M]`` of node pairs ``[2, M]``, the same for (i, j) and (j, i) unless pairs are ``ordered``.

    So the two directions of an edge share one coin, and so does the same edge in every mini-batch whose nodes keep
    their ids. Arcs, and pairs of nodes of two kinds, are ordered.

    >>> pair_keys(torch.tensor([[3, 7], [7, 3]])).unique().numel()
    1
    >>> pair_keys(torch.tensor([[3, 7], [7, 3]]), ordered=True).unique().numel()
    2
    """
    if check_whole("pairs", pairs).dim() != 2 or pairs.shape[0] != 2:
        raise TadropedgeError(f"pairs must be whole numbers [2, M], got {pairs.dtype} of shape {list(pairs.shape)}")
    first, second = pairs.to(torch.int64)  # narrower integers would wrap elsewhere
    if not ordered:
        first, second = torch.minimum(first, second), torch.maximum(first, second)
    golden = signed(GOLDEN)
    return mix_tensor(mix_tensor((first + 1) * golden) + second * golden)


@lru_cache(maxsize=16)
def numbered_keys(count: int, device: torch.device) -> Tensor:
    """The keys h_0 … h_(count − 1) of edges that are known by their number alone, where there is no graph."""
    return mix_tensor(torch.arange(1, count + 1, device=device) * signed(GOLDEN))


# -- the key of a draw -----------------------------------------------------------------------------------


def draw_key(seed: Seed, epoch: Seed, stream: int, device: torch.device) -> tuple[int | Tensor, Tensor]:
    """The odd multiplier and the offset of a draw: a number and int64 ``[]``, or ``[..., 1]`` for tensors of seeds."""
    if isinstance(seed, int) and isinstance(epoch, int):  # a few integers of Python, and no launch
        word = mix((mix((seed + (stream + 1) * GOLDEN) & MASK) + epoch * GOLDEN) & MASK)
        multiplier, offset = mix((word + GOLDEN) & MASK) | 1, mix((word + 2 * GOLDEN) & MASK)
        return signed(multiplier), torch.tensor(signed(offset), device=device)
    golden = signed(GOLDEN)
    seeds, epochs = (torch.as_tensor(_word(each), device=device) for each in (seed, epoch))
    state = mix_tensor(mix_tensor(seeds + signed((stream + 1) * GOLDEN & MASK)) + epochs * golden)
    offsets = mix_tensor(state + signed(2 * GOLDEN & MASK))
    return (mix_tensor(state + golden) | 1)[..., None], offsets[..., None]


def mix(word: int) -> int:
    """SplitMix64's finaliser: a one-to-one scramble of 64-bit words.

    >>> hex(mix(GOLDEN))  # the first output of SplitMix64 seeded with 0
    '0xe220a8397b1dcdaf'
    """
    word = ((word ^ (word >> 30)) * FIRST) & MASK
    word = ((word ^ (word >> 27)) * SECOND) & MASK
    return word ^ (word >> 31)


def mix_tensor(words: Tensor) -> Tensor:
    """:func:`mix` on int64 tensors, whose products wrap and whose shifts need their sign bits cleared."""
    words = (words ^ ((words >> 30) & (2**34 - 1))) * signed(FIRST)
    words = (words ^ ((words >> 27) & (2**37 - 1))) * signed(SECOND)
    return words ^ ((words >> 31) & (2**33 - 1))


def signed(word: int) -> int:
    """Read a 64-bit word as a signed integer, as int64 tensors do.

    >>> signed(2**64 - 1)
    -1
    """
    return word - 2**64 if word >= 2**63 else word


def _word(number: Seed) -> Seed:
    return signed(number & MASK) if isinstance(number, int) else number
