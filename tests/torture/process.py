"""Commands and functions in a child process: whatever they do to memory, signals or limits stays there.

The child is forked from a process that has imported torch, so it starts in milliseconds.
"""

from __future__ import annotations

import os
import resource
import signal
import sys
import time
import traceback
import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import torch

MEGABYTE = 2**20
WORDS = (".torture-out", ".torture-err")


@dataclass(frozen=True)
class Ended:
    """How a child ended: its exit code (−9 if signal 9 killed it, ``None`` if it had to be stopped), and its words."""

    code: int | None
    out: str
    err: str
    seconds: float

    def __str__(self) -> str:
        return f"exit code {self.code} after {self.seconds:.1f} s\n{self.out[-2000:]}\n{self.err[-2000:]}"


def command(
    arguments: Sequence[str],
    folder: Path,
    *,
    seconds: float = 120.0,
    megabytes: int | None = None,
    prepare: Callable[[], None] = lambda: None,
) -> Ended:
    """``tadropedge ARGUMENTS`` in ``folder``, within limits of time and memory (the latter beyond what torch takes).

    ``prepare`` runs in the child first: that is where failures are injected.
    """

    def run() -> int:
        from tadropedge.cli import run as command_line

        sys.argv = ["tadropedge", *arguments]
        try:
            prepare()
            command_line()
        finally:  # a signal that comes too late must not reach the code after this
            for number in (signal.SIGINT, signal.SIGTERM):
                signal.signal(number, signal.SIG_IGN)
        return 0

    return forked(run, folder, seconds=seconds, megabytes=megabytes)


def forked(
    function: Callable[[], int | None], folder: Path, *, seconds: float = 120.0, megabytes: int | None = None
) -> Ended:
    """Run ``function`` in a child whose exit code is what it returns, 1 with a traceback if it raises."""
    return started(function, folder, megabytes=megabytes).wait(seconds)


@dataclass(frozen=True)
class Running:
    """A child that runs beside this process; what it says goes to two files in ``folder``."""

    pid: int
    folder: Path
    begun: float

    def wait(self, seconds: float = 120.0) -> Ended:
        """How it ended; it is stopped after so many seconds."""
        try:
            code, took = _wait(self.pid, self.begun + seconds), time.monotonic() - self.begun
        finally:
            with suppress(ProcessLookupError):
                os.killpg(self.pid, signal.SIGKILL)
        words = [self.folder / name for name in WORDS]
        ended = Ended(code, *(path.read_text(errors="replace") for path in words), took)
        for path in words:
            path.unlink()
        return ended


def started(function: Callable[[], int | None], folder: Path, *, megabytes: int | None = None) -> Running:
    """Start ``function`` in a child, one at a time per folder."""
    begun = time.monotonic()
    for name in WORDS:
        (folder / name).touch()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # fork in a process with threads, which the child forgets
        child = os.fork()
    if child == 0:
        _child(function, folder, tuple(folder / name for name in WORDS), megabytes)
    return Running(child, folder, begun)


def _child(
    function: Callable[[], int | None], folder: Path, words: Sequence[Path], megabytes: int | None
) -> None:  # never returns
    code = 1
    try:
        os.setpgrp()  # with all that it starts, so that nothing outlives it
        for number, path in enumerate(words, 1):
            file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            os.dup2(file, number)
        sys.stdout, sys.stderr = open(1, "w", closefd=False), open(2, "w", closefd=False)  # noqa: SIM115
        sys.__stdout__, sys.__stderr__ = sys.stdout, sys.stderr
        signal.signal(signal.SIGINT, signal.default_int_handler)
        os.chdir(folder)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        if megabytes is not None:
            pages = int(Path("/proc/self/statm").read_text().split()[0])
            most = pages * resource.getpagesize() + megabytes * MEGABYTE
            resource.setrlimit(resource.RLIMIT_AS, (most, most))
        torch.set_num_threads(1)
        code = function() or 0
    except SystemExit as ending:
        code = ending.code if isinstance(ending.code, int) else 1 if ending.code else 0
    except BaseException:
        traceback.print_exc()
    finally:
        try:
            sys.stdout.flush()
            sys.stderr.flush()
        finally:  # whatever happens, this is no second parent
            os._exit(code)


def _wait(child: int, deadline: float) -> int | None:
    while time.monotonic() < deadline:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.005)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return None


def assert_refused(ended: Ended, *words: str) -> None:
    """The one clear line: exit code 2, one line ``error: …`` that holds ``words``, nothing on standard output."""
    lines = [line for line in ended.err.splitlines() if line.strip()]
    assert ended.code == 2, f"expected exit code 2, got {ended}"
    assert "Traceback" not in ended.err, f"a traceback: {ended}"
    assert len(lines) == 1, f"expected one line on standard error, got {ended}"
    assert lines[0].startswith("error: "), f"expected an error, got {ended}"
    assert len(lines[0]) <= 600, f"a line of {len(lines[0])} characters: {ended}"
    assert not ended.out, f"words on standard output: {ended}"
    for word in words:
        assert word in lines[0], f"expected {word!r} in {lines[0]!r}"
