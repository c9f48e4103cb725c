"""A sparse matrix and its product with a block of vectors, on any device."""

from __future__ import annotations

from dataclasses import dataclass

import scipy.sparse as sp
import torch
from torch import Tensor

from tadropedge.operators.pattern import Csr
from tadropedge.operators.product import multiply


@dataclass(frozen=True, eq=False)
class SparseMatrix:
    """The matrix with ``values [E]`` at the places of ``csr``: ``matrix @ x`` is ``[rows, k]`` for ``x [cols, k]``.

    >>> SparseMatrix.of(sp.csr_matrix([[0.0, 2.0], [3.0, 0.0]])) @ torch.ones(2, 1, dtype=torch.float64)
    tensor([[2.],
            [3.]], dtype=torch.float64)
    """

    csr: Csr
    values: Tensor

    @classmethod
    def of(cls, matrix: sp.csr_matrix, device: torch.device | str = "cpu") -> SparseMatrix:
        """A SciPy matrix; on a CPU nothing is copied."""
        crow, col, values = (torch.from_numpy(part).to(device) for part in (matrix.indptr, matrix.indices, matrix.data))
        return cls(Csr(crow, col, matrix.shape[1]), values)

    def __matmul__(self, x: Tensor) -> Tensor:
        return multiply(self.csr, self.values, x)
