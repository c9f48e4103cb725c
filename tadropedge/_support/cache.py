"""Arrays on disk, found again by what they were computed from.

Entries are written to a temporary file and moved into place, so an interrupted process leaves no half entry; an
entry that is damaged is computed again and overwritten.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tadropedge._support.atomic import atomic
from tadropedge._support.fingerprint import fingerprint

Arrays = dict[str, npt.NDArray[Any]]

VERSION = 6  # raise it when a change of the method changes the numbers

log = logging.getLogger("tadropedge")


def cached(directory: Path | None, key: Mapping[str, object], compute: Callable[[], Arrays]) -> Arrays:
    """Return ``compute()``, from ``directory`` if it holds the answer; ``directory=None`` never looks.

    ``key`` names all that decides the answer: whatever :func:`~tadropedge._support.fingerprint.fingerprint` takes.
    """
    if directory is None:
        return compute()
    path = directory / f"{fingerprint(version=VERSION, key=key)[:40]}.npz"
    arrays = _read(path) if path.is_file() else None
    if arrays is None:
        arrays = compute()
        with atomic(path) as stream:
            np.savez(stream, allow_pickle=False, checksum=_checksum(arrays), **arrays)
    return arrays


def _checksum(arrays: Arrays) -> npt.NDArray[np.uint8]:
    return np.frombuffer(bytes.fromhex(fingerprint(arrays=arrays)), dtype=np.uint8)


def _read(path: Path) -> Arrays | None:
    try:
        with path.open("rb") as stream, np.load(stream, allow_pickle=False) as entry:
            arrays = {name: entry[name] for name in entry.files}
        if np.array_equal(arrays.pop("checksum"), _checksum(arrays)):
            return arrays
    except Exception as error:  # a damaged zip file raises almost anything
        log.info("cache entry %s cannot be read (%s)", path.name, error)
    log.warning("cache entry %s is damaged and is computed again", path.name)
    return None
