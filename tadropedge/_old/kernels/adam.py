"""One step of Adam for a batch of trials."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor


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
    torch.autograd.graph.increment_version(parameter)  # torch does not see what a kernel writes
