"""Matrices and vectors in PETSc's binary format: big-endian, written and read in pieces, so that no copy is made."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from tadropedge._old.blocks import Floats
from tadropedge._old.errors import TadropedgeError, cannot_write

MATRIX, VECTOR = 1211216, 1211214  # what a file of PETSc begins with
PIECE = 2**18  # entries that are turned into big-endian at once: 2 MB


def write_matrix(path: Path, L: sp.csr_matrix, integer: int = 4) -> None:
    """Write a CSR matrix: its shape, the entries of each row, their columns, their values.

    ``integer``: the bytes of PETSc's integers, 4 or 8.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_matrix(Path(folder, "L"), sp.csr_matrix([[1.0, -1.0], [-1.0, 1.0]]))
    ...     np.fromfile(Path(folder, "L"), ">i4", count=6).tolist()
    [1211216, 2, 2, 4, 2, 2]
    """
    rows, columns = L.shape
    if integer == 4 and L.nnz > np.iinfo(np.int32).max:
        raise TadropedgeError(
            f"a Laplacian of {L.nnz:,} entries is too large for a PETSc with integers of 32 bits: "
            "set TADROPEDGE_MPI_PYTHON to a Python whose petsc4py has 64 (Debian: python3-petsc4py-64-real)"
        )
    whole, real = np.dtype(f">i{integer}"), np.dtype(">f8")
    try:
        with path.open("wb") as file:
            np.array([MATRIX, rows, columns, L.nnz], dtype=whole).tofile(file)
            for begin in range(0, rows, PIECE):
                np.diff(L.indptr[begin : min(begin + PIECE, rows) + 1]).astype(whole).tofile(file)
            for values, kind in ((L.indices, whole), (L.data, real)):
                for begin in range(0, L.nnz, PIECE):
                    values[begin : begin + PIECE].astype(kind).tofile(file)
    except OSError as error:
        raise cannot_write(path, error) from None


def write_vector(path: Path, vector: Floats, integer: int = 4) -> None:
    """Write a vector."""
    try:
        with path.open("wb") as file:
            np.array([VECTOR, len(vector)], dtype=f">i{integer}").tofile(file)
            for begin in range(0, len(vector), PIECE):
                vector[begin : begin + PIECE].astype(">f8").tofile(file)
    except OSError as error:
        raise cannot_write(path, error) from None


def read_vectors(path: Path, length: int, integer: int = 4) -> Floats:
    """All vectors of a file, as columns ``[length, k]``.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_vector(Path(folder, "x"), np.array([1.0, 2.0, 3.0]))
    ...     read_vectors(Path(folder, "x"), 3).tolist()
    [[1.0], [2.0], [3.0]]
    """
    each = np.dtype([("kind", f">i{integer}"), ("length", f">i{integer}"), ("entries", ">f8", (length,))])
    count, rest = divmod(path.stat().st_size, each.itemsize)
    held: npt.NDArray[np.void] = np.memmap(path, dtype=each, mode="r", shape=(count,)) if count else np.empty(0, each)
    if rest or (held["kind"] != VECTOR).any() or (held["length"] != length).any():
        raise RuntimeError(f"'{path.name}' does not hold vectors of {length} numbers")
    vectors = np.empty((length, count))
    for column in range(count):
        vectors[:, column] = held["entries"][column]
    return vectors
