"""The one error type, and the only places where names, probabilities, lengths and devices are checked."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import TypeVar

import torch
from torch import Tensor

T = TypeVar("T")


class TadropedgeError(ValueError):
    """Bad input: the message repeats the input and says what would be right."""


class ConvergenceError(TadropedgeError):
    """Every solver was tried and none reached the tolerance; the message says what to do."""


class RepeatedEigenvalueWarning(UserWarning):
    """The cluster count q falls inside a repeated eigenvalue, so the whole eigenspace was used."""


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


def check_probability(name: str, value: Tensor) -> Tensor:
    """Return ``value`` as float64 after checking that it lies in [0, 1]; NaN does not.

    >>> check_probability("keep_prob", torch.tensor(1.2))
    Traceback (most recent call last):
    tadropedge.errors.TadropedgeError: keep_prob must lie in [0, 1], got 1.2
    """
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


def check_length(name: str, value: Tensor, length: int, what: str) -> None:
    """Check that the last axis of ``value`` holds one entry for each of ``length`` things."""
    got = value.shape[-1] if value.dim() else "a single number"
    if got != length:
        raise TadropedgeError(f"{name} has {got} entries along its last axis, but {what}: expected {length}")


def check_device(name: str, value: Tensor, device: torch.device, owner: str) -> None:
    """Check that ``value`` lies where ``owner`` does; nothing is moved silently."""
    if value.device != device:
        raise TadropedgeError(
            f"{name} is on {value.device}, but {owner} is on {device}; move one of them with .to(...)"
        )


def check_integer(name: str, value: object, least: int) -> int:
    """Return ``value`` as an ``int`` of at least ``least``.

    >>> check_integer("q", 0, least=1)
    Traceback (most recent call last):
    tadropedge.errors.TadropedgeError: q must be a whole number of at least 1, got 0
    """
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise TadropedgeError(f"{name} must be a whole number of at least {least}, got {value!r}")
    number = int(value.__index__())
    if number < least:
        raise TadropedgeError(f"{name} must be a whole number of at least {least}, got {number}")
    return number
