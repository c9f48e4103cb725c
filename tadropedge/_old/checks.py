"""The checks that arguments of public functions go through.

A check returns the value as the function needs it, or raises :class:`~tadropedge._old.errors.TadropedgeError`: one line that
names the argument, repeats what was given and says what would be right. Numbers may come from Python, NumPy or torch.
"""

from __future__ import annotations

import inspect
import math
import numbers
import operator
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from tadropedge._old.errors import TadropedgeError, lookup, show
from tadropedge._old.memory import ran_out

if TYPE_CHECKING:  # bad names are answered before torch is loaded
    import torch
    from torch import Tensor

T = TypeVar("T")

LARGEST = 2**63 - 1  # of a whole number, which arrays hold in 64 bits
OGB = "ogbn-"  # the names of sets of the Open Graph Benchmark begin with it
PYG = "pyg:"  # and those of PyTorch Geometric with this: pyg:Amazon/Photo
LONGEST_PATH, LONGEST_PART = 4096, 255  # bytes, of file systems


# -- tensors and arrays ----------------------------------------------------------------------------------


def check_tensor(name: str, value: object) -> Tensor:
    """Return ``value`` if it is a dense tensor of real numbers or of True and False, with its values at hand.

    >>> import torch
    >>> check_tensor("x", torch.eye(2).to_sparse())
    Traceback (most recent call last):
    tadropedge._old.errors.TadropedgeError: x must be a dense tensor of real numbers, got torch.float32 (torch.sparse_coo) \
of shape [2, 2] on cpu
    """
    import torch

    if not isinstance(value, torch.Tensor):
        raise TadropedgeError(f"{name} must be a tensor, got {show(value)}")
    if not is_plain(value):
        raise TadropedgeError(
            f"{name} must be a dense tensor of real numbers, got {value.dtype} ({value.layout}) of shape "
            f"{list(value.shape)} on {value.device}"
        )
    return value


def is_plain(value: Tensor) -> bool:
    """Whether a tensor is dense, with real values at hand: not sparse, quantised, nested, complex or on ``meta``."""
    import torch

    odd = value.layout is not torch.strided or value.is_quantized or value.is_complex()
    return not (odd or value.is_nested or value.device.type == "meta")


def check_array(name: str, value: object) -> Tensor:
    """Return real numbers of any kind (lists, NumPy arrays, tensors) as a tensor; what is not a tensor is copied.

    >>> check_array("gamma", [0.5, 2])
    tensor([0.5000, 2.0000], dtype=torch.float64)
    >>> check_array("gamma", ["a"])
    Traceback (most recent call last):
    tadropedge._old.errors.TadropedgeError: gamma must be real numbers, got list ['a']
    """
    import numpy as np
    import torch

    if isinstance(value, torch.Tensor):
        return check_tensor(name, value)
    value = as_number(value) if type(value) is int else value  # a whole number may be too large for an array
    try:
        array = np.array(value, subok=True)
        if array.dtype.kind not in "biuf" or isinstance(value, str | bytes):
            raise TypeError(f"{array.dtype} are no real numbers")
        if array.dtype.kind == "u" and array.size and int(array.max()) > LARGEST:
            raise TypeError("too large")
    except Exception as error:  # ragged lists, and whatever an object's own conversion raises
        raise TadropedgeError(f"{name} must be real numbers, got {show(value)}") from error
    if isinstance(array, np.ma.MaskedArray) and np.ma.is_masked(array):
        raise TadropedgeError(f"{name} must be real numbers, got an array with {int(array.mask.sum())} masked entries")
    kind = {"b": np.bool_, "f": np.float64}.get(array.dtype.kind, np.int64)
    return torch.from_numpy(np.ascontiguousarray(array, dtype=kind).reshape(array.shape))


def check_numbers(name: str, value: object) -> Tensor:
    """Like :func:`check_array`, but True and False are no numbers."""
    import torch

    found = check_array(name, value)
    if found.dtype == torch.bool:
        raise TadropedgeError(f"{name} must be real numbers, got True and False")
    return found


def check_whole(name: str, value: object) -> Tensor:
    """Return ``value`` if it is a dense tensor of whole numbers."""
    import torch

    found = check_tensor(name, value)
    if found.is_floating_point() or found.dtype == torch.bool:
        raise TadropedgeError(f"{name} must hold whole numbers, got {found.dtype} of shape {list(found.shape)}")
    return found


def check_probability(name: str, value: Tensor) -> Tensor:
    """Return ``value`` as float64 after checking that it lies in [0, 1]; NaN does not.

    >>> import torch
    >>> check_probability("keep_prob", torch.tensor(1.2))
    Traceback (most recent call last):
    tadropedge._old.errors.TadropedgeError: keep_prob must lie in [0, 1], got 1.2
    """
    import torch

    if check_tensor(name, value).dtype == torch.bool:
        raise TadropedgeError(f"{name} must be real numbers in [0, 1], got dtype {value.dtype}")
    if value.numel():
        low, high = torch.aminmax(value.detach())
        # One transfer instead of two; a NaN fails both comparisons.
        least, most = torch.stack((low, high)).tolist()
        if not (least >= 0 and most <= 1):
            wrong = least if not least >= 0 else most
            raise TadropedgeError(f"{name} must lie in [0, 1], got {wrong:.6g}")
    return value.to(torch.float64)


def check_length(name: str, value: object, length: int, what: str) -> Tensor:
    """Return ``value`` if it is a tensor whose last axis holds one entry for each of ``length`` things.

    >>> import torch
    >>> check_length("prob", torch.ones(3), 5, "edge")
    Traceback (most recent call last):
    tadropedge._old.errors.TadropedgeError: prob must have 5 entries along its last axis, one for each edge, got shape [3]
    """
    found = check_tensor(name, value)
    if found.dim() == 0 or found.shape[-1] != length:
        raise TadropedgeError(
            f"{name} must have {length} entries along its last axis, one for each {what}, got shape {list(found.shape)}"
        )
    return found


def check_device(name: str, value: Tensor, device: torch.device, owner: str) -> None:
    """Check that ``value`` lies where ``owner`` does; nothing is moved silently."""
    if value.device != device:
        raise TadropedgeError(
            f"{name} is on {value.device}, but {owner} is on {device}; move one of them with .to(...)"
        )


def check_runs_on(device: object, default: torch.device | None = None) -> torch.device:
    """Return the device to run on after checking that it is there; ``None`` stands for ``default``, if there is one.

    >>> import torch
    >>> check_runs_on("gpu", torch.device("cpu"))
    Traceback (most recent call last):
    tadropedge._old.errors.TadropedgeError: device must be 'cpu' or 'cuda', got 'gpu'
    """
    import torch

    try:
        # torch.device(0) is a GPU by its number: a device is named here.
        named = device if isinstance(device, str | torch.device) else "meta"
        chosen = default if device is None and default is not None else torch.device(named)
    except (RuntimeError, ValueError):
        chosen = torch.device("meta")
    if chosen.type not in ("cpu", "cuda"):
        raise TadropedgeError(f"device must be 'cpu' or 'cuda', got {show(device, typed=False)}")
    if chosen.type == "cuda" and not torch.cuda.is_available():
        raise TadropedgeError(f"device {str(chosen)!r} was asked for, but torch sees no GPU; use 'cpu'")
    if chosen.type == "cuda" and (chosen.index or 0) >= torch.cuda.device_count():
        raise TadropedgeError(f"device {str(chosen)!r} was asked for, but torch sees {torch.cuda.device_count()} GPUs")
    return chosen


# -- single values ---------------------------------------------------------------------------------------


def check_integer(name: str, value: object, least: int, most: int = LARGEST) -> int:
    """Return ``value`` as an ``int`` from ``least`` to ``most``, which by default is what 64 bits hold.

    >>> check_integer("q", 0, least=1)
    Traceback (most recent call last):
    tadropedge._old.errors.TadropedgeError: q must be a whole number of at least 1, got 0
    """
    number = as_integer(value)
    if number is None or number < least:
        raise TadropedgeError(f"{name} must be a whole number of at least {least}, got {show(value, typed=False)}")
    if number > most:
        raise TadropedgeError(f"{name} must be a whole number of at most {most}, got {show(value, typed=False)}")
    return number


def check_seed(value: object, name: str = "seed", *, signed: bool = False) -> int:
    """Return ``value`` as an ``int``: a seed is a word of 64 bits, a whole number from 0 to 2⁶⁴ − 1.

    Coins also take words ``signed``, as int64 tensors hold them, down to −2⁶³: −1 stands for 2⁶⁴ − 1.

    >>> check_seed(-1, signed=True), check_seed(2**64 - 1)
    (-1, 18446744073709551615)
    >>> check_seed(2**64)
    Traceback (most recent call last):
    tadropedge._old.errors.TadropedgeError: seed must be a whole number of at most 18446744073709551615, got \
18446744073709551616
    """
    return check_integer(name, value, least=-(2**63) if signed else 0, most=2**64 - 1)


def as_integer(value: object) -> int | None:
    """``value`` as an ``int`` if it is one whole number of any library, else ``None``.

    >>> as_integer(3), as_integer(3.0), as_integer(True)
    (3, None, None)
    """
    if type(value) is int:
        return value
    if not _single(value):
        return None
    try:
        return operator.index(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, RuntimeError):
        return None


def as_number(value: object) -> float | None:
    """``value`` as a ``float`` if it is one real number of any library, else ``None``; 10^400 counts as infinite.

    >>> as_number(3), as_number("3"), as_number(True), as_number(10**400)
    (3.0, None, None, inf)
    """
    if type(value) is float:
        return value
    whole = as_integer(value)
    try:
        if whole is not None:
            return float(whole)
        if not _single(value) or getattr(value, "is_quantized", False):
            return None
        plain = value.item() if hasattr(value, "item") else value
        return float(plain) if isinstance(plain, numbers.Real) else None
    except OverflowError:
        return -math.inf if whole is not None and whole < 0 else math.inf
    except (TypeError, ValueError, RuntimeError):
        return None


def _single(value: object) -> bool:
    """Whether a value of any library has no axes, no mask, and is not True or False."""
    kind = str(getattr(value, "dtype", type(value).__name__))
    masked = getattr(value, "mask", None) is not None
    return getattr(value, "ndim", 0) == 0 and not masked and kind not in ("bool", "torch.bool")


def check_number(name: str, value: object, low: float = -math.inf, high: float = math.inf) -> float:
    """Return ``value`` if it is one finite number in [low, high]; those of Python stay as they are.

    >>> check_number("keep_prob", "0.5", 0, 1)
    Traceback (most recent call last):
    tadropedge._old.errors.TadropedgeError: keep_prob must lie in [0, 1], got '0.5'
    """
    number = as_number(value)
    if number is None or not math.isfinite(number) or not low <= number <= high:
        wanted = f"be at least {low:g}" if low > -math.inf else f"be at most {high:g}"
        wanted = f"lie in [{low:g}, {high:g}]" if low > -math.inf and high < math.inf else wanted
        wanted = "be a finite number" if low == -math.inf and high == math.inf else wanted
        raise TadropedgeError(f"{name} must {wanted}, got {show(value, typed=False)}")
    return value if type(value) is int else number


def check_positive(name: str, value: object, below: float = math.inf) -> float:
    """Return ``value`` as a ``float`` strictly between 0 and ``below``.

    >>> check_positive("tolerance", "tight")
    Traceback (most recent call last):
    tadropedge._old.errors.TadropedgeError: tolerance must be a positive number, got 'tight'
    """
    number = as_number(value)
    if number is None or not 0 < number < below:
        wanted = "a positive number" if below == math.inf else f"between 0 and {below:g}"
        raise TadropedgeError(f"{name} must be {wanted}, got {show(value, typed=False)}")
    return number


def check_flag(name: str, value: object) -> bool:
    """Return ``value`` as a ``bool`` if it is one of Python or NumPy; 0, 1 and texts are none.

    >>> check_flag("inverse", "no")
    Traceback (most recent call last):
    tadropedge._old.errors.TadropedgeError: inverse must be True or False, got 'no'
    """
    if isinstance(value, bool) or type(value).__name__ in ("bool", "bool_"):
        return bool(value)
    raise TadropedgeError(f"{name} must be True or False, got {show(value, typed=False)}")


def check_kind(name: str, value: object, kind: type[T]) -> T:
    """Return ``value`` if it is an instance of ``kind``.

    >>> check_kind("graph", [1], dict)
    Traceback (most recent call last):
    tadropedge._old.errors.TadropedgeError: graph must be a dict, got list [1]
    """
    if not isinstance(value, kind):
        article = "an" if kind.__name__[0] in "AEIO" else "a"
        raise TadropedgeError(f"{name} must be {article} {kind.__name__}, got {show(value)}")
    return value


def check_list(name: str, value: object, what: str) -> list[Any]:
    """Return ``value`` as a list if it is a list, a tuple, a range or an array of one axis; ``what`` it should hold.

    >>> check_list("methods", "cdf", "methods")
    Traceback (most recent call last):
    tadropedge._old.errors.TadropedgeError: methods must be a list of methods, got str 'cdf'
    """
    made: Any = value
    if type(value).__name__ == "ndarray" and made.ndim == 1 and made.size:
        made = made.tolist()
    if not isinstance(made, Sequence) or isinstance(made, str | bytes):
        raise TadropedgeError(f"{name} must be a list of {what}, got {show(value)}")
    return list(made)


def check_table(name: str, value: object, what: str = "names to values") -> Mapping[str, Any]:
    """Return ``value`` if it is a mapping whose keys are texts; ``what`` it should map."""
    if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
        raise TadropedgeError(f"{name} must be a mapping from {what}, got {show(value)}")
    return value


# -- texts and paths -------------------------------------------------------------------------------------


def check_text(name: str, value: object) -> str:
    r"""Return ``value`` if it is a text that can be written to a file.

    >>> check_text("name", "\udc80")
    Traceback (most recent call last):
    tadropedge._old.errors.TadropedgeError: name must be a text of printable characters, got '\udc80'
    """
    if not isinstance(value, str) or not value.isprintable() or not value:
        raise TadropedgeError(f"{name} must be a text of printable characters, got {show(value, typed=False)}")
    return str(value)


def check_encodable(name: str, value: object) -> None:
    r"""Refuse a text that no file can hold.

    >>> check_encodable("a node", "\ud800")
    Traceback (most recent call last):
    tadropedge._old.errors.TadropedgeError: a node is called '\ud800', which is no text that can be written (a surrogate)
    """
    if isinstance(value, str) and not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError:
            words = "which is no text that can be written (a surrogate)"
            raise TadropedgeError(f"{name} is called {show(value, typed=False)}, {words}") from None


def check_path(name: str, value: object) -> Path:
    """Return ``value`` as a path if a file system could have it.

    >>> check_path("root", b"data")
    Traceback (most recent call last):
    tadropedge._old.errors.TadropedgeError: root must be the path of a file or folder, got bytes b'data'
    """
    text = os.fspath(value) if isinstance(value, str | os.PathLike) else None
    if not isinstance(text, str) or not text or "\0" in text:
        raise TadropedgeError(f"{name} must be the path of a file or folder, got {show(value)}")
    lengths = [len(part.encode(errors="surrogatepass")) for part in (text, *Path(text).parts)]
    if lengths[0] > LONGEST_PATH or max(lengths[1:], default=0) > LONGEST_PART:
        raise TadropedgeError(f"{name} is longer than a path can be, got {show(value)} of {lengths[0]} bytes")
    return Path(text)


def name_or_path(kind: str, name: object, names: Iterable[str]) -> str | Path:
    """One of ``names`` in small letters, or the path of a file: what has a folder or a suffix, or is there.

    A set of OGB, such as ``ogbn-arxiv``, is a path, too: that of a folder to be found below the data. One of PyTorch
    Geometric, such as ``pyg:Amazon/Photo``, is a name, which whoever loads it looks up.

    >>> name_or_path("dataset", "Cora", ["cora"]), str(name_or_path("dataset", "my/graph", ["cora"]))
    ('cora', 'my/graph')
    >>> name_or_path("dataset", "coar", ["cora"])
    Traceback (most recent call last):
    tadropedge._old.errors.TadropedgeError: unknown dataset 'coar'; choose from cora (did you mean 'cora'?)
    """
    table, path = {each: each for each in names}, check_path(kind, name)
    if isinstance(name, str) and name.lower().startswith(PYG):
        return PYG + name[len(PYG) :]
    if not isinstance(name, str) or path.suffix or path.name != name or path.exists() or name.startswith(OGB):
        return table[name.lower()] if isinstance(name, str) and name.lower() in table else path
    return lookup(kind, name.lower(), table)


# -- functions of the user -------------------------------------------------------------------------------


def check_function(
    name: str, value: object, wanted: str, arguments: int = 1, settings: bool = False
) -> Callable[..., Any]:
    """Return ``value`` if it can be called with that many arguments (and ``settings`` of its own), as ``wanted``.

    >>> check_function("progress", len, "progress(done, total)", arguments=2)
    Traceback (most recent call last):
    tadropedge._old.errors.TadropedgeError: progress must be a function progress(done, total), got \
builtin_function_or_method <built-in function len>
    """
    good = callable(value) and not isinstance(value, type)
    if good:
        try:
            signature = inspect.signature(value)  # type: ignore[arg-type]
            (signature.bind_partial if settings else signature.bind)(*range(arguments))
        except TypeError:
            good = False
        except ValueError:  # functions written in C may have no signature
            pass
    if not good:
        raise TadropedgeError(f"{name} must be a function {wanted}, got {show(value)}")
    return value  # type: ignore[return-value]


def check_progress(value: object) -> Any:
    """Return what shows progress: True, False, ``None`` or a function of (done, total)."""
    if value is None or isinstance(value, bool) or type(value).__name__ in ("bool", "bool_"):
        return None if value is None else bool(value)
    return check_function("progress", value, "progress(done, total), True, False or None", arguments=2)


def ask(what: str, wanted: str, function: Callable[..., Any], *arguments: Any, **settings: Any) -> Any:
    """Call a user's own function; what it raises is told in one line that names it and says what is ``wanted``.

    >>> ask("the strategy 'mine'", "rule(weights [M]) -> [M]", lambda weights: 1 / 0, [1.0])
    Traceback (most recent call last):
    tadropedge._old.errors.TadropedgeError: the strategy 'mine' raised ZeroDivisionError: division by zero; it must be a \
function rule(weights [M]) -> [M]
    """
    try:
        return function(*arguments, **settings)
    except (TadropedgeError, MemoryError):
        raise
    except Exception as error:
        if ran_out(error):  # which callers answer with smaller batches
            raise
        told = f"{type(error).__name__}: {show(str(error), typed=False, longest=160)[1:-1]}"
        raise TadropedgeError(f"{what} raised {told}; it must be a function {wanted}") from error


def settle(record: object, **values: object) -> None:
    """Put checked values into a frozen dataclass while it is made."""
    for name, value in values.items():
        object.__setattr__(record, name, value)
