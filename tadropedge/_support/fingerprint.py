"""One fingerprint for everything that is found again by its content: caches, trials, models.

A value is hashed together with its type, and a container is hashed over the fingerprints of its parts. So values that
only look alike differ: ``1``, ``True``, ``1.0`` and ``"1"``; ``[1, [2]]`` and ``[[1], 2]``; the same bytes as int32 and
as int64, or in another shape. Memory order, byte order, device and the order of a dictionary do not count, nor whether
a sequence is a list or a tuple.

Your own functions and classes are hashed by their name and the bytes of the file they stand in; those of this package
and of installed ones by name alone: this package counts the versions of its numbers itself.
"""

from __future__ import annotations

import inspect
import math
import struct
import sys
import sysconfig
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from functools import partial
from hashlib import sha256
from pathlib import Path
from types import NoneType
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from tadropedge.errors import TadropedgeError

VERSION = 4  # raise it when the same input gets another fingerprint

PACKAGE = __name__.partition(".")[0]
PARTS: dict[torch.layout, tuple[str, ...]] = {
    torch.strided: (),
    torch.sparse_coo: ("indices", "values"),
    torch.sparse_csr: ("crow_indices", "col_indices", "values"),
    torch.sparse_csc: ("ccol_indices", "row_indices", "values"),
}
PLAIN: dict[type, Callable[[Any], bytes]] = {
    NoneType: lambda value: b"",
    bool: lambda value: b"1" if value else b"0",
    int: lambda value: b"%x" % value,
    float: lambda value: struct.pack("<d", math.nan if math.isnan(value) else value),
    str: lambda value: value.encode("utf-8", "surrogatepass"),
    bytes: lambda value: value,
    torch.dtype: lambda value: str(value).encode(),
    torch.device: lambda value: str(value).encode(),
}


def fingerprint(**parts: object) -> str:
    """A hash of named parts, 64 hexadecimal digits; a part whose content cannot be seen is refused.

    >>> fingerprint(q=7, laplacian="normalized") == fingerprint(laplacian="normalized", q=7)
    True
    >>> len({fingerprint(q=q) for q in (1, True, 1.0, "1", [1], None)})
    6
    >>> fingerprint(mine=object())
    Traceback (most recent call last):
    tadropedge.errors.TadropedgeError: the content of an object of type object cannot be fingerprinted; expected \
numbers, texts, arrays, tensors, lists, mappings, dataclasses or functions
    """
    return _leaf(f"tadropedge {VERSION}", *_items(parts)).hex()


def _unknown(value: object) -> TadropedgeError:
    """What to raise for a value whose content cannot be seen."""
    return TadropedgeError(
        f"the content of an object of type {type(value).__name__} cannot be fingerprinted; expected numbers, texts, "
        "arrays, tensors, lists, mappings, dataclasses or functions"
    )


def _leaf(tag: str, *content: bytes | memoryview) -> bytes:
    digest = sha256(f"{tag}:".encode())
    for part in content:
        digest.update(part)
    return digest.digest()


def _node(tag: str, *parts: object) -> bytes:
    """A value made of parts; each has 32 bytes, so none runs into the next."""
    return _leaf(tag, *(_print(part) for part in parts))


def _items(table: Mapping[Any, Any]) -> Iterator[bytes]:
    for print_, key in sorted(((_print(key), key) for key in table), key=lambda pair: pair[0]):
        yield print_
        yield _print(table[key])


def _print(value: Any) -> bytes:
    """The fingerprint of any value."""
    kind = type(value)
    if kind in PLAIN:
        return _leaf(kind.__name__, PLAIN[kind](value))
    if isinstance(value, Tensor):
        return _tensor(value)
    if isinstance(value, np.ndarray | np.generic):
        return _array(value)
    if isinstance(value, Mapping):
        return _leaf("mapping", *_items(value))
    if isinstance(value, list | tuple):
        return _node("sequence", *value)
    if isinstance(value, set | frozenset):
        return _leaf("set", *sorted(_print(part) for part in value))
    if is_dataclass(value) and not isinstance(value, type):
        return _node("record", kind, {one.name: getattr(value, one.name) for one in fields(value)})
    if isinstance(value, partial):
        return _node("partial", value.func, value.args, value.keywords)
    if isinstance(value, Path):
        return _leaf("path", str(value).encode("utf-8", "surrogatepass"))
    if inspect.isroutine(value) or isinstance(value, type):
        return _code(value)
    raise _unknown(value)


def _array(value: npt.NDArray[Any] | np.generic) -> bytes:
    """A NumPy array or number: its type, its shape and its bytes in row-major, little-endian order."""
    array = np.asarray(value)
    if array.dtype.kind not in "biufcSU":
        raise _unknown(value)
    array = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<"))
    return _leaf("array", _print(array.dtype.str), _print(np.shape(value)), array.reshape(-1).view(np.uint8).data)


def _tensor(value: Tensor) -> bytes:
    """A tensor: its type, layout and shape, and its numbers or the parts of its sparse layout."""
    if value.layout not in PARTS or value.is_meta:
        raise _unknown(value)
    value = value.detach().cpu()
    value = value.coalesce() if value.layout is torch.sparse_coo else value
    parts = [getattr(value, name)() for name in PARTS[value.layout]]
    if not parts:  # as bytes: NumPy knows no bfloat16
        value = value.resolve_conj().resolve_neg().contiguous()
        parts = [value.reshape(-1).view(torch.uint8).numpy()]
    return _node("tensor", str(value.dtype), str(value.layout), list(value.shape), *parts)


def _code(value: Any) -> bytes:
    """A function or class: its name, and the bytes of its file where that is the user's own."""
    name = f"{getattr(value, '__module__', '')}.{getattr(value, '__qualname__', '')}"
    module = sys.modules.get(getattr(value, "__module__", None) or "")
    file = getattr(module, "__file__", None) or _source_file(value)
    own = file is not None and name.partition(".")[0] != PACKAGE and not _installed(file)
    return _leaf("code", name.encode(), Path(file).read_bytes() if own and file and Path(file).is_file() else b"")


def _source_file(value: Any) -> str | None:
    try:
        return inspect.getsourcefile(value)
    except TypeError:  # written in C
        return None


def _installed(file: str) -> bool:
    standard = tuple(sysconfig.get_path(name) for name in ("stdlib", "platstdlib"))
    return file.startswith(standard) or not {"site-packages", "dist-packages"}.isdisjoint(Path(file).parts)
