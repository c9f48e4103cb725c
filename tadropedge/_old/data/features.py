"""Sparse feature matrices, from their parts and back, and row normalisation."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
import torch
from torch import Tensor

from tadropedge._old.arrays import plain_array
from tadropedge._old.checks import check_kind, is_plain
from tadropedge._old.errors import TadropedgeError
from tadropedge._old.files.npz import CSR_PARTS as CSR_PARTS
from tadropedge._old.files.npz import summed as summed
from tadropedge._old.pattern import INT32_LIMIT
from tadropedge._old.sparse import hush_beta_warning


def as_float32(values: npt.NDArray[Any], name: str) -> npt.NDArray[np.float32]:
    """Real numbers as float32; those too large for it become infinite, which a dataset refuses.

    >>> as_float32(np.array(["a"]), "x")
    Traceback (most recent call last):
    tadropedge._old.errors.TadropedgeError: x must hold real numbers, got <U1
    """
    values = plain_array(values, name)
    if values.dtype.kind not in "fiub":
        raise TadropedgeError(f"{name} must hold real numbers, got {values.dtype}")
    with np.errstate(over="ignore"):
        return values.astype(np.float32)


def csr_tensor(matrix: sp.csr_matrix) -> Tensor:
    """The same matrix as a float32 CSR tensor, with int32 indices where they are enough.

    >>> csr_tensor(sp.csr_matrix([[0.0, 2.0], [0.0, 0.0]])).to_dense().tolist()
    [[0.0, 2.0], [0.0, 0.0]]
    """
    index = torch.int32 if max(matrix.nnz, *matrix.shape) <= INT32_LIMIT else torch.int64
    crow, col = (torch.from_numpy(part.astype(np.int64)).to(index) for part in (matrix.indptr, matrix.indices))
    return _csr(crow, col, torch.from_numpy(as_float32(matrix.data, "features")), matrix.shape)


def row_normalized(features: Tensor) -> Tensor:
    """Divide each row by the sum of its absolute values: x_i / Σ_j |x_ij|. Rows of zeros stay zeros, CSR stays CSR.

    >>> row_normalized(torch.tensor([[1.0, 3.0], [0.0, 0.0]])).tolist()
    [[0.25, 0.75], [0.0, 0.0]]
    """
    dense = check_kind("features", features, Tensor).layout is not torch.sparse_csr
    stored = features if dense else features.values()
    if not is_plain(stored) or not stored.is_floating_point() or features.dim() not in (2, 3) or not features.shape[-1]:
        raise TadropedgeError(
            f"features must be dense or CSR floating point numbers [N, F] or [S, N, F], got {features.dtype} "
            f"({features.layout}, {features.device.type}) of shape {list(features.shape)}"
        )
    if not bool(torch.isfinite(stored).all()):
        raise TadropedgeError("features must be finite to be normalised, got NaN or infinities")
    if dense:
        total = features.abs().sum(dim=-1, keepdim=True)
        return features / total.where(total > 0, 1.0)
    crow, col, values = features.crow_indices(), features.col_indices(), features.values()
    rows = torch.arange(features.shape[0], device=values.device).repeat_interleave(crow.diff())
    total = values.new_zeros(features.shape[0]).index_add_(0, rows, values.abs())
    return _csr(crow, col, values / total.where(total > 0, 1.0)[rows], features.shape)


def _csr(crow: Tensor, col: Tensor, values: Tensor, shape: tuple[int, ...]) -> Tensor:
    hush_beta_warning()
    return torch.sparse_csr_tensor(crow, col, values, shape, check_invariants=False)
