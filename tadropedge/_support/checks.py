"""The checks at the public doors.

A check returns the value as the function needs it, or raises :class:`~tadropedge.errors.TadropedgeError`: one line that
names the argument, repeats what was given and says what would be right. Inside the package nothing is checked again.
"""

from __future__ import annotations

import inspect
import math
import numbers
import operator
import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import torch
from torch import Tensor

from tadropedge.errors import TadropedgeError, show

T = TypeVar("T")

LARGEST = 2**63 - 1  # of a whole number, which arrays hold in 64 bits


# -- tensors ---------------------------------------------------------------------------------------------


def check_tensor(name: str, value: object) -> Tensor:
    """Return ``value`` if it is a dense tensor of real numbers or of True and False.

    >>> check_tensor("x", torch.eye(2).to_sparse())
    Traceback (most recent call last):
    tadropedge.errors.TadropedgeError: x must be a dense tensor of real numbers, got torch.float32 (torch.sparse_coo) \
of shape [2, 2]
    """
    if not isinstance(value, Tensor):
        raise TadropedgeError(f"{name} must be a tensor, got {show(value)}", argument=name)
    if value.layout is not torch.strided or value.is_complex():
        raise TadropedgeError(
            f"{name} must be a dense tensor of real numbers, got {value.dtype} ({value.layout}) of shape "
            f"{list(value.shape)}",
            argument=name,
        )
    return value


def check_numbers(name: str, value: object) -> Tensor:
    """Return real numbers of any kind (lists, NumPy arrays, tensors) as a tensor; True and False are none.

    >>> check_numbers("gamma", [0.5, 2])
    tensor([0.5000, 2.0000], dtype=torch.float64)
    >>> check_numbers("gamma", ["a"])
    Traceback (most recent call last):
    tadropedge.errors.TadropedgeError: gamma must be real numbers, got list ['a']
    """
    if isinstance(value, Tensor):
        found = check_tensor(name, value)
    else:
        try:
            array = np.asarray(value)
            if array.dtype.kind not in "iuf":
                raise TypeError
            usual = array.dtype in (np.int32, np.int64, np.float64) and array.flags.writeable
            plain = usual and min(array.strides, default=0) >= 0  # else not without a copy
            kind = np.float64 if array.dtype.kind == "f" else np.int64
            found = torch.from_numpy(array if plain else np.array(array, dtype=kind))
        except (TypeError, ValueError, OverflowError):  # ragged lists, texts, numbers beyond 64 bits
            raise TadropedgeError(f"{name} must be real numbers, got {show(value)}", argument=name) from None
    if found.dtype == torch.bool:
        raise TadropedgeError(f"{name} must be real numbers, got True and False", argument=name)
    return found


def check_whole(name: str, value: object) -> Tensor:
    """Return ``value`` if it is a dense tensor of whole numbers."""
    found = check_tensor(name, value)
    if found.is_floating_point() or found.dtype == torch.bool:
        raise TadropedgeError(f"{name} must hold whole numbers, got {found.dtype} of shape {list(found.shape)}")
    return found


def check_probability(name: str, value: object) -> Tensor:
    """Return ``value`` as float64 after checking that it lies in [0, 1]; NaN does not.

    >>> check_probability("keep_prob", torch.tensor(1.2))
    Traceback (most recent call last):
    tadropedge.errors.TadropedgeError: keep_prob must lie in [0, 1], got 1.2
    """
    found = check_tensor(name, value)
    if found.dtype == torch.bool:
        raise TadropedgeError(f"{name} must be real numbers in [0, 1], got True and False", argument=name)
    if found.numel():
        # One transfer instead of two; a NaN fails both comparisons.
        least, most = torch.stack(torch.aminmax(found.detach())).tolist()
        if not (least >= 0 and most <= 1):
            wrong = least if not least >= 0 else most
            raise TadropedgeError(f"{name} must lie in [0, 1], got {wrong:.6g}", argument=name)
    return found.to(torch.float64)


def check_length(name: str, value: object, length: int, what: str) -> Tensor:
    """Return ``value`` if it is a tensor whose last axis holds one entry for each of ``length`` things.

    >>> check_length("prob", torch.ones(3), 5, "edge")
    Traceback (most recent call last):
    tadropedge.errors.TadropedgeError: prob must have 5 entries along its last axis, one for each edge, got shape [3]
    """
    found = check_tensor(name, value)
    if found.dim() == 0 or found.shape[-1] != length:
        raise TadropedgeError(
            f"{name} must have {length} entries along its last axis, one for each {what}, got shape "
            f"{list(found.shape)}",
            argument=name,
        )
    return found


def check_device(name: str, value: Tensor, device: torch.device, owner: str) -> None:
    """Check that ``value`` lies where ``owner`` does; nothing is moved silently."""
    if value.device != device:
        raise TadropedgeError(
            f"{name} is on {value.device}, but {owner} is on {device}; move one of them with .to(...)", argument=name
        )


def check_runs_on(device: object, default: torch.device | None = None) -> torch.device:
    """Return the device to run on after checking that it is there; ``None`` stands for ``default``, if there is one.

    >>> check_runs_on("gpu")
    Traceback (most recent call last):
    tadropedge.errors.TadropedgeError: device must be 'cpu' or 'cuda', got 'gpu'
    """
    try:
        named = device if isinstance(device, str | torch.device) else "meta"
        chosen = default if device is None and default is not None else torch.device(named)
    except RuntimeError:
        chosen = torch.device("meta")
    if chosen.type not in ("cpu", "cuda"):
        raise TadropedgeError(f"device must be 'cpu' or 'cuda', got {show(device, typed=False)}", argument="device")
    if chosen.type == "cuda" and (chosen.index or 0) >= torch.cuda.device_count():
        count = torch.cuda.device_count()
        raise TadropedgeError(f"device {str(chosen)!r} was asked for, but torch sees {count} GPUs", argument="device")
    return chosen


# -- single values ---------------------------------------------------------------------------------------


def check_integer(name: str, value: object, least: int, most: int = LARGEST) -> int:
    """Return ``value`` as an ``int`` from ``least`` to ``most``.

    >>> check_integer("q", 0, least=1)
    Traceback (most recent call last):
    tadropedge.errors.TadropedgeError: q must be a whole number of at least 1, got 0
    """
    number = as_integer(value)
    if number is None or number < least:
        got = show(value, typed=False)
        raise TadropedgeError(f"{name} must be a whole number of at least {least}, got {got}", argument=name)
    if number > most:
        got = show(value, typed=False)
        raise TadropedgeError(f"{name} must be a whole number of at most {most}, got {got}", argument=name)
    return number


def check_seed(value: object, name: str = "seed") -> int:
    """Return ``value`` as an ``int``: a seed is a word of 64 bits, −2⁶³ to 2⁶⁴ − 1, where −1 stands for 2⁶⁴ − 1."""
    return check_integer(name, value, least=-(2**63), most=2**64 - 1)


def as_integer(value: object) -> int | None:
    """``value`` as an ``int`` if it is one whole number of Python, NumPy or torch, else ``None``.

    >>> as_integer(np.int64(3)), as_integer(3.0), as_integer(True)
    (3, None, None)
    """
    if isinstance(value, bool | np.bool_) or getattr(value, "dtype", None) == torch.bool or getattr(value, "ndim", 0):
        return None
    try:
        return operator.index(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, RuntimeError):
        return None


def check_number(name: str, value: object, least: float = -math.inf, most: float = math.inf) -> float:
    """Return ``value`` as a finite ``float`` from ``least`` to ``most``.

    >>> check_number("keep_prob", 1.2, 0, 1)
    Traceback (most recent call last):
    tadropedge.errors.TadropedgeError: keep_prob must be a number from 0 to 1, got 1.2
    """
    single = isinstance(value, Tensor | np.generic) and value.ndim == 0
    plain: Any = value.item() if single else value  # type: ignore[attr-defined]
    try:
        number = None if isinstance(plain, bool) or not isinstance(plain, numbers.Real) else float(plain)
    except OverflowError:  # a whole number beyond all floats
        number = None
    if number is None or not least <= number <= most or not abs(number) < math.inf:
        limits = f" from {least:g} to {most:g}" if most < math.inf else f" of at least {least:g}"
        wanted = "a finite number" if least == -math.inf else f"a number{limits}"
        raise TadropedgeError(f"{name} must be {wanted}, got {show(value, typed=False)}", argument=name)
    return number


# -- of one kind -----------------------------------------------------------------------------------------


def check_flag(name: str, value: object) -> bool:
    """Return ``value`` as a ``bool`` if it is one of Python or NumPy; 0, 1 and texts are none.

    >>> check_flag("inverse", "no")
    Traceback (most recent call last):
    tadropedge.errors.TadropedgeError: inverse must be True or False, got 'no'
    """
    if not isinstance(value, bool | np.bool_):
        raise TadropedgeError(f"{name} must be True or False, got {show(value, typed=False)}", argument=name)
    return bool(value)


def check_kind(name: str, value: object, kind: type[T]) -> T:
    """Return ``value`` if it is an instance of ``kind``.

    >>> check_kind("settings", [1], dict)
    Traceback (most recent call last):
    tadropedge.errors.TadropedgeError: settings must be of the kind dict, got list [1]
    """
    if not isinstance(value, kind):
        raise TadropedgeError(f"{name} must be of the kind {kind.__name__}, got {show(value)}", argument=name)
    return value


def check_mapping(name: str, value: object) -> Mapping[Any, Any]:
    """Return ``value`` if it is a dictionary or the like.

    >>> check_mapping("settings", [1])
    Traceback (most recent call last):
    tadropedge.errors.TadropedgeError: settings must be a dictionary, got list [1]
    """
    if not isinstance(value, Mapping):
        raise TadropedgeError(f"{name} must be a dictionary, got {show(value)}", argument=name)
    return value


# -- paths and functions ---------------------------------------------------------------------------------


def check_path(name: str, value: object) -> Path:
    """Return ``value`` as a path.

    >>> check_path("root", 7)
    Traceback (most recent call last):
    tadropedge.errors.TadropedgeError: root must be the path of a file or folder, got int 7
    """
    if not isinstance(value, str | os.PathLike) or not (text := os.fspath(value)) or "\0" in str(text):
        raise TadropedgeError(f"{name} must be the path of a file or folder, got {show(value)}", argument=name)
    return Path(text)


def settings_of(function: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    """The settings of a score or a rule: what its function takes after its first argument.

    >>> list(settings_of(lambda scores, gamma: scores))
    ['gamma']
    """
    try:
        return dict(list(inspect.signature(function).parameters.items())[1:])
    except ValueError:  # functions written in C have no signature
        return {}


def check_settings(what: str, takes: Mapping[str, inspect.Parameter], given: Iterable[str]) -> None:
    """Refuse settings that ``what`` does not take.

    >>> check_settings("the rule 'cdf'", {}, ["gamma"])
    Traceback (most recent call last):
    tadropedge.errors.TadropedgeError: the rule 'cdf' has no setting 'gamma'; it has none
    """
    if any(one.kind is inspect.Parameter.VAR_KEYWORD for one in takes.values()):
        return
    for name in given:
        if name not in takes:
            known = f"its settings are {', '.join(takes)}" if takes else "it has none"
            raise TadropedgeError(f"{what} has no setting {name!r}; {known}", argument=name)


def ask(what: str, wanted: str, function: Callable[..., Any], *arguments: Any, **settings: Any) -> Any:
    """Call a user's own function; what it raises is told in one line that names it and says what is ``wanted``.

    >>> ask("the rule 'mine'", "rule(scores [M]) -> [M]", lambda scores: 1 / 0, [1.0])
    Traceback (most recent call last):
    tadropedge.errors.TadropedgeError: the rule 'mine' raised ZeroDivisionError: division by zero; it must be a \
function rule(scores [M]) -> [M]
    """
    try:
        return function(*arguments, **settings)
    except (TadropedgeError, MemoryError, torch.OutOfMemoryError):
        raise
    except Exception as error:
        said = f"{type(error).__name__}: {show(str(error), typed=False, longest=160)[1:-1]}"
        raise TadropedgeError(f"{what} raised {said}; it must be a function {wanted}") from error
