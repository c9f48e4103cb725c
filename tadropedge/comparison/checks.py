"""Checks of values read from JSON: each takes a value and the place it stands at, and names what is wrong there."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import TypeVar

from tadropedge.errors import TadropedgeError

T = TypeVar("T")


def members_of(value: object, where: str, required: set[str], optional: Iterable[str] = ()) -> dict[str, object]:
    """An object with all of ``required`` and perhaps some of ``optional``."""
    members = mapping(value, where)
    for name in sorted(required - members.keys()):
        raise TadropedgeError(f"{where} lacks {name!r}, found {', '.join(members) or 'nothing'}")
    for name in members.keys() - required - set(optional):
        known = ", ".join(sorted(required | set(optional)))
        raise TadropedgeError(f"{where} has an unknown member {name!r}; choose from {known}")
    return members


def mapping(value: object, where: str) -> dict[str, object]:
    """An object with any members."""
    if not isinstance(value, dict):
        raise TadropedgeError(f"{where} must be an object, got {short(value)}")
    return value


def each(check: Callable[[object, str], T], value: object, where: str) -> tuple[T, ...]:
    """A list, each entry checked."""
    if not isinstance(value, list):
        raise TadropedgeError(f"{where} must be a list, got {short(value)}")
    return tuple(check(part, f"{where}[{place}]") for place, part in enumerate(value))


def maybe(check: Callable[[object, str], T], value: object, where: str) -> T | None:
    """A value that may be ``None``."""
    return None if value is None else check(value, where)


def text(value: object, where: str) -> str:
    """A text that is not empty."""
    if not isinstance(value, str) or not value:
        raise TadropedgeError(f"{where} must be a text that is not empty, got {short(value)}")
    return value


def flag(value: object, where: str) -> bool:
    """True or false."""
    if not isinstance(value, bool):
        raise TadropedgeError(f"{where} must be true or false, got {short(value)}")
    return value


def whole(value: object, where: str) -> int:
    """A whole number of at least 0."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise TadropedgeError(f"{where} must be a whole number of at least 0, got {short(value)}")
    return value


def number(value: object, where: str) -> float:
    """A finite number."""
    # Python's json lets NaN and Infinity through, which are no JSON; a whole number may be too large for a float.
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= 1e300:
        raise TadropedgeError(f"{where} must be a number, got {short(value)}")
    return float(value)


def number_or_nan(value: object, where: str) -> float:
    """A number; ``None`` stands for NaN."""
    return math.nan if value is None else number(value, where)


def share(value: object, where: str) -> float:
    """A number in [0, 1]."""
    found = number(value, where)
    if not 0 <= found <= 1:
        raise TadropedgeError(f"{where} must lie in [0, 1], got {found:g}")
    return found


def short(value: object) -> str:
    """The input in one line, cut where it is long."""
    words = repr(value)
    return words if len(words) <= 60 else f"{words[:57]}..."
