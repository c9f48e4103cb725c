"""Products of a batch: of one CSR pattern with values per trial, or of dense blocks.

On a GPU a kernel of our own does the whole batch in one launch; elsewhere torch's CSR product does one trial after the
other. Both give ``out[t] = A_t @ x[t]``, where the axis of trials of the values or of x may be missing.
"""

from __future__ import annotations

import warnings
from functools import cache
from typing import Any

import torch
from torch import Tensor

from tadropedge.operators.kernels import runs_kernels
from tadropedge.operators.pattern import Csr

# Columns for which MKL has kernels of their own on Intel's processors. They add the entries of a row in groups, so that
# a zero among them, which is how an edge is dropped, changes the rounding.
GROUPED = range(4, 25, 4)
MKL = torch.backends.mkl.is_available()
LINE = 16  # floats in a line of the cache
SMALL = 2**14  # numbers in the product of a trial, below which what it costs is calling it


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
            rows, cols = gradient.index_select(-2, places.row), x.index_select(-2, places.col)
            for_values = (rows * cols).sum(dim=-1).sum_to_size(values.shape)
        if ctx.needs_input_grad[1]:
            turned, there = places, values
            if not ctx.symmetric:
                turned, order = places.turned
                there = values.index_select(-1, order)
            for_x = multiply(turned, there, gradient.contiguous()).sum_to_size(x.shape)
        return for_values, for_x, None, None


def multiply(places: Csr, values: Tensor, x: Tensor) -> Tensor:
    """``A x`` without gradients, for arguments as in :func:`sparse_product`.

    >>> places = Csr(torch.tensor([0, 1, 2]), torch.tensor([1, 0]), 2)
    >>> multiply(places, torch.tensor([[1.0, 2.0], [3.0, 4.0]]), torch.ones(2, 1))[..., 0].tolist()
    [[1.0, 2.0], [3.0, 4.0]]
    """
    if values.dim() == 1 and x.dim() == 2:
        return multiply(places, values[None], x[None])[0]
    if runs_kernels(x):
        from tadropedge.operators.kernels.gpu import spmm

        return spmm(places, values, x)
    matrices = values if values.dim() == 2 else values[None]
    blocks = x if x.dim() == 3 else x[None]
    trials, width = max(len(matrices), len(blocks)), blocks.shape[-1]
    products = blocks.new_empty((trials, places.num_rows, width))
    if not MKL:  # what is there may then be multiplied by beta = 0, which leaves NaN as it is
        products.zero_()
    for trial in range(trials):
        matrix = as_torch(places, matrices[trial if len(matrices) > 1 else 0])
        block = blocks[trial if len(blocks) > 1 else 0]
        if places.in_order and width in GROUPED:  # with a column more, MKL adds one entry after the other
            products[trial] = torch.mm(matrix, torch.nn.functional.pad(block, (0, 1)))[:, :width]
        else:  # not by torch.mm, which makes a matrix of zeros first and copies the product out of it
            products[trial].addmm_(matrix, block, beta=0)
    return products


def dense_product(a: Tensor, b: Tensor) -> Tensor:
    """``a @ b`` for ``[T, n, k]`` and ``[T, k, m]``, with gradients to both; the axis of trials of one may be missing.

    On a CPU one trial is multiplied after the other, in memory that begins at a multiple of 64 bytes: how MKL rounds
    depends on that, and in a batch the blocks of other trials decide where one begins.

    >>> dense_product(torch.eye(2), torch.tensor([[[1.0, 2.0], [3.0, 4.0]]])).tolist()
    [[[1.0, 2.0], [3.0, 4.0]]]
    """
    if a.is_cuda:
        return a @ b
    product: Tensor = _DenseProduct.apply(a, b)  # type: ignore[no-untyped-call]
    return product


class _DenseProduct(torch.autograd.Function):
    """The product on a CPU, and its gradients."""

    @staticmethod
    def forward(ctx: Any, a: Tensor, b: Tensor) -> Tensor:
        ctx.save_for_backward(a, b)
        return _one_by_one(a, b)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, Tensor | None]:
        a, b = ctx.saved_tensors
        for_a = _one_by_one(gradient, b.mT).sum_to_size(a.shape) if ctx.needs_input_grad[0] else None
        for_b = _one_by_one(a.mT, gradient).sum_to_size(b.shape) if ctx.needs_input_grad[1] else None
        return for_a, for_b


def _one_by_one(a: Tensor, b: Tensor) -> Tensor:
    lefts, rights = (a if a.dim() == 3 else a[None]), (b if b.dim() == 3 else b[None])
    trials, rows, columns = max(len(lefts), len(rights)), a.shape[-2], b.shape[-1]
    if trials > 1 and rows * columns <= SMALL:  # results with gaps: torch itself goes from trial to trial
        both = (_on_lines(each).expand(trials, -1, -1) for each in (lefts, rights))
        return torch.bmm(*both, out=_lines(a, trials, rows, columns)).contiguous()
    out = a.new_empty((trials, rows, columns))
    for trial in range(trials):
        left, right = (_on_lines(each[trial if len(each) > 1 else 0][None])[0] for each in (lefts, rights))
        if rows * columns % LINE == 0:
            torch.mm(left, right, out=out[trial])
        else:
            out[trial] = torch.mm(left, right)
    return out


def _on_lines(x: Tensor) -> Tensor:
    """``x [T, n, m]``, in memory in which every trial begins where a line of the cache does."""
    if x.data_ptr() % (4 * LINE) == 0 and (len(x) == 1 or x.stride(0) % LINE == 0):
        return x
    if x.stride(-1) != 1 and x.stride(-2) == 1:  # which of its axes comes first in memory decides how it is multiplied
        return _on_lines(x.mT).mT
    return _lines(x, *x.shape).copy_(x)


def _lines(like: Tensor, trials: int, rows: int, columns: int) -> Tensor:
    """Memory ``[T, n, m]`` with a gap after each trial, up to the next line but one."""
    room = rows * columns // LINE * LINE + 2 * LINE
    return like.new_empty_strided((trials, rows, columns), (room, columns, 1))


def as_torch(places: Csr, values: Tensor) -> Tensor:
    """The torch CSR tensor ``[..., rows, cols]`` of values ``[..., E]``."""
    _hush_beta_warning()
    batch, shape = values.shape[:-1], (places.num_rows, places.num_cols)
    crow, col = places.crow.expand(*batch, -1), places.col.expand(*batch, -1)
    return torch.sparse_csr_tensor(crow, col, values, (*batch, *shape), check_invariants=False)


@cache
def _hush_beta_warning() -> None:
    """Torch says once per process that CSR tensors are in beta and unchecked; users here need not hear it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        one = torch.ones(1, dtype=torch.int64)
        torch.sparse_csr_tensor(torch.tensor([0, 1]), one - 1, one.float(), (1, 1), check_invariants=False)
