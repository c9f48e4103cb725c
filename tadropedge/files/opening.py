"""Opening files from outside: what is no file, no text or damaged is one line that says so."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, TextIO

from tadropedge._support.memory import ran_out
from tadropedge.errors import NotEnoughMemoryError, TadropedgeError, reason


def packed(path: Path) -> bool:
    """Whether a file is packed, by its name."""
    return path.suffix.lower() == ".gz"


def open_text(path: Path) -> TextIO:
    """The text of a file, unpacked where its name ends in ``.gz``."""
    return gzip.open(path, "rt", encoding="utf-8-sig") if packed(path) else path.open(encoding="utf-8-sig")


def open_bytes(path: Path) -> BinaryIO:
    """The bytes of a file, unpacked where its name ends in ``.gz``."""
    return gzip.open(path) if packed(path) else path.open("rb")  # type: ignore[return-value]


@contextmanager
def readable(path: Path, what: str) -> Iterator[None]:
    """Say it in one line where ``path`` turns out not to be ``what``: libraries raise almost anything then."""
    try:
        yield
    except TadropedgeError:
        raise
    except (FileNotFoundError, NotADirectoryError) as error:
        raise TadropedgeError(f"no such file: '{path}'") from error
    except IsADirectoryError as error:
        raise TadropedgeError(f"'{path}' is a folder, expected a file") from error
    except UnicodeDecodeError as error:
        raise TadropedgeError(f"{path.name}: not a UTF-8 text file ({error.reason})") from error
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise TadropedgeError(f"{path.name}: damaged, it cannot be unpacked ({error})") from error
    except Exception as error:
        if ran_out(error):
            raise NotEnoughMemoryError(f"{path.name}: there is not enough memory to read it") from error
        said = reason(error) if isinstance(error, OSError) else str(error)
        first = next(iter(said.strip().splitlines()), "") or type(error).__name__
        raise TadropedgeError(f"{path.name}: not {what} ({first[:200]})") from error
