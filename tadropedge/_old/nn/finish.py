"""The end of a layer: bias, batch norm, ReLU and dropout.

On a CPU one operation follows the other, in training block by block of nodes; on a GPU they are one kernel, and their
gradients one or two.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

import torch
from torch import Tensor

if TYPE_CHECKING:
    from tadropedge._old.kernels import Coins

MOMENTUM = 0.1  # of the running statistics of batch norm, as in torch
VARIANCE_FLOOR = 1e-5
# From signals [T, N, F] to their mean and variance over the nodes, [T, 1, F], and the number of nodes.
Moments = Callable[[Tensor], tuple[Tensor, Tensor, int]]


class Noise(Protocol):
    """Dropout for the layers of a network, which it knows by their numbers."""

    def __call__(self, h: Tensor, layer: int) -> Tensor:
        """The signal ``[T, N, F]`` with some entries dropped and the others scaled up."""

    def coins(self, layer: int) -> Coins:
        """What the entries to drop are drawn from."""

    def rectified(self, h: Tensor, bias: Tensor, layer: int) -> Tensor:
        """``dropout(relu(h + bias))`` on a CPU, in the memory of ``h``; networks do without where there is none."""

    def of(self, names: Tensor) -> Noise:
        """The same coins for entities ``[K]`` with these numbers in the whole graph."""

    @property
    def named(self) -> bool:
        """Whether entries are known by the names of their nodes and not by their places, which kernels go by."""

    def at(self, rate: Tensor) -> Noise:
        """The same coins with other rates ``[T]``, for the entries of the pattern, ``[T, E, K]``."""


class BatchNorm:
    """Gain and shift ``[T, F]``, and the running mean and variance ``[T, 1, F]`` that training moves on.

    ``moments`` finds mean and variance of a pass where its nodes are not all here.
    """

    def __init__(
        self, gain: Tensor, shift: Tensor, mean: Tensor, variance: Tensor, *, moments: Moments | None = None
    ) -> None:
        self.gain, self.shift, self.mean, self.variance = gain, shift, mean, variance
        self.moments = moments

    def move(self, mean: Tensor, variance: Tensor, count: int) -> None:
        """Move the running statistics towards those of this pass."""
        with torch.no_grad():
            self.mean.lerp_(mean, MOMENTUM)
            self.variance.lerp_(variance * (count / max(1, count - 1)), MOMENTUM)  # one row has no spread

    def __call__(self, h: Tensor, training: bool) -> Tensor:
        """Normalise ``h [T, N, F]`` by its own statistics in training, otherwise by the running ones."""
        mean, variance = self.mean, self.variance
        if training:
            count = h.shape[1]
            if self.moments is not None:
                mean, variance, count = self.moments(h)
            else:
                mean, variance = h.mean(dim=1, keepdim=True), h.var(dim=1, keepdim=True, unbiased=False)
            self.move(mean, variance, count)
        h = (h - mean) * (variance + VARIANCE_FLOOR).rsqrt()
        return h * self.gain[:, None, :] + self.shift[:, None, :]


def finish(
    h: Tensor,
    bias: Tensor,
    norm: BatchNorm | None,
    activate: bool,
    noise: Noise | None,
    layer: int,
    training: bool,
) -> Tensor:
    """``dropout(relu(norm(h + bias)))`` of ``h [T, N, F]``, each part where it is asked for; ``h`` may be changed."""
    if h.is_cuda and (
        norm is None or norm.moments is None
    ):  # kernels find mean and variance of the nodes that are here
        named = noise if getattr(noise, "named", False) else None
        h = _fused(h.contiguous(), bias, norm, activate, noise if named is None else None, layer, training)
        return h if named is None else named(h, layer)
    if norm is None and activate and noise is not None and hasattr(noise, "rectified"):  # a plain function is noise too
        return noise.rectified(h, bias, layer)
    h += bias[:, None, :]
    if norm is not None:
        h = norm(h, training)
    if activate:
        h = h.relu_()
    return noise(h, layer) if noise is not None else h


def _fused(
    h: Tensor, bias: Tensor, norm: BatchNorm | None, activate: bool, noise: Noise | None, layer: int, training: bool
) -> Tensor:
    """The same with Triton's kernels."""
    from tadropedge._old.kernels import Norm, batch_statistics
    from tadropedge._old.kernels import finish as finish_kernel

    coins = None if noise is None else noise.coins(layer)
    parts = None
    bias = _whole(bias, h)
    if norm is not None:
        mean, variance = norm.mean, norm.variance
        if training:
            with torch.no_grad():
                mean, variance = batch_statistics(h, bias)
            norm.move(mean, variance, h.shape[1])
        norm = BatchNorm(_whole(norm.gain, h), _whole(norm.shift, h), norm.mean, norm.variance)
        inverse = (variance + VARIANCE_FLOOR).rsqrt()
        parts = Norm(_whole(mean, h), _whole(inverse, h), norm.gain, norm.shift)
    if not torch.is_grad_enabled():
        return finish_kernel(h, bias, parts, activate, coins)
    gain, shift = (None, None) if norm is None else (norm.gain, norm.shift)
    finished: Tensor = _Finished.apply(h, bias, gain, shift, parts, activate, coins)  # type: ignore[no-untyped-call]
    return finished


def _whole(parameter: Tensor, h: Tensor) -> Tensor:
    """A parameter of one model, repeated for each subgraph of ``h [T, N, F]``: kernels do not broadcast."""
    return parameter if len(parameter) == len(h) else parameter.expand(len(h), *parameter.shape[1:]).contiguous()


class _Finished(torch.autograd.Function):
    """The fused end of a layer in training, where batch norm uses the statistics of ``h`` itself."""

    @staticmethod
    def forward(
        ctx: Any,
        h: Tensor,
        bias: Tensor,
        gain: Tensor | None,
        shift: Tensor | None,
        norm: Any,
        activate: bool,
        coins: Coins | None,
    ) -> Tensor:
        from tadropedge._old.kernels import finish as finish_kernel

        out = finish_kernel(h, bias, norm, activate, coins)
        ctx.save_for_backward(out, h if norm is not None else out, bias)
        ctx.norm, ctx.activate, ctx.coins = norm, activate, coins
        return out

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        from tadropedge._old.kernels import finish_gradients

        out, h, bias = ctx.saved_tensors
        slopes = finish_gradients(gradient.contiguous(), out, h, bias, ctx.norm, ctx.activate, ctx.coins)
        return (*slopes, None, None, None)
