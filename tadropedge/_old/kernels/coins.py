"""The coins of ``tadropedge._old.sampling`` in one launch: the key, the word of a pair and the comparison in registers.

Step by step in torch, a mask of 10⁷ edges is six passes over 64-bit numbers, and its key ninety launches.
"""

from __future__ import annotations

from contextlib import nullcontext

import torch
import triton
import triton.language as tl
from torch import Tensor

BLOCK = 4096  # coins of a program: the key, which each of them computes, is then cheap
GOLDEN = 0x9E3779B97F4A7C15
FIRST = tl.constexpr(0x9E3779B97F4A7C15 - 2**64)  # what stream 0 adds to a seed, signed
HERE = nullcontext()


@triton.jit
def mixed(word):  # type: ignore[no-untyped-def]
    """SplitMix64's finaliser of uint64 words."""
    word = (word ^ (word >> 30)) * 0xBF58476D1CE4E5B9
    word = (word ^ (word >> 27)) * 0x94D049BB133111EB
    return word ^ (word >> 31)


@triton.jit
def key_of(seed, epoch, stream):  # type: ignore[no-untyped-def]
    """The odd multiplier and the offset, uint64, of int64 seeds; ``stream`` is what its number adds to a seed."""
    state = mixed((seed + stream).to(tl.uint64)) + epoch.to(tl.uint64) * 0x9E3779B97F4A7C15
    first = mixed(state).to(tl.uint64) + 0x9E3779B97F4A7C15
    return mixed(first) | 1, mixed(first + 0x9E3779B97F4A7C15)


@triton.jit  # type: ignore[untyped-decorator]
def _keys(seeds, epoch, multiplier, offset, stream, count, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    """The keys of a block of seeds."""
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = place < count
    odd, shift = key_of(tl.load(seeds + place, mask=inside, other=0), tl.load(epoch), stream)
    tl.store(multiplier + place, odd.to(tl.int64), mask=inside)
    tl.store(offset + place, shift.to(tl.int64), mask=inside)


@triton.jit  # type: ignore[untyped-decorator]
def _coins(  # type: ignore[no-untyped-def]
    seeds, epoch, words, prob, out, stream, edges, blocks, prob_step, NUMBERED: tl.constexpr, BLOCK: tl.constexpr
):
    """A block of one row: at most two reads and one write."""
    row = (tl.program_id(0) // blocks).to(tl.int64)
    place = (tl.program_id(0) % blocks).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = place < edges
    multiplier, offset = key_of(tl.load(seeds + row), tl.load(epoch), stream)
    if NUMBERED:
        word = mixed((place + 1).to(tl.uint64) * 0x9E3779B97F4A7C15)
    else:
        word = tl.load(words + place, mask=inside, other=0).to(tl.uint64)
    coin = (word * multiplier + offset).to(tl.int64) >> 11  # the sign stays: 53 bits, exact in float64
    limit = (tl.load(prob + row * prob_step + place, mask=inside, other=0.0) - 0.5) * 9007199254740992.0  # 2⁵³
    tl.store(out + row * edges + place, (coin.to(tl.float64) < limit).to(tl.uint8), mask=inside)


@triton.jit  # type: ignore[untyped-decorator]
def _row(seed, epoch, words, prob, out, edges, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    """A block of the one row of one seed in the first stream."""
    place = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = place < edges
    multiplier, offset = key_of(tl.load(seed), tl.load(epoch), FIRST)
    word = tl.load(words + place, mask=inside, other=0).to(tl.uint64)
    coin = (word * multiplier + offset).to(tl.int64) >> 11
    limit = (tl.load(prob + place, mask=inside, other=0.0) - 0.5) * 9007199254740992.0
    tl.store(out + place, coin.to(tl.float64) < limit, mask=inside)


def keys(seeds: Tensor, epoch: Tensor, stream: int) -> tuple[Tensor, Tensor]:
    """``tadropedge._old.sampling.key_tensor`` of int64 ``seeds`` of any shape in one launch."""
    seeds, epoch = seeds.contiguous(), epoch.to(seeds.device)
    multiplier, offset = torch.empty_like(seeds), torch.empty_like(seeds)
    count, block = seeds.numel(), 128
    if count:
        with torch.cuda.device_of(seeds):
            _keys[(triton.cdiv(count, block),)](
                seeds, epoch, multiplier, offset, _of_stream(stream), count, BLOCK=block
            )
    return multiplier, offset


def coins(words: Tensor | None, seeds: Tensor, epoch: Tensor, prob: Tensor, stream: int) -> Tensor:
    """The masks ``[..., M]`` of float64 ``prob [..., M]`` and int64 ``seeds [...]``, whose axes broadcast.

    Without ``words [M]``, pairs have the words of their numbers, which are then not read but computed.
    """
    edges, seeds, epoch = prob.shape[-1], seeds.to(prob.device), epoch.to(prob.device)
    batch = seeds.shape if prob.dim() == 1 else torch.broadcast_shapes(seeds.shape, prob.shape[:-1])  # which is slow
    out = torch.empty((*batch, edges), dtype=torch.bool, device=prob.device)
    if not out.numel():
        return out
    alone = prob.numel() == edges  # one row for all seeds, which is not copied
    prob = prob.contiguous() if alone else prob.expand(out.shape).contiguous()
    blocks = triton.cdiv(edges, BLOCK)
    with torch.cuda.device_of(out):
        # One axis of programs: the others of a GPU end at 65,535.
        _coins[(blocks * batch.numel(),)](
            seeds.expand(batch).contiguous(), epoch, prob if words is None else words.contiguous(), prob,
            out.view(torch.uint8), _of_stream(stream), edges, blocks, 0 if alone else edges,
            NUMBERED=words is None, BLOCK=BLOCK, num_warps=8,
        )  # fmt: skip
    return out


def row_of_coins(words: Tensor, seed: Tensor, epoch: Tensor, prob: Tensor) -> Tensor:
    """The mask ``[M]`` of one seed, with contiguous ``words`` and float64 ``prob`` on one device.

    A call on a small graph is all preparation, so nothing is checked or made to fit here.
    """
    edges = prob.shape[0]
    out = torch.empty(edges, dtype=torch.bool, device=prob.device)
    if edges:
        with HERE if torch.cuda.current_device() == out.device.index else torch.cuda.device_of(out):
            _row[(-(-edges // BLOCK),)](seed, epoch, words, prob, out, edges, BLOCK, num_warps=8)
    return out


def _of_stream(stream: int) -> int:
    """What a stream adds to a seed, as a signed number."""
    word = (stream + 1) * GOLDEN % 2**64
    return word - 2**64 if word >= 2**63 else word
