"""Dropout whose coins are drawn in registers, the same as those of ``tadropedge._old.sampling``."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor


@triton.jit
def tossed(place, trial, multiplier, offset):  # type: ignore[no-untyped-def]
    """The signed coins of the entries at ``place`` (int64) of one trial."""
    word = (place + 1).to(tl.uint64) * 0x9E3779B97F4A7C15
    word = (word ^ (word >> 30)) * 0xBF58476D1CE4E5B9
    word = (word ^ (word >> 27)) * 0x94D049BB133111EB
    word = word ^ (word >> 31)
    return word.to(tl.int64) * tl.load(multiplier + trial) + tl.load(offset + trial)


@triton.jit  # type: ignore[untyped-decorator]
def _dropout(h, out, multiplier, offset, limit, scale, entries, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    """The entries of one trial: one read and one write."""
    trial = tl.program_id(1).to(tl.int64)
    place = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = place < entries
    kept = tossed(place, trial, multiplier, offset) < tl.load(limit + trial)
    value = tl.load(h + trial * entries + place, mask=inside, other=0.0)
    tl.store(out + trial * entries + place, tl.where(kept, value * tl.load(scale + trial), 0.0), mask=inside)


def dropout(h: Tensor, multiplier: Tensor, offset: Tensor, limit: Tensor, scale: Tensor) -> Tensor:
    """Drop entries of contiguous ``h [T, N, F]``."""
    out = torch.empty_like(h)
    entries = h.shape[1] * h.shape[2]
    block = 1024
    _dropout[(triton.cdiv(entries, block), h.shape[0])](h, out, multiplier, offset, limit, scale, entries, BLOCK=block)
    return out
