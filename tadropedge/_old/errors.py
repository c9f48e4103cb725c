"""The error types, and the words of their messages: names that are unknown, values in a line, failed writes."""

from __future__ import annotations

import difflib
import errno
import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:  # bad names are answered before torch is loaded
    pass

T = TypeVar("T")

# What the system says of a write that failed, where that leaves readers guessing.
REASONS = {
    errno.ENOSPC: "the disk is full",
    errno.EDQUOT: "the disk quota is used up",
    errno.EROFS: "the file system is read-only",
    errno.EFBIG: "the file is larger than the file system, or a limit, allows",
}


PASSWORD = re.compile(r"(\w://[^\s/:@]*:)[^\s@]*(@)")
MOST_WORDS = 500  # characters of a message


class TadropedgeError(ValueError):
    r"""Bad input: the message repeats the input and says what would be right, on one line whatever the input holds.

    >>> TadropedgeError("no such file: 'a\nb\ud800'")
    TadropedgeError("no such file: 'a\\nb\\ud800'")
    """

    def __init__(self, message: object = "") -> None:
        text = str(message)
        # A DataLoader raises the error of a worker again with its whole traceback, which is not ours to shorten.
        super().__init__(
            text if text.startswith("Caught ") and "Traceback" in text else one_line(without_password(text))
        )


class ConvergenceError(TadropedgeError):
    """Every solver was tried and none reached the tolerance; the message says what to do."""


class NotEnoughMemoryError(TadropedgeError, MemoryError):
    """The work would not fit into memory; the message says how much it needs and how much is free."""


class LostError(TadropedgeError):
    """Another process of a training that is spread over several is gone, or did not answer in time."""


class SpreadError(TadropedgeError):
    """What one process of several has to say: it is printed whichever of them says it."""


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
    error = first_cause(error)
    if isinstance(error, OSError) and error.errno is not None:
        return REASONS.get(error.errno) or error.strerror or str(error)
    text = str(error)
    if "database or disk is full" in text:
        return REASONS[errno.ENOSPC]
    return text.splitlines()[0] if text else type(error).__name__


def first_cause(error: BaseException) -> BaseException:
    """The error that others wrap up."""
    while error.__cause__ is not None:
        error = error.__cause__
    return error


def lookup(kind: str, name: object, table: Mapping[str, T]) -> T:
    """Return ``table[name]``, or say which names there are.

    >>> lookup("strategy", "cfd", {"uniform": 0, "cdf": 1})
    Traceback (most recent call last):
    tadropedge._old.errors.TadropedgeError: unknown strategy 'cfd'; choose from uniform, cdf (did you mean 'cdf'?)
    """
    if isinstance(name, str) and name in table:
        return table[name]
    close = difflib.get_close_matches(name, table, n=1) if isinstance(name, str) else []
    hint = f" (did you mean {close[0]!r}?)" if close else ""
    raise TadropedgeError(f"unknown {kind} {show(name, typed=False)}; choose from {', '.join(table)}{hint}")


def without_password(text: str) -> str:
    """``text`` with the passwords of URLs in it left out, for what is shown or stored.

    >>> without_password("--storage postgresql://me:secret@host/trials")
    '--storage postgresql://me:***@host/trials'
    """
    return PASSWORD.sub(r"\1***\2", text)


def one_line(text: str) -> str:
    r"""``text`` with everything that does not print escaped, and its middle left out where it is long.

    >>> one_line("a\tb"), len(one_line("long " * 1000))
    ('a\\tb', 500)
    """
    if not text.isprintable():
        text = "".join(mark if mark.isprintable() else ascii(mark)[1:-1] for mark in text[: 2 * MOST_WORDS])
    half = MOST_WORDS // 2
    return text if len(text) <= MOST_WORDS else f"{text[: half - 2]} … {text[-half + 1 :]}"


def show(value: object, typed: bool = True, longest: int = 60) -> str:
    """The value in one short line, for an error message.

    >>> show([1, 2]), show(0.5, typed=False), show(10**5000, typed=False)
    ('list [1, 2]', '0.5', 'about 10^5000')
    """
    try:
        text = " ".join(repr(value).split())
    except Exception:  # Python refuses to print numbers this long, and a class may have a broken __repr__
        digits = int(value.bit_length() * math.log10(2)) if isinstance(value, int) else 0
        text = f"about {'-' if digits and value < 0 else ''}10^{digits}" if digits else "(cannot be printed)"  # type: ignore[operator]
    text = text if text.isprintable() else "".join(char if char.isprintable() else "?" for char in text)
    text = text if len(text) <= longest else text[: longest - 3] + "..."
    return f"{type(value).__name__} {text}" if typed else text
