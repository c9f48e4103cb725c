"""Phase III, the coins: which edges are kept in an epoch.

A coin is a pure function of (seed, epoch, pair), made of integer arithmetic only. So it is the same on CPU and
GPU, alone or in a batch of seeds, before and after a resume, and on every worker. There is no state to save.

Every pair m has a fixed random-looking word h_m (SplitMix64 of its number); every (seed, epoch) has an odd
multiplier a and an offset b (SplitMix64 again). The coin is the word a · h_m + b mod 2⁶⁴: for each pair uniform
over seeds and epochs, and pairwise independent. An edge is kept when the coin's upper 53 bits, read as a number in
[0, 1), are below its probability.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import torch
from torch import Tensor

from tadropedge.checks import (
    as_integer,
    check_device,
    check_integer,
    check_length,
    check_number,
    check_probability,
    check_runs_on,
    check_seed,
    check_tensor,
    check_whole,
)
from tadropedge.errors import TadropedgeError, show
from tadropedge.memory import LARGE, check_memory, within_memory

MASK = 2**64 - 1
GOLDEN = 0x9E3779B97F4A7C15
FIRST = 0xBF58476D1CE4E5B9
SECOND = 0x94D049BB133111EB
COIN_BYTES = 17  # a word, a probability and the answer
BLOCK = 2**17  # coins that are tossed together on a CPU: they stay in its cache
STREAMS = {"multiplier": 1, "offset": 2}


@within_memory("coins", "take fewer seeds at once")
def sample_edges(
    prob: Tensor,
    seed: int | Sequence[int] | Tensor = 0,
    epoch: int = 0,
    *,
    pairs: Tensor | None = None,
) -> Tensor:
    """Keep each edge with its probability: bool ``[M]``, or ``[T, M]`` for T seeds or ``prob [T, M]``.

    A pair is identified by its place in ``prob``. With ``pairs [2, M]`` it is identified by its two node ids
    instead, in either order: then both arcs of an edge share one coin, and so does the same edge in every
    mini-batch whose nodes keep their ids.

    >>> prob = torch.tensor([0.0, 0.5, 0.5, 1.0])
    >>> sample_edges(prob, seed=0, epoch=3).tolist()
    [False, False, True, True]
    >>> many = sample_edges(prob, seed=[0, 1, 2], epoch=3)
    >>> many.shape, bool((many[0] == sample_edges(prob, seed=0, epoch=3)).all())
    (torch.Size([3, 4]), True)
    """
    if check_tensor("prob", prob).dim() not in (1, 2):
        raise TadropedgeError(f"prob must have shape [M] or [T, M], got {list(prob.shape)}")
    prob = check_probability("prob", prob)
    if pairs is None:
        words = pair_words(prob.shape[-1], prob.device)
    else:
        pairs = check_length("pairs", pairs, prob.shape[-1], "probability")
        check_device("pairs", pairs, prob.device, "prob")
        words = node_pair_words(pairs)
    multiplier, offset = _keys(seed, epoch, prob)
    rows = len(multiplier) if isinstance(multiplier, Tensor) else prob.numel() // max(1, prob.shape[-1])
    _check_room(rows, prob.shape[-1], prob.device)
    return toss(words, multiplier, offset, prob)


@within_memory("coins", "take fewer seeds at once")
def sample_directed(
    num_pairs: int,
    keep_prob: float,
    seed: int | Sequence[int] | Tensor = 0,
    epoch: int = 0,
    *,
    device: torch.device | str = "cpu",
) -> Tensor:
    """DropEdge's own rule: keep exactly ⌊p · nnz⌋ of the nnz = 2 M directed entries, bool ``[2 M]`` or ``[T, 2 M]``.

    Entry m is pair m read forwards (row ``pairs[0]``, column ``pairs[1]``), entry M + m the same pair read
    backwards. The two directions are drawn separately, so the adjacency is no longer symmetric: this is for
    parity with the published DropEdge code. :func:`tadropedge.shift_operator` takes such masks too.

    >>> sample_directed(10, keep_prob=0.72).sum().item()
    14
    """
    entries = 2 * check_integer("num_pairs", num_pairs, least=0)
    kept = int(check_number("keep_prob", keep_prob, 0, 1) * entries)
    device = check_runs_on(device)
    multiplier, offset = _keys(seed, epoch, torch.empty(0, device=device))
    _check_room(len(multiplier) if isinstance(multiplier, Tensor) else 1, entries, device)
    coins: Tensor = pair_words(entries, device) * multiplier + offset
    if kept == 0:
        return torch.zeros_like(coins, dtype=torch.bool)
    # Words differ and odd multipliers are one-to-one, so there are no ties and the count is exact.
    return coins <= coins.kthvalue(kept, dim=-1, keepdim=True).values


def _check_room(rows: int, edges: int, device: torch.device | str) -> None:
    """Refuse coins that would not fit, before any is tossed."""
    need = COIN_BYTES * rows * edges
    if need > LARGE:
        check_memory(need, f"{rows} × {edges} coins", "take fewer seeds at once", device)


def toss(words: Tensor, multiplier: int | Tensor, offset: int | Tensor, prob: Tensor) -> Tensor:
    """Compare the coins ``a · h + b`` with float64 probabilities. Multiplication wraps modulo 2⁶⁴."""
    if words.is_cuda or words.shape[-1] <= BLOCK or torch.compiler.is_compiling():
        return _toss(words, multiplier, offset, prob)
    # In the cache this takes a fifth of the time, or less where fresh memory is slow to get.
    keys = (multiplier, offset)
    shapes = [each.shape for each in (words, prob, *keys) if isinstance(each, Tensor)]
    kept = torch.empty(torch.broadcast_shapes(*shapes), dtype=torch.bool)
    width = max(1, BLOCK * kept.shape[-1] // kept.numel())
    for begin in range(0, kept.shape[-1], width):
        part = (..., slice(begin, begin + width))
        kept[part] = _toss(words[part], multiplier, offset, prob[part])
    return kept


def _toss(words: Tensor, multiplier: int | Tensor, offset: int | Tensor, prob: Tensor) -> Tensor:
    coins = words * multiplier
    coins += offset
    coins >>= 11
    # 53 bits are exact in float64 on every device: p = 1 always keeps and p = 0 never does.
    return coins < (prob - 0.5) * 2.0**53


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


def key(seed: int, epoch: int, stream: int = 0) -> tuple[int, int]:
    """The odd multiplier and the offset of (seed, epoch), as signed 64-bit integers.

    ``stream`` separates independent uses of one seed: the layers of a network, its dropout.
    """
    state = mix((mix((seed + (stream + 1) * GOLDEN) & MASK) + epoch * GOLDEN) & MASK)
    multiplier = mix((state + STREAMS["multiplier"] * GOLDEN) & MASK) | 1
    offset = mix((state + STREAMS["offset"] * GOLDEN) & MASK)
    return signed(multiplier), signed(offset)


def key_tensor(seed: Tensor, epoch: Tensor, stream: int = 0) -> tuple[Tensor, Tensor]:
    """:func:`key` on int64 tensors: for code that must not leave the device or is compiled."""
    golden = signed(GOLDEN)
    state = mix_tensor(mix_tensor(seed + signed((stream + 1) * GOLDEN & MASK)) + epoch * golden)
    multiplier = mix_tensor(state + signed(STREAMS["multiplier"] * GOLDEN & MASK)) | 1
    offset = mix_tensor(state + signed(STREAMS["offset"] * GOLDEN & MASK))
    return multiplier, offset


@torch.compiler.disable  # type: ignore[untyped-decorator]  # inductor folds the product with other overflow
@lru_cache(maxsize=16)
def pair_words(count: int, device: torch.device) -> Tensor:
    """The words h_0 … h_(count − 1), int64. Cached: they depend only on the count."""
    return mix_tensor(torch.arange(1, count + 1, device=device) * signed(GOLDEN))


def node_pair_words(pairs: Tensor) -> Tensor:
    """The words of node pairs ``[2, M]``, the same for (i, j) and (j, i)."""
    if check_whole("node pairs", pairs).dim() != 2 or pairs.shape[0] != 2:
        raise TadropedgeError(f"node pairs must be whole numbers [2, M], got {pairs.dtype} {list(pairs.shape)}")
    pairs = pairs.to(torch.int64)  # narrower integers would wrap elsewhere
    low, high = torch.minimum(pairs[0], pairs[1]), torch.maximum(pairs[0], pairs[1])
    return mix_tensor(mix_tensor((low + 1) * signed(GOLDEN)) + high * signed(GOLDEN))


def _keys(seed: int | Sequence[int] | Tensor, epoch: int, like: Tensor) -> tuple[int | Tensor, int | Tensor]:
    """The keys of one seed as two integers, or of T seeds as two columns ``[T, 1]``."""
    number = as_integer(epoch)
    if number is None:
        raise TadropedgeError(f"epoch must be a whole number, got {show(epoch, typed=False)}")
    one = as_integer(seed)
    if one is not None:
        return key(check_seed(one, signed=True), number)
    if isinstance(seed, Tensor):
        check_tensor("seed", seed)
    listed = seed.tolist() if hasattr(seed, "tolist") else seed
    seeds = [as_integer(each) for each in listed] if isinstance(listed, (list, tuple, range)) else []
    known = [each for each in seeds if each is not None]
    if not seeds or len(known) < len(seeds):
        raise TadropedgeError(f"seed must be a whole number or a list of them, got {show(seed, typed=False)}")
    if like.dim() == 2 and like.shape[0] not in (1, len(seeds)):
        raise TadropedgeError(f"prob has {like.shape[0]} rows, but there are {len(seeds)} seeds")
    keys = torch.tensor([key(check_seed(each, signed=True), number) for each in known], device=like.device)
    return keys[:, :1], keys[:, 1:]
