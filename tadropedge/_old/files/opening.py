"""Opening files from outside: what is no file, no text, too large or damaged is one line that says so.

Nothing is ever unpickled, and nothing is unpacked beyond what an honest file would hold.
"""

from __future__ import annotations

import gzip
import os
import re
import stat
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from tadropedge._old.errors import NotEnoughMemoryError, TadropedgeError, show
from tadropedge._old.memory import check_room

TRAILING = re.compile(r"\s#.*$")
MOST_LINE = 2**26  # characters
PACKED, MOST_PACKED = 2**24, 100  # text beyond so many characters that was packed so many times smaller is a bomb
BLANK = 32  # what a blank line counts for: it takes as long as one of so many characters


def existing(path: str | Path) -> Path:
    """Return ``path`` if it is a file that exists; what could be read for ever (a pipe, a device) is none.

    >>> existing("/dev/zero")
    Traceback (most recent call last):
    tadropedge._old.errors.TadropedgeError: '/dev/zero' is a pipe or a device, expected a file
    """
    if not isinstance(path, str | os.PathLike):
        raise TadropedgeError(f"expected the path of a file, got {show(path)}")
    path = Path(path)
    try:
        mode = path.stat().st_mode
    except (OSError, ValueError) as error:  # the latter for NUL and surrogates
        if isinstance(error, FileNotFoundError | NotADirectoryError):
            raise TadropedgeError(f"no such file: '{path}'") from error
        raise TadropedgeError(f"cannot read '{_short(path)}': {_words(error)}") from error
    if not stat.S_ISREG(mode):
        what = "a folder" if stat.S_ISDIR(mode) else "a pipe or a device"
        raise TadropedgeError(f"'{path}' is {what}, expected a file")
    return path


def read_bytes(path: str | Path) -> bytes:
    """The content of a file, if memory can hold it."""
    path = existing(path)
    with readable(path, "a file that can be read"):
        check_room(path.stat().st_size, path.name)
        return path.read_bytes()


@contextmanager
def readable(path: Path, what: str) -> Iterator[None]:
    """Say it in one line where ``path`` turns out not to be ``what``: libraries raise almost anything then."""
    try:
        yield
    except TadropedgeError:
        raise
    except MemoryError as error:
        raise NotEnoughMemoryError(f"{path.name}: there is not enough memory to read it") from error
    except Exception as error:
        raise TadropedgeError(f"{path.name}: not {what} ({_words(error)})") from error


def _words(error: Exception) -> str:
    """What an error says, without the path that it may begin with."""
    text = error.strerror if isinstance(error, OSError) else str(error)
    return next(iter((text or "").splitlines()), "") or type(error).__name__


def _short(path: Path) -> str:
    text = str(path)
    return text if len(text) <= 200 else f"{text[:100]}…{text[-80:]}"


@contextmanager
def readable_text(path: Path) -> Iterator[None]:
    """Say it in one line where ``path`` turns out to be no text."""
    with readable(path, "a table that can be read"):
        try:
            yield
        except UnicodeDecodeError as error:
            raise TadropedgeError(f"{path.name}: not a UTF-8 text file ({error.reason})") from error
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise TadropedgeError(f"{path.name}: damaged gzip file ({error})") from error


def unpacked(path: Path) -> bytes:
    """The content of a file of text, unpacked where its name ends in ``.gz``; a bomb is refused before it goes off.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "zeros.mtx.gz"
    >>> _ = path.write_bytes(gzip.compress(bytes(2**25)))
    >>> unpacked(path)
    Traceback (most recent call last):
    tadropedge._old.errors.TadropedgeError: zeros.mtx.gz: packed too well to be text: beyond 16,777,216 bytes unpacked
    """
    if not packed(path):
        return read_bytes(path)
    with readable_text(existing(path)):
        most = max(PACKED, MOST_PACKED * path.stat().st_size)
        check_room(path.stat().st_size, path.name)
        with gzip.open(path) as stream:
            content = stream.read(most + 1)
    if len(content) > most:
        raise TadropedgeError(f"{path.name}: packed too well to be text: beyond {most:,} bytes unpacked")
    return content


def packed(path: Path) -> bool:
    """Whether a file is packed, by its name."""
    return path.suffix.lower() == ".gz"


def _open(path: Path) -> TextIO:
    if packed(path):
        return gzip.open(path, "rt", encoding="utf-8-sig", newline=None)
    return path.open(encoding="utf-8-sig")


def data_lines(path: Path) -> Iterator[tuple[int, str]]:
    """The lines that are neither blank nor comments, with their numbers."""
    size = path.stat().st_size
    check_room(size, path.name)
    with _open(path) as stream:
        number, left = 0, max(PACKED, MOST_PACKED * size)
        while line := stream.readline(MOST_LINE):
            text = line.strip()
            number, left = number + 1, left - (len(line) if text else BLANK)
            if left < 0 or len(line) == MOST_LINE:
                raise TadropedgeError(f"{path.name}:{number}: not a table (a line, or the unpacked file, is too long)")
            if text and text[0] not in "#%":
                if "#" in text and '"' not in text:
                    text = TRAILING.sub("", text)
                yield number, text
