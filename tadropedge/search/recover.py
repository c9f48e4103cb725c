"""What can be read of a damaged storage, and a new one made of it.

Nothing is thrown away: the damaged file is kept beside the new one.
"""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, suppress
from datetime import datetime
from pathlib import Path
from typing import Any

import optuna
import sqlalchemy as sa
from optuna.distributions import json_to_distribution
from optuna.storages._rdb.models import BaseModel
from optuna.storages.journal import BaseJournalBackend
from optuna.trial import TrialState

from tadropedge.errors import TadropedgeError, reason
from tadropedge.files import existing
from tadropedge.search.storage import sqlite_url
from tadropedge.search.study import is_whole, quiet

CREATE_STUDY, CREATE_TRIAL = 0, 4  # operations of a journal
TABLES = [table for table in BaseModel.metadata.sorted_tables if table.name != "version_info"]
SMALLEST_ROW = 16  # bytes of a database per row: bounds the ids, of which the largest may be damaged, too
# What a driver or a parser says of a row that is damaged.
UNREADABLE = (sqlite3.Error, ValueError, LookupError, TypeError, AssertionError, optuna.exceptions.OptunaError)


def recover(path: str | Path) -> str:
    """Put a new storage with all that can be read in the place of a damaged one; say in a line what was done.

    The damaged file is kept as ``PATH.damaged-1`` (or 2, 3, …). No other process may use the storage meanwhile.
    """
    path = existing(path)
    aside = next(each for n in range(1, 10**6) if not (each := path.with_name(f"{path.name}.damaged-{n}")).exists())
    fresh = path.with_name(f".{path.name}.recovered")
    try:
        fresh.unlink(missing_ok=True)
        read, known = _salvage(path, fresh)
        shutil.copy2(path, aside)
        fresh.replace(path)
    except OSError as error:
        raise TadropedgeError(f"cannot write beside '{path}': {reason(error)}") from error
    finally:
        fresh.unlink(missing_ok=True)
    for rest in ("-journal", "-wal", "-shm"):  # they belong to the damaged file
        with suppress(FileNotFoundError):
            Path(f"{path}{rest}").replace(f"{aside}{rest}")
    return f"'{path}' holds {_counted(read, known)}; the damaged file is '{aside}'"


def readable(path: Path) -> str:
    """How much of a damaged storage can be read, in words."""
    fresh = path.with_name(f".{path.name}.readable")
    try:
        return _counted(*_salvage(path, fresh))
    except OSError:
        return "an unknown number of trials"  # there is no space to try
    finally:
        fresh.unlink(missing_ok=True)


def _counted(read: int, known: int) -> str:
    return f"{read} of {known} trials" if known else "no trials"


def _salvage(path: Path, fresh: Path) -> tuple[int, int]:
    """Write what can be read into a new file; return how many trials that is, and how many are known of."""
    if path.suffix == ".journal":
        return _salvage_journal(path, fresh)
    with quiet():
        made = optuna.storages.RDBStorage(sqlite_url(fresh))
    made.remove_session()
    made.engine.dispose()
    known = 0
    with closing(_connect(path)) as old, closing(_connect(fresh)) as new:
        for table in TABLES:
            for row in _rows(old, table, path.stat().st_size // SMALLEST_ROW):
                known = max(known, row.get("trial_id", 0))
                marks = ", ".join(f":{name}" for name in row)
                new.execute(f"insert or ignore into {table.name} ({', '.join(row)}) values ({marks})", row)
        _tidy(new)
        new.commit()
        damaged = _not_whole(fresh)
        for table in TABLES:
            if "trial_id" in table.c:
                new.executemany(f"delete from {table.name} where trial_id = ?", damaged)
        new.commit()
        read = next(new.execute("select count(*) from trials"))[0]
    return read, known


def _connect(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(f"{path.absolute().as_uri()}?mode=rw", uri=True, timeout=60)


def _rows(base: sqlite3.Connection, table: sa.Table, most: int) -> Iterator[dict[str, Any]]:
    """The rows of a table that can be read, one by one: a damaged page takes only its own rows with it."""
    with suppress(sqlite3.Error):  # the page with the last rows is damaged, or all of the table
        most = min(next(base.execute(f"select max(rowid) from {table.name} not indexed"))[0] or 0, most)
    names = [column.name for column in table.c]
    query = f"select {', '.join(names)} from {table.name} not indexed where rowid = ?"
    for number in range(1, most + 1):
        with suppress(*UNREADABLE):
            for values in base.execute(query, (number,)):
                row = dict(zip(names, values, strict=True))
                if all(_fits(column, row[column.name]) for column in table.c):
                    yield row


def _fits(column: sa.Column[Any], value: object) -> bool:
    """Whether Optuna can read a value; raises some error where it cannot."""
    if value is None:
        return bool(column.nullable)
    if isinstance(column.type, sa.Enum):
        return value in column.type.enums
    if isinstance(column.type, sa.DateTime):
        return bool(datetime.fromisoformat(value))  # type: ignore[arg-type]
    if column.name == "distribution_json":
        return bool(json_to_distribution(value))  # type: ignore[arg-type]
    if column.name.endswith("_json"):
        json.loads(value)  # type: ignore[arg-type]
    if isinstance(column.type, sa.Integer):
        return isinstance(value, int)
    return isinstance(value, int | float if isinstance(column.type, sa.Float) else str)


def _tidy(base: sqlite3.Connection) -> None:
    """Drop rows that belong to nothing, and set studies apart whose settings are lost."""
    for table in TABLES:
        for parent, home in (("study_id", "studies"), ("trial_id", "trials")):
            if parent in table.c and table.name != home:
                base.execute(f"delete from {table.name} where {parent} not in (select {parent} from {home})")
    base.execute(
        "insert into study_directions (direction, study_id, objective) select 'MAXIMIZE', study_id, 0 from studies"
        " where study_id not in (select study_id from study_directions)"
    )
    base.execute(
        "update studies set study_name = study_name || ' (settings lost ' || study_id || ')' where study_id not in"
        " (select study_id from study_user_attributes where key = 'settings') and study_id in (select study_id"
        " from trials join trial_user_attributes using (trial_id) where key = 'best_epoch')"
    )


def _not_whole(path: Path) -> list[tuple[int]]:
    """The ids of finished trials of ours that lack something."""
    base = optuna.storages.RDBStorage(sqlite_url(path))
    try:
        return [
            (stored._trial_id,)
            for study in base.get_all_studies()
            if "settings" in study.user_attrs
            for stored in base.get_all_trials(study._study_id, states=(TrialState.COMPLETE, TrialState.FAIL))
            if not is_whole(stored, study.study_name)
        ]
    finally:
        base.remove_session()
        base.engine.dispose()


class Lines(BaseJournalBackend):
    """Operations in memory."""

    def __init__(self) -> None:
        self.logs: list[dict[str, Any]] = []

    def read_logs(self, log_number_from: int) -> Iterable[dict[str, Any]]:
        """Those after the first ``log_number_from``."""
        return self.logs[log_number_from:]

    def append_logs(self, logs: list[dict[str, Any]]) -> None:
        """Add some."""
        self.logs += logs


def replayed(lines: Sequence[bytes]) -> Iterator[dict[str, Any] | None]:
    """Each line of a journal as an operation; None for one that Optuna cannot apply after the others."""
    memory = Lines()
    storage = optuna.storages.JournalStorage(memory)
    for line in lines:
        try:
            operation = json.loads(line)
            memory.logs.append(operation)
            storage.get_all_studies()
        except (*UNREADABLE, AttributeError, RecursionError):
            memory.logs = [one for one in memory.logs if one is not operation]
            storage = optuna.storages.JournalStorage(memory)
            operation = None
        yield operation


def _salvage_journal(path: Path, fresh: Path) -> tuple[int, int]:
    lines = path.read_bytes().splitlines()
    operations = list(replayed(lines))
    read = [one for one in operations if one is not None]
    # Operations name a study by its number: one whose creation is lost needs another in its place.
    kept = [
        one or {"op_code": CREATE_STUDY, "worker_id": "", "study_name": f"lost {number}", "directions": [2]}
        for number, (line, one) in enumerate(zip(lines, operations, strict=True))
        if one is not None or b'"op_code":0' in line or b'"study_name"' in line
    ]
    fresh.write_bytes(b"".join(json.dumps(one, separators=(",", ":")).encode() + b"\n" for one in kept))
    trials = sum(one["op_code"] == CREATE_TRIAL for one in read)
    lost = sum(one is None and b'"study_name"' not in line for line, one in zip(lines, operations, strict=True))
    return trials, trials + lost
