"""Every write, rename, link, fsync and SQL statement fails in turn: nothing is half-written, and all goes on."""

import builtins
import errno
import io
import json
import os
import resource
import signal
import sqlite3
from functools import cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from torture import jobs
from torture.process import DIED, FULL, sample

# dies: before the operation; half: within a write, or right after another operation; full: from here on nothing can be
# written; error: this operation fails; stop: Ctrl-C.
MODES = ("full", "error", "half", "stop", "dies")
CHANGES = ("replace", "rename", "link", "unlink", "mkdir", "rmdir", "symlink", "fsync", "truncate")
KINDS = ("file", "sql")
LIMITS = (600, 1_000, 3_000, 8_000, 20_000, 60_000)  # bytes of the largest file: how the system itself lets writes fail
POINTS = Path("points")


class Failure:
    """Counts the points of its process where something is changed, and strikes at one of them."""

    def __init__(self, mode="count", kind="", point=-1):
        self.mode, self.kind, self.point = mode, kind, point
        self.seen, self.full = dict.fromkeys(KINDS, 0), False

    def strike(self, kind, act, fail, half=None):
        """Do ``act``, or what the mode says; ``fail`` raises the error of a number, ``half`` does half of it."""
        here = kind == self.kind and self.seen[kind] == self.point
        self.seen[kind] += 1
        self.full = self.full or (here and self.mode == "full")
        if self.full:
            fail(errno.ENOSPC)
        if here and self.mode == "error":
            fail(errno.EIO)
        if here and self.mode == "half":
            (half or act)()
        if here and self.mode in ("half", "dies"):
            os._exit(DIED)
        if here and self.mode == "stop":
            signal.raise_signal(signal.SIGINT)
        return act()


def inject(failure):
    """Make every change of the folder ``out`` a point, in this process."""
    out = str(Path("out").absolute())

    def inside(path):
        return isinstance(path, str | Path) and str(Path(path).absolute()).startswith(out)

    for name in CHANGES:
        setattr(os, name, change(getattr(os, name), name, failure, inside))
    sqlite3.connect = partial(sqlite3.connect, factory=database(failure))
    watch_writes(failure, inside)
    if failure.mode == "count":
        file, end = POINTS.absolute(), os._exit

        def ended(code):
            file.write_text(json.dumps(failure.seen))
            end(code)

        os._exit = ended


def change(act, name, failure, inside):
    def struck(first, *rest, **options):
        if not (name == "fsync" or inside(first)):
            return act(first, *rest, **options)

        def fail(number):
            if name not in ("unlink", "rmdir") or number != errno.ENOSPC:  # a full disk lets files go
                raise OSError(number, os.strerror(number), None if name == "fsync" else str(first))

        return failure.strike("file", lambda: act(first, *rest, **options), fail)

    return struck


def database(failure):
    """A connection whose every statement is a point."""

    class Database(sqlite3.Connection):
        def execute(self, statement, *rest):
            def fail(number):
                if number == errno.EIO:
                    raise sqlite3.OperationalError("disk I/O error")
                if not statement.lstrip().lower().startswith(("select", "pragma", "rollback")):
                    raise sqlite3.OperationalError("database or disk is full")

            return failure.strike("sql", lambda: super(Database, self).execute(statement, *rest), fail)

        def executemany(self, statement, many):
            return [self.execute(statement, each) for each in many]

        def executescript(self, script):
            for statement in script.split(";\n"):
                self.execute(statement)

    return Database


def watch_writes(failure, inside):
    original = io.open

    def failed(path, number):
        raise OSError(number, os.strerror(number), path)

    class Watched(io.FileIO):
        def __init__(self, path, mode):
            failure.strike("file", lambda: super(Watched, self).__init__(path, mode), partial(failed, str(path)))

        def write(self, content):
            content = bytes(content)
            some = partial(super().write, content[: len(content) // 2])
            return failure.strike("file", partial(super().write, content), partial(failed, None), some)

    def opened(path, mode="r", buffering=-1, encoding=None, *rest, **options):
        if not set(mode) & set("wax+") or not inside(path):
            return original(path, mode, buffering, encoding, *rest, **options)
        raw = Watched(path, mode.replace("b", "").replace("t", ""))
        stream = io.BufferedRandom(raw) if "+" in mode else io.BufferedWriter(raw)
        return stream if "b" in mode else io.TextIOWrapper(stream, encoding, *rest, **options)

    io.open = builtins.open = opened


@cache
def points(job):
    """How many points of each kind an undisturbed run has."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        jobs.begin(job, folder)
        ended = jobs.run(job, folder, lambda: inject(Failure()))
        assert ended.code == 0, ended
        return json.loads((folder / POINTS).read_text())


# So many failures per command: in the sample, and at full length, where no point is left out.
COUNTS = {("compare", "file"): (6, 700), ("compare", "sql"): (6, 240), ("train", "file"): (6, 400)}
COUNTS |= {("weights", "file"): (6, 300)}
GOLDEN = 0.6180339887498949  # multiples of it, without their whole parts, are spread evenly and in no order
CASES = [
    (job, kind, MODES[place % len(MODES)], round((place + 1) * GOLDEN % 1.0, 4))
    for (job, kind), counts in COUNTS.items()
    for place in range(counts[FULL])
]


@pytest.mark.parametrize(("job", "kind", "mode", "share"), CASES)
def test_a_failure_leaves_nothing_half_written_and_the_same_command_goes_on(job, kind, mode, share, tmp_path):
    count = points(job)[kind]
    assert 2 * count <= COUNTS[job, kind][1], f"{count} points: raise COUNTS"
    jobs.begin(job, tmp_path)
    ended = jobs.run(job, tmp_path, lambda: inject(Failure(mode, kind, int(share * count))))
    before = jobs.check_disturbed(job, ended, tmp_path)
    if mode == "full":
        assert ended.code == 0 or "full" in ended.lines[-1], ended
    if mode == "stop":
        assert ended.code == 130, ended
    jobs.check_resumed(job, tmp_path, before)
    assert not [path.name for path in tmp_path.glob("out/**/*") if ".tmp" in path.name]


@pytest.mark.parametrize("job", ["compare", "train", "weights"])
@pytest.mark.parametrize("limit", sample(LIMITS, 2))
def test_no_file_may_grow_beyond_a_limit(job, limit, tmp_path):
    jobs.begin(job, tmp_path)
    ended = jobs.run(job, tmp_path, lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)))
    before = jobs.check_disturbed(job, ended, tmp_path)
    jobs.check_resumed(job, tmp_path, before, checkpoints=False)  # which may be too large
