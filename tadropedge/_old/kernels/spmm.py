"""The sparse product of a batch: one CSR pattern, values and a dense block for each trial."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
import triton
import triton.language as tl
from torch import Tensor

if TYPE_CHECKING:
    from tadropedge._old.sparse import Csr

LANES = 2  # trials in one program: one warp each
LONG_ROW = 16  # entries per row, on average, from which more of them are read together


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


def spmm(places: Csr, values: Tensor, x: Tensor, out: Tensor | None = None) -> Tensor:
    """``A x`` for a whole batch in one launch; a missing trials axis is read again for every trial."""
    trials = max(values.shape[0] if values.dim() == 2 else 1, x.shape[0] if x.dim() == 3 else 1)
    features = x.shape[-1]
    values, x = values.contiguous(), x.contiguous()
    if out is None:
        out = torch.empty((trials, places.num_rows, features), dtype=x.dtype, device=x.device)
    if not out.numel():
        return out
    block = min(128, triton.next_power_of_2(features))
    together = min(LANES, triton.next_power_of_2(trials))
    grid = (places.num_rows, triton.cdiv(trials, together), triton.cdiv(features, block))
    _spmm[grid](
        places.crow.contiguous(),
        places.col.contiguous(),
        values,
        x,
        out,
        places.num_rows,
        features,
        trials,
        values.shape[-1] if values.dim() == 2 and values.shape[0] > 1 else 0,
        x.shape[-2] * features if x.dim() == 3 and x.shape[0] > 1 else 0,
        BLOCK=block,
        ENTRIES=8 if places.col.shape[0] > LONG_ROW * places.num_rows else 2,
        TRIALS=together,
        num_warps=together if block >= 32 else 1,
    )
    return out
