"""Kernels of layers in Triton: dropout, and the end of a layer (bias, batch norm, ReLU, dropout) with its gradients.

A signal of 100 trials on PubMed is a gigabyte, and one operation after the other would read and write it a dozen times.
Coins are drawn in registers, the same as those of :mod:`tadropedge.lab.networks.noise`. Sums over nodes are made block
by block and joined by torch: no atomics, so the same input gives the same bits.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor

from tadropedge.operators.kernels.gpu import _mixed
from tadropedge.operators.kernels.words import Dropout

DROPPED = 1024  # entries of a program of dropout
TILE = 4096  # entries of a program of a layer's end


class Norm(NamedTuple):
    """Batch norm: mean and inverse deviation of ``h + bias``, ``[T, 1, F]``; gain and shift ``[T, F]``."""

    mean: Tensor
    inverse: Tensor
    gain: Tensor
    shift: Tensor


# -- kernels ---------------------------------------------------------------------------------------------


@triton.jit
def _kept(place, trial, multiplier, offset, limit):  # type: ignore[no-untyped-def]
    """Whether the coins of the entries at ``place`` (int64) of one trial keep them."""
    word = _mixed((place + 1).to(tl.uint64) * 0x9E3779B97F4A7C15).to(tl.int64)
    return word * tl.load(multiplier + trial) + tl.load(offset + trial) < tl.load(limit + trial)


@triton.jit  # type: ignore[untyped-decorator]
def _dropout(h, out, multiplier, offset, limit, scale, entries, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    """Entries of one trial: one read and one write."""
    trial = tl.program_id(1).to(tl.int64)
    place = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = place < entries
    kept = _kept(place, trial, multiplier, offset, limit)
    value = tl.load(h + trial * entries + place, mask=inside, other=0.0)
    tl.store(out + trial * entries + place, tl.where(kept, value * tl.load(scale + trial), 0.0), mask=inside)


@triton.jit  # type: ignore[untyped-decorator]
def _finish(  # type: ignore[no-untyped-def]
    h, out, bias, mean, inverse, gain, shift, multiplier, offset, limit, scale, rows, features,
    NORM: tl.constexpr, RELU: tl.constexpr, DROP: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """One tile of one trial."""
    trial = tl.program_id(1).to(tl.int64)
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    column = tl.arange(0, BLOCK)
    inside = (row < rows)[:, None] & (column < features)[None, :]
    place = row[:, None] * features + column[None, :]
    own, there = trial * features + column, column < features
    value = tl.load(h + trial * rows * features + place, mask=inside, other=0.0)
    value += tl.load(bias + own, mask=there, other=0.0)[None, :]
    if NORM:
        value -= tl.load(mean + own, mask=there, other=0.0)[None, :]
        value *= tl.load(inverse + own, mask=there, other=0.0)[None, :]
        value = value * tl.load(gain + own, mask=there, other=0.0)[None, :]
        value += tl.load(shift + own, mask=there, other=0.0)[None, :]
    if RELU:
        value = tl.where(value > 0, value, value * 0.0)  # NaN stays NaN: a trial that diverged must show it
    if DROP:
        kept = _kept(place, trial, multiplier, offset, limit)
        value = tl.where(kept, value * tl.load(scale + trial), 0.0)
    tl.store(out + trial * rows * features + place, value, mask=inside)


@triton.jit  # type: ignore[untyped-decorator]
def _moments(h, bias, means, squares, rows, features, ROWS: tl.constexpr, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    """Mean and sum of squared deviations of the columns of ``h + bias`` in one block of rows."""
    trial = tl.program_id(1).to(tl.int64)
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    column = tl.arange(0, BLOCK)
    there = column < features
    inside = (row < rows)[:, None] & there[None, :]
    value = tl.load(h + trial * rows * features + row[:, None] * features + column[None, :], mask=inside, other=0.0)
    value += tl.load(bias + trial * features + column, mask=there, other=0.0)[None, :]
    count = tl.minimum(ROWS, rows - tl.program_id(0) * ROWS)
    mean = tl.sum(tl.where(inside, value, 0.0), axis=0) / count
    deviation = tl.where(inside, value - mean[None, :], 0.0)
    target = (trial * tl.num_programs(0) + tl.program_id(0)) * features + column
    tl.store(means + target, mean, mask=there)
    tl.store(squares + target, tl.sum(deviation * deviation, axis=0), mask=there)


@triton.jit  # type: ignore[untyped-decorator]
def _slopes(  # type: ignore[no-untyped-def]
    g, out, h, dh, bias, mean, inverse, gain, scale, total, product, sums, products, rows, features,
    NORM: tl.constexpr, RELU: tl.constexpr, DROP: tl.constexpr, WRITE: tl.constexpr, SUM: tl.constexpr,
    ROWS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Gradients through dropout, ReLU and batch norm of one tile: their sums over the tile's rows, and ``dh``."""
    trial = tl.program_id(1).to(tl.int64)
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    column = tl.arange(0, BLOCK)
    there = column < features
    inside = (row < rows)[:, None] & there[None, :]
    place = trial * rows * features + row[:, None] * features + column[None, :]
    own = trial * features + column
    slope = tl.load(g + place, mask=inside, other=0.0)
    if RELU:
        result = tl.load(out + place, mask=inside, other=0.0)
        if DROP:
            slope *= tl.load(scale + trial)
        slope = tl.where(result > 0, slope, result * 0.0)  # NaN stays NaN here too
    target = (trial * tl.num_programs(0) + tl.program_id(0)) * features + column
    if NORM:
        value = tl.load(h + place, mask=inside, other=0.0) + tl.load(bias + own, mask=there, other=0.0)[None, :]
        deviation = tl.load(inverse + own, mask=there, other=0.0)
        value = (value - tl.load(mean + own, mask=there, other=0.0)[None, :]) * deviation[None, :]
        if SUM:
            tl.store(products + target, tl.sum(tl.where(inside, slope * value, 0.0), axis=0), mask=there)
        if WRITE:
            slope_mean = tl.load(total + own, mask=there, other=0.0) / rows
            product_mean = tl.load(product + own, mask=there, other=0.0) / rows
            factor = deviation * tl.load(gain + own, mask=there, other=0.0)
            slope = (slope - slope_mean[None, :] - value * product_mean[None, :]) * factor[None, :]
    if SUM:
        tl.store(sums + target, tl.sum(tl.where(inside, slope, 0.0), axis=0), mask=there)
    if WRITE:
        tl.store(dh + place, slope, mask=inside)


# -- what is called --------------------------------------------------------------------------------------


def dropout(h: Tensor, coins: Dropout) -> Tensor:
    """Entries of contiguous ``h [T, n, F]`` dropped, and the others scaled up; without gradients."""
    out, entries = torch.empty_like(h), h.shape[1] * h.shape[2]
    if out.numel():
        with torch.cuda.device_of(out):
            _dropout[(triton.cdiv(entries, DROPPED), h.shape[0])](h, out, *coins[:4], entries, BLOCK=DROPPED)
    return out


def batch_statistics(h: Tensor, bias: Tensor) -> tuple[Tensor, Tensor]:
    """Mean and variance of ``h + bias`` over the nodes, each ``[T, 1, F]``: one read of ``h [T, n, F]``."""
    grid, tile = _tiles(h)
    shape = (h.shape[0], grid[0], h.shape[2])
    means, squares = h.new_empty(shape), h.new_empty(shape)
    with torch.cuda.device_of(h):
        _moments[grid](h, bias, means, squares, h.shape[1], h.shape[2], **tile)
    counts = torch.arange(grid[0], device=h.device).mul_(-tile["ROWS"]).add_(h.shape[1]).clamp_max_(tile["ROWS"])
    counts = counts.to(h.dtype)[:, None]
    mean = (means * counts).sum(dim=1, keepdim=True) / h.shape[1]
    between = (counts * (means - mean) ** 2).sum(dim=1, keepdim=True)
    return mean, (squares.sum(dim=1, keepdim=True) + between) / h.shape[1]


def finish(h: Tensor, bias: Tensor, norm: Norm | None, activate: bool, coins: Dropout | None) -> Tensor:
    """``dropout(relu(norm(h + bias)))`` of contiguous ``h [T, n, F]``, each part where it is asked for.

    One read and one write. The gradients take the statistics of batch norm to be those of ``h + bias`` itself.
    """
    gain, shift = (None, None) if norm is None else (norm.gain, norm.shift)
    finished: Tensor = _Finished.apply(h, bias, gain, shift, norm, activate, coins)  # type: ignore[no-untyped-call]
    return finished


class _Finished(torch.autograd.Function):
    """The end of a layer, and its gradients in one pass over memory, or two with batch norm."""

    @staticmethod
    def forward(ctx: Any, h: Tensor, bias: Tensor, gain: Any, shift: Any, norm: Any, activate: bool, coins: Any) -> Any:
        out = torch.empty_like(h)
        grid, tile = _tiles(h)
        with torch.cuda.device_of(h):
            _finish[grid](
                h, out, bias, *(norm or (bias,) * 4), *(coins[:4] if coins else (bias,) * 4), h.shape[1], h.shape[2],
                NORM=norm is not None, RELU=activate, DROP=coins is not None, **tile,
            )  # fmt: skip
        ctx.save_for_backward(out, out if norm is None else h, bias)
        ctx.norm, ctx.activate, ctx.coins = norm, activate, coins
        return out

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        out, h, bias = ctx.saved_tensors
        norm, gradient = ctx.norm, gradient.contiguous()
        grid, tile = _tiles(h)
        shape = (h.shape[0], grid[0], h.shape[2])
        sums, products, dh = h.new_empty(shape), h.new_empty(shape), torch.empty_like(h)
        mean, inverse, gain, _ = norm or (bias,) * 4
        scale = bias if ctx.coins is None else ctx.coins.scale

        def slopes(total: Tensor, product: Tensor, write: bool, add: bool) -> None:
            with torch.cuda.device_of(h):
                _slopes[grid](
                    gradient, out, h, dh, bias, mean, inverse, gain, scale, total, product, sums, products,
                    h.shape[1], h.shape[2], NORM=norm is not None, RELU=ctx.activate, DROP=ctx.coins is not None,
                    WRITE=write, SUM=add, **tile,
                )  # fmt: skip

        if norm is None:
            slopes(bias, bias, write=True, add=True)
            return dh, sums.sum(dim=1), *(None,) * 5
        slopes(bias, bias, write=False, add=True)
        total, product = sums.sum(dim=1), products.sum(dim=1)
        slopes(total, product, write=True, add=False)
        return dh, torch.zeros_like(bias), product, total, *(None,) * 3  # batch norm takes away what a bias adds


def _tiles(h: Tensor) -> tuple[tuple[int, int], dict[str, Any]]:
    """The grid and the shape of a tile: whole rows of features, as many as fit."""
    block = triton.next_power_of_2(h.shape[2])
    rows = max(1, TILE // block)
    return (triton.cdiv(h.shape[1], rows), h.shape[0]), {"ROWS": rows, "BLOCK": block}
