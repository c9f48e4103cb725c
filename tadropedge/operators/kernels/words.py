"""The integer arithmetic of coins: SplitMix64 on Python's integers and on int64 tensors, keys of pairs and of draws."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from tadropedge._support.checks import check_whole
from tadropedge.errors import TadropedgeError

MASK = 2**64 - 1
# SplitMix64: what it adds from number to number, and the two factors of its finaliser.
GOLDEN = 0x9E3779B97F4A7C15
FIRST = 0xBF58476D1CE4E5B9
SECOND = 0x94D049BB133111EB

Seed = int | Tensor  # one, or int64 tensors of any shape [...]


class Dropout(NamedTuple):
    """What dropout of a layer is drawn from: keys and limits of T trials, ``[T, 1]``, and ``scale [T, 1, 1]``.

    The entry in column f of row i has the coin of the number ``i F + f``; with ``names [n]`` it is that of row
    ``names[i]`` of a larger signal. It is kept where ``a · h + b`` is below the limit, and then scaled up.
    """

    multiplier: Tensor
    offset: Tensor
    limit: Tensor
    scale: Tensor
    names: Tensor | None = None


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


def draw_key(seed: Seed, epoch: Seed, stream: int, device: torch.device) -> tuple[int | Tensor, Tensor]:
    """The odd multiplier and the offset of a draw: a number and int64 ``[]``, or ``[..., 1]`` for tensors of seeds."""
    if isinstance(seed, int) and isinstance(epoch, int):  # a few integers of Python, and no launch
        multiplier, offset = key_of_draw(seed, epoch, stream)
        return multiplier, torch.tensor(offset, device=device)
    golden = signed(GOLDEN)
    seeds, epochs = (torch.as_tensor(as_word(each), device=device) for each in (seed, epoch))
    state = mix_tensor(mix_tensor(seeds + signed((stream + 1) * GOLDEN & MASK)) + epochs * golden)
    offsets = mix_tensor(state + signed(2 * GOLDEN & MASK))
    return (mix_tensor(state + golden) | 1)[..., None], offsets[..., None]


def key_of_draw(seed: int, epoch: int, stream: int) -> tuple[int, int]:
    """The same of one draw, as Python's integers."""
    state = mix((mix((seed + (stream + 1) * GOLDEN) & MASK) + epoch * GOLDEN) & MASK)
    return signed(mix((state + GOLDEN) & MASK) | 1), signed(mix((state + 2 * GOLDEN) & MASK))


def coins_of(keys: Tensor, seed: Seed, epoch: Seed, stream: int) -> Tensor:
    """The upper 53 bits of ``a · h + b``, with a sign: int64 ``[..., M]``."""
    multiplier, offset = draw_key(seed, epoch, stream, keys.device)
    return torch.add(offset, keys * multiplier) >> 11


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


def broadcast(*shapes: torch.Size) -> torch.Size:
    """What shapes become together: torch's function takes longer than a small kernel, and is rarely needed."""
    several = {shape for shape in shapes if shape}
    return torch.broadcast_shapes(*several) if len(several) > 1 else next(iter(several), torch.Size())


def as_word(number: Seed) -> Seed:
    """A number as int64 tensors hold it."""
    return signed(number & MASK) if isinstance(number, int) else number
