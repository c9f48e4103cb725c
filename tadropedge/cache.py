"""Weights on disk, found again by the content of graph and settings.

Entries are written to a temporary file and moved into place, so a killed process leaves no half entry; an
entry that is damaged or does not fit is computed again and overwritten.
"""

from __future__ import annotations

import hashlib
import io
import json
import logging
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tadropedge.errors import TadropedgeError, show
from tadropedge.files import write_atomic
from tadropedge.graph import Graph

Arrays = dict[str, npt.NDArray[Any]]

VERSION = 3  # raise it when a change of the method changes the numbers

log = logging.getLogger("tadropedge")


def cached(
    directory: str | Path | None,
    graph: Graph,
    settings: Mapping[str, object],
    compute: Callable[[], Arrays],
) -> Arrays:
    """Return ``compute()``, from ``directory`` if it holds the answer; ``directory=None`` never looks.

    The arrays must hold ``weights [M]``; whatever else they hold is kept beside it.
    """
    if directory is None:
        return compute()
    if not isinstance(directory, (str, os.PathLike)):
        raise TadropedgeError(f"cache_dir must be a path, got {show(directory)}")
    path = _entry(Path(directory), graph, settings)
    arrays = _read(path, graph.num_edges)
    if arrays is None:
        arrays = compute()
        _write(path, arrays)
    return arrays


def _entry(directory: Path, graph: Graph, settings: Mapping[str, object]) -> Path:
    key = json.dumps({"version": VERSION, "graph": graph.fingerprint, **settings}, sort_keys=True)
    return directory / f"{hashlib.sha256(key.encode()).hexdigest()[:40]}.npz"


def _checksum(arrays: Arrays) -> npt.NDArray[np.uint8]:
    digest = hashlib.sha256()
    for name in sorted(arrays):
        digest.update(name.encode())
        digest.update(np.ascontiguousarray(arrays[name]).tobytes())
    return np.frombuffer(digest.digest(), dtype=np.uint8)


def _read(path: Path, num_edges: int) -> Arrays | None:
    if not path.is_file():
        return None
    try:
        with path.open("rb") as stream, np.load(stream, allow_pickle=False) as entry:
            arrays = {name: entry[name] for name in entry.files}
        checksum = arrays.pop("checksum")
        if arrays["weights"].shape == (num_edges,) and np.array_equal(checksum, _checksum(arrays)):
            return arrays
    except Exception as error:  # a damaged zip file raises almost anything
        log.info("cache entry %s is damaged (%s)", path.name, error)
    log.warning("cache entry %s does not fit and is computed again", path.name)
    return None


def _write(path: Path, arrays: Arrays) -> None:
    buffer = io.BytesIO()
    np.savez(buffer, allow_pickle=False, checksum=_checksum(arrays), **arrays)
    write_atomic(path, buffer.getvalue())
