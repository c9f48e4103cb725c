"""Files that are written whole or not at all, and that outlast a failure of the power."""

from __future__ import annotations

import errno
import os
import platform
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import BinaryIO

from tadropedge._old.errors import cannot_write

HOST = re.sub(r"[^A-Za-z0-9-]", "-", platform.node())[:32] or "localhost"  # in names of files: no dots


def write_atomic(path: Path, content: bytes) -> Path:
    """Write a file beside ``path`` and move it into place; missing folders are made."""
    with atomic(path) as stream:
        stream.write(content)
    return path


@contextmanager
def atomic(path: Path) -> Iterator[BinaryIO]:
    """A stream for what is too long to hold: ``path`` is there, whole, when the block ends well, else as before.

    It is there even if the power fails right after.
    """
    temporary = beside(path)
    try:
        make_folder(path.parent)
        _sweep(path.parent)
        with temporary.open("wb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        temporary.replace(path)
        sync_folder(path.parent)
    except OSError as error:
        raise cannot_write(path, error) from error
    finally:
        with suppress(OSError):  # where the folder itself could not be made there is nothing to remove
            temporary.unlink(missing_ok=True)


def beside(path: Path) -> Path:
    """A name for a file that this process will move to ``path``; if it dies before, the next one removes the file."""
    return path.with_name(f".{path.name}.{HOST}.{os.getpid()}.tmp")


def make_folder(folder: Path) -> None:
    """Make a folder and those it lies in, so that they outlast a failure of the power."""
    missing = [each for each in (folder, *folder.parents) if not each.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    for made in missing:
        sync_folder(made.parent)


def sync_folder(folder: Path) -> None:
    """Bring the names in a folder to the disk: without that, a file that was just moved may be gone after a crash."""
    if os.name == "nt":  # where folders cannot be opened
        return
    opened = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(opened)
    except OSError as error:
        if error.errno != errno.EINVAL:  # some network file systems have no such thing
            raise
    finally:
        os.close(opened)


@cache
def _sweep(folder: Path) -> None:
    """Remove the temporary files of processes that died on this machine; one look at each folder is enough."""
    for path in folder.glob(f".*.{HOST}.*.tmp*"):
        process = path.name.split(".")[-2]
        if process.isdecimal() and not is_running(int(process)):
            path.unlink(missing_ok=True)


def is_running(process: int) -> bool:
    """Whether there is a process of this number; where nobody can ask, there may be."""
    if os.name == "nt":  # where asking would end it
        return True
    try:
        os.kill(process, 0)
    except OSError as error:
        return error.errno != errno.ESRCH  # else it belongs to somebody else
    except OverflowError:
        return False
    return True
