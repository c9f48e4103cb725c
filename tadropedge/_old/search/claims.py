"""Who trains what: processes on one storage claim trials before they train them, so that none is trained twice.

A claim is a row of a small table beside Optuna's, which ``optuna-dashboard`` does not show; its key makes sure that a
trial has one owner. A journal has its table in a hidden file beside it. The claims of a dead process are free: on this
machine the kernel knows, of another machine they are counted as dead when no sign of life came for a minute.
"""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import optuna
import sqlalchemy as sa
from optuna.storages.journal import JournalFileBackend

from tadropedge._old.errors import TadropedgeError
from tadropedge._old.lock import Owner
from tadropedge._old.search.signals import uninterrupted
from tadropedge._old.search.storage import ALONE, WAITING, file_of, sqlite_url, told

Key = tuple[int, int]  # a study's id in its storage, and the index of a trial

PAUSE = 0.2  # seconds between two looks at trials that others train
BEAT = 10.0  # seconds between two signs of life
GIVEN_UP: set[str] = set()  # owners of this process that no longer train
PATIENCE = 60.0  # seconds without one after which a process on another machine counts as dead

CLAIMS = sa.Table(
    "tadropedge_claims",
    sa.MetaData(),
    sa.Column("study", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("trial", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("owner", sa.String(32), nullable=False),
    sa.Column("pid", sa.Integer, nullable=False),
    sa.Column("host", sa.String(255), nullable=False),
    sa.Column("place", sa.String(255), nullable=False),
    sa.Column("born", sa.String(64), nullable=False),
    sa.Column("beat", sa.Integer, nullable=False),
)


class Claims:
    """The claims in one database, and this process among those who make them; without ``engine`` it is alone."""

    def __init__(self, engine: sa.Engine | None, storage: optuna.storages.BaseStorage | None = None) -> None:
        self._engine, self._storage, self._made = engine, storage, False
        self._owner, self._beat = Owner(), 0
        self._seen: dict[str, tuple[int, float]] = {}  # the last sign of life of others, and when it was new here

    @classmethod
    def on(cls, storage: optuna.storages.BaseStorage) -> Claims:
        """The claims on what is stored there: in a database or a journal; memory belongs to its process."""
        backend, path = getattr(storage, "_backend", storage), file_of(storage)
        if isinstance(backend, optuna.storages.RDBStorage):
            return cls(backend.engine, storage)
        if isinstance(backend, JournalFileBackend) and path is not None and backend not in ALONE:
            return cls(sa.create_engine(sqlite_url(path.with_name(f".{path.name}.claims")), **WAITING), storage)
        return cls(None)

    @property
    def alone(self) -> bool:
        """Whether nobody else can write there."""
        return self._engine is None

    @contextmanager
    def taken(self, wanted: Sequence[Key], most: int) -> Iterator[list[Key]]:
        """The first ``most`` of the trials ``wanted`` that nobody else trains, ours for the duration of a block."""
        if self._engine is None:
            yield list(wanted[:most])
            return
        if not self._made:
            self._make()
        keys: list[Key] = []
        ended = threading.Event()
        pulse = threading.Thread(target=self._pulse, args=(ended,), daemon=True)
        try:
            with uninterrupted():
                keys = self._take(wanted, most)
                pulse.start()
            yield keys
        finally:
            ended.set()
            if pulse.ident is not None:
                pulse.join()
            if keys:
                GIVEN_UP.add(self._owner.token)  # even if the storage cannot be told
                self._owner = Owner()
                with uninterrupted(), self._connected() as base:
                    base.execute(CLAIMS.delete().where(CLAIMS.c.owner.in_(GIVEN_UP)))

    @contextmanager
    def _connected(self, *passed_over: type[Exception]) -> Iterator[sa.Connection]:
        """A transaction, which some errors just undo; all others are told in one line."""
        assert self._engine is not None
        with told("cannot claim trials", self._storage), suppress(*passed_over), self._engine.begin() as base:
            yield base

    def _make(self) -> None:
        with self._connected(sa.exc.SQLAlchemyError) as base:  # somebody makes it at the same time
            base.execute(sa.schema.CreateTable(CLAIMS, if_not_exists=True))
        with self._connected() as base:
            base.execute(CLAIMS.select().limit(1))
        self._made = True

    def _take(self, wanted: Sequence[Key], most: int) -> list[Key]:
        mine = {name: getattr(self._owner, name) for name in ("pid", "host", "place", "born")}
        while True:
            with self._connected(sa.exc.IntegrityError) as base:  # somebody else was faster: look again
                rows = base.execute(CLAIMS.select()).all()
                dead = {row.owner for row in rows if not self._alive(row)}
                for owner in dead:
                    base.execute(CLAIMS.delete().where(CLAIMS.c.owner == owner))
                claimed = {(row.study, row.trial) for row in rows if row.owner not in dead}
                keys = [key for key in wanted if key not in claimed][:most]
                if keys:
                    head = {"owner": self._owner.token, **mine, "beat": self._beat}
                    base.execute(CLAIMS.insert(), [{"study": study, "trial": trial, **head} for study, trial in keys])
                return keys

    def _alive(self, row: Any) -> bool:
        if row.owner in GIVEN_UP:
            return False
        known = Owner(pid=row.pid, host=row.host, place=row.place, born=row.born).alive()
        if known is not None:
            return known
        # Clocks of two machines differ, so what counts is how long a sign of life has been the same here.
        beat, when = self._seen.get(row.owner, (None, 0.0))
        if beat != row.beat:
            when = time.monotonic()
            self._seen[row.owner] = (row.beat, when)
        return time.monotonic() - when < PATIENCE

    def _pulse(self, ended: threading.Event) -> None:
        while not ended.wait(BEAT):
            self._beat += 1
            # If this fails, writing the results will fail, too, and say why.
            with suppress(TadropedgeError), self._connected() as base:
                mine = CLAIMS.c.owner == self._owner.token
                base.execute(CLAIMS.update().where(mine).values(beat=self._beat))


def in_use(path: Path) -> Owner | None:
    """A process that trains trials of the storage in this file; None where none is known of."""
    base = path.with_name(f".{path.name}.claims") if path.suffix == ".journal" else path
    with (
        suppress(sqlite3.Error, TypeError),
        closing(sqlite3.connect(f"{base.absolute().as_uri()}?mode=ro", uri=True)) as file,
    ):
        for pid, host, place, born in file.execute(f"select pid, host, place, born from {CLAIMS.name}"):
            owner = Owner(pid=pid, host=host, place=place, born=born, since="an unknown time", command="training")
            if owner.alive() is not False:
                return owner
    return None
