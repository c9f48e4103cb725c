"""Features of nodes: dense or CSR, float32, and row normalisation."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from tadropedge.errors import TadropedgeError
from tadropedge.operators.pattern import INT32_LIMIT

WIDE, SPARSE = 100, 0.2  # from so many features on, of which at most this share is not zero, they are kept as CSR


def feature_tensor(values: Any) -> Tensor:
    """Features ``[N, F]`` from an array or a SciPy matrix: float32, CSR where that saves memory and work.

    >>> feature_tensor(np.eye(200)).layout, feature_tensor([[1, 2], [3, 4]]).dtype
    (torch.sparse_csr, torch.float32)
    """
    if sp.issparse(values):
        return csr_tensor(values.tocsr())
    array = np.asarray(values)
    if array.dtype.kind not in "fiub" or array.ndim != 2:
        got = f"{array.dtype} of shape {list(array.shape)}"
        raise TadropedgeError(f"features must be a matrix of real numbers, one row per node, got {got}")
    with np.errstate(over="ignore"):  # what is too large becomes infinite, which a dataset refuses
        array = array.astype(np.float32)
    if array.shape[1] >= WIDE and np.count_nonzero(array) <= SPARSE * array.size:
        return csr_tensor(sp.csr_matrix(array))
    return torch.from_numpy(array)


def csr_tensor(matrix: sp.csr_matrix) -> Tensor:
    """The same matrix as a float32 CSR tensor, with int32 indices where they are enough.

    >>> csr_tensor(sp.csr_matrix([[0.0, 2.0], [0.0, 0.0]])).to_dense().tolist()
    [[0.0, 2.0], [0.0, 0.0]]
    """
    if matrix.dtype.kind not in "fiub":
        raise TadropedgeError(f"features must be real numbers, got {matrix.dtype}")
    index = torch.int32 if max(matrix.nnz, *matrix.shape) <= INT32_LIMIT else torch.int64
    crow, col = (torch.from_numpy(part.astype(np.int64)).to(index) for part in (matrix.indptr, matrix.indices))
    with np.errstate(over="ignore"):
        values = torch.from_numpy(matrix.data.astype(np.float32))
    return csr(crow, col, values, matrix.shape)


def row_normalize(features: Tensor) -> Tensor:
    """Divide each row by the sum of its absolute values: x_i / Σ_j |x_ij|. Rows of zeros stay zeros, CSR stays CSR.

    >>> row_normalize(torch.tensor([[1.0, 3.0], [0.0, 0.0]])).tolist()
    [[0.25, 0.75], [0.0, 0.0]]
    """
    if features.layout is not torch.sparse_csr:
        total = features.abs().sum(dim=-1, keepdim=True)
        return features / total.where(total > 0, 1.0)
    crow, col, values = features.crow_indices(), features.col_indices(), features.values()
    rows = torch.arange(features.shape[0], device=values.device).repeat_interleave(crow.diff())
    total = values.new_zeros(features.shape[0]).index_add_(0, rows, values.abs())
    return csr(crow, col, values / total.where(total > 0, 1.0)[rows], features.shape)


def csr(crow: Tensor, col: Tensor, values: Tensor, shape: tuple[int, ...]) -> Tensor:
    """A CSR tensor of parts that fit together."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Sparse CSR tensor support is in beta")
        return torch.sparse_csr_tensor(crow, col, values, shape, check_invariants=False)
