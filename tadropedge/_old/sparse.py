"""Batched sparse products: one CSR pattern, values per trial, a dense block per trial.

On a GPU a Triton kernel does the whole batch in one launch; elsewhere torch's CSR product does one trial after the
other. Both give ``out[t] = A_t @ x[t]``, where the trials axis of the values or of x may be missing.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import pairwise
from typing import Any, ClassVar

import torch
from torch import Tensor

# Columns for which MKL has kernels of their own on Intel's processors. They add the entries of a row in groups, so that
# a zero among them, which is how an edge is dropped, changes the rounding.
GROUPED = range(4, 25, 4)
MKL = torch.backends.mkl.is_available()
NODES_AT_ONCE = 2048  # whose rows of a signal stay in the cache of a core while they are read in any order


@dataclass(frozen=True, eq=False)
class Csr:
    """The places of the entries of an ``[rows, cols]`` matrix: ``crow [rows + 1]``, ``col [E]``."""

    crow: Tensor
    col: Tensor
    num_cols: int
    in_order: ClassVar[bool] = False  # whether products must add the entries of a row one after the other

    @classmethod
    def of(cls, matrix: Tensor) -> Csr:
        """The places of a CSR tensor, in int32 where that is enough: products are up to three times faster with it."""
        crow, col = matrix.crow_indices(), matrix.col_indices()
        index = torch.int32 if max(col.shape[0], *matrix.shape) <= torch.iinfo(torch.int32).max else torch.int64
        return cls(crow.to(index), col.to(index), matrix.shape[1])

    @property
    def num_rows(self) -> int:
        """The number of rows."""
        return self.crow.shape[0] - 1

    @cached_property
    def row(self) -> Tensor:
        """The row of each entry, ``[E]`` int64."""
        counts = self.crow.diff().to(torch.int64)
        rows = torch.arange(self.num_rows, device=self.col.device)
        return torch.repeat_interleave(rows, counts, output_size=self.col.shape[0])

    @cached_property
    def turned(self) -> tuple[Csr, Tensor]:
        """The transposed places, and the permutation ``[E]`` that brings values there."""
        order = torch.argsort(self.col.to(torch.int64), stable=True)
        crow = torch.zeros(self.num_cols + 1, dtype=torch.int64, device=self.col.device)
        crow[1:] = torch.bincount(self.col, minlength=self.num_cols).cumsum(0)
        return Csr(crow.to(self.crow.dtype), self.row[order].to(self.col.dtype), self.num_rows), order


def sparse_product(
    places: Csr, values: Tensor, x: Tensor, *, symmetric: bool = False, turned_values: Tensor | None = None
) -> Tensor:
    """``A x`` for values ``[E]`` or ``[T, E]`` and x ``[cols, F]`` or ``[T, cols, F]``, with gradients to both.

    ``symmetric`` says that A equals its transpose, which saves a permutation in the backward pass, and so do
    ``turned_values``, the values in the order of ``places.turned``, for those who multiply by A again and again.

    >>> places = Csr(torch.tensor([0, 1, 3]), torch.tensor([1, 0, 1]), 2)
    >>> sparse_product(places, torch.tensor([1.0, 2.0, 3.0]), torch.eye(2)).tolist()
    [[0.0, 1.0], [2.0, 3.0]]
    """
    product: Tensor = _Product.apply(values, x, places, symmetric, turned_values)  # type: ignore[no-untyped-call]
    return product


class _Product(torch.autograd.Function):
    """A x with the gradients Aᵀ g for x and, only where asked, g_i · x_j for each entry (i, j)."""

    @staticmethod
    def forward(
        ctx: Any, values: Tensor, x: Tensor, places: Csr, symmetric: bool, turned_values: Tensor | None
    ) -> Tensor:
        ctx.save_for_backward(values, x)
        ctx.places, ctx.symmetric, ctx.turned_values = places, symmetric, turned_values
        return multiply(places, values, x)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, Tensor | None, None, None, None]:
        values, x = ctx.saved_tensors
        places: Csr = ctx.places
        for_values = for_x = None
        if ctx.needs_input_grad[0]:
            rows, cols = gradient.index_select(-2, places.row), x.index_select(-2, places.col)
            for_values = (rows * cols).sum(dim=-1).sum_to_size(values.shape)
        if ctx.needs_input_grad[1]:
            turned, there = places, values
            if not ctx.symmetric:
                turned, order = places.turned
                there = values.index_select(-1, order) if ctx.turned_values is None else ctx.turned_values
            for_x = multiply(turned, there, gradient.contiguous()).sum_to_size(x.shape)
        return for_values, for_x, None, None, None


class KeptProducts:
    """A matrix of features X whose products with trained weights are kept until the weights change.

    The evaluation at the end of an epoch and the training pass of the next see the same weights, so they share ``X W``:
    whoever asks first computes it, whoever asks again is handed it with its gradient ``Xᵀ g``. Torch counts the changes
    of a tensor, so a product is never older than its weights; a kernel of our own that writes into weights must count
    its change too (``torch.autograd.graph.increment_version``). Products with anything else are not kept.

    A CUDA graph replays what was recorded without asking: call :meth:`forget` before recording steps that may be
    replayed in another order.
    """

    def __init__(
        self, product: Callable[[Tensor, Tensor | None], Tensor], gradient: Callable[[Tensor], Tensor]
    ) -> None:
        self.product, self.gradient = product, gradient
        self.matrix: Tensor | None = None  # X itself, for those who need more than products
        self._kept: dict[int, tuple[Tensor, int, Tensor]] = {}  # the weights, their version, the product

    @classmethod
    def of(cls, matrix: Tensor) -> KeptProducts:
        """Products with a dense or CSR matrix ``[N, F]`` that all trials share."""
        sparse = matrix.layout is torch.sparse_csr
        made = cls.sparse(Csr.of(matrix), matrix.values()) if sparse else cls.dense(matrix)
        made.matrix = matrix
        return made

    @classmethod
    def sparse(cls, places: Csr, values: Tensor) -> KeptProducts:
        """A sparse X: its places and values ``[E]``."""
        parts = list(_turned_parts(places, values))

        def gradient(slope: Tensor) -> Tensor:
            (nodes, turned, there), *others = parts
            slope = slope.contiguous()
            total = multiply(turned, there, slope[:, nodes])
            for nodes, turned, there in others:
                total = multiply(turned, there, slope[:, nodes], total, add=True)
            return total

        return cls(lambda weight, out: multiply(places, values, weight, out), gradient)

    @classmethod
    def dense(cls, matrix: Tensor) -> KeptProducts:
        """A dense X ``[N, F]``."""

        def product(weight: Tensor, out: Tensor | None) -> Tensor:
            return torch.bmm(matrix.expand(len(weight), -1, -1), weight, out=out)

        return cls(product, lambda slope: torch.bmm(matrix.t().expand(len(slope), -1, -1), slope))

    def __matmul__(self, weight: Tensor) -> Tensor:
        """``X W`` for weights ``[T, F, H]``."""
        product: Tensor = _Kept.apply(weight, self._current(weight), self)  # type: ignore[no-untyped-call]
        return product

    def _current(self, weight: Tensor) -> Tensor:
        with torch.no_grad():
            if not (weight.is_leaf and weight.requires_grad):
                return self.product(weight, None)
            known, version, product = self._kept.get(id(weight), (None, -1, None))
            if known is not weight or version != weight._version or product is None:
                # Into the same memory every time, so that a CUDA graph finds it again.
                product = self.product(weight, product if known is weight else None)
                self._kept[id(weight)] = (weight, weight._version, product)
            return product

    def forget(self) -> None:
        """Compute every product anew when it is next asked for, into the memory it has."""
        self._kept = {key: (weight, -1, product) for key, (weight, _, product) in self._kept.items()}


def _turned_parts(places: Csr, values: Tensor) -> Iterator[tuple[slice, Csr, Tensor]]:
    """Xᵀ in pieces for some nodes each: the nodes, places and values, whose products with their rows add up to Xᵀ g.

    On a CPU only: there g does not fit into the cache, and each row of Xᵀ reads rows from all over it. Every piece also
    passes over the whole sum, so there are no more pieces than entries per row of Xᵀ.
    """
    count = -(-places.num_rows // NODES_AT_ONCE)
    most = 1 if runs_kernels(values) else len(values) // max(1, places.num_cols)
    count = max(1, min(count, most))
    bounds = [places.num_rows * part // count for part in range(count + 1)]
    for first, last in pairwise(bounds):
        begin, end = int(places.crow[first]), int(places.crow[last])
        part = Csr(places.crow[first : last + 1] - begin, places.col[begin:end], places.num_cols)
        turned, order = part.turned
        yield slice(first, last), turned, values[begin:end][order]


class _Kept(torch.autograd.Function):
    """A product that is known already, with the gradient it has."""

    @staticmethod
    def forward(ctx: Any, weight: Tensor, kept: Tensor, features: KeptProducts) -> Tensor:
        ctx.features = features
        return kept.view_as(kept)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        return ctx.features.gradient(gradient), None, None


def runs_kernels(x: Tensor) -> bool:
    """Whether Triton's kernels run where x lies: on a GPU, or anywhere in its interpreter."""
    return x.is_cuda or os.environ.get("TRITON_INTERPRET") == "1"


def multiply(places: Csr, values: Tensor, x: Tensor, out: Tensor | None = None, *, add: bool = False) -> Tensor:
    """``A x`` without gradients, into ``out`` where it is given, or with ``add`` added to what is there."""
    if values.dim() == 1 and x.dim() == 2:
        return multiply(places, values[None], x[None], None if out is None else out[None], add=add)[0]
    if add and out is not None and (runs_kernels(x) or (places.in_order and x.shape[-1] in GROUPED)):
        return out.add_(multiply(places, values, x))
    if runs_kernels(x):
        from tadropedge._old.kernels import spmm

        return spmm(places, values, x, out)
    trials = max(values.shape[0] if values.dim() == 2 else 1, x.shape[0] if x.dim() == 3 else 1)
    matrices = values if values.dim() == 2 else values[None]
    blocks = x if x.dim() == 3 else x[None]
    shape = (places.num_rows, places.num_cols)
    hush_beta_warning()
    width = blocks.shape[-1]
    products = blocks.new_empty((trials, places.num_rows, width)) if out is None else out
    if not (MKL or add):  # elsewhere, what is there may be multiplied by beta = 0, which leaves NaN as it is
        products.zero_()
    for trial in range(trials):
        mine = matrices[trial if len(matrices) > 1 else 0]
        matrix = torch.sparse_csr_tensor(places.crow, places.col, mine, shape, check_invariants=False)
        block = blocks[trial if len(blocks) > 1 else 0]
        if places.in_order and width in GROUPED:
            products[trial] = torch.mm(matrix, torch.nn.functional.pad(block, (0, 1)))[:, :width]
        else:
            # Not by torch.mm, which makes a matrix of zeros first and copies the product out of it.
            products[trial].addmm_(matrix, block, beta=int(add))
    return products


@cache
def hush_beta_warning() -> None:
    """Torch says once per process that CSR tensors are in beta and unchecked; users here need not hear it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        one = torch.ones(1, dtype=torch.int64)
        torch.sparse_csr_tensor(torch.tensor([0, 1]), one - 1, one.float(), (1, 1), check_invariants=False)
