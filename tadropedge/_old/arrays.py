"""Arrays and sparse matrices from outside, checked before any compiled code touches them.

Compiled loops trust their indices: one that points outside reads or writes foreign memory. So every sparse structure of
a file or of a caller goes through :func:`checked_csr` or :func:`checked_matrix` first, and every array through
:func:`plain_array` or :func:`whole_numbers`.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tadropedge._old.checks import as_integer
from tadropedge._old.errors import NotEnoughMemoryError, TadropedgeError, show
from tadropedge._old.memory import check_room

if TYPE_CHECKING:
    import scipy.sparse as sp

Array = npt.NDArray[Any]

INDEX_LIMIT = 2**63 - 1
# What each format of SciPy stores, by the names that matrices and files of scipy.sparse.save_npz have for it.
FORMATS = {
    "csr": ("data", "indices", "indptr"),
    "csc": ("data", "indices", "indptr"),
    "bsr": ("data", "indices", "indptr"),
    "coo": ("data", "row", "col"),
    "dia": ("data", "offsets"),
}


def plain_array(values: Any, name: str) -> Array:
    """``values`` as an array in the byte order of the machine; one with masked entries is refused.

    >>> plain_array(np.ma.array([1, 2], mask=[False, True]), "x")
    Traceback (most recent call last):
    tadropedge._old.errors.TadropedgeError: x has masked entries, which have no value: fill them in first, x.filled(...)
    """
    if np.ma.is_masked(values):
        raise TadropedgeError(f"{name} has masked entries, which have no value: fill them in first, {name}.filled(...)")
    array = np.asarray(values)
    return array.astype(array.dtype.newbyteorder("="), copy=False)


def whole_numbers(values: Any, name: str) -> npt.NDArray[np.int64]:
    """``values`` as int64, if they are whole numbers that fit; nothing is rounded.

    >>> whole_numbers(np.array([2.5]), "x_indices")
    Traceback (most recent call last):
    tadropedge._old.errors.TadropedgeError: x_indices must hold whole numbers, got float64
    """
    array = plain_array(values, name)
    if array.dtype.kind not in "iu":
        raise TadropedgeError(f"{name} must hold whole numbers, got {array.dtype}")
    if array.dtype == np.uint64 and array.size and int(array.max()) > INDEX_LIMIT:
        raise TadropedgeError(f"{name} must hold whole numbers below 2^63, got {array.max()}")
    return array.astype(np.int64, copy=False)


def structure_fault(indptr: Any, indices: Any, entries: int, shape: Sequence[int]) -> str | None:
    """What is wrong with the indices of a CSR matrix, of NumPy or torch, in words; ``None`` if nothing is.

    >>> structure_fault(np.array([0, 1]), np.array([5]), 1, (1, 3))
    'an index is 5, expected 0 to 2'
    """
    rows, cols = shape
    if indptr.ndim != 1 or indices.ndim != 1 or len(indptr) != rows + 1:
        return f"{rows} rows need indptr of length {rows + 1}, got shape {list(indptr.shape)}"
    if len(indices) != entries:
        return f"there are {entries} values, but {len(indices)} indices"
    if indptr[0] != 0 or indptr[-1] != entries or (indptr[1:] < indptr[:-1]).any():
        return f"indptr must increase from 0 to {entries}"
    return _outside(indices, cols)


def _outside(indices: Any, length: int) -> str | None:
    for worst in (int(indices.min()), int(indices.max())) if len(indices) else ():
        if not 0 <= worst < length:
            return f"an index is {worst}, expected 0 to {length - 1}"
    return None


def checked_csr(values: Any, indices: Any, indptr: Any, shape: Any, name: str) -> sp.csr_matrix:
    """A SciPy CSR matrix from its parts, or an error that says what is wrong with ``name``.

    >>> checked_csr(np.ones(1), np.array([5]), np.array([0, 1]), (1, 3), "x")
    Traceback (most recent call last):
    tadropedge._old.errors.TadropedgeError: x: not a CSR matrix of shape (1, 3) (an index is 5, expected 0 to 2)
    """
    return checked_parts("csr", (values, indices, indptr), shape, name)


def checked_matrix(matrix: sp.spmatrix | sp.sparray, name: str) -> sp.csr_matrix:
    """Any SciPy matrix as CSR; its arrays may have been changed since it was made, so they are checked again."""
    try:
        if matrix.format == "lil":
            parts = _listed(matrix.rows, matrix.data)
        elif matrix.format == "dok":
            places = np.array(list(matrix.keys()) or np.empty((0, 2), np.int64)).reshape(-1, 2)
            parts = [np.array(list(matrix.values())), *places.T]
        else:
            parts = [getattr(matrix, part) for part in FORMATS[matrix.format]]
    except (AttributeError, TypeError, ValueError, OverflowError) as error:
        raise TadropedgeError(f"{name}: not a sparse matrix that can be read ({error})") from error
    return checked_parts(matrix.format if matrix.format in FORMATS else "coo", parts, matrix.shape, name)


def checked_parts(kind: str, parts: Sequence[Any], shape: Any, name: str) -> sp.csr_matrix:
    """The CSR matrix of the ``parts`` of ``FORMATS[kind]``; repeated entries stay, indices are whole and inside."""
    told = tuple(shape.tolist()) if isinstance(shape, np.ndarray) and shape.ndim == 1 else shape
    try:
        rows, cols = _lengths(told)
        values, *indices = (plain_array(part, part_name) for part, part_name in zip(parts, FORMATS[kind], strict=True))
        indices = [whole_numbers(part, part_name) for part, part_name in zip(indices, FORMATS[kind][1:], strict=True)]
        check_room(16 * (rows + cols), f"a matrix of shape {(rows, cols)}")
        return MAKERS[kind](_summable(values), indices, (rows, cols))
    except NotEnoughMemoryError as error:
        raise NotEnoughMemoryError(f"{name}: {error}") from error
    except (ValueError, TypeError, IndexError, OverflowError) as error:
        raise TadropedgeError(f"{name}: not a {kind.upper()} matrix of shape {show(told, False)} ({error})") from error


def _lengths(shape: Any) -> tuple[int, int]:
    """Two whole numbers whose product fits 64 bits."""
    lengths = [as_integer(length) for length in shape]
    if len(lengths) != 2 or any(length is None or length < 0 for length in lengths):
        raise TadropedgeError("a shape is two whole numbers")
    rows, cols = (length or 0 for length in lengths)
    if rows * cols > INDEX_LIMIT:
        raise TadropedgeError("rows times columns must stay below 2^63")
    return rows, cols


def _summable(values: Array) -> Array:
    """Real numbers of a type that SciPy adds without overflow."""
    if values.dtype.kind not in "fiub":
        raise TadropedgeError(f"values must be real numbers, got {values.dtype}")
    if values.dtype.kind in "iu":
        return values.astype(np.float64 if values.dtype == np.uint64 else np.int64, copy=False)
    wider = {np.dtype(np.float16): np.float32, np.dtype(np.longdouble): np.float64}.get(values.dtype)
    return values if wider is None else values.astype(wider)


def _from_csr(values: Array, indices: Sequence[Array], shape: tuple[int, int]) -> sp.csr_matrix:
    from scipy.sparse import csr_matrix  # SciPy takes a while to import, and most graphs do without

    if values.ndim != 1:
        raise TadropedgeError(f"data must be a list, got shape {list(values.shape)}")
    return csr_matrix(_compressed(values, indices, shape), shape=shape)


def _from_csc(values: Array, indices: Sequence[Array], shape: tuple[int, int]) -> sp.csr_matrix:
    return _from_csr(values, indices, shape[::-1]).T.tocsr()


def _from_bsr(values: Array, indices: Sequence[Array], shape: tuple[int, int]) -> sp.csr_matrix:
    from scipy.sparse import bsr_matrix

    if values.ndim != 3 or 0 in values.shape[1:] or shape[0] % values.shape[1] or shape[1] % values.shape[2]:
        raise TadropedgeError(f"blocks of shape {list(values.shape)} do not fill it")
    blocks = shape[0] // values.shape[1], shape[1] // values.shape[2]
    return bsr_matrix(_compressed(values, indices, blocks), shape=shape).tocsr()


def _compressed(values: Array, places: Sequence[Array], shape: tuple[int, int]) -> tuple[Array, Array, Array]:
    """The parts of a CSR matrix of numbers or blocks, checked; what lies behind the last row is spare room."""
    indices, indptr = places
    if indptr.ndim == 1 and len(indptr) and 0 <= indptr[-1] <= min(len(values), len(indices)):
        values, indices = values[: indptr[-1]], indices[: indptr[-1]]
    if fault := structure_fault(indptr, indices, len(values), shape):
        raise TadropedgeError(fault)
    return values, indices, indptr


def _from_coo(values: Array, indices: Sequence[Array], shape: tuple[int, int]) -> sp.csr_matrix:
    from scipy.sparse import coo_matrix

    for index, length in zip(indices, shape, strict=True):
        if values.ndim != 1 or index.shape != values.shape:
            raise TadropedgeError(f"there are values of shape {list(values.shape)}, but indices {list(index.shape)}")
        if fault := _outside(index, length):
            raise TadropedgeError(fault)
    return coo_matrix((values, tuple(indices)), shape=shape).tocsr()


def _from_dia(values: Array, indices: Sequence[Array], shape: tuple[int, int]) -> sp.csr_matrix:
    from scipy.sparse import dia_matrix

    (offsets,) = indices
    if values.ndim != 2 or offsets.shape != values.shape[:1] or len(np.unique(offsets)) != len(offsets):
        raise TadropedgeError(f"{list(values.shape)} values need as many distinct offsets, got {list(offsets.shape)}")
    inside = (offsets > -shape[0]) & (offsets < shape[1])
    return dia_matrix((values[inside], offsets[inside]), shape=shape).tocsr()


MAKERS = {"csr": _from_csr, "csc": _from_csc, "bsr": _from_bsr, "coo": _from_coo, "dia": _from_dia}


def _listed(rows: Sequence[Sequence[Any]], values: Sequence[Sequence[Any]]) -> list[Array]:
    """Values, rows and columns of a matrix of lists."""
    lengths = [len(row) for row in rows]
    if lengths != [len(row) for row in values]:
        raise TypeError("rows and values differ in length")
    columns = list(chain.from_iterable(rows))
    places = np.repeat(np.arange(len(lengths)), lengths)
    return [np.array(list(chain.from_iterable(values))), places, np.array(columns or np.empty(0, np.int64))]
