"""The layers of the backbones, on parameters ``[T, ...]`` and signals ``[T, N, F]``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from tadropedge.sparse import Csr, KeptProducts, sparse_product

Parameters = dict[str, Tensor]
Noise = Callable[[Tensor, int], Tensor]  # (signal, number of the layer) -> signal with some entries dropped

MOMENTUM = 0.1  # of the running statistics of batch norm, as in torch
VARIANCE_FLOOR = 1e-5


@dataclass(frozen=True, eq=False)
class Sparse:
    """A sparse matrix ``[T, rows, cols]``: shared places, values ``[T, E]``, or ``[E]`` when all trials share them."""

    places: Csr
    values: Tensor
    symmetric: bool = False

    def __matmul__(self, x: Tensor) -> Tensor:
        """The product with ``x [T, cols, F]``."""
        return sparse_product(self.places, self.values, x, symmetric=self.symmetric)


Features = Tensor | Sparse | KeptProducts
Operator = Sparse | Tensor  # a dense ``[T, N, N]`` is the better choice for small graphs


@dataclass(frozen=True)
class GraphConvolution:
    """``S (X W) + X W_self + b``, then batch norm where it is on, then ReLU where it is asked for."""

    name: str
    inputs: int
    outputs: int
    activate: bool = True
    self_weight: bool = False
    batch_norm: bool = False

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The shape of every trained parameter, without the trials axis."""
        shapes: dict[str, tuple[int, ...]] = {"weight": (self.inputs, self.outputs), "bias": (self.outputs,)}
        if self.self_weight:
            shapes["self_weight"] = (self.inputs, self.outputs)
        if self.batch_norm:
            shapes |= {"scale": (self.outputs,), "shift": (self.outputs,)}
        return {f"{self.name}.{key}": shape for key, shape in shapes.items()}

    def initial(self, key: str, shape: tuple[int, ...], generator: torch.Generator) -> Tensor:
        """Weights, self weights and biases start uniform in ±1/√outputs; batch norm starts as the identity."""
        if key.endswith(".scale"):
            return torch.ones(shape)
        if key.endswith(".shift"):
            return torch.zeros(shape)
        start: Tensor = (torch.rand(shape, generator=generator) * 2 - 1) * self.outputs**-0.5
        return start

    def __call__(
        self, parameters: Parameters, running: Parameters, x: Features, shift: Operator, training: bool
    ) -> Tensor:
        """Apply the layer to ``x``, dense ``[T, N, F]`` or sparse ``[N, F]``."""
        h = shift @ (x @ parameters[f"{self.name}.weight"])
        if self.self_weight:
            h += x @ parameters[f"{self.name}.self_weight"]
        h += parameters[f"{self.name}.bias"][:, None, :]
        if self.batch_norm:
            h = self._normalized(h, parameters, running, training)
        out: Tensor = h.relu_() if self.activate else h
        return out

    def _normalized(self, h: Tensor, parameters: Parameters, running: Parameters, training: bool) -> Tensor:
        mean, variance = running[f"{self.name}.mean"], running[f"{self.name}.variance"]
        if training:
            now_mean = h.mean(dim=1, keepdim=True)
            now_variance = h.var(dim=1, keepdim=True, unbiased=False)
            with torch.no_grad():
                count = h.shape[1]
                mean.lerp_(now_mean, MOMENTUM)
                variance.lerp_(now_variance * (count / (count - 1)), MOMENTUM)
            mean, variance = now_mean, now_variance
        h = (h - mean) * (variance + VARIANCE_FLOOR).rsqrt()
        return h * parameters[f"{self.name}.scale"][:, None, :] + parameters[f"{self.name}.shift"][:, None, :]

    def running(self, trials: int, device: torch.device) -> Parameters:
        """The running statistics of batch norm, ``[T, 1, outputs]``."""
        if not self.batch_norm:
            return {}
        shape = (trials, 1, self.outputs)
        return {
            f"{self.name}.mean": torch.zeros(shape, device=device),
            f"{self.name}.variance": torch.ones(shape, device=device),
        }
