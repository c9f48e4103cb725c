"""A command in a forked child of this process, which has imported everything: it starts in milliseconds."""

import importlib
import logging
import os
import resource
import signal
import sys
import time
import traceback
import warnings
from contextlib import redirect_stderr, redirect_stdout, suppress
from dataclasses import dataclass
from functools import cache
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory

import torch

from tadropedge.cli.app import run

FULL = os.environ.get("TADROPEDGE_TORTURE") == "full"  # every case; otherwise an even sample of them
DIED = 137  # the exit code of a child that ended itself as if it was killed
WORDS = (".said", ".error")
NOBODY = 65534
WARM = (
    "compare karate --methods dropedge --trials 1 --replicates 2 --epochs 2 --hidden 2",
    "train karate --epochs 2 --hidden 2",
    "weights edges.csv",
)


@dataclass(frozen=True)
class Ended:
    """How a child ended: its exit code (-9 if signal 9 killed it, None if it had to be stopped) and what it printed."""

    code: int | None
    out: str
    err: str
    seconds: float

    @property
    def lines(self):
        return [line for line in self.err.splitlines() if line.strip()]

    def __str__(self):
        return f"exit code {self.code} after {self.seconds:.1f} s\n{self.out[-1500:]}\n{self.err[-1500:]}"


class Child:
    """``tadropedge WORDS`` in a folder; ``prepare`` runs in the child first: that is where failures are injected."""

    def __init__(self, words, folder, prepare=lambda: None):
        self.folder, self.begun = folder, time.monotonic()
        _import_all()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # a fork forgets threads, and these are not needed
            self.pid = os.fork()
        if self.pid == 0:
            self._run([str(word) for word in words], prepare)  # which does not return
        self.words = [folder / f"{name}-{self.pid}" for name in WORDS]

    def wait(self, seconds=120.0):
        """How it ended; it is stopped after so many seconds."""
        code = self._code(self.begun + seconds)
        took = time.monotonic() - self.begun
        printed = [path.read_text(errors="replace") if path.exists() else "" for path in self.words]
        for path in self.words:
            path.unlink(missing_ok=True)
        return Ended(code, *printed, took)

    def _code(self, deadline):
        while time.monotonic() < deadline:
            ended, status = os.waitpid(self.pid, os.WNOHANG)
            if ended:
                return os.waitstatus_to_exitcode(status)
            time.sleep(0.002)
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        return None

    def _run(self, words, prepare):
        code = 1
        try:
            os.chdir(self.folder)
            for number, name in enumerate(WORDS, 1):
                os.dup2(os.open(f"{name}-{os.getpid()}", os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
            sys.stdout, sys.stderr = (open(number, "w", closefd=False) for number in (1, 2))  # noqa: SIM115
            for each in (signal.SIGINT, signal.SIGTERM):
                signal.signal(each, signal.SIG_DFL)
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            torch.set_num_threads(1)
            warnings.resetwarnings()
            logging.getLogger().handlers.clear()  # those of pytest
            sys.argv = ["tadropedge", *words]
            prepare()
            code = run(words)
        except BaseException:
            traceback.print_exc()
        finally:
            with suppress(BaseException):
                sys.stdout.flush()
                sys.stderr.flush()
            os._exit(code)


def command(words, folder, prepare=lambda: None, seconds=120.0):
    """Run a command, given as one line or as a list, to its end."""
    return Child(words.split() if isinstance(words, str) else words, folder, prepare).wait(seconds)


@cache
def _import_all():
    """Import here what every child would import for itself: what the commands import, and drawing."""
    handlers = [(number, signal.getsignal(number)) for number in (signal.SIGINT, signal.SIGTERM)]
    with TemporaryDirectory() as folder, redirect_stdout(StringIO()), redirect_stderr(StringIO()):
        Path(folder, "edges.csv").write_text("a,b\n0,1\n1,2\n2,0\n2,3\n3,4\n")
        for words in WARM:
            words = words.replace("edges.csv", f"{folder}/edges.csv")
            assert run([*words.split(), "--json", "--out", str(Path(folder, words.split()[0]))]) == 0
    for number, handler in handlers:
        signal.signal(number, handler)
    importlib.import_module("tadropedge.lab.training.ranks")


def as_nobody(folder):
    """In a child: go on as a user without rights in any folder but this."""
    folder.chmod(0o777)
    if os.geteuid() == 0:
        os.seteuid(NOBODY)


def refused(ended, *named):
    """One line ``error: ...`` at the end that holds these words, exit code 2, nothing on standard output."""
    assert ended.code == 2, ended
    assert "Traceback" not in ended.err, ended
    assert [line.startswith("error: ") for line in ended.lines].count(True) == 1, ended
    assert ended.lines[-1].startswith("error: "), ended
    assert len(ended.lines[-1]) <= 900, ended
    assert not ended.out, ended
    for word in named:
        assert word in ended.lines[-1], f"expected {word!r}: {ended}"


def sample(cases, count):
    """So many of the cases, spread evenly and always the same; all of them at full length."""
    cases = list(cases)
    return cases if FULL or len(cases) <= count else [cases[place * len(cases) // count] for place in range(count)]


def contents(folder):
    """Every file of a folder and its bytes; links as what they point to."""
    found = {}
    for path in sorted(Path(folder).rglob("*")):
        if path.is_symlink():
            found[str(path.relative_to(folder))] = str(path.readlink())
        elif path.is_file():
            found[str(path.relative_to(folder))] = path.read_bytes()
    return found
