"""Triton kernels, imported only where there is a GPU or Triton's interpreter stands in for one (TRITON_INTERPRET=1)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
import triton
import triton.language as tl
from torch import Tensor

if TYPE_CHECKING:
    from tadropedge.sparse import Csr


@triton.jit  # type: ignore[untyped-decorator]
def _spmm(  # type: ignore[no-untyped-def]
    crow, col, values, x, out, rows, features, values_step, x_step, BLOCK: tl.constexpr, ENTRIES: tl.constexpr
):
    """One row of one trial: the sum over the row's entries of value times row of x, several entries at a time."""
    row, trial, part = tl.program_id(0), tl.program_id(1).to(tl.int64), tl.program_id(2)
    place = part * BLOCK + tl.arange(0, BLOCK)
    inside = place < features
    total = tl.zeros((ENTRIES, BLOCK), dtype=out.dtype.element_ty)
    begin, end = tl.load(crow + row), tl.load(crow + row + 1)
    for first in range(begin, end, ENTRIES):
        entry = first + tl.arange(0, ENTRIES)
        there = entry < end
        other = tl.load(col + entry, mask=there, other=0).to(tl.int64)
        value = tl.load(values + trial * values_step + entry, mask=there, other=0.0)
        block = x + trial * x_step + other[:, None] * features + place[None, :]
        total += value[:, None] * tl.load(block, mask=there[:, None] & inside[None, :], other=0.0)
    tl.store(out + (trial * rows + row) * features + place, tl.sum(total, axis=0), mask=inside)


def spmm(places: Csr, values: Tensor, x: Tensor, out: Tensor | None = None) -> Tensor:
    """``A x`` for a whole batch in one launch; a missing trials axis is read again for every trial."""
    trials = max(values.shape[0] if values.dim() == 2 else 1, x.shape[0] if x.dim() == 3 else 1)
    features = x.shape[-1]
    values, x = values.contiguous(), x.contiguous()
    if out is None:
        out = torch.empty((trials, places.num_rows, features), dtype=x.dtype, device=x.device)
    if not out.numel():
        return out
    block = min(256, triton.next_power_of_2(features))
    grid = (places.num_rows, trials, triton.cdiv(features, block))
    _spmm[grid](
        places.crow.contiguous(),
        places.col.contiguous(),
        values,
        x,
        out,
        places.num_rows,
        features,
        values.shape[-1] if values.dim() == 2 and values.shape[0] > 1 else 0,
        x.shape[-2] * features if x.dim() == 3 and x.shape[0] > 1 else 0,
        BLOCK=block,
        ENTRIES=max(1, min(16, 1024 // block)),
        num_warps=1,
    )
    return out


@triton.jit  # type: ignore[untyped-decorator]
def _dropout(h, out, multiplier, offset, limit, scale, entries, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    """The coins of ``tadropedge.sampling`` for the entries of one trial, in registers."""
    trial = tl.program_id(1).to(tl.int64)
    place = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = place < entries
    word = (place + 1).to(tl.uint64) * 0x9E3779B97F4A7C15
    word = (word ^ (word >> 30)) * 0xBF58476D1CE4E5B9
    word = (word ^ (word >> 27)) * 0x94D049BB133111EB
    word = word ^ (word >> 31)
    coin = word.to(tl.int64) * tl.load(multiplier + trial) + tl.load(offset + trial)
    kept = coin < tl.load(limit + trial)
    value = tl.load(h + trial * entries + place, mask=inside, other=0.0)
    tl.store(out + trial * entries + place, tl.where(kept, value * tl.load(scale + trial), 0.0), mask=inside)


def dropout(h: Tensor, multiplier: Tensor, offset: Tensor, limit: Tensor, scale: Tensor) -> Tensor:
    """Drop entries of contiguous ``h [T, N, F]``: one read and one write."""
    out = torch.empty_like(h)
    entries = h.shape[1] * h.shape[2]
    block = 1024
    _dropout[(triton.cdiv(entries, block), h.shape[0])](h, out, multiplier, offset, limit, scale, entries, BLOCK=block)
    return out


@triton.jit  # type: ignore[untyped-decorator]
def _adam(  # type: ignore[no-untyped-def]
    parameter, gradient, first, second, rate, decay, corrections, entries, beta1, beta2, epsilon, BLOCK: tl.constexpr
):
    """One step of Adam for the entries of one trial: four reads and three writes."""
    trial = tl.program_id(1).to(tl.int64)
    place = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = place < entries
    place += trial * entries
    p = tl.load(parameter + place, mask=inside, other=0.0)
    g = tl.load(gradient + place, mask=inside, other=0.0) + tl.load(decay + trial) * p
    m = tl.load(first + place, mask=inside, other=0.0)
    v = tl.load(second + place, mask=inside, other=0.0)
    m += (g - m) * (1 - beta1)
    v = v * beta2 + g * g * (1 - beta2)
    p -= tl.load(rate + trial) / tl.load(corrections) * m / (tl.sqrt(v) / tl.load(corrections + 1) + epsilon)
    tl.store(first + place, m, mask=inside)
    tl.store(second + place, v, mask=inside)
    tl.store(parameter + place, p, mask=inside)


def adam(
    parameter: Tensor,
    gradient: Tensor,
    moments: tuple[Tensor, Tensor],
    settings: tuple[Tensor, Tensor],
    corrections: Tensor,
    constants: tuple[float, float, float],
) -> None:
    """Change ``parameter [T, ...]`` and its two moments in place; ``settings`` are rates and decays ``[T]``."""
    entries = parameter[0].numel()
    block = 1024
    _adam[(triton.cdiv(entries, block), parameter.shape[0])](
        parameter, gradient.contiguous(), *moments, *settings, corrections, entries, *constants, BLOCK=block
    )
