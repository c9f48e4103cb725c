"""The one error type, and the only places where names, probabilities, lengths and devices are checked."""

from __future__ import annotations

import difflib
import errno
import math
import operator
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:  # bad names are answered before torch is loaded
    import torch
    from torch import Tensor

T = TypeVar("T")

# What the system says of a write that failed, where that leaves readers guessing.
REASONS = {
    errno.ENOSPC: "the disk is full",
    errno.EDQUOT: "the disk quota is used up",
    errno.EROFS: "the file system is read-only",
    errno.EFBIG: "the file is larger than the file system, or a limit, allows",
}


class TadropedgeError(ValueError):
    """Bad input: the message repeats the input and says what would be right."""


class ConvergenceError(TadropedgeError):
    """Every solver was tried and none reached the tolerance; the message says what to do."""


class NotEnoughMemoryError(TadropedgeError, MemoryError):
    """The work would not fit into memory; the message says how much it needs and how much is free."""


class RepeatedEigenvalueWarning(UserWarning):
    """The cluster count q falls inside a repeated eigenvalue, so the whole eigenspace was used."""


def cannot_write(path: str | Path, error: Exception) -> TadropedgeError:
    """What to raise where ``path`` could not be written.

    >>> cannot_write("model.json", OSError(errno.ENOSPC, "No space left on device"))
    TadropedgeError("cannot write 'model.json': the disk is full")
    """
    return TadropedgeError(f"cannot write '{path}': {reason(error)}")


def reason(error: BaseException) -> str:
    """An error of the system or of a database in a few words, on one line: the first one, which others wrap up."""
    while error.__cause__ is not None:
        error = error.__cause__
    if isinstance(error, OSError) and error.errno is not None:
        return REASONS.get(error.errno) or error.strerror or str(error)
    text = str(error)
    if "database or disk is full" in text:
        return REASONS[errno.ENOSPC]
    return text.splitlines()[0] if text else type(error).__name__


def lookup(kind: str, name: object, table: Mapping[str, T]) -> T:
    """Return ``table[name]``, or say which names there are.

    >>> lookup("strategy", "cfd", {"uniform": 0, "cdf": 1})
    Traceback (most recent call last):
    tadropedge.errors.TadropedgeError: unknown strategy 'cfd'; choose from uniform, cdf (did you mean 'cdf'?)
    """
    if isinstance(name, str) and name in table:
        return table[name]
    close = difflib.get_close_matches(str(name), table, n=1)
    hint = f" (did you mean {close[0]!r}?)" if close else ""
    raise TadropedgeError(f"unknown {kind} {name!r}; choose from {', '.join(table)}{hint}")


def name_or_path(kind: str, name: str | Path, names: Iterable[str]) -> str | Path:
    """One of ``names`` in small letters, or the path of a file: what has a folder or a suffix, or is there.

    >>> name_or_path("dataset", "Cora", ["cora"]), str(name_or_path("dataset", "my/graph", ["cora"]))
    ('cora', 'my/graph')
    >>> name_or_path("dataset", "coar", ["cora"])
    Traceback (most recent call last):
    tadropedge.errors.TadropedgeError: unknown dataset 'coar'; choose from cora (did you mean 'cora'?)
    """
    table, path = {each: each for each in names}, Path(name)
    if isinstance(name, str) and name.lower() in table:
        return name.lower()
    if isinstance(name, Path) or path.suffix or path.name != name or path.is_file():
        return path
    return lookup(kind, name.lower(), table)


def check_probability(name: str, value: Tensor) -> Tensor:
    """Return ``value`` as float64 after checking that it lies in [0, 1]; NaN does not.

    >>> import torch
    >>> check_probability("keep_prob", torch.tensor(1.2))
    Traceback (most recent call last):
    tadropedge.errors.TadropedgeError: keep_prob must lie in [0, 1], got 1.2
    """
    import torch

    if value.is_complex() or value.dtype == torch.bool:
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
    tadropedge.errors.TadropedgeError: prob must have 5 entries along its last axis, one for each edge, got shape [3]
    """
    from torch import Tensor

    if not isinstance(value, Tensor):
        raise TadropedgeError(f"{name} must be a tensor, got {show(value)}")
    if value.dim() == 0 or value.shape[-1] != length:
        raise TadropedgeError(
            f"{name} must have {length} entries along its last axis, one for each {what}, got shape {list(value.shape)}"
        )
    return value


def check_device(name: str, value: Tensor, device: torch.device, owner: str) -> None:
    """Check that ``value`` lies where ``owner`` does; nothing is moved silently."""
    if value.device != device:
        raise TadropedgeError(
            f"{name} is on {value.device}, but {owner} is on {device}; move one of them with .to(...)"
        )


def check_runs_on(device: torch.device | str | None, default: torch.device) -> torch.device:
    """Return the device to run on after checking that it is there; ``None`` stands for ``default``.

    >>> import torch
    >>> check_runs_on("gpu", torch.device("cpu"))
    Traceback (most recent call last):
    tadropedge.errors.TadropedgeError: device must be 'cpu' or 'cuda', got 'gpu'
    """
    import torch

    try:
        chosen = default if device is None else torch.device(device)
    except RuntimeError:
        chosen = torch.device("meta")
    if chosen.type not in ("cpu", "cuda"):
        raise TadropedgeError(f"device must be 'cpu' or 'cuda', got {show(device, typed=False)}")
    if chosen.type == "cuda" and not torch.cuda.is_available():
        raise TadropedgeError(f"device {str(chosen)!r} was asked for, but torch sees no GPU; use 'cpu'")
    return chosen


def check_integer(name: str, value: object, least: int) -> int:
    """Return ``value`` as an ``int`` of at least ``least``.

    >>> check_integer("q", 0, least=1)
    Traceback (most recent call last):
    tadropedge.errors.TadropedgeError: q must be a whole number of at least 1, got 0
    """
    number = as_integer(value)
    if number is None or number < least:
        raise TadropedgeError(f"{name} must be a whole number of at least {least}, got {show(value, typed=False)}")
    return number


def as_integer(value: object) -> int | None:
    """``value`` as an ``int`` if it is a whole number of any library, else ``None``.

    >>> as_integer(3), as_integer(3.0), as_integer(True)
    (3, None, None)
    """
    if isinstance(value, bool):
        return None
    try:
        return operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        return None


def check_positive(name: str, value: object, below: float = math.inf) -> float:
    """Return ``value`` as a ``float`` strictly between 0 and ``below``.

    >>> check_positive("tolerance", "tight")
    Traceback (most recent call last):
    tadropedge.errors.TadropedgeError: tolerance must be a positive number, got 'tight'
    """
    try:
        number = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        number = math.nan
    if not 0 < number < below:
        wanted = "a positive number" if below == math.inf else f"between 0 and {below:g}"
        raise TadropedgeError(f"{name} must be {wanted}, got {show(value, typed=False)}")
    return number


def show(value: object, typed: bool = True) -> str:
    """The value in one short line, for an error message.

    >>> show([1, 2]), show(0.5, typed=False)
    ('list [1, 2]', '0.5')
    """
    text = " ".join(repr(value).split())
    text = text if len(text) <= 60 else text[:57] + "..."
    return f"{type(value).__name__} {text}" if typed else text
