"""The errors and warnings of tadropedge, and the words of their messages."""

from __future__ import annotations

import difflib
import errno
from collections.abc import Mapping
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")

# What the system says of a write that failed, where that leaves readers guessing.
REASONS = {
    errno.ENOSPC: "the disk is full",
    errno.EDQUOT: "the disk quota is used up",
    errno.EROFS: "the file system is read-only",
    errno.EFBIG: "the file is larger than the file system, or a limit, allows",
}


class TadropedgeError(ValueError):
    r"""Bad input: the message repeats the input and says what would be right, on one line whatever the input holds.

    ``argument`` is the name of the argument that is wrong, where there is one.

    >>> TadropedgeError("no such file: 'a\nb'")
    TadropedgeError("no such file: 'a\\nb'")
    """

    def __init__(self, message: object = "", *, argument: str | None = None) -> None:
        text = str(message)
        # A DataLoader raises the error of a worker again with its whole traceback, which is not ours to escape.
        super().__init__(text if text.startswith("Caught ") else _printable(text))
        self.argument = argument


class ConvergenceError(TadropedgeError):
    """Every solver was tried and none reached the tolerance; the message says what to do."""


class NotEnoughMemoryError(TadropedgeError, MemoryError):
    """The work would not fit into memory; the message says how much it needs and how much is free."""


class TooSmallError(TadropedgeError):
    """No component of the graph has as many nodes as a score was asked to see modes."""


class RepeatedEigenvalueWarning(UserWarning):
    """The cluster count q falls inside a repeated eigenvalue, so the whole eigenspace was used."""


class EqualScoresWarning(UserWarning):
    """All scores of a graph are equal, so they tell nothing of its edges."""


def lookup(kind: str, name: object, table: Mapping[str, T]) -> T:
    """Return ``table[name]``, or say which names there are.

    >>> lookup("rule", "cfd", {"uniform": 0, "cdf": 1})
    Traceback (most recent call last):
    tadropedge.errors.TadropedgeError: unknown rule 'cfd'; choose from uniform, cdf (did you mean 'cdf'?)
    """
    if isinstance(name, str) and name in table:
        return table[name]
    close = difflib.get_close_matches(name, table, n=1) if isinstance(name, str) else []
    hint = f" (did you mean {close[0]!r}?)" if close else ""
    known = ", ".join(table)
    raise TadropedgeError(f"unknown {kind} {show(name, typed=False)}; choose from {known}{hint}", argument=kind)


def show(value: object, typed: bool = True, longest: int = 60) -> str:
    """The value in one short line, for an error message.

    >>> show([1, 2]), show(0.5, typed=False)
    ('list [1, 2]', '0.5')
    """
    try:
        text = _printable(" ".join(repr(value).split()))
    except Exception:  # Python refuses to print very long numbers, and a class may have a broken __repr__
        text = "(cannot be printed)"
    text = text if len(text) <= longest else text[: longest - 3] + "..."
    return f"{type(value).__name__} {text}" if typed else text


def cannot_write(path: str | Path, error: OSError) -> TadropedgeError:
    """What to raise where ``path`` could not be written.

    >>> cannot_write("model.json", OSError(errno.ENOSPC, "No space left on device"))
    TadropedgeError("cannot write 'model.json': the disk is full")
    """
    return TadropedgeError(f"cannot write '{path}': {reason(error)}")


def reason(error: OSError) -> str:
    """An error of the system in a few words."""
    return REASONS.get(error.errno or 0) or error.strerror or str(error)


def _printable(text: str) -> str:
    """``text`` on one line: what does not print is escaped."""
    return text if text.isprintable() else "".join(mark if mark.isprintable() else ascii(mark)[1:-1] for mark in text)
