"""A failure at every write, rename, fsync and SQL statement of the commands that write folders."""

from __future__ import annotations

import builtins
import errno
import io
import json
import os
import resource
import signal
import sqlite3
from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from sqlalchemy.engine.default import DefaultDialect

from torture import Case, jobs

TRIES = "failures at every write, rename, fsync and SQL statement"

# dies: before the operation; half: within a write, or right after another operation; full: from here on nothing can be
# written; error: this operation fails; stop: Ctrl-C.
MODES = ("dies", "full", "half", "error", "stop")
FILES, SQL = "file operation", "SQL statement"
# At least as many as there are points, so that each of them fails in some mode.
POINTS = {
    ("compare", FILES): 80,
    ("compare", SQL): 2400,
    ("train", FILES): 90,
    ("train over a model", FILES): 90,
    ("train after a crash", FILES): 95,
    ("predict", FILES): 40,
    ("weights", FILES): 210,
    ("sparsify", FILES): 210,
    ("reproduce trainings", FILES): 240,
    ("reproduce pieces", FILES): 70,
}
LIMITS = (600, 1_000, 3_000, 8_000, 20_000, 60_000)  # bytes: the largest file, by which real writes fail
CHANGES = ("replace", "rename", "link", "unlink", "mkdir", "symlink", "fsync", "truncate")
DIES, STATEMENTS = 137, ("do_execute", "do_executemany", "do_execute_no_params", "do_commit")


def cases() -> Iterator[Case]:
    """As many failures as there are in ``POINTS``, spread over the points of each command, kind by kind."""
    for (job, kind), count in POINTS.items():
        for place in range(count):
            mode = MODES[place % len(MODES)]
            name = f"{job}: {mode} at {kind} {place} of {count}"
            yield Case(name, partial(survives, job, kind, mode, place / count))
    for job in jobs.COMMANDS:
        for limit in LIMITS:
            yield Case(f"{job}: no file beyond {limit} bytes", partial(survives_limit, job, limit))


def survives(job: str, kind: str, mode: str, share: float, folder: Path) -> None:
    """Fail at a point, and run the command again."""
    count = points(job)[kind]
    assert count <= POINTS[job, kind], f"{job} has {count} points: raise POINTS"
    point = int(share * count)
    jobs.begin(job, folder)
    ended = jobs.run(job, folder, lambda: _inject(folder, _Failure(mode, kind, point)))
    jobs.check_disturbed(job, ended, folder, full=mode == "full")
    jobs.check_resumed(job, folder)


def survives_limit(job: str, limit: int, folder: Path) -> None:
    """No file may grow beyond a limit: what the system itself does to writes."""
    jobs.begin(job, folder)
    ended = jobs.run(job, folder, lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)))
    jobs.check_disturbed(job, ended, folder)
    jobs.check_resumed(job, folder)


@cache
def points(job: str) -> dict[str, int]:
    """How many points of each kind an undisturbed run has."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        jobs.begin(job, folder)
        ended = jobs.run(job, folder, lambda: _inject(folder, _Failure("count")))
        assert ended.code == 0, f"{job}: {ended}"
        return json.loads((folder / ".points").read_text())


class _Failure:
    """Counts the points of its process, and strikes at one of them."""

    def __init__(self, mode: str, kind: str = "", point: int = -1) -> None:
        self.mode, self.kind, self.point = mode, kind, point
        self.seen = {FILES: 0, SQL: 0}
        self.full = False

    def strike(
        self, kind: str, act: Callable[[], Any], fail: Callable[[int], None], half: Callable[[], Any] | None = None
    ) -> Any:
        """Do ``act``, or what the mode says; ``fail`` raises the error of a number, ``half`` does half of it."""
        here = kind == self.kind and self.seen[kind] == self.point
        self.seen[kind] += 1
        self.full = self.full or (here and self.mode == "full")
        if self.full:
            fail(errno.ENOSPC)
        if here and self.mode == "error":
            fail(errno.EIO)
        if here and self.mode == "dies":
            os._exit(DIES)
        if here and self.mode == "half":
            (half or act)()
            os._exit(DIES)
        if here and self.mode == "stop":
            signal.raise_signal(signal.SIGINT)
        return act()


def _inject(folder: Path, failure: _Failure) -> None:
    """Make every change of the folder a point, in this process."""

    def inside(path: Any) -> bool:
        return isinstance(path, str | Path) and Path(path).absolute().is_relative_to(folder / "out")

    for name in CHANGES:
        setattr(os, name, _change(getattr(os, name), name, failure, inside))
    for name in STATEMENTS:
        setattr(DefaultDialect, name, _statement(getattr(DefaultDialect, name), failure))
    _watch_writes(failure, inside)
    if failure.mode == "count":
        end = os._exit

        def told(code: int) -> None:
            (folder / ".points").write_text(json.dumps(failure.seen))
            end(code)

        os._exit = told


def _change(act: Any, name: str, failure: _Failure, inside: Callable[[Any], bool]) -> Any:
    def struck(first: Any, *rest: Any, **options: Any) -> Any:
        if not (name == "fsync" or inside(first)):
            return act(first, *rest, **options)

        def fail(number: int) -> None:
            if name != "unlink" or number != errno.ENOSPC:  # a full disk lets files go
                raise OSError(number, os.strerror(number), None if name == "fsync" else str(first))

        return failure.strike(FILES, lambda: act(first, *rest, **options), fail)

    return struck


def _statement(act: Any, failure: _Failure) -> Any:
    def struck(dialect: Any, connection: Any, *rest: Any) -> Any:
        def fail(number: int) -> None:
            reading = bool(rest) and rest[0].lstrip().upper().startswith(("SELECT", "PRAGMA"))
            if number == errno.EIO:
                raise sqlite3.OperationalError("disk I/O error")
            if not reading:
                raise sqlite3.OperationalError("database or disk is full")

        return failure.strike(SQL, lambda: act(dialect, connection, *rest), fail)

    return struck


def _watch_writes(failure: _Failure, inside: Callable[[Any], bool]) -> None:
    original = io.open

    class Watched(io.FileIO):
        def __init__(self, path: Any, mode: str) -> None:
            failure.strike(FILES, lambda: super(Watched, self).__init__(path, mode), partial(_fail, path))

        def write(self, content: Any) -> int:
            whole = bytes(content)
            some = partial(super().write, whole[: len(whole) // 2])
            return failure.strike(FILES, partial(super().write, whole), partial(_fail, None), some)

        def truncate(self, size: int | None = None) -> int:
            return failure.strike(FILES, partial(super().truncate, size), partial(_fail, None))

    def opened(
        path: Any, mode: str = "r", buffering: int = -1, encoding: Any = None, *rest: Any, **options: Any
    ) -> Any:
        if not set(mode) & set("wax+") or not inside(path) or options.get("opener"):  # of a file without a name
            return original(path, mode, buffering, encoding, *rest, **options)
        raw = Watched(path, mode.replace("b", "").replace("t", ""))
        stream = io.BufferedRandom(raw) if "+" in mode else io.BufferedWriter(raw)
        return stream if "b" in mode else io.TextIOWrapper(stream, encoding, *rest, **options)

    io.open = builtins.open = opened


def _fail(path: Any, number: int) -> None:
    raise OSError(number, os.strerror(number), None if path is None else str(path))
