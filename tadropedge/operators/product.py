"""Products of a batch: of one CSR pattern with values per trial, of shift operators, or of dense blocks.

All give ``out[t] = A_t @ x[t]``, where the axis of trials of A or of x may be missing, or of length 1.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from tadropedge.operators.kernels import kernels
from tadropedge.operators.pattern import Csr


def sparse_product(places: Csr, values: Tensor, x: Tensor, *, symmetric: bool = False) -> Tensor:
    """``A x`` for values ``[E]`` or ``[T, E]`` and x ``[cols, F]`` or ``[T, cols, F]``, with gradients to both.

    The gradient g of the product gives ``Aᵀ g`` to x and ``g_i · x_j`` to the value at (i, j). ``symmetric`` says that
    A equals its transpose, which saves a permutation of the values. Cost: O(T E F), forwards and backwards.

    >>> places = Csr(torch.tensor([0, 1, 3]), torch.tensor([1, 0, 1]), 2)
    >>> sparse_product(places, torch.tensor([1.0, 2.0, 3.0]), torch.eye(2)).tolist()
    [[0.0, 1.0], [2.0, 3.0]]
    """
    product: Tensor = _Product.apply(values, x, places, symmetric)  # type: ignore[no-untyped-call]
    return product


class _Product(torch.autograd.Function):
    """The product, and its gradients."""

    @staticmethod
    def forward(ctx: Any, values: Tensor, x: Tensor, places: Csr, symmetric: bool) -> Tensor:
        ctx.save_for_backward(values, x)
        ctx.places, ctx.symmetric = places, symmetric
        return multiply(places, values, x)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, Tensor | None, None, None]:
        values, x = ctx.saved_tensors
        places: Csr = ctx.places
        for_values = for_x = None
        if ctx.needs_input_grad[0]:
            several = _batch(gradient), _batch(x)
            shared = values.dim() == 1 or len(values) == 1
            for_values = kernels(x).slopes(places, *several, shared).view(values.shape)
        if ctx.needs_input_grad[1]:
            turned, there = places, values
            if not ctx.symmetric:
                turned, order = places.turned
                there = values.index_select(-1, order)
            for_x = multiply(turned, there, gradient).sum_to_size(x.shape)
        return for_values, for_x, None, None


def multiply(places: Csr, values: Tensor, x: Tensor) -> Tensor:
    """``A x`` without gradients, for arguments as in :func:`sparse_product`.

    >>> places = Csr(torch.tensor([0, 1, 2]), torch.tensor([1, 0]), 2)
    >>> multiply(places, torch.tensor([[1.0, 2.0], [3.0, 4.0]]), torch.ones(2, 1))[..., 0].tolist()
    [[1.0, 2.0], [3.0, 4.0]]
    """
    found: Tensor = kernels(x).product(places, values if values.dim() == 2 else values[None], _batch(x))
    return found if values.dim() == 2 or x.dim() == 3 else found[0]


def _batch(x: Tensor) -> Tensor:
    return x if x.dim() == 3 else x[None]


def dense_product(a: Tensor, b: Tensor) -> Tensor:
    """``a @ b`` for ``[T, n, k]`` and ``[T, k, m]``, with gradients to both; the axis of trials of one may be missing.

    A trial has the same bits whoever is beside it.

    >>> dense_product(torch.eye(2), torch.tensor([[[1.0, 2.0], [3.0, 4.0]]])).tolist()
    [[[1.0, 2.0], [3.0, 4.0]]]
    """
    product: Tensor = kernels(a).dense_product(a, b)
    return product
