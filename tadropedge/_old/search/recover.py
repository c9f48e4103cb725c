"""What can be read of a damaged storage, and a new one made of it.

Nothing is thrown away: the damaged file is kept beside the new one.
"""

from __future__ import annotations

import json
import os
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

from tadropedge._old.atomic import sync_folder
from tadropedge._old.errors import TadropedgeError
from tadropedge._old.files import existing
from tadropedge._old.search.claims import in_use
from tadropedge._old.search.storage import sqlite_url, told
from tadropedge._old.search.study import is_whole, quiet

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
    path = path.resolve() if path.is_symlink() else path  # the link stays
    if (owner := in_use(path)) is not None:
        raise TadropedgeError(f"'{path}' is in use by {owner}: stop that process first")
    aside = next(each for n in range(1, 10**6) if not (each := path.with_name(f"{path.name}.damaged-{n}")).exists())
    fresh = path.with_name(f".{path.name}.recovered")
    try:
        with told(f"cannot recover '{path}'"):
            fresh.unlink(missing_ok=True)
            read, known = _salvage(path, fresh)
            shutil.copy2(path, aside)
            for file in (aside, fresh):
                with file.open("r+b") as stream:
                    os.fsync(stream.fileno())
            fresh.replace(path)
            sync_folder(path.parent)
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
        old.execute("pragma writable_schema = on")  # a damaged description of one table does not hide the others
        for table in TABLES:
            for row in _rows(old, table, path.stat().st_size // SMALLEST_ROW):
                known = max(known, row.get("trial_id", 0))
                marks = ", ".join(f":{name}" for name in row)
                new.execute(f"insert or ignore into {table.name} ({', '.join(row)}) values ({marks})", row)
        _tidy(new)
        new.commit()
        damaged = _not_whole(fresh, new.execute("select trial_id, study_id from trials").fetchall())
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
    try:
        base.execute(f"{query} limit 0", (0,))  # reads no row
    except sqlite3.Error:
        return  # the description of the table is damaged, and so every row is lost
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
        " (select study_id from study_user_attributes where key = 'settings' and value_json like '{%') and study_id in"
        " (select study_id from trials) and (study_id in (select study_id from trials join trial_user_attributes"
        " using (trial_id) where key = 'best_epoch') or study_name glob '*/search/*' or study_name glob '*/honest/*'"
        " or study_name glob '*/reference/*')"
    )


def _not_whole(path: Path, ids: Iterable[tuple[int, int]]) -> list[tuple[int]]:
    """The ids of trials that Optuna cannot read, and of finished ones of ours that lack something."""
    base, wrong = optuna.storages.RDBStorage(sqlite_url(path)), []
    studies = (study for study in base.get_all_studies() if isinstance(study.user_attrs.get("settings"), dict))
    names = {study._study_id: study.study_name for study in studies}
    try:
        for number, study in ids:
            try:
                stored, name = base.get_trial(number), names.get(study)
                whole = name is None or not stored.state.is_finished() or is_whole(stored, name)
            except UNREADABLE:
                whole = False
            if not whole:
                wrong.append((number,))
    finally:
        base.remove_session()
        base.engine.dispose()
    return wrong


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
    """Each line of a journal as an operation; None for one that Optuna cannot apply after those before it."""
    operations, memory = [_operation(line) for line in lines], Lines()
    storage, at, step = optuna.storages.JournalStorage(memory), 0, max(1, len(lines))
    while at < len(operations):  # many at once, and fewer where one of them is wrong
        some, good = operations[at : at + step], len(memory.logs)
        try:
            memory.logs += [each for each in some if each is not None]
            storage.get_all_studies()
            found, step = some, 2 * step
        except (*UNREADABLE, AttributeError, RecursionError):
            del memory.logs[good:]
            storage = optuna.storages.JournalStorage(memory)
            found, step = [None] if len(some) == 1 else [], max(1, len(some) // 2)
        yield from found
        at += len(found)


def _operation(line: bytes) -> dict[str, Any] | None:
    """A line as what it may mean; None where it is no JSON object."""
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _salvage_journal(path: Path, fresh: Path) -> tuple[int, int]:
    lines = path.read_bytes().splitlines()
    kept: list[dict[str, Any]] = []
    known = 0
    for number, (line, operation) in enumerate(zip(lines, replayed(lines), strict=True)):
        created = b'"study_name"' in line
        known += not created if operation is None else operation["op_code"] == CREATE_TRIAL
        if operation is not None:
            kept.append(operation)
        elif created:  # operations name a study by its number: another one takes its place
            lost = {"study_name": f"lost {number}", "directions": [2]}
            kept.append({"op_code": CREATE_STUDY, "worker_id": "", **lost})
    kept = list(_whole_operations(kept))
    fresh.write_bytes(b"".join(json.dumps(one, separators=(",", ":")).encode() + b"\n" for one in kept))
    return sum(one["op_code"] == CREATE_TRIAL for one in kept), known


def _whole_operations(operations: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Without finished trials of ours that lack something; studies whose settings are lost get another name."""
    memory = Lines()
    memory.logs = operations
    base = optuna.storages.JournalStorage(memory)
    studies = {study._study_id: study for study in base.get_all_studies()}
    trials = {number: iter(base.get_all_trials(number)) for number in studies}
    ours = {
        number
        for number in studies
        if any("best_epoch" in stored.user_attrs for stored in base.get_all_trials(number, deepcopy=False))
    }
    lost = {
        studies[number].study_name
        for number in ours
        if not isinstance(studies[number].user_attrs.get("settings"), dict)
    }
    names = set()
    for one in operations:
        number = one.get("study_id")
        if one["op_code"] == CREATE_STUDY:
            names.add(one["study_name"])
            end = " (settings lost)" if one["study_name"] in lost else ""
            yield {**one, "study_name": one["study_name"] + end}
        elif one["op_code"] != CREATE_TRIAL:
            yield one
        elif number in studies and number < len(names):  # else Optuna passes over it: its study is lost
            stored, name = next(trials[number]), studies[number].study_name
            if number not in ours or name in lost or is_whole(stored, name):
                yield one
