"""The layers of the backbones, on parameters ``[T, ...]`` and signals ``[T, N, F]``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import cast

import torch
from torch import Tensor

from tadropedge._old.nn.finish import BatchNorm, Moments, Noise, finish
from tadropedge._old.sparse import Csr, KeptProducts, sparse_product

Parameters = dict[str, Tensor]

ALIGNED = 8  # columns


@dataclass(frozen=True, eq=False)
class Sparse:
    """A sparse matrix ``[T, rows, cols]``: shared places, values ``[T, E]``, or ``[E]`` when all trials share them."""

    places: Csr
    values: Tensor
    symmetric: bool = False

    def __matmul__(self, x: Tensor) -> Tensor:
        """The product with ``x [T, cols, F]``; of more rows, the first count."""
        return sparse_product(self.places, self.values, first_rows(x, self.places.num_cols), symmetric=self.symmetric)

    def scaled(self, factor: Tensor) -> Sparse:
        """Every entry times the ``factor [T, 1]`` of its trial."""
        return Sparse(self.places, self.values * factor, self.symmetric)

    def narrows(self, x: Features, outputs: int) -> bool:
        """Whether ``(S x) W`` takes fewer products than ``S (x W)``: in a mini-batch few rows look at many nodes."""
        rows, cols, entries = self.places.num_rows, self.places.num_cols, self.places.col.shape[0]
        if rows >= cols or not isinstance(x, Tensor):
            return False
        inputs = x.shape[-1]
        return inputs * (entries + rows * outputs) < outputs * (entries + cols * inputs)


def first_rows(x: Tensor, count: int) -> Tensor:
    """The first rows of ``x [T, N, F]``: in a mini-batch, layers compute fewer and fewer."""
    return x if x.shape[-2] == count else x[..., :count, :]


@dataclass(frozen=True, eq=False)
class Joined:
    """Signals ``[T, N, F_k]`` side by side, never copied: ``[X_1 … X_K] W = Σ_k X_k W_k``.

    Where some have more rows than others, the first rows of those count.
    """

    parts: Sequence[Tensor]

    def __matmul__(self, weight: Tensor) -> Tensor:
        """The product with ``weight [T, Σ F_k, H]``."""
        rows = min(part.shape[-2] for part in self.parts)
        parts = [first_rows(part, rows) for part in self.parts]
        first, *others = zip(parts, weight.split([part.shape[-1] for part in self.parts], dim=-2), strict=True)
        total: Tensor = first[0] @ first[1]
        for part, piece in others:
            total = total.baddbmm_(part, piece)
        return total


@dataclass(frozen=True)
class Identity:
    """``S = I``: a layer that sees no edges."""

    def __matmul__(self, x: Tensor) -> Tensor:
        """A copy of ``x``: the end of a layer changes what it is given, and a kept product must stay as it is."""
        return x.clone()


Features = Tensor | Sparse | KeptProducts | Joined
Operator = Sparse | Tensor | Identity  # a dense ``[T, N, N]`` is the better choice for small graphs


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
    _: KW_ONLY
    activate: bool = True
    self_weight: bool = False
    batch_norm: bool = False
    moments: Moments | None = field(default=None, compare=False, repr=False)  # where not all nodes are here

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The shape of every trained parameter, without the trials axis."""
        shapes: dict[str, tuple[int, ...]] = {"weight": (self.inputs, self.outputs), "bias": (self.outputs,)}
        if self.self_weight:
            shapes["self_weight"] = (self.inputs, self.outputs)
        if self.batch_norm:
            shapes |= {"scale": (self.outputs,), "shift": (self.outputs,)}
        return {f"{self.name}.{key}": shape for key, shape in shapes.items()}

    def buffers(self) -> dict[str, tuple[tuple[int, ...], float]]:
        """The shape and the start of the running statistics of batch norm, without the trials axis."""
        starts = {"mean": 0.0, "variance": 1.0} if self.batch_norm else {}
        return {f"{self.name}.{key}": ((1, self.outputs), start) for key, start in starts.items()}

    def __call__(
        self,
        state: Parameters,
        x: Features,
        shift: Operator,
        training: bool,
        noise: Noise | None = None,
        number: int = 0,
    ) -> Tensor:
        """Apply the layer to ``x``, dense ``[T, N, F]`` or kept; ``noise`` drops entries of what it gives."""
        weight = state[f"{self.name}.weight"]
        # Kept products know their weights by identity, so those must not be padded.
        narrow = weight.is_cuda and self.outputs % ALIGNED != 0 and not isinstance(x, KeptProducts)
        if isinstance(shift, Sparse) and shift.narrows(x, self.outputs):
            seen = shift @ cast(Tensor, x)
            h = aligned_product(seen, weight) if narrow else seen @ weight
        else:
            h = shift @ (aligned_product(x, weight) if narrow else x @ weight)
        if self.self_weight:
            own = state[f"{self.name}.self_weight"]
            x = first_rows(x, h.shape[-2]) if isinstance(x, Tensor) else x
            if isinstance(x, Tensor) and x.dim() == 3 and len(x) == len(h) and not narrow:
                h = h.baddbmm_(x, own)  # the sum is part of the product
            else:
                h += first_rows(aligned_product(x, own) if narrow else x @ own, h.shape[-2])
        norm = None
        if self.batch_norm:
            parts = (state[f"{self.name}.{key}"] for key in ("scale", "shift", "mean", "variance"))
            norm = BatchNorm(*parts, moments=self.moments)
        return finish(h, state[f"{self.name}.bias"], norm, self.activate, noise, number, training)
