"""Where studies are stored: a database by its path or URL, or a journal; opened after a look at what the file holds."""

from __future__ import annotations

import os
import sqlite3
import time
import warnings
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit
from weakref import WeakSet

import optuna
import sqlalchemy as sa
from optuna.storages.journal import BaseJournalBackend, JournalFileBackend, JournalFileOpenLock

from tadropedge._old.atomic import beside, make_folder, sync_folder
from tadropedge._old.checks import check_flag, check_path
from tadropedge._old.errors import TadropedgeError, first_cause, reason
from tadropedge._old.lock import check_writable

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

FLOCK: Any = getattr(fcntl, "flock", None)
Storage = str | Path | optuna.storages.BaseStorage

PAUSE = 0.2  # seconds between two attempts to connect
MAGIC = b"SQLite format 3\0"
# A dashboard that reads may hold the file for a moment: wait for it.
WAITING: dict[str, Any] = {"connect_args": {"timeout": 60}}
ALONE: WeakSet[BaseJournalBackend] = WeakSet()  # journals that nobody else writes


def open_storage(storage: Storage, *, alone: bool = False) -> optuna.storages.BaseStorage:
    """An Optuna storage from a path (SQLite, or a journal where it ends in .journal), any Optuna URL, or a storage.

    A journal is a file that only grows: a trial is written in half a millisecond, where SQLite takes twenty. Where
    this process is ``alone`` with it, claims on its trials (``claims.py``) are not needed.

    >>> type(open_storage("sqlite:///:memory:")).__name__
    '_CachedStorage'
    """
    alone = check_flag("alone", alone)
    if isinstance(storage, optuna.storages.BaseStorage):
        return optuna.storages.get_storage(storage)
    path = file_of(storage)
    with told(f"cannot open the study storage '{storage}'"):
        if path is None:
            return optuna.storages.get_storage(_server(str(storage)))
        make_folder(path.parent)
        check_file(path)
        if path.suffix == ".journal":
            path.touch()
            sync_folder(path.parent)
            backend = JournalFileBackend(str(path), Flock(path))
            if alone:
                ALONE.add(backend)
            return _replay(path, backend)
        if not path.exists():
            _create(path)
        url = str(storage) if isinstance(storage, str) and "://" in storage else sqlite_url(path)
        return optuna.storages.get_storage(optuna.storages.RDBStorage(url, engine_kwargs=WAITING))


def _create(path: Path) -> None:
    """Make an empty storage in one step: of processes that do so at the same time, the first one counts."""
    draft = beside(path)
    try:
        base = optuna.storages.RDBStorage(sqlite_url(draft))
        base.remove_session()
        base.engine.dispose()
        with suppress(OSError, NotImplementedError):  # it is there, or the file system has no links: made in place then
            os.link(draft, path)
            sync_folder(path.parent)
    finally:
        draft.unlink(missing_ok=True)


def _server(url: str) -> optuna.storages.RDBStorage:
    """Connect to a database; one in which somebody else is just making the tables is asked again."""
    for _ in range(2):
        with suppress(sa.exc.ProgrammingError, sa.exc.IntegrityError, sa.exc.OperationalError):
            return optuna.storages.RDBStorage(url)
        time.sleep(PAUSE)
    return optuna.storages.RDBStorage(url)


@contextmanager
def opened(storage: Storage) -> Iterator[optuna.storages.BaseStorage]:
    """A storage for the duration of a block; one that was already open stays open."""
    base = open_storage(storage)
    try:
        yield base
    finally:
        backend = getattr(base, "_backend", base)
        if not isinstance(storage, optuna.storages.BaseStorage) and isinstance(backend, optuna.storages.RDBStorage):
            backend.remove_session()
            backend.engine.dispose()


def check_storage(storage: Storage) -> None:
    """Refuse a storage that cannot be opened or written, and leave nothing behind."""
    if isinstance(storage, optuna.storages.BaseStorage):
        return
    path = file_of(storage)
    with told(f"cannot open the study storage '{storage}'"):
        if path is None:
            sa.create_engine(str(storage)).connect().close()
            return
        check_file(path)
        check_writable(path.parent)
        if path.is_file():
            with path.open("r+b"):
                pass  # it can be written, too


def sqlite_url(path: Path) -> str:
    """The URL of a SQLite file, whatever letters its path holds.

    >>> sqlite_url(Path("/tmp/what?/study.db"))
    'sqlite:///file%3A///tmp/what%253F/study.db?uri=true'
    """
    return sa.URL.create("sqlite", database=path.absolute().as_uri(), query={"uri": "true"}).render_as_string()


def file_of(storage: Storage) -> Path | None:
    """The file that a storage lives in; None for a server or memory."""
    if isinstance(storage, optuna.storages.BaseStorage):
        backend = getattr(storage, "_backend", storage)
        if isinstance(backend, JournalFileBackend):
            return Path(backend._file_path)
        if not isinstance(backend, optuna.storages.RDBStorage):
            return None
        storage = backend.engine.url.render_as_string()
    if not isinstance(storage, str) or "://" not in storage:
        path = check_path("storage", storage)
        try:
            return path.expanduser().absolute()
        except RuntimeError as error:  # ~nobody
            raise TadropedgeError(f"cannot open the study storage '{storage}': {error}") from error
    with told(f"cannot open the study storage '{storage}'"):
        url = sa.make_url(str(storage))
    if url.get_backend_name() != "sqlite" or not url.database or ":memory:" in url.database:
        return None
    name = url.database
    return Path(unquote(urlsplit(name).path) if name.startswith("file:") else name).absolute()


def check_file(path: Path) -> None:
    """Refuse a damaged file, and one that is not a storage of Optuna, before anything is added to it."""
    if not path.exists() or not path.is_file() or path.stat().st_size == 0:
        return  # a folder, for one, which SQLite refuses
    if path.suffix == ".journal":
        lock = Flock(path)  # which cuts off half a line
        lock.acquire()
        lock.release()
        return
    with path.open("rb") as file:
        if file.read(len(MAGIC)) != MAGIC:
            raise TadropedgeError(
                f"cannot open the study storage '{path}': it is no database, or has lost its first page; "
                "move it away to begin a new one"
            )
    try:
        with closing(sqlite3.connect(f"{path.as_uri()}?mode=rw", uri=True, timeout=60)) as base:
            tables = {name for (name,) in base.execute("select name from sqlite_master where type = 'table'")}
            if tables and not {"studies", "trials"} <= tables:
                shown = ", ".join(sorted(tables)[:3])
                raise TadropedgeError(f"'{path}' is no storage of Optuna: it is a database with the tables {shown}")
            fault = next(base.execute("pragma integrity_check(1)"))[0]
    except sqlite3.OperationalError:
        raise
    except sqlite3.DatabaseError as error:
        fault = str(error)
    if fault != "ok":
        raise damaged(path, " ".join(fault.split()))


def _replay(path: Path, backend: JournalFileBackend) -> optuna.storages.JournalStorage:
    """A journal as a storage; if Optuna cannot read it, the first line that is wrong is named."""
    try:
        return optuna.storages.JournalStorage(backend)
    except OSError:
        raise
    except Exception as error:  # Optuna checks operations with assert, or not at all
        from tadropedge._old.search.recover import replayed

        lines = path.read_bytes().splitlines()
        wrong = next((number for number, line in enumerate(replayed(lines), 1) if line is None), len(lines))
        raise damaged(path, f"line {wrong} is no operation of Optuna") from error


def damaged(path: Path, fault: str) -> TadropedgeError:
    """What is wrong with a file, what is lost, and how to go on."""
    from tadropedge._old.search.recover import readable

    return TadropedgeError(
        f"'{path}' is damaged ({fault[:150]}): {readable(path)} can be read; "
        f"to keep what can be read and train the rest again: tadropedge recover '{path}'"
    )


class Flock(JournalFileOpenLock):
    """The lock of a journal as one of the kernel on the journal itself: a killed process leaves nothing to wait for.

    Whoever takes it cuts off half a line at the end, left by a process that died or found the disk full.
    """

    def __init__(self, path: Path) -> None:
        super().__init__(str(path))
        self._path = path

    def acquire(self) -> bool:
        """Wait until nobody else writes."""
        self._file = self._path.open("r+b")
        if FLOCK is None:
            super().acquire()
        else:
            FLOCK(self._file, fcntl.LOCK_EX)
        if size := self._file.seek(0, os.SEEK_END):
            self._file.seek(size - 1)
            if self._file.read() != b"\n":
                self._file.seek(0)
                self._file.truncate(self._file.read().rfind(b"\n") + 1)
        return True

    def release(self) -> None:
        """Let others write."""
        if FLOCK is None:
            super().release()
        self._file.close()


@contextmanager
def told(doing: str, storage: optuna.storages.BaseStorage | None = None) -> Iterator[None]:
    """Say in one line what went wrong in a storage, and where that is, if it is a file."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # of Optuna, about values that damage made strange
            yield
    except (TadropedgeError, MemoryError):
        raise
    except Exception as error:  # Optuna, SQLAlchemy and the drivers raise almost anything
        path = None if storage is None else file_of(storage)
        doing = doing if path is None else f"{doing} in '{path}'"
        raise TadropedgeError(f"{doing}: {reason(error)}") from error


@contextmanager
def reading(storage: optuna.storages.BaseStorage, what: str) -> Iterator[None]:
    """As :func:`told`, for what is read; a file whose content cannot be read is damaged."""
    with told(f"cannot read {what}", storage):
        try:
            yield
        except (TadropedgeError, MemoryError):
            raise
        except Exception as error:
            path, root = file_of(storage), first_cause(error)
            if path is None or isinstance(root, OSError | sqlite3.OperationalError):
                raise
            raise damaged(path, f"{what}: {reason(error)}") from error
