"""Damaged, foreign and full stores: one clear line or the right results, and never less than what can be read."""

from __future__ import annotations

import atexit
import errno
import json
import os
import random
import shutil
import sqlite3
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import cache, partial
from pathlib import Path

import fake_trainer
import sqlalchemy as sa

from tadropedge.errors import TadropedgeError
from tadropedge.lock import NAME, locked
from tadropedge.search.recover import recover
from torture import Case
from torture.process import Ended, assert_refused, command, forked

TRIES = "damaged, foreign and full storages, caches and locks"
FINAL = ("was made with", "is not one of ours")  # what is said of a study whose settings are damaged

Damage = Callable[[Path], None]


def cases() -> Iterator[Case]:
    """Every kind of store, every kind of damage."""
    for place in range(48):
        yield Case(f"study.db, page {place} of 48 zeroed", partial(_database, partial(_zero, place / 48)))
    for seed in range(48):
        yield Case(f"study.db, bytes flipped ({seed})", partial(_database, partial(_flip, seed)))
    for share in (0.0, 0.001, 0.02, 0.1, 0.4, 0.7, 0.95, 0.999):
        yield Case(f"study.db cut to {share:.1%}", partial(_database, partial(_cut, share)))
    for statement in STATEMENTS:
        yield Case(f"study.db: {statement}", partial(_database, partial(_execute, statement)))
    for name, damage in FILES.items():
        yield Case(f"study.db: {name}", partial(_database, damage))
    for seed in range(20):
        yield Case(f"a journal, bytes flipped ({seed})", partial(_journal, partial(_flip, 100 + seed)))
    for name, edit in JOURNALS.items():
        yield Case(f"a journal: {name}", partial(_journal, edit))
    for pages in (1, 20, 30, 32, 34, 36, 40, 44):
        yield Case(f"a disk that is full after {pages} pages", partial(_full_database, pages))
    for number in (1, 2, 5, 9, 20, 40):
        yield Case(f"a disk that is full at sync {number} of a journal", partial(_full_journal, number))
    for name, rubbish in LOCKS.items():
        yield Case(f"a lock file: {name}", partial(_lock, rubbish))
    for name, damage in CACHES.items():
        yield Case(f"a cache entry: {name}", partial(_cache, damage))


# -- what is damaged ----------------------------------------------------------------------------------


def _zero(share: float, path: Path) -> None:
    content = bytearray(path.read_bytes())
    begin = int(share * len(content)) // 4096 * 4096
    content[begin : begin + 4096] = bytes(4096)
    path.write_bytes(content)


def _flip(seed: int, path: Path) -> None:
    content, chance = bytearray(path.read_bytes()), random.Random(seed)
    for _ in range(chance.choice((1, 3, 40))):
        content[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
    path.write_bytes(content)


def _cut(share: float, path: Path) -> None:
    with path.open("r+b") as file:
        file.truncate(int(share * path.stat().st_size))


def _execute(statement: str, path: Path) -> None:
    with closing(sqlite3.connect(path)) as base:
        base.execute(statement)
        base.commit()


KEYS = ("index", "seed", "split", "best_epoch", "failed", "val_accuracy", "test_accuracy", "digest")
STATEMENTS = (
    *(f"delete from trial_user_attributes where key = '{key}' and trial_id < 4" for key in KEYS),
    *(f"update trial_user_attributes set value_json = '\"x\"' where key = '{key}' and trial_id = 2" for key in KEYS),
    *(
        f"update trial_user_attributes set value_json = '{value}' where key = 'test_accuracy'"
        for value in ("0.5", "null", "[]", "NaN", "1e999", "{", "", "12345678901234567890123")
    ),
    "delete from trial_params where trial_id = 3",
    "update trial_params set param_value = 7 where trial_id = 3",
    "update trial_params set distribution_json = '{}' where trial_id = 3",
    "update trials set state = 'DONE' where trial_id = 5",
    "update trials set state = 'RUNNING' where trial_id = 5",
    "update trials set number = 1",
    "update trials set study_id = 2 where study_id = 1",
    "update trials set datetime_complete = 'yesterday'",
    "update trial_values set value = 0.1",
    "delete from trial_values",
    "delete from trials where trial_id > 4",
    "delete from studies where study_id = 2",
    "delete from study_directions",
    "update study_directions set direction = 'UP'",
    "delete from study_user_attributes",
    "update study_user_attributes set value_json = '7'",
    "update study_user_attributes set value_json = '{'",
    "update studies set study_name = 'other' where study_id = 1",
    "delete from version_info",
    "update version_info set schema_version = 99",
    "update alembic_version set version_num = 'v9.9.9.z'",
    "drop table trial_user_attributes",
    "drop table trials",
    "drop table version_info",
)


def _replaced(content: bytes, path: Path) -> None:
    path.write_bytes(content)


def _foreign(path: Path) -> None:
    path.unlink()
    _execute("create table cats (name text)", path)


def _folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def _hot_journal(path: Path) -> None:
    Path(f"{path}-journal").write_bytes(b"\xd9\xd5\x05\xf9" * 300)


FILES: dict[str, Damage] = {
    "empty": partial(_replaced, b""),
    "a text": partial(_replaced, b"no database, and long enough to be looked at\n" * 40),
    "another program's": _foreign,
    "a folder": _folder,
    "rubbish in its own journal": _hot_journal,
}


def _edited(edit: Callable[[list[bytes]], list[bytes]], path: Path) -> None:
    path.write_bytes(b"".join(edit(path.read_bytes().splitlines(keepends=True))))


JOURNALS: dict[str, Damage] = {
    "empty": partial(_cut, 0.0),
    "cut in a line": partial(_cut, 0.7),
    "without its last newline": partial(_edited, lambda lines: [*lines[:-1], lines[-1][:-1]]),
    "a line of rubbish at the end": partial(_edited, lambda lines: [*lines, b"rubbish\n"]),
    "a line of rubbish in the middle": partial(_edited, lambda lines: [*lines[:9], b"{}\n", *lines[9:]]),
    "an unknown operation": partial(_edited, lambda lines: [*lines, b'{"op_code":99,"worker_id":"x"}\n']),
    "the first line lost": partial(_edited, lambda lines: lines[1:]),
    "the first line damaged": partial(_edited, lambda lines: [b"#" + lines[0], *lines[1:]]),
    "the second line lost": partial(_edited, lambda lines: [lines[0], *lines[2:]]),
    "a trial twice": partial(_edited, lambda lines: [*lines, lines[-1]]),
    "lines in another order": partial(_edited, lambda lines: [*lines[:2], *lines[-1:], *lines[2:-1]]),
    "zeroed in the middle": partial(_zero, 0.5),
    "of NUL": partial(_replaced, bytes(5000)),
}
LOCKS = {
    "empty": b"", "NUL": bytes(5000), "half a line": b'{"pid": 12', "a list": b"[1, 2]", "a number": b"17",
    "another program's": b'{"pid": 1}', "deep": b"[" * 4000, "no text": bytes(range(128, 256)),
    "wrong types": b'{"pid": "1", "host": 2, "place": [], "born": {}, "since": 0, "command": 1, "token": 2}',
    "a number too large": b'{"pid": 1' + b"0" * 400 + b"}",
}  # fmt: skip
CACHES: dict[str, Damage] = {
    "empty": partial(_cut, 0.0),
    "cut": partial(_cut, 0.5),
    "zeroed": partial(_zero, 0.0),
    "a text": partial(_replaced, b"text"),
    **{f"bytes flipped ({seed})": partial(_flip, seed) for seed in range(4)},
}


# -- what must happen ---------------------------------------------------------------------------------


@cache
def _undamaged(name: str) -> tuple[Path, str]:
    """A finished search and retraining in a storage of that name, made once a process, and its results."""
    folder = tempfile.mkdtemp(prefix="tadropedge-torture-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    path = Path(folder) / name
    return path, fake_trainer.compare(path, fake_trainer.Trainer())


def _attempt(path: Path, prepare: Callable[[], None] = lambda: None) -> Ended:
    """The same search again, as the command line would do it."""

    def run() -> int:
        prepare()
        try:
            answer = fake_trainer.compare(path, fake_trainer.Trainer(path.parent / "log"))
        except TadropedgeError as error:
            print(f"error: {error}", file=sys.stderr)
            return 2
        print(answer)
        return 0

    return forked(run, path.parent)


def _database(damage: Damage, folder: Path) -> None:
    _behaves("study.db", damage, folder)


def _journal(damage: Damage, folder: Path) -> None:
    _behaves("study.journal", damage, folder)


def _behaves(name: str, damage: Damage, folder: Path) -> None:
    """Damage is refused in a line that names the file, or the results are right; so they are after a recovery."""
    whole, answer = _undamaged(name)
    path = folder / name
    shutil.copy(whole, path)
    damage(path)
    ended = _attempt(path)
    if ended.code == 0:
        assert ended.out.strip() == answer, "other results"
        assert "Traceback" not in ended.err, ended
        return
    assert_refused(ended)
    if "tadropedge recover" not in ended.err:
        assert name in ended.err or any(words in ended.err for words in FINAL), ended
        if not any(words in ended.err for words in FINAL[1:]):
            return
    damaged = path.read_bytes()
    said = recover(path)
    assert (folder / f"{name}.damaged-1").read_bytes() == damaged
    assert f"{name}.damaged-1" in said
    ended = _attempt(path)
    if ended.code != 0:  # the settings of a study, or of one trial, are not those that are asked for
        assert_refused(ended)
        assert any(words in ended.err for words in (FINAL[0], "was run with")), ended
        return
    assert ended.out.strip() == answer, "other results after the recovery"
    assert not ended.err or "not resumed" in ended.err, ended  # of a study whose version is damaged


def _full_database(pages: int, folder: Path) -> None:
    def prepare() -> None:
        limit = f"pragma max_page_count = {pages}"
        sa.event.listen(sa.Engine, "connect", lambda connection, _: connection.execute(limit) and None)

    path = folder / "study.db"
    _stops_and_goes_on(path, prepare)


def _full_journal(number: int, folder: Path) -> None:
    def prepare() -> None:
        left, sync = [number], os.fsync

        def full(file: int) -> None:
            left[0] -= 1
            if left[0] <= 0:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            sync(file)

        os.fsync = full

    _stops_and_goes_on(folder / "study.journal", prepare)


def _stops_and_goes_on(path: Path, prepare: Callable[[], None]) -> None:
    """A full disk is named; once there is space again, what was finished is not trained again."""
    answer = _undamaged(path.name)[1]
    assert_refused(_attempt(path, prepare), "the disk is full")
    log = path.parent / "log"
    before = len(log.read_text().splitlines()) if log.exists() else 0
    ended = _attempt(path)
    assert (ended.code, ended.out.strip()) == (0, answer), ended
    trained = log.read_text().splitlines()
    assert len(trained) <= len(set(trained)) + 3, f"more than a batch was trained again after {before} trainings"


def _lock(rubbish: bytes, folder: Path) -> None:
    (folder / NAME).write_bytes(rubbish)
    with locked(folder):
        assert json.loads((folder / NAME).read_bytes())["pid"] == os.getpid()
    assert not (folder / NAME).exists()


def _cache(damage: Damage, folder: Path) -> None:
    arguments = ["weights", "karate", "--no-figures", "--out", "out", "--json"]
    assert command(arguments, folder).code == 0
    before = (folder / "out" / "weights.csv").read_bytes()
    for entry in (folder / "out" / "cache").iterdir():
        damage(entry)
    ended = command(arguments, folder)
    assert ended.code == 0, ended
    assert "Traceback" not in ended.err, ended
    assert (folder / "out" / "weights.csv").read_bytes() == before
