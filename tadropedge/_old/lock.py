"""One writer per folder: a lock that tells who holds it, and that is free again as soon as its owner is dead.

The lock is the kernel's (``flock``), which releases it whatever way a process ends. The file that carries it, hidden in
the folder and removed at the end, only says whom others wait for. Where there is no ``flock`` the file itself is the
lock, and the process it names is looked for.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import shlex
import stat
import sys
import tempfile
import textwrap
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

from tadropedge._old.atomic import is_running
from tadropedge._old.errors import TadropedgeError, reason, without_password

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

FLOCK: Any = getattr(fcntl, "flock", None)
LOCK_NOW = 0 if FLOCK is None else fcntl.LOCK_EX | fcntl.LOCK_NB
NAME = ".tadropedge.lock"
PAUSE = 0.1  # seconds between two looks at a lock that is waited for
SECONDS_BETWEEN_LINES = 60.0
LONGEST = 4096  # bytes of a lock file: the rest of a file in its place is not ours

Release = Callable[[], None]
_held: set[int] = set()  # open files that carry a lock
if hasattr(os, "register_at_fork"):
    # A child inherits open files, and would keep the lock when its parent is dead.
    os.register_at_fork(after_in_child=lambda: _forget())


def _forget() -> None:
    while _held:
        os.close(_held.pop())


def _place() -> str:
    """Where process numbers mean the same."""
    with suppress(OSError):
        return f"{Path('/proc/sys/kernel/random/boot_id').read_text().strip()} {Path('/proc/self/ns/pid').readlink()}"
    return _host()


def _host() -> str:
    return os.uname().nodename if hasattr(os, "uname") else "this host"


def _command() -> str:
    program = Path(sys.argv[0]).name.replace("__main__.py", "tadropedge")
    return without_password(shlex.join([program, *sys.argv[1:]]))


@dataclass(frozen=True, kw_only=True)
class Owner:
    """A process, so that it can be named, and told from a later one with the same number.

    ``place`` is where process numbers mean the same: one start of one machine, and one container on it.

    >>> Owner().alive(), Owner(born="another time").alive(), Owner(place="elsewhere").alive()
    (True, False, None)
    """

    pid: int = field(default_factory=os.getpid)
    host: str = field(default_factory=_host)
    place: str = field(default_factory=_place)
    born: str = field(default_factory=lambda: _born(os.getpid()))
    since: str = field(default_factory=lambda: datetime.now().isoformat(sep=" ", timespec="seconds"))
    command: str = field(default_factory=_command)
    token: str = field(default_factory=lambda: uuid.uuid4().hex)  # no two locks have the same

    def __str__(self) -> str:
        command = textwrap.shorten(self.command, 120, placeholder=" …")
        return f"process {self.pid} on {self.host} (since {self.since}: {command})"

    def alive(self) -> bool | None:
        """Whether this process still runs; None where that cannot be known from here."""
        if self.place != _place() or os.name == "nt":
            return None
        return is_running(self.pid) and _born(self.pid) == self.born

    def is_here(self) -> bool:
        """Whether the locks of its kernel are those of ours: this machine, or an earlier start of it."""
        return self.host == _host() or self.place.partition(" ")[0] == _place().partition(" ")[0]


def _born(pid: int) -> str:
    """When a process began, in ticks since the machine did; nothing for one that is gone, or where nobody tells."""
    with suppress(OSError, IndexError):
        words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return "" if words[0] in "ZX" else words[19]
    return ""


@contextmanager
def locked(
    folder: str | Path, *targets: str, wait: bool = False, say: Callable[[str], None] = lambda line: None
) -> Iterator[None]:
    """Make ``folder`` and hold its lock for the duration of a block; refuse it where nothing can be written there.

    ``targets`` are the files that will be written, and the folders, which end in a slash: none may be the other.
    With ``wait`` a folder that is in use is waited for, and ``say`` tells for whom. A folder that is made here
    and stays empty is removed again.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as home, locked(home), locked(home):  # doctest: +ELLIPSIS
    ...     pass
    Traceback (most recent call last):
    tadropedge._old.errors.TadropedgeError: '...' is in use by process ...; wait for it with --wait, or take another folder
    """
    folder = Path(folder)
    made: list[Path] = []
    try:
        with _writable(folder):
            _check_targets(folder, targets)
            release = None
            while release is None:
                made += _make(folder)
                with suppress(FileNotFoundError):  # somebody left it empty, and removed it
                    release = _wait(folder / NAME, wait, say)
        try:
            yield
        finally:
            release()
    finally:
        _remove_empty(made)


def check_writable(folder: Path) -> None:
    """Refuse a folder into which nothing can be written, and leave none behind."""
    made: list[Path] = []
    try:
        with _writable(folder):
            made += _make(folder)
            with tempfile.TemporaryFile(dir=folder) as file:
                file.write(bytes(LONGEST))
    finally:
        _remove_empty(made)


@contextmanager
def _writable(folder: Path) -> Iterator[None]:
    """Say in one line why nothing can be written into a folder."""
    try:
        yield
    except TadropedgeError:
        raise
    except (OSError, ValueError) as error:
        shown = ascii(str(folder))[1:-1] if isinstance(error, ValueError) else str(folder)
        shown = shown if len(shown) < 200 else f"{shown[:200]}…"
        raise TadropedgeError(f"cannot write into the folder '{shown}': {reason(error)}") from error


def _check_targets(folder: Path, targets: tuple[str, ...]) -> None:
    for target in targets:
        path, inner = folder / target, target.endswith("/")
        if path.exists() and path.is_dir() != inner:
            there, wanted = ("file", "folder") if inner else ("folder", "file")
            raise TadropedgeError(f"'{path}' is a {there}, and a {wanted} must be written there")


def _make(folder: Path) -> list[Path]:
    """Make a folder; return what was not there, from the outside in."""
    missing = [each for each in (folder, *folder.parents) if not each.exists()][::-1]
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except FileExistsError:
        raise NotADirectoryError(errno.ENOTDIR, "it is a file") from None
    except OSError:
        _remove_empty(missing)
        raise
    return missing


def _remove_empty(folders: list[Path]) -> None:
    for each in reversed(folders):
        with suppress(OSError):  # not empty
            each.rmdir()


def _wait(file: Path, wait: bool, say: Callable[[str], None]) -> Release:
    """Take the lock and return what releases it; if it is somebody's, wait for it where that was asked."""
    next_line = begun = time.monotonic()
    while isinstance(found := _take(file), Owner):
        hint = "" if found.alive() is not None or found.is_here() else f"; if it no longer runs, delete '{file}'"
        if not wait:
            hint = f"wait for it with --wait, or take another folder{hint}"
            raise TadropedgeError(f"'{file.parent}' is in use by {found}; {hint}")
        if (now := time.monotonic()) >= next_line:
            say(f"waiting for {found}, which uses '{file.parent}' ({now - begun:.0f} s){hint}")
            next_line = now + SECONDS_BETWEEN_LINES
        time.sleep(PAUSE)
    return found


def _take(file: Path) -> Release | Owner:
    """Try to take a lock: what releases it, or whose it is."""
    mine = json.dumps(asdict(Owner())).encode()
    try:
        if FLOCK is not None:
            return _take_by_flock(file, mine)
    except OSError as error:
        if error.errno not in (errno.ENOLCK, errno.ENOTSUP, errno.ENOSYS):  # of a file system without flock
            raise
    rival = _take_by_name(file, mine)
    return partial(_release_by_name, file, mine) if rival is None else rival


def _take_by_flock(file: Path, mine: bytes) -> Release | Owner:
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK  # no link, and no pipe that waits for a reader
    number = os.open(file, flags, 0o644)
    try:
        if not stat.S_ISREG(os.fstat(number).st_mode):
            raise OSError(errno.EEXIST, f"{file.name} is no file")
        try:
            FLOCK(number, LOCK_NOW)
        except BlockingIOError:
            return _reading(number)
        if not _is(file, number):  # its owner removed it after we had opened it
            return _take_by_flock(file, mine)
        before = _owner(os.pread(number, LONGEST, 0))
        if before is not None and not before.is_here():
            return before  # its kernel may know more than ours
        os.ftruncate(number, 0)
        try:
            os.pwrite(number, mine, 0)
        except OSError:  # a full disk, for one
            file.unlink(missing_ok=True)
            raise
        with suppress(OSError):  # if we die, whoever may write into the folder may take it over
            os.fchmod(number, 0o666)
        _held.add(number)
        return partial(_release, file, number)
    finally:
        if number not in _held:
            os.close(number)


def _release(file: Path, number: int) -> None:
    if number in _held:  # not in a child
        _held.discard(number)
        file.unlink(missing_ok=True)  # before it is free: afterwards it may be somebody else's
        os.close(number)


def _is(file: Path, number: int) -> bool:
    with suppress(FileNotFoundError):
        return os.path.samestat(file.lstat(), os.fstat(number))
    return False


def _reading(number: int) -> Owner:
    """Whose lock it is; a process that has just taken it may not have said so yet."""
    for _ in range(20):
        if (owner := _owner(os.pread(number, LONGEST, 0))) is not None:
            return owner
        time.sleep(PAUSE / 4)
    return Owner(pid=0, host="an unknown host", since="an unknown time", command="unknown")


def _owner(content: bytes) -> Owner | None:
    """Who wrote a lock file; None where it holds anything else."""
    with suppress(ValueError, TypeError, RecursionError):
        found = Owner(**json.loads(content))
        if type(found.pid) is int and all(
            isinstance(value, str) for name, value in vars(found).items() if name != "pid"
        ):
            return found
    return None


def _take_by_name(file: Path, mine: bytes) -> Owner | None:
    """Without flock: make the file, or else say whose it is.

    Of all who find one dead lock, the one that makes the file named after it inherits, and puts that into its place.
    """
    draft = file.with_name(f"{file.name}.{uuid.uuid4().hex[:8]}")
    try:
        draft.write_bytes(mine)
        os.link(draft, file)  # with its content, unless there is one
        return None
    except FileExistsError:
        pass
    finally:
        draft.unlink(missing_ok=True)
    try:
        content = file.read_bytes()[:LONGEST]
    except FileNotFoundError:
        return _take_by_name(file, mine)
    owner = _owner(content)
    if owner is not None and owner.alive() is not False:
        return owner
    heir = file.with_name(f"{file.name}.{hashlib.sha256(content).hexdigest()[:16]}")
    if (rival := _take_by_name(heir, mine)) is not None:
        return rival
    with suppress(FileNotFoundError):
        if file.read_bytes()[:LONGEST] == content:  # only an heir changes it
            heir.replace(file)
            return None
    heir.unlink()
    return _take_by_name(file, mine)


def _release_by_name(file: Path, mine: bytes) -> None:
    with suppress(OSError):
        if file.read_bytes() == mine:
            file.unlink()
