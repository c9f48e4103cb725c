"""One fingerprint for everything that is found again by its content: studies, caches, measurements, models, transforms.

A value is hashed together with its type, and a container is hashed over the fingerprints of its parts. So values that
only look alike differ: ``1``, ``True``, ``1.0`` and ``"1"``; ``[1, [2]]`` and ``[[1], 2]``; the same bytes as int32 and
as int64, or in another shape. Memory order, byte order, device and the order of a dictionary do not count, nor whether
a sequence is a list or a tuple.

Your own functions and classes are hashed with their code, defaults, closure and the globals they use. Those of
installed packages go by name and version, those of this package by name: it counts the versions of its numbers itself.
Each minor version of Python compiles code in its own way, and there your own functions have another fingerprint.
"""

from __future__ import annotations

import functools
import math
import struct
import sys
import sysconfig
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from hashlib import sha256
from pathlib import Path
from types import BuiltinFunctionType, CodeType, EllipsisType, FunctionType, MethodType, ModuleType, NoneType
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from tadropedge._old.errors import TadropedgeError

VERSION = 2  # raise it when the same input gets another fingerprint: studies of another version are not resumed

PACKAGE = __name__.partition(".")[0]
STANDARD = tuple({sysconfig.get_path(name) for name in ("stdlib", "platstdlib")})
INSTALLED = {"site-packages", "dist-packages"}
WORDS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
PARTS = {
    torch.strided: (),
    torch.sparse_coo: ("_indices", "_values"),
    torch.sparse_csr: ("crow_indices", "col_indices", "values"),
    torch.sparse_csc: ("ccol_indices", "row_indices", "values"),
}
CODE = ["co_code", "co_consts", "co_names", "co_varnames", "co_freevars", "co_cellvars", "co_argcount"]
CODE += ["co_posonlyargcount", "co_kwonlyargcount", "co_flags", "co_exceptiontable"]
NO_CODE = {"__module__", "__qualname__", "__doc__", "__dict__", "__weakref__", "__firstlineno__", "_abc_impl"}
NO_CODE |= {"__static_attributes__", "__annotations__", "__annotate__", "__annotate_func__", "__annotations_cache__"}
PLAIN: dict[type, Callable[[Any], bytes]] = {
    NoneType: lambda value: b"",
    EllipsisType: lambda value: b"",
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
    >>> fingerprint(score=lambda graph: graph.weight) == fingerprint(score=lambda graph: 2 * graph.weight)
    False
    >>> fingerprint(mine=object())
    Traceback (most recent call last):
    tadropedge._old.errors.TadropedgeError: mine holds an object of type object, whose content cannot be fingerprinted; \
expected numbers, texts, arrays, tensors, lists, mappings, dataclasses or functions
    """
    try:
        return _leaf(f"tadropedge {VERSION}", *_items(parts, {})).hex()
    except (_UnknownError, RecursionError) as error:
        what = error.args[0] if isinstance(error, _UnknownError) else "a container that holds itself"
        raise TadropedgeError(
            f"{', '.join(parts)} holds {what}, whose content cannot be fingerprinted; expected numbers, texts, arrays, "
            "tensors, lists, mappings, dataclasses or functions"
        ) from None


def of_this_package(entry: Any) -> bool:
    """Whether a score, rule or network is one of ours, whose name says all.

    >>> of_this_package(fingerprint), of_this_package(lambda: fingerprint)
    (True, False)
    """
    entry = getattr(entry, "__wrapped__", entry)
    return str(getattr(entry, "__module__", "")).partition(".")[0] == PACKAGE and _by_name(entry)


Seen = dict[int, tuple[int, object]]  # functions, classes and objects on the way: they may refer to themselves


class _UnknownError(Exception):
    """A value whose content cannot be seen."""

    def __init__(self, value: object) -> None:
        super().__init__(f"an object of type {type(value).__name__}")


def _leaf(tag: str, *content: bytes | memoryview) -> bytes:
    digest = sha256(f"{tag}:".encode())
    for part in content:
        digest.update(part)
    return digest.digest()


def _node(seen: Seen, tag: str, *parts: object) -> bytes:
    """A value made of parts; each has 32 bytes, so none runs into the next."""
    return _leaf(tag, *(_print(part, seen) for part in parts))


def _items(table: Mapping[Any, Any], seen: Seen) -> Iterator[bytes]:
    for print_, key in sorted(((_print(key, seen), key) for key in table), key=lambda pair: pair[0]):
        yield print_
        yield _print(table[key], seen)


def _print(value: Any, seen: Seen) -> bytes:
    """The fingerprint of any value."""
    kind = type(value)
    if kind in PLAIN:
        return _leaf(kind.__name__, PLAIN[kind](value))
    if kind is complex:
        return _node(seen, "complex", value.real, value.imag)
    if isinstance(value, Tensor):
        return _tensor(value, seen)
    if isinstance(value, np.ndarray | np.generic):
        return _array(value, seen)
    if isinstance(value, Mapping):
        return _leaf("mapping", *_items(value, seen))
    if isinstance(value, list | tuple):
        return _node(seen, "sequence", *value)
    if isinstance(value, set | frozenset):
        return _leaf("set", *sorted(_print(part, seen) for part in value))
    if is_dataclass(value) and not isinstance(value, type):
        return _node(seen, "record", kind, {one.name: getattr(value, one.name) for one in fields(value)})
    return _code(value, seen)


def _array(value: npt.NDArray[Any] | np.generic, seen: Seen) -> bytes:
    """A NumPy array or number: its type, its shape and its bytes in row-major, little-endian order."""
    array = np.asarray(value)
    widest = {"f": 8, "c": 16}.get(array.dtype.kind, math.inf)  # long doubles have bytes that mean nothing
    if array.dtype.kind not in "biufcmMSU" or array.dtype.itemsize > widest or isinstance(value, np.ma.MaskedArray):
        raise _UnknownError(value)
    array = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<"))
    content = array.data if array.dtype.kind in "biufc" and array.size else array.tobytes()
    head = (_print(array.dtype.newbyteorder("<").str, seen), _print(np.shape(value), seen))
    return _leaf("array", *head, content.cast("B") if isinstance(content, memoryview) else content)


def _tensor(value: Tensor, seen: Seen) -> bytes:
    """A tensor: its type, layout and shape, and its numbers or the parts of its sparse layout."""
    if value.is_meta or value.is_quantized or value.layout not in PARTS or value.is_nested:
        raise _UnknownError(value)
    value = value.detach().cpu()
    head = (str(value.dtype), str(value.layout), list(value.shape))
    if names := PARTS[value.layout]:
        whole = value.coalesce() if value.layout is torch.sparse_coo else value
        return _node(seen, "sparse tensor", *head, *(getattr(whole, name)() for name in names))
    value = torch.view_as_real(value.resolve_conj()) if value.is_complex() else value
    numbers = value.resolve_neg().contiguous().reshape(-1)
    return _node(seen, "tensor", *head, numbers.view(WORDS[numbers.element_size()]).numpy())


def _code(value: Any, seen: Seen) -> bytes:
    """A function, a class, or an object of your own class."""
    if id(value) in seen:
        return _node(seen, "again", seen[id(value)][0])
    if isinstance(value, ModuleType):
        return _module(value, seen)
    if isinstance(value, CodeType):
        return _node(seen, "code", *(getattr(value, name, None) for name in CODE))
    if isinstance(value, functools.partial):
        return _node(seen, "partial", value.func, value.args, value.keywords)
    if isinstance(value, MethodType):
        return _node(seen, "method", value.__self__, value.__func__)
    name = [str(getattr(value, part, "")) for part in ("__module__", "__qualname__", "__name__")]
    if _by_name(value):
        return _node(seen, "name", *name, _version(name[0]))
    seen[id(value)] = len(seen), value
    if isinstance(value, FunctionType):
        told = (value.__code__, value.__defaults__, value.__kwdefaults__, _closure(value))
        return _leaf("function", *(_print(part, seen) for part in (name, *told)), *_globals(value, seen))
    if isinstance(value, type):
        own = {key: _if_known(part, seen) for key, part in vars(value).items() if key not in NO_CODE}
        return _node(seen, "class", name, value.__bases__, own)
    if isinstance(value, staticmethod | classmethod) or hasattr(value, "__wrapped__"):  # functions with a cache, too
        return _node(seen, "wrapped", type(value), value.__wrapped__)
    if isinstance(value, functools.cached_property):
        return _node(seen, "cached property", value.func)
    if isinstance(value, property):
        return _node(seen, "property", value.fget, value.fset, value.fdel)
    if not _own(type(value).__module__) or not hasattr(value, "__dict__"):
        raise _UnknownError(value)
    return _node(seen, "object", type(value), vars(value))


def _module(value: ModuleType, seen: Seen) -> bytes:
    """An installed module by its version; one of your own by its source, with all modules that it imports."""
    if not _own(value.__name__):
        return _node(seen, "module", value.__name__, _version(value.__name__))
    seen[id(value)] = len(seen), value
    file = Path(getattr(value, "__file__", None) or "")
    source = file.read_bytes() if file.is_file() else b""
    imported = {name: part for name, part in vars(value).items() if isinstance(part, ModuleType)}
    return _node(seen, "module", value.__name__, source, imported)


def _by_name(value: Any) -> bool:
    """Whether a name says all: it is written in C, or found by its name in this package or an installed one."""
    if isinstance(value, BuiltinFunctionType):
        return value.__self__ is None or isinstance(value.__self__, ModuleType)
    module, name = getattr(value, "__module__", None), getattr(value, "__qualname__", getattr(value, "__name__", None))
    if not (isinstance(module, str) and isinstance(name, str)) or _own(module):
        return False
    found: Any = sys.modules.get(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    return found is value


def _own(module: str) -> bool:
    """Whether a module is the user's own code: not of this package, installed or part of Python."""
    file = getattr(sys.modules.get(module), "__file__", None) or ""
    elsewhere = file.startswith(STANDARD) or INSTALLED & set(Path(file).parts)
    return not elsewhere and module.partition(".")[0] not in (PACKAGE, *sys.builtin_module_names)


def _version(module: str) -> str:
    """The version of an installed package; none of this package and of what is part of Python."""
    top = module.partition(".")[0]
    return "" if top == PACKAGE else str(getattr(sys.modules.get(top), "__version__", ""))


def _closure(function: FunctionType) -> list[Any]:
    """What a function keeps of the function around it; a variable that is not set yet is an empty list."""
    cells = []
    for cell in function.__closure__ or ():
        try:
            cells.append([cell.cell_contents])
        except ValueError:
            cells.append([])
    return cells


def _globals(function: FunctionType, seen: Seen) -> Iterator[bytes]:
    """The globals that a function uses, and what it uses of the user's own modules among them."""
    names = sorted(set(_names(function.__code__)))
    for name in names:
        value = function.__globals__.get(name, sys.modules.get(name))  # the latter if it is imported in the function
        if name not in function.__globals__ and not isinstance(value, ModuleType):
            continue
        yield _node(seen, "global", name, _if_known(value, seen))
        if isinstance(value, ModuleType) and _own(value.__name__):
            for part in names:
                if hasattr(value, part):
                    yield _node(seen, "attribute", name, part, _if_known(getattr(value, part), seen))


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for part in code.co_consts:
        if isinstance(part, CodeType):
            yield from _names(part)


def _if_known(value: Any, seen: Seen) -> bytes:
    """A global or a part of a class; one whose content cannot be seen, such as a logger, goes by its type."""
    try:
        return _print(value, seen)
    except _UnknownError:
        return _node(seen, "unknown", type(value).__module__, type(value).__qualname__)
