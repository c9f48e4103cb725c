"""Kernels in Triton, for a GPU, or for Triton's interpreter in its place (``TRITON_INTERPRET=1``).

* ``coins`` and ``draw_keys`` are those of :mod:`~tadropedge.operators.kernels.reference`, to the bit. Step by step in
  torch, a mask of 10⁷ edges is six passes over 64-bit numbers, and its key ninety launches.
* ``product`` is the sparse product of :mod:`tadropedge.operators.product`.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from tadropedge.operators.kernels.reference import (
    accuracy,
    adam,
    cross_entropy,
    degrees,
    dense_product,
    dense_slope,
    dropout,
    entries,
    finish,
    kept_arcs,
    signed_sums,
    slopes,
    spread,
    squared_differences,
    thinned,
    triangles,
)
from tadropedge.operators.kernels.words import GOLDEN, Seed, as_word
from tadropedge.operators.pattern import Csr, Pattern

__all__ = [
    "accuracy", "adam", "coins", "cross_entropy", "degrees", "dense_product", "dense_slope", "draw_keys", "dropout",
    "entries", "finish", "kept_arcs", "product", "signed_sums", "slopes", "spread", "squared_differences", "thinned",
    "thinned_product", "triangles",
]  # fmt: skip

COINS = 4096  # coins of a program: the key, which each program computes, is then cheap
KEYS = 128
TRIALS = 2  # trials in one program of a product: one warp each
LONG_ROW = 16  # entries per row, on average, from which more of them are read together


# -- coins -----------------------------------------------------------------------------------------------


@triton.jit
def _mixed(word):  # type: ignore[no-untyped-def]
    """SplitMix64's finaliser of uint64 words."""
    word = (word ^ (word >> 30)) * 0xBF58476D1CE4E5B9
    word = (word ^ (word >> 27)) * 0x94D049BB133111EB
    return word ^ (word >> 31)


@triton.jit
def _key_of(seed, epoch, stream):  # type: ignore[no-untyped-def]
    """The odd multiplier and the offset, uint64, of int64 seeds; ``stream`` is what its number adds to a seed."""
    state = _mixed((seed + stream).to(tl.uint64)) + epoch.to(tl.uint64) * 0x9E3779B97F4A7C15
    first = _mixed(state).to(tl.uint64) + 0x9E3779B97F4A7C15
    return _mixed(first) | 1, _mixed(first + 0x9E3779B97F4A7C15)


@triton.jit  # type: ignore[untyped-decorator]
def _keys(seeds, epoch, multiplier, offset, stream, count, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    """The keys of a block of seeds."""
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = place < count
    odd, shift = _key_of(tl.load(seeds + place, mask=inside, other=0), tl.load(epoch), stream)
    tl.store(multiplier + place, odd.to(tl.int64), mask=inside)
    tl.store(offset + place, shift.to(tl.int64), mask=inside)


@triton.jit  # type: ignore[untyped-decorator]
def _coins(  # type: ignore[no-untyped-def]
    seeds, epoch, keys, prob, out, stream, edges, blocks, prob_step, NUMBERED: tl.constexpr, BLOCK: tl.constexpr
):
    """A block of one row: at most two reads and one write for each coin."""
    row = (tl.program_id(0) // blocks).to(tl.int64)
    place = (tl.program_id(0) % blocks).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = place < edges
    multiplier, offset = _key_of(tl.load(seeds + row), tl.load(epoch), stream)
    if NUMBERED:
        key = _mixed((place + 1).to(tl.uint64) * 0x9E3779B97F4A7C15)
    else:
        key = tl.load(keys + place, mask=inside, other=0).to(tl.uint64)
    coin = (key * multiplier + offset).to(tl.int64) >> 11  # the sign stays: 53 bits, exact in float64
    limit = (tl.load(prob + row * prob_step + place, mask=inside, other=0.0) - 0.5) * 9007199254740992.0  # 2⁵³
    tl.store(out + row * edges + place, (coin.to(tl.float64) < limit).to(tl.uint8), mask=inside)


def draw_keys(seeds: Tensor, epoch: Tensor, stream: int) -> tuple[Tensor, Tensor]:
    """``draw_key`` of int64 ``seeds`` of any shape, in one launch."""
    seeds, epoch = seeds.contiguous(), epoch.to(seeds.device)
    multiplier, offset = torch.empty_like(seeds), torch.empty_like(seeds)
    count = seeds.numel()
    if count:
        with torch.cuda.device_of(seeds):
            _keys[(triton.cdiv(count, KEYS),)](seeds, epoch, multiplier, offset, _added(stream), count, BLOCK=KEYS)
    return multiplier, offset


def coins(keys: Tensor | None, seed: Seed, epoch: Seed, prob: Tensor, stream: int = 0) -> Tensor:
    """The masks ``[..., M]`` of float64 ``prob [..., M]`` and int64 ``seeds [...]``, whose axes broadcast.

    ``keys [M]`` are those of the pairs; without, pairs have the keys of their numbers, which are then not read but
    computed.
    """
    edges = prob.shape[-1] if keys is None else keys.shape[0]
    seeds, epoch = (torch.as_tensor(as_word(each), device=prob.device) for each in (seed, epoch))
    prob = prob if prob.shape[-1] == edges else prob.expand(*prob.shape[:-1], edges)
    batch = seeds.shape if prob.dim() == 1 else torch.broadcast_shapes(seeds.shape, prob.shape[:-1])  # which is slow
    out = torch.empty((*batch, edges), dtype=torch.bool, device=prob.device)
    if not out.numel():
        return out
    alone = prob.numel() == edges  # one row for all seeds, which is not copied
    prob = prob.contiguous() if alone else prob.expand(out.shape).contiguous()
    blocks = triton.cdiv(edges, COINS)
    with torch.cuda.device_of(out):
        # One axis of programs: the others of a GPU end at 65,535.
        _coins[(blocks * batch.numel(),)](
            seeds.expand(batch).contiguous(), epoch, prob if keys is None else keys.contiguous(), prob,
            out.view(torch.uint8), _added(stream), edges, blocks, 0 if alone else edges,
            NUMBERED=keys is None, BLOCK=COINS, num_warps=8,
        )  # fmt: skip
    return out


def _added(stream: int) -> int:
    """What a stream adds to a seed, as a signed number."""
    word = (stream + 1) * GOLDEN % 2**64
    return word - 2**64 if word >= 2**63 else word


# -- products --------------------------------------------------------------------------------------------


@triton.jit  # type: ignore[untyped-decorator]
def _spmm(  # type: ignore[no-untyped-def]
    crow, col, values, x, out, rows, features, trials, values_step, x_step,
    BLOCK: tl.constexpr, ENTRIES: tl.constexpr, TRIALS: tl.constexpr,
):  # fmt: skip
    """One row of some trials: the sum over the row's entries of value times row of x, several entries at a time."""
    row, part = tl.program_id(0), tl.program_id(2)
    trial = (tl.program_id(1) * TRIALS + tl.arange(0, TRIALS)).to(tl.int64)
    there = trial < trials
    same = tl.zeros((TRIALS,), dtype=tl.int32)  # every trial looks at the same entry
    place = part * BLOCK + tl.arange(0, BLOCK)
    inside = place < features
    total = tl.zeros((TRIALS, BLOCK), dtype=out.dtype.element_ty)
    begin, end = tl.load(crow + row), tl.load(crow + row + 1)
    for first in range(begin, end, ENTRIES):
        for one in tl.static_range(ENTRIES):
            entry = first + one + same
            valid = there & (entry < end)
            other = tl.load(col + entry, mask=valid, other=0).to(tl.int64)
            value = tl.load(values + trial * values_step + entry, mask=valid, other=0.0)
            block = x + (trial * x_step + other * features)[:, None] + place[None, :]
            total += value[:, None] * tl.load(block, mask=valid[:, None] & inside[None, :], other=0.0)
    target = out + (trial[:, None] * rows + row) * features + place[None, :]
    tl.store(target, total, mask=there[:, None] & inside[None, :])


def thinned_product(pattern: Pattern, operator: Tensor, x: Tensor) -> Tensor:
    """The product ``[T, N, F]`` with an operator, whose values are made first."""
    return product(pattern, operator, x)


def product(places: Csr, values: Tensor, x: Tensor) -> Tensor:
    """``A x`` for a whole batch in one launch, ``[T, rows, F]``; an axis of one trial is read again for each."""
    trials = max(len(values), len(x))
    features = x.shape[-1]
    values, x = values.contiguous(), x.contiguous()
    out = torch.empty((trials, places.num_rows, features), dtype=x.dtype, device=x.device)
    if not out.numel():
        return out
    block = min(128, triton.next_power_of_2(features))
    together = min(TRIALS, triton.next_power_of_2(trials))
    with torch.cuda.device_of(out):
        _spmm[(places.num_rows, triton.cdiv(trials, together), triton.cdiv(features, block))](
            places.crow.contiguous(), places.col.contiguous(), values, x, out, places.num_rows, features, trials,
            values.shape[-1] if len(values) > 1 else 0,
            x.shape[-2] * features if len(x) > 1 else 0,
            BLOCK=block, ENTRIES=8 if places.num_entries > LONG_ROW * places.num_rows else 2, TRIALS=together,
            num_warps=together if block >= 32 else 1,
        )  # fmt: skip
    return out
