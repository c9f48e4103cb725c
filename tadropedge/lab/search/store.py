"""``Store``: finished trials and measurements, one row each, in one SQLite file per folder.

The file is an ordinary database: ``sqlite3 trials.db "select candidate, avg(test_score) from trials group by 1"``.
"""

from __future__ import annotations

import hashlib
import io
import json
import logging
import math
import os
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

from tadropedge._support.atomic import beside, make_folder, sync_folder
from tadropedge._support.checks import check_path
from tadropedge.errors import TadropedgeError, cannot_write

NAME = "trials.db"
APPLICATION = int.from_bytes(b"TDE1", "big")  # written into the file, so that no other database is taken for ours
BESIDE = {  # what SQLite puts beside the file, and how that begins
    "-wal": (b"", b"\x37\x7f\x06\x82", b"\x37\x7f\x06\x83"),
    "-shm": (b"", b"\0\0\0\0", (3007000).to_bytes(4, "little"), (3007000).to_bytes(4, "big")),
    "-journal": (),
}
WAIT = 60.0  # seconds for another process to finish its write
AT_ONCE = 500  # keys in one question
SCHEMA = f"""
pragma application_id = {APPLICATION};
pragma journal_mode = wal;
create table results (
    key text primary key, kind text not null, content text not null, arrays blob not null, checksum text not null
) without rowid;
create view trials as select
    json_extract(content, '$.candidate') as candidate, json_extract(content, '$.replicate') as replicate,
    json_extract(content, '$.val_score') as val_score, json_extract(content, '$.test_score') as test_score, key, content
from results where kind = 'trial' and json_valid(content);
"""

Row = Mapping[str, Any]

log = logging.getLogger("tadropedge")


class Store:
    """The finished rows of a folder, found again by their keys; several processes may share it.

    A row is a mapping of names to plain values and NumPy arrays. A row whose content was changed on the disk is not
    returned: it counts as missing, is computed again and replaced.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder, Store(folder) as store:
    ...     store.put("trial", {"a1": {"candidate": "dropedge", "curve": np.ones(2)}})
    ...     store.get(["a1", "b2"])
    {'a1': {'candidate': 'dropedge', 'curve': array([1., 1.])}}
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.path = check_path("folder", folder) / NAME
        try:
            if not self.path.exists():
                _make(self.path)
            _check_ours(self.path)
            self._made = self._there()
        except OSError as error:
            raise cannot_write(self.path, error) from error
        with self._errors():
            self._database = sqlite3.connect(self.path, timeout=WAIT, isolation_level=None)
            self._database.text_factory = _text
            self._database.execute("pragma synchronous = full")  # what put() has returned outlasts a power cut
            self._database.execute("select count(*) from results where key is null").fetchone()

    def get(self, keys: Iterable[str]) -> dict[str, dict[str, Any]]:
        """The rows that are there, by their keys."""
        asked, found = list(dict.fromkeys(keys)), {}
        for start in range(0, len(asked), AT_ONCE):
            some = asked[start : start + AT_ONCE]
            marks = ",".join("?" * len(some))
            with self._errors():
                rows = self._database.execute(f"select * from results where key in ({marks})", some).fetchall()
            for key, kind, content, arrays, checksum in rows:
                try:
                    if checksum != _checksum(key, kind, content, arrays):
                        raise ValueError("the checksum differs")
                    found[key] = _decoded(content, arrays)
                except Exception:  # bytes that are no arrays may raise almost anything
                    log.warning("row %s of '%s' is damaged and is computed again", key[:12], self.path)
        return found

    def put(self, kind: str, rows: Mapping[str, Row]) -> None:
        """Add rows of one ``kind``, all of them or, if it fails, none."""
        encoded = [(key, kind, *_encoded(row)) for key, row in rows.items()]
        if self._there() != self._made:  # SQLite would write into the file that is gone
            raise TadropedgeError(f"'{self.path}' was moved or removed while it was in use")
        with self._errors():
            self._database.execute("begin immediate")
            try:
                self._database.executemany(
                    "insert or replace into results values (?, ?, ?, ?, ?)",
                    [(*row, _checksum(*row)) for row in encoded],
                )
                self._database.execute("commit")
            except BaseException:
                if self._database.in_transaction:
                    self._database.execute("rollback")
                raise

    def close(self) -> None:
        """Close the file."""
        self._database.close()

    def __enter__(self) -> Store:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _there(self) -> tuple[int, int] | None:
        """The device and inode of the file, by which a file that took its place is noticed."""
        try:
            found = self.path.stat()
        except OSError:
            return None
        return found.st_dev, found.st_ino

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """An error of SQLite in one line that says how to go on."""
        try:
            yield
        except sqlite3.Error as error:
            raise TadropedgeError(f"'{self.path}' {_said(error)}") from error


def _said(error: sqlite3.Error) -> str:
    """What happened to the file, and what to do about it."""
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR):
        return (
            f"is damaged ({error}): move it away to begin anew, or save what is left with: sqlite3 {NAME} .recover | "
            "sqlite3 saved.db"
        )
    if code == sqlite3.SQLITE_FULL:
        return "cannot be written: the disk is full; what was finished before is kept, and the same command goes on"
    return f"cannot be written or locked ({error}): choose a folder that can be, on a disk of this machine"


def _make(path: Path) -> None:
    """Make an empty store under another name, and give it its own where nothing else has it by then."""
    make_folder(path.parent)
    for end in BESIDE:
        if os.path.lexists(f"{path}{end}") and not path.exists():  # or another process was faster
            raise TadropedgeError(f"'{path}{end}' is in the way: move it away, or choose another folder")
    temporary = beside(path)
    try:
        temporary.unlink(missing_ok=True)  # of a process that had the same number and died
        with closing(sqlite3.connect(temporary)) as made:
            made.executescript(SCHEMA)
        with suppress(FileExistsError):  # another process was faster
            os.link(temporary, path)
        sync_folder(path.parent)
    except sqlite3.Error as error:
        raise TadropedgeError(f"'{path}' {_said(error)}") from error
    finally:
        temporary.unlink(missing_ok=True)


def _check_ours(path: Path) -> None:
    """Refuse files that no store has made, before SQLite opens and mends them; places as in its formats of files."""
    head = _head(path) if path.is_file() else b""
    if head[:16] != b"SQLite format 3\0" or int.from_bytes(head[68:72], "big") != APPLICATION:
        raise TadropedgeError(
            f"'{path}' is no store of trials, or it is damaged: choose another folder, or move it away to begin anew"
        )
    for end, marks in BESIDE.items():
        beside_it = Path(f"{path}{end}")
        if os.path.lexists(beside_it) and not (beside_it.is_file() and _head(beside_it)[:4] in marks):
            raise TadropedgeError(f"'{beside_it}' is in the way: move it away, or choose another folder")


def _head(path: Path) -> bytes:
    """The beginning of a file; nothing of what is none, or has gone: another process may just have closed the store."""
    try:
        with path.open("rb") as stream:
            return stream.read(100)
    except FileNotFoundError:
        return b""


def _checksum(key: str, kind: str, content: str, arrays: bytes) -> str:
    head = f"{key}\n{kind}\n{content}\n"
    return hashlib.sha256(head.encode() + arrays).hexdigest()


def _text(content: bytes) -> str:
    """Text as it is on the disk: what was changed to no UTF-8 is seen by the checksum of its row, not by SQLite."""
    return content.decode(errors="replace")


def _encoded(row: Row) -> tuple[str, bytes]:
    """A row as JSON text and as the bytes of its arrays; NaN and infinities, which JSON has not, go with the arrays."""
    odd = {name for name, value in row.items() if isinstance(value, float) and not math.isfinite(value)}
    arrays = {name: value for name, value in row.items() if isinstance(value, np.ndarray) or name in odd}
    plain = {name: value for name, value in row.items() if name not in arrays}
    stream = io.BytesIO()
    if arrays:
        np.savez_compressed(stream, allow_pickle=False, **arrays)
    return json.dumps(plain), stream.getvalue()


def _decoded(content: str, arrays: bytes) -> dict[str, Any]:
    row: dict[str, Any] = json.loads(content)
    if arrays:
        with np.load(io.BytesIO(arrays), allow_pickle=False) as saved:
            row |= {name: saved[name] if saved[name].ndim else saved[name].item() for name in saved.files}
    return row
