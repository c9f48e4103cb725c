"""The layers of the backbones, on parameters ``[T, ...]`` and signals ``[T, N, F]``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from tadropedge.nn.finish import BatchNorm, Noise, finish
from tadropedge.sparse import Csr, KeptProducts, sparse_product

Parameters = dict[str, Tensor]

ALIGNED = 8  # columns


@dataclass(frozen=True, eq=False)
class Sparse:
    """A sparse matrix ``[T, rows, cols]``: shared places, values ``[T, E]``, or ``[E]`` when all trials share them."""

    places: Csr
    values: Tensor
    symmetric: bool = False

    def __matmul__(self, x: Tensor) -> Tensor:
        """The product with ``x [T, cols, F]``."""
        return sparse_product(self.places, self.values, x, symmetric=self.symmetric)


@dataclass(frozen=True, eq=False)
class Joined:
    """Signals ``[T, N, F_k]`` side by side, never copied: ``[X_1 … X_K] W = Σ_k X_k W_k``."""

    parts: Sequence[Tensor]

    def __matmul__(self, weight: Tensor) -> Tensor:
        """The product with ``weight [T, Σ F_k, H]``."""
        first, *others = zip(self.parts, weight.split([part.shape[-1] for part in self.parts], dim=-2), strict=True)
        total: Tensor = first[0] @ first[1]
        for part, piece in others:
            total = total.baddbmm_(part, piece)
        return total


Features = Tensor | Sparse | KeptProducts | Joined
Operator = Sparse | Tensor  # a dense ``[T, N, N]`` is the better choice for small graphs


def aligned_product(x: Features, weight: Tensor) -> Tensor:
    """``x @ weight``, with columns of zeros added in between: matrix units of a GPU want a multiple of eight.

    >>> aligned_product(torch.eye(2)[None], torch.tensor([[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]])).tolist()
    [[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]]
    """
    columns = weight.shape[-1]
    product: Tensor = x @ torch.nn.functional.pad(weight, (0, -columns % ALIGNED))
    return product[..., :columns].contiguous()


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
        self,
        parameters: Parameters,
        running: Parameters,
        x: Features,
        shift: Operator,
        training: bool,
        noise: Noise | None = None,
        number: int = 0,
    ) -> Tensor:
        """Apply the layer to ``x``, dense ``[T, N, F]`` or kept; ``noise`` drops entries of what it gives."""
        weight = parameters[f"{self.name}.weight"]
        # Kept products know their weights by identity, so those must not be padded.
        narrow = weight.is_cuda and self.outputs % ALIGNED != 0 and not isinstance(x, KeptProducts)
        h = shift @ (aligned_product(x, weight) if narrow else x @ weight)
        if self.self_weight:
            own = parameters[f"{self.name}.self_weight"]
            if isinstance(x, Tensor) and x.dim() == 3 and len(x) == len(h) and not narrow:
                h = h.baddbmm_(x, own)  # the sum is part of the product
            else:
                h += aligned_product(x, own) if narrow else x @ own
        norm = self._norm(parameters, running) if self.batch_norm else None
        return finish(h, parameters[f"{self.name}.bias"], norm, self.activate, noise, number, training)

    def _norm(self, parameters: Parameters, running: Parameters) -> BatchNorm:
        trained = (parameters[f"{self.name}.{key}"] for key in ("scale", "shift"))
        return BatchNorm(*trained, *(running[f"{self.name}.{key}"] for key in ("mean", "variance")))

    def running(self, trials: int, device: torch.device) -> Parameters:
        """The running statistics of batch norm, ``[T, 1, outputs]``."""
        if not self.batch_norm:
            return {}
        shape = (trials, 1, self.outputs)
        return {
            f"{self.name}.mean": torch.zeros(shape, device=device),
            f"{self.name}.variance": torch.ones(shape, device=device),
        }
