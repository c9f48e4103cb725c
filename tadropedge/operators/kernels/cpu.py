"""The CPU's kernels, compiled by numba: each does in one pass over memory what torch does in many.

A compiled function works on a range of rows (or of edges, or of blocks) of all trials; what calls it divides the range
among threads. Every number is computed by one thread, in an order that depends on neither threads nor trials, without
fused or reordered operations: so it has the bits of :mod:`tadropedge.operators.kernels.reference`. Exceptions say so.

Compiled code is kept beside this file, in the user's cache where that cannot be written, or in ``NUMBA_CACHE_DIR``.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numba
import numpy as np
import torch
from llvmlite import ir
from numba.extending import intrinsic
from torch import Tensor

from tadropedge.operators.kernels import reference
from tadropedge.operators.kernels.arcs import kept_arcs, spread
from tadropedge.operators.kernels.compiling import Array, as_array, compiled, empty, mixed, reordered
from tadropedge.operators.kernels.edges import signed_sums, squared_differences, triangles
from tadropedge.operators.kernels.layers import (
    accuracy,
    adam,
    cross_entropy,
    dense_product,
    dense_slope,
    dropout,
    finish,
)
from tadropedge.operators.kernels.threads import run
from tadropedge.operators.kernels.words import GOLDEN, MASK, Seed, as_word, broadcast, key_of_draw, signed
from tadropedge.operators.pattern import Csr, Pattern, Scales

__all__ = [
    "accuracy", "adam", "coins", "cross_entropy", "degrees", "dense_product", "dense_slope", "draw_keys", "dropout",
    "entries", "finish", "kept_arcs", "product", "signed_sums", "slopes", "spread", "squared_differences", "thinned",
    "thinned_product", "triangles",
]  # fmt: skip

AHEAD = 6  # rows of whose entries the rows of x are asked for in advance
FAR = 2**23  # bytes of a signal from which that pays


class Thinned(NamedTuple):
    """The kept entries of an operator: ``cols`` and ``values [T, E]``, of row i from ``crow[i]`` to ``ends[t, i]``."""

    ends: Array
    cols: Array
    values: Array


# -- coins -----------------------------------------------------------------------------------------------


@compiled
def _coins(begin, end, keys, prob, multiplier, offset, out):  # type: ignore[no-untyped-def]
    """``a · h + b`` in 64 bits, of which the upper 53 are compared with the probability."""
    mine = keys[begin:end]  # with a range from 0, numba asks of no place whether it is negative
    for row in range(out.shape[0]):
        share, a, b, kept = prob[min(row, prob.shape[0] - 1)], multiplier[row], offset[row], out[row, begin:end]
        if len(share) == 1:
            limit = (share[0] - 0.5) * 9007199254740992.0  # 2⁵³
            for edge in range(len(mine)):
                kept[edge] = np.float64((mine[edge] * a + b) >> 11) < limit
        else:
            share = share[begin:end]
            for edge in range(len(mine)):
                limit = (share[edge] - 0.5) * 9007199254740992.0
                kept[edge] = np.float64((mine[edge] * a + b) >> 11) < limit


def coins(keys: Tensor, seed: Seed, epoch: Seed, prob: Tensor, stream: int = 0) -> Tensor:
    """The masks ``[..., M]``."""
    edges = keys.shape[0]
    if isinstance(seed, int) and isinstance(epoch, int):
        batch = prob.shape[:-1]
        multiplier, offset = (np.full(batch.numel(), part) for part in key_of_draw(seed, epoch, stream))
    else:
        seeds, epochs = torch.broadcast_tensors(torch.as_tensor(as_word(seed)), torch.as_tensor(as_word(epoch)))
        drawn = draw_keys(seeds, epochs, stream)
        batch = broadcast(seeds.shape, prob.shape[:-1])
        multiplier, offset = (as_array(part.expand(batch).reshape(-1)) for part in drawn)
    shared = prob.dim() == 1 or prob.shape[:-1].numel() == 1
    rows = prob.reshape(1, -1) if shared else prob.expand(*batch, -1).reshape(batch.numel(), prob.shape[-1])
    out = torch.empty((batch.numel(), edges), dtype=torch.bool)
    run(_coins, edges, out.numel(), keys.numpy(), as_array(rows), multiplier, offset, out.numpy())
    return out.view(*batch, edges)


@compiled
def _draw_keys(begin, end, seeds, epochs, added, multiplier, offset):  # type: ignore[no-untyped-def]
    """The key of each seed."""
    golden = np.uint64(0x9E3779B97F4A7C15)
    for place in range(begin, end):
        state = mixed(mixed(np.uint64(seeds[place]) + np.uint64(added)) + np.uint64(epochs[place]) * golden) + golden
        multiplier[place] = np.int64(mixed(state) | np.uint64(1))
        offset[place] = np.int64(mixed(state + golden))


def draw_keys(seeds: Tensor, epoch: Tensor, stream: int) -> tuple[Tensor, Tensor]:
    """The odd multiplier and the offset of each draw."""
    multiplier, offset = (torch.empty(seeds.shape, dtype=torch.int64) for _ in range(2))
    flat = (each.view(-1).numpy() for each in (multiplier, offset))
    run(_draw_keys, seeds.numel(), 0, as_array(seeds.reshape(-1)), as_array(epoch.expand(seeds.shape).reshape(-1)),
        signed((stream + 1) * GOLDEN & MASK), *flat)  # fmt: skip
    return multiplier, offset


# -- sums of rows ----------------------------------------------------------------------------------------


@intrinsic  # type: ignore[untyped-decorator]
def _prefetch(typing: Any, array: Any, offset: Any) -> Any:
    """Ask for the line of the cache that holds a byte of an array, and go on."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        byte, number = ir.IntType(8).as_pointer(), ir.IntType(32)
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        place = builder.gep(builder.bitcast(data, byte), [arguments[1]])
        kind = ir.FunctionType(ir.VoidType(), [byte, number, number, number])
        ask = builder.module.declare_intrinsic("llvm.prefetch", [byte], kind)
        builder.call(ask, [place, number(0), number(3), number(1)])  # to read, for every level of the cache, data
        return context.get_dummy_value()

    return numba.void(array, numba.intp), generate


@numba.njit
def _ask_for(x, row):  # type: ignore[no-untyped-def]
    """Have a row brought into the cache."""
    size = x.shape[1] * x.itemsize
    for line in range(0, size, 64):
        _prefetch(x, np.int64(row) * size + line)


@numba.njit
def _sum_rows(begin, end, starts, ends, cols, values, x, far, out):  # type: ignore[no-untyped-def]
    """``out_i = Σ v x_j`` over the entries of each row, in order; of a ``far`` x, rows are asked for in advance."""
    for i in range(begin, end):
        if far and i + AHEAD < end:
            for entry in range(starts[i + AHEAD], ends[i + AHEAD]):
                _ask_for(x, cols[entry])
        total, entry = out[i], starts[i]
        total[:] = 0
        while entry + 4 <= ends[i]:  # four at a time, so that the sums are read and written less often
            v0, v1, v2, v3 = values[entry], values[entry + 1], values[entry + 2], values[entry + 3]
            x0, x1, x2, x3 = x[cols[entry]], x[cols[entry + 1]], x[cols[entry + 2]], x[cols[entry + 3]]
            for feature in range(x.shape[1]):
                so_far = (total[feature] + v0 * x0[feature]) + v1 * x1[feature]
                total[feature] = (so_far + v2 * x2[feature]) + v3 * x3[feature]
            entry += 4
        while entry < ends[i]:
            value, other = values[entry], x[cols[entry]]
            for feature in range(x.shape[1]):
                total[feature] += value * other[feature]
            entry += 1


# -- operators -------------------------------------------------------------------------------------------


@compiled
def _degrees(begin, end, ends, weights, loops, out):  # type: ignore[no-untyped-def]
    """Edges in their order, first at their lower ends, then at the higher ones."""
    for trial in range(begin, end):
        total, weight = out[trial], weights[trial]
        total[:] = loops
        for side in range(2):
            for edge in range(ends.shape[1]):
                total[np.uint64(ends[side, edge])] += total.dtype.type(weight[edge])


@compiled
def _counts(begin, end, ends, mask, loops, out):  # type: ignore[no-untyped-def]
    """The same of masks, whose sums are exact in any order."""
    for trial in range(begin, end):
        total = out[trial]
        total[:] = loops
        for edge in range(ends.shape[1]):
            one = total.dtype.type(mask[trial, edge])
            total[np.uint64(ends[0, edge])] += one
            total[np.uint64(ends[1, edge])] += one


def degrees(pattern: Pattern, weights: Tensor, loops: float, dtype: torch.dtype) -> Tensor:
    """The sum of the ``weights [..., M]`` of each node's edges, plus ``loops``: ``[..., N]``."""
    if weights.requires_grad:
        return reference.degrees(pattern, weights, loops, dtype)
    rows = weights.reshape(weights.shape[:-1].numel(), weights.shape[-1])
    out = torch.empty((len(rows), pattern.num_nodes), dtype=dtype)
    kernel = _counts if weights.dtype == torch.bool else _degrees
    run(kernel, len(rows), rows.numel(), pattern.ends, as_array(rows), loops, out.numpy())
    return out.view(*weights.shape[:-1], pattern.num_nodes)


@compiled
def _entries(begin, end, crow, col, pair, weights, left, right, diagonal, out):  # type: ignore[no-untyped-def]
    """The value of each entry; without weights all are 1. No unsigned place is checked for counting from the end."""
    kind, edges = out.dtype.type, np.uint64(weights.shape[1])
    for trial in range(out.shape[0]):
        ds = diagonal[min(trial, len(diagonal) - 1)]
        ls, rs = left[min(trial, len(left) - 1)], right[min(trial, len(right) - 1)]
        for i in range(begin, end):
            for entry in range(np.uint64(crow[i]), np.uint64(crow[i + 1])):
                j = np.uint64(col[entry])
                value = ls[i] * rs[j]
                if len(weights) and edges:
                    edge = np.uint64(pair[entry])
                    value *= kind(weights[min(trial, len(weights) - 1), edge if edge < edges else np.uint64(0)])
                out[trial, entry] = ds[i] if j == i else value


def entries(pattern: Pattern, weights: Tensor | None, scales: Scales) -> Tensor:
    """The values ``[T, E]`` of an operator."""
    if any(part is not None and part.requires_grad for part in (weights, *scales[:3])):
        return reference.entries(pattern, weights, scales)
    parts = _parts(weights, scales)
    out = empty((max(map(len, parts)), pattern.num_entries), scales.left.dtype)
    run(_entries, pattern.num_nodes, out.numel(), *pattern.arrays, *parts, out.numpy())
    return out


@compiled
def _thinned(begin, end, crow, col, pair, weights, left, right, diagonal, ends, cols, values):  # type: ignore[no-untyped-def]
    """The kept entries of each row, moved to its front.

    There are no branches, which would be guessed wrong: whatever is written, the next entry takes the place of a
    dropped one, and the value of the diagonal comes last.
    """
    kind, edges = values.dtype.type, np.uint64(weights.shape[1])
    for trial in range(values.shape[0]):
        mine, ds = weights[min(trial, len(weights) - 1)], diagonal[min(trial, len(diagonal) - 1)]
        ls, rs = left[min(trial, len(left) - 1)], right[min(trial, len(right) - 1)]
        for i in range(begin, end):
            place = np.uint64(crow[i])
            own = place
            for entry in range(np.uint64(crow[i]), np.uint64(crow[i + 1])):
                j, edge = np.uint64(col[entry]), np.uint64(pair[entry])
                is_own = edge >= edges
                weight = mine[np.uint64(0) if is_own else edge]
                cols[trial, place] = col[entry]
                values[trial, place] = ls[i] * rs[j] * kind(weight)
                own = place if is_own else own
                place += np.uint64((weight != 0) | is_own)
            values[trial, own] = ds[i]
            ends[trial, i] = place


def thinned(pattern: Pattern, weights: Tensor | None, scales: Scales) -> Thinned:
    """What products with an operator need: its kept entries."""
    if weights is None or not pattern.num_pairs:
        values = as_array(entries(pattern, weights, scales))
        return Thinned(pattern.arrays[0][None, 1:], pattern.arrays[1][None], values)
    parts = _parts(weights, scales)
    rows, count = max(map(len, parts)), pattern.num_entries
    ends = np.empty((rows, pattern.num_nodes), dtype=pattern.arrays[0].dtype)
    cols = empty((rows, count), pattern.col.dtype).numpy()
    found = Thinned(ends, cols, empty((rows, count), scales.left.dtype).numpy())
    run(_thinned, pattern.num_nodes, 4 * rows * count, *pattern.arrays, *parts, *found)
    return found


def thinned_product(pattern: Pattern, operator: Thinned, x: Tensor) -> Tensor:
    """``S x`` of x ``[X, N, F]``: ``[T, N, F]``; dropped entries are not even looked at."""
    return _multiplied(pattern, operator.ends, operator.cols, operator.values, x)


# -- products --------------------------------------------------------------------------------------------


@compiled
def _product(begin, end, starts, ends, cols, values, x, far, out):  # type: ignore[no-untyped-def]
    """One trial after the other."""
    for trial in range(out.shape[0]):
        e, c, v = min(trial, len(ends) - 1), min(trial, len(cols) - 1), min(trial, len(values) - 1)
        _sum_rows(begin, end, starts, ends[e], cols[c], values[v], x[min(trial, len(x) - 1)], far, out[trial])


def product(places: Csr, values: Tensor, x: Tensor) -> Tensor:
    """``A x`` of values ``[V, E]`` and x ``[X, cols, F]``: ``[T, rows, F]``."""
    crow, col = places.arrays[:2]
    return _multiplied(places, crow[None, 1:], col[None], as_array(values), x)


def _multiplied(places: Csr, ends: Array, cols: Array, values: Array, x: Tensor) -> Tensor:
    trials = max(len(values), x.shape[0])
    out = empty((trials, places.num_rows, x.shape[2]), x.dtype)
    work = trials * places.num_entries * x.shape[2]
    run(_product, places.num_rows, work, places.arrays[0], ends, cols, values, as_array(x), _is_far(x), out.numpy())
    return out


def _is_far(x: Tensor) -> bool:
    """Whether a signal is too large for the cache, so that its rows are worth asking for in advance."""
    return x.shape[1] * x.shape[2] * x.element_size() > FAR


@reordered
def _slopes(begin, end, crow, col, gradient, x, out):  # type: ignore[no-untyped-def]
    """``g_i · x_j`` of each entry, added up over the trials where the values are shared."""
    for trial in range(max(gradient.shape[0], x.shape[0])):
        g, block = gradient[min(trial, gradient.shape[0] - 1)], x[min(trial, x.shape[0] - 1)]
        target = out[min(trial, out.shape[0] - 1)]
        for i in range(begin, end):
            for entry in range(crow[i], crow[i + 1]):
                j, total = col[entry], out.dtype.type(0)
                for feature in range(x.shape[2]):
                    total += g[i, feature] * block[j, feature]
                target[entry] += total


def slopes(places: Csr, gradient: Tensor, x: Tensor, shared: bool) -> Tensor:
    """``g_i · x_j`` at (i, j), ``[T, E]``, or its sum over the trials, ``[1, E]``."""
    trials = max(len(gradient), len(x))
    out = torch.zeros((1 if shared else trials, places.num_entries), dtype=x.dtype)
    work = trials * places.num_entries * x.shape[2]
    run(_slopes, places.num_rows, work, *places.arrays[:2], as_array(gradient), as_array(x), out.numpy())
    return out


# -- arguments -------------------------------------------------------------------------------------------

NO_WEIGHTS = np.empty((0, 0), dtype=np.bool_)


def _parts(weights: Tensor | None, scales: Scales) -> tuple[Array, ...]:
    return NO_WEIGHTS if weights is None else as_array(weights), *map(as_array, scales[:3])
