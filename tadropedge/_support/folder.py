"""A folder of results: which of its files are ours, so that no command replaces or removes one that it did not make."""

from __future__ import annotations

import json
from collections.abc import Collection
from pathlib import Path

from tadropedge._support.atomic import make_folder, write_atomic
from tadropedge.errors import TadropedgeError, cannot_write

LIST = ".tadropedge"  # the names of our files in a folder, as JSON


def claim(folder: Path, files: Collection[str]) -> None:
    """Make a folder and note that these files in it are ours from now on; one that was there before is refused.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as name:
    ...     claim(Path(name), ["weights.csv"])
    ...     _ = Path(name, "weights.csv").write_text("ours")
    ...     claim(Path(name), ["weights.csv"])
    ...     _ = Path(name, "summary.json").write_text("not ours")
    ...     claim(Path(name), ["summary.json"])  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    tadropedge.errors.TadropedgeError: '.../summary.json' was not made by tadropedge: move it away, or choose another \
folder
    """
    ours = check_ours(folder, files)
    try:
        make_folder(folder)
    except OSError as error:
        raise cannot_write(folder, error) from error
    write_atomic(folder / LIST, (json.dumps(sorted({*ours, *files})) + "\n").encode())


def check_ours(folder: Path, files: Collection[str]) -> set[str]:
    """Refuse to replace a file that is there and is not ours, before any work; return the names of those that are."""
    try:
        ours = _listed(folder / LIST)
        for file in files:
            path = folder / file
            if file not in ours and (path.exists() or path.is_symlink()):
                raise TadropedgeError(f"'{path}' was not made by tadropedge: move it away, or choose another folder")
    except OSError as error:
        raise cannot_write(folder, error) from error
    return ours


def _listed(path: Path) -> set[str]:
    """The names in the list of a folder; a file that is no list of ours is not written over."""
    if not (path.exists() or path.is_symlink()):
        return set()
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        if isinstance(found, list) and all(isinstance(name, str) for name in found):
            return set(found)
    except (FileNotFoundError, IsADirectoryError, ValueError, RecursionError):
        pass
    raise TadropedgeError(f"'{path}' is no list of files by tadropedge: move it away, or choose another folder")
