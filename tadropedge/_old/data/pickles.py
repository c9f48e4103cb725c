"""Python-2 pickles of NumPy arrays and SciPy matrices, read without running or trusting anything in them.

Every class a file may name is replaced by a stand-in that only keeps what the file says about it; arrays are then
built from that with checks. NumPy's and SciPy's own classes are never handed to the unpickler: with them a forged
file can still make an array of pointers to foreign memory.
"""

from __future__ import annotations

import collections
import io
import pickle
import pickletools
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tadropedge._old.arrays import checked_csr
from tadropedge._old.data.features import summed
from tadropedge._old.errors import TadropedgeError
from tadropedge._old.files import read_bytes, readable

KINDS = ("i4", "i8", "f4", "f8")  # the element types that are read


class Said:
    """What a file says about one object: the arguments it was made with, and its state."""

    def __init__(self, *arguments: Any) -> None:
        self.arguments = arguments
        self.state: Any = None

    def __setstate__(self, state: Any) -> None:
        self.state = state


class SaidArray(Said):
    """Stands for ``numpy.ndarray``."""


class SaidType(Said):
    """Stands for ``numpy.dtype``."""


class SaidMatrix(Said):
    """Stands for ``scipy.sparse.csr_matrix``."""


ADMITTED: dict[tuple[str, str], Any] = {
    ("collections", "defaultdict"): collections.defaultdict,
    ("__builtin__", "list"): list,
    ("numpy", "ndarray"): SaidArray,
    ("numpy", "dtype"): SaidType,
    ("numpy.core.multiarray", "_reconstruct"): SaidArray,
    ("scipy.sparse.csr", "csr_matrix"): SaidMatrix,
}


class PlainUnpickler(pickle.Unpickler):
    """An unpickler that knows dictionaries, lists and stand-ins, and nothing that could act."""

    def find_class(self, module: str, name: str) -> Any:
        """Return an admitted class, or refuse."""
        try:
            return ADMITTED[module, name]
        except KeyError:
            raise TadropedgeError(f"the file asks for {module}.{name}, which is not admitted") from None


def read_pickle(path: Path) -> Any:
    """Read one pickle: containers as they are, arrays and matrices as NumPy and SciPy objects."""
    content = read_bytes(path)
    try:
        with readable(path, "a pickle of plain arrays"):
            _check_memo(content)
            said = PlainUnpickler(io.BytesIO(content), encoding="latin1").load()
            if not isinstance(said, SaidMatrix):
                return _array(said)
            values, indices, indptr = (_array(said.state[part]) for part in ("data", "indices", "indptr"))
            return summed(checked_csr(values, indices, indptr, said.state["_shape"], path.name))
    except TadropedgeError as error:
        text = str(error)
        raise TadropedgeError(text if text.startswith(path.name) else f"{path.name}: {text}") from error


def _check_memo(content: bytes) -> None:
    """Refuse a pickle that numbers more objects than it can hold: Python makes room for all numbers up to the largest.

    >>> _check_memo(b"Nr" + bytes([255] * 4) + b".")
    Traceback (most recent call last):
    tadropedge._old.errors.TadropedgeError: object 4294967295 of a file of 7 bytes
    """
    for code, argument, _ in pickletools.genops(content):
        if code.name in ("PUT", "BINPUT", "LONG_BINPUT") and int(argument or 0) > len(content):
            raise TadropedgeError(f"object {argument} of a file of {len(content)} bytes")


def _array(said: Any) -> Any:
    """The array that ``said`` describes; what is no description stays as it is."""
    if not isinstance(said, SaidArray):
        return said
    _version, shape, kind, fortran, content = said.state
    if not isinstance(kind, SaidType) or kind.arguments[0] not in KINDS or kind.state[1] not in "<>":
        raise TadropedgeError(f"the file holds an array of another type than {', '.join(KINDS)}")
    flat: npt.NDArray[Any] = np.frombuffer(content.encode("latin1"), dtype=kind.state[1] + kind.arguments[0])
    return flat.reshape(shape, order="F" if fortran else "C").astype(flat.dtype.newbyteorder("="))
