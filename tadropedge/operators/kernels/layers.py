"""The CPU's kernels of training: products with few columns, ends of layers, dropout, loss, accuracy, Adam.

Their results are those of :mod:`tadropedge.operators.kernels.reference` but for rounding.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from torch import Tensor

from tadropedge.operators.kernels import reference
from tadropedge.operators.kernels.compiling import as_array, compiled, empty, mixed, reordered
from tadropedge.operators.kernels.threads import run
from tadropedge.operators.kernels.words import Dropout

ROWS = 256  # whose sums are added up first: fixed, so that no sum depends on the number of threads
HASH = 8  # multiply-adds that a coin takes


# -- the end of a layer, and dropout ---------------------------------------------------------------------


@compiled
def _finish(begin, end, h, bias, activate, drop, names, multiplier, offset, limit, scale):  # type: ignore[no-untyped-def]
    """Bias, ReLU and dropout, each where it is asked for, in place: a row stays in the cache meanwhile."""
    golden, width, kind = np.uint64(0x9E3779B97F4A7C15), h.shape[2], h.dtype.type
    for trial in range(h.shape[0]):
        for row in range(begin, end):
            target = h[trial, row]
            if len(bias):
                for feature in range(width):
                    target[feature] += bias[trial, feature]
            if activate:
                for feature in range(width):
                    target[feature] *= kind(target[feature] > 0)  # NaN stays NaN: who diverged must show it
            if drop:
                first = np.int64((names[row] if len(names) else row) * width + 1)
                a, b, most, factor = multiplier[trial], offset[trial], limit[trial], scale[trial]
                for feature in range(width):
                    word = np.int64(mixed(np.uint64(first + feature) * golden))
                    target[feature] *= factor * kind(word * a + b < most)


@compiled
def _slope(begin, end, gradient, out, scale, slope, sums):  # type: ignore[no-untyped-def]
    """The gradient through dropout and ReLU, where ``out`` is positive, and its sums over blocks of rows."""
    for trial in range(out.shape[0]):
        for block in range(begin, end):
            total = sums[trial, block]
            total[:] = 0
            for row in range(block * ROWS, min(out.shape[1], (block + 1) * ROWS)):
                for feature in range(out.shape[2]):
                    value = gradient[trial, row, feature] * scale[trial]
                    value = value if out[trial, row, feature] > 0 else value * 0
                    slope[trial, row, feature] = value
                    total[feature] += value


def finish(h: Tensor, bias: Tensor, activate: bool, dropout: Dropout | None) -> Tensor:
    """``dropout(relu(h + bias))`` of ``h [T, n, F]`` and ``bias [T, F]``, in the memory of h."""
    if not activate:
        h = h.add_(bias[:, None])
        return h if dropout is None else _Dropped.apply(h, dropout)  # type: ignore[no-untyped-call]
    finished: Tensor = _Finished.apply(h.contiguous(), bias, dropout)  # type: ignore[no-untyped-call]
    return finished


def dropout(h: Tensor, dropout: Dropout) -> Tensor:
    """``h [T, n, F]`` with entries dropped, and the others scaled up."""
    dropped: Tensor = _Dropped.apply(h, dropout)  # type: ignore[no-untyped-call]
    return dropped


class _Finished(torch.autograd.Function):
    """A kept entry is positive where ReLU let it pass, and a dropped one is 0: so the result says what was dropped."""

    @staticmethod
    def forward(ctx: Any, h: Tensor, bias: Tensor, dropout: Dropout | None) -> Tensor:
        ctx.mark_dirty(h)
        _run_finish(h, bias, True, dropout)
        ctx.save_for_backward(h)
        ctx.scale = h.new_ones(h.shape[0]) if dropout is None else dropout.scale.reshape(-1)
        return h

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor, None]:
        (out,) = ctx.saved_tensors
        slope = empty(out.shape, out.dtype)
        blocks = -(-out.shape[1] // ROWS)
        sums = torch.empty((out.shape[0], blocks, out.shape[2]), dtype=out.dtype)
        arrays = (as_array(each) for each in (gradient, out, ctx.scale, slope, sums))
        run(_slope, blocks, 2 * out.numel(), *arrays)
        return slope, sums.sum(dim=1), None


class _Dropped(torch.autograd.Function):
    """The mask is drawn again in the backward pass: cheaper than keeping it."""

    @staticmethod
    def forward(ctx: Any, h: Tensor, dropout: Dropout) -> Tensor:
        ctx.dropout = dropout
        return _dropped(h, dropout)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        return _dropped(gradient, ctx.dropout), None


def _dropped(h: Tensor, dropout: Dropout) -> Tensor:
    out = empty(h.shape, h.dtype).copy_(h)
    _run_finish(out, out.new_empty((0, 0)), False, dropout)
    return out


def _run_finish(h: Tensor, bias: Tensor, activate: bool, dropout: Dropout | None) -> None:
    parts = NOTHING
    if dropout is not None:
        names = NOTHING[0] if dropout.names is None else as_array(dropout.names)
        parts = (names, *(as_array(part.reshape(-1)) for part in dropout[:4]))
    work = h.numel() * (1 if dropout is None else HASH)
    run(_finish, h.shape[1], work, as_array(h), as_array(bias), activate, dropout is not None, *parts)


NOTHING = *(np.empty(0, dtype=np.int64) for _ in range(4)), np.empty(0, dtype=np.float32)


# -- products with few columns ---------------------------------------------------------------------------

NARROW = 8  # columns, up to which MKL takes several times as long


@reordered
def _dots(begin, end, a, turned, out):  # type: ignore[no-untyped-def]
    """``a @ b`` by the rows of bᵀ."""
    for trial in range(out.shape[0]):
        x, y = a[min(trial, len(a) - 1)], turned[min(trial, len(turned) - 1)]
        for row in range(begin, end):
            for column in range(y.shape[0]):
                total = out.dtype.type(0)
                for place in range(x.shape[1]):
                    total += x[row, place] * y[column, place]
                out[trial, row, column] = total


@compiled
def _combinations(begin, end, gradient, turned, out):  # type: ignore[no-untyped-def]
    """``g @ bᵀ``: sums of few rows."""
    for trial in range(out.shape[0]):
        g, y = gradient[min(trial, len(gradient) - 1)], turned[min(trial, len(turned) - 1)]
        for row in range(begin, end):
            total = out[trial, row]
            total[:] = 0
            for column in range(y.shape[0]):
                value = g[row, column]
                for place in range(y.shape[1]):
                    total[place] += value * y[column, place]


@compiled
def _outer(begin, end, a, gradient, out):  # type: ignore[no-untyped-def]
    """``gᵀ a`` of each block of rows."""
    for trial in range(out.shape[0]):
        x, g = a[min(trial, len(a) - 1)], gradient[min(trial, len(gradient) - 1)]
        for block in range(begin, end):
            total = out[trial, block]
            total[:] = 0
            for row in range(block * ROWS, min(x.shape[0], (block + 1) * ROWS)):
                for column in range(g.shape[1]):
                    value = g[row, column]
                    for place in range(x.shape[1]):
                        total[column, place] += value * x[row, place]


def dense_product(a: Tensor, b: Tensor) -> Tensor:
    """``a @ b`` for ``[T, n, k]`` and ``[T, k, m]``, with gradients; the axis of trials of one may be missing."""
    if b.shape[-1] > NARROW or a.dtype != b.dtype:
        return reference.dense_product(a, b)
    product: Tensor = _Narrow.apply(a, b)  # type: ignore[no-untyped-call]
    return product


class _Narrow(torch.autograd.Function):
    """The product with a matrix of few columns, and its gradients."""

    @staticmethod
    def forward(ctx: Any, a: Tensor, b: Tensor) -> Tensor:
        ctx.save_for_backward(a, b)
        left, turned = _batch(a), _batch(b.mT)
        out = empty((max(left.shape[0], turned.shape[0]), left.shape[1], turned.shape[1]), a.dtype)
        run(_dots, out.shape[1], out.numel() * left.shape[2], as_array(left), as_array(turned), as_array(out))
        return out

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, Tensor | None]:
        a, b = ctx.saved_tensors
        (trials, rows, _), for_a, for_b = gradient.shape, None, None
        if ctx.needs_input_grad[0]:
            for_a, turned = empty((trials, rows, a.shape[-1]), a.dtype), as_array(_batch(b.mT))
            run(_combinations, rows, gradient.numel() * a.shape[-1], as_array(gradient), turned, as_array(for_a))
            for_a = for_a.sum_to_size(a.shape)
        if ctx.needs_input_grad[1]:
            for_b = dense_slope(a, gradient).sum_to_size(b.shape)
        return for_a, for_b


def dense_slope(a: Tensor, gradient: Tensor) -> Tensor:
    """``aᵀ g [T, k, m]``, what a dense product gives to b, for a ``[n, k]`` or ``[T, n, k]`` and g ``[T, n, m]``."""
    (trials, rows, columns), width = gradient.shape, a.shape[-1]
    if columns > NARROW or a.dtype != gradient.dtype:
        return reference.dense_slope(a, gradient)
    parts = torch.empty((trials, -(-rows // ROWS), columns, width), dtype=a.dtype)
    run(_outer, parts.shape[1], gradient.numel() * width, as_array(_batch(a)), as_array(gradient), as_array(parts))
    return parts.sum(dim=1).mT


def _batch(x: Tensor) -> Tensor:
    return x if x.dim() == 3 else x[None]


# -- loss and accuracy -----------------------------------------------------------------------------------


@compiled
def _entropy(begin, end, logits, labels, mask, loss):  # type: ignore[no-untyped-def]
    """The mean of log Σ e^z − z_y over the nodes of the mask."""
    for trial in range(begin, end):
        total, count = 0.0, 0.0
        for node in range(logits.shape[1]):
            if mask[trial, node] > 0:
                z = logits[trial, node]
                top = z.max()
                power = 0.0
                for kind in range(len(z)):
                    power += math.exp(np.float64(z[kind] - top))
                total += math.log(power) - np.float64(z[labels[node]] - top)
                count += mask[trial, node]
        loss[trial] = total / max(count, 1.0)


@compiled
def _entropy_slope(begin, end, logits, labels, mask, gradient, slope):  # type: ignore[no-untyped-def]
    """Softmax minus one at the label, over the number of nodes."""
    for trial in range(begin, end):
        slope[trial] = 0
        share = gradient[trial] / max(mask[trial].sum(), 1)
        for node in range(logits.shape[1]):
            if mask[trial, node] > 0:
                z, target = logits[trial, node], slope[trial, node]
                top = z.max()
                power = 0.0
                for kind in range(len(z)):
                    power += math.exp(np.float64(z[kind] - top))
                for kind in range(len(z)):
                    one = 1.0 if kind == labels[node] else 0.0
                    target[kind] = share * (math.exp(np.float64(z[kind] - top)) / power - one)


@compiled
def _accuracy(begin, end, logits, labels, mask, share):  # type: ignore[no-untyped-def]
    """The share of nodes whose first largest logit, or first NaN, is that of their class."""
    for trial in range(begin, end):
        hits, count = 0, 0
        for node in range(logits.shape[1]):
            if mask[trial, node] > 0:
                z, best = logits[trial, node], 0
                for kind in range(1, len(z)):
                    if z[best] == z[best] and not z[kind] <= z[best]:
                        best = kind
                hits += best == labels[node]
                count += 1
        share[trial] = hits / max(count, 1)


def cross_entropy(logits: Tensor, labels: Tensor, mask: Tensor) -> Tensor:
    """The mean loss of each trial at its nodes, ``[T]``; nothing is computed of other nodes."""
    entropy: Tensor = _CrossEntropy.apply(logits, labels, mask)  # type: ignore[no-untyped-call]
    return entropy


class _CrossEntropy(torch.autograd.Function):
    """The loss, and its gradient."""

    @staticmethod
    def forward(ctx: Any, logits: Tensor, labels: Tensor, mask: Tensor) -> Tensor:
        loss = logits.new_empty(logits.shape[0])
        ctx.arguments = as_array(logits), as_array(labels), _mask(mask, logits)
        run(_entropy, logits.shape[0], logits.numel(), *ctx.arguments, as_array(loss))
        return loss

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        slope = torch.empty(ctx.arguments[0].shape, dtype=gradient.dtype)
        run(_entropy_slope, len(slope), slope.numel(), *ctx.arguments, as_array(gradient), as_array(slope))
        return slope, None, None


def accuracy(logits: Tensor, labels: Tensor, mask: Tensor) -> Tensor:
    """The share of the nodes of the mask whose largest logit is that of their class, ``[T]``."""
    share = torch.empty(logits.shape[0], dtype=torch.float32)
    arguments = as_array(logits), as_array(labels), _mask(mask, logits), as_array(share)
    run(_accuracy, logits.shape[0], logits.numel(), *arguments)
    return share


def _mask(mask: Tensor, logits: Tensor) -> Any:
    return as_array(mask.to(torch.float32).expand(logits.shape[:2]))


# -- Adam ------------------------------------------------------------------------------------------------


@compiled
def _adam(begin, end, parameter, gradient, first, second, rates, decays, correction1, correction2):  # type: ignore[no-untyped-def]
    """One step of the entries at some places of every trial."""
    kind = parameter.dtype.type
    for trial in range(parameter.shape[0]):
        rate, decay, inverse = kind(rates[trial] / correction1), decays[trial], kind(1 / correction2)
        w, slope = parameter[trial, begin:end], gradient[trial, begin:end]
        m, v = first[trial, begin:end], second[trial, begin:end]
        for place in range(len(w)):
            g = slope[place] + decay * w[place]
            m[place] += kind(1 - 0.9) * (g - m[place])
            v[place] = kind(0.999) * v[place] + kind(1 - 0.999) * g * g
            w[place] -= rate * m[place] / (np.sqrt(v[place]) * inverse + kind(1e-8))


def adam(
    parameter: Tensor, gradient: Tensor, first: Tensor, second: Tensor, rates: Tensor, decays: Tensor, step: Tensor
) -> None:
    """A step of parameters and moments ``[T, ...]``, in place."""
    rows = [each.detach().view(rates.shape[0], -1) for each in (parameter, gradient.contiguous(), first, second)]
    arrays, count = [as_array(each) for each in (*rows, rates, decays)], int(step)
    run(_adam, rows[0].shape[1], 4 * parameter.numel(), *arrays, 1 - 0.9**count, math.sqrt(1 - 0.999**count))
    torch.autograd.graph.increment_version((parameter, first, second))  # torch has not seen the change
