"""How ranks are started and ended: which Python and which ``mpiexec``, their environment, and whether all is there."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from selectors import EVENT_READ, DefaultSelector
from typing import Any

from tadropedge._old.errors import TadropedgeError

SETTING = "TADROPEDGE_MPI_PYTHON"
SYSTEM = "/usr/bin/python3"
DEBIAN = "apt install python3-slepc4py python3-petsc4py openmpi-bin"
WORKER = Path(__file__).with_name("worker.py")
MODULES = "lib/python3/dist-packages"  # below PETSC_DIR and SLEPC_DIR, as Debian builds them
LOOK = """
import numpy, petsc4py, slepc4py
from petsc4py.lib import ImportPETSc
PETSc = ImportPETSc()  # its compiled part, before it starts MPI
assert issubclass(PETSc.ScalarType, numpy.floating), "PETSc is built for complex numbers"
print("SLEPc", slepc4py.__version__, "PETSc", petsc4py.__version__)
"""
STARTS = 120.0  # seconds in which a Python must start
SILENCE = 3600.0  # seconds without a word, of which there is one after each iteration
ENDS = 5.0  # seconds that ``mpiexec`` has to end its ranks before it is killed


class MissingMPIError(TadropedgeError):
    """The solver ``slepc`` cannot be used here; the message says what to install or set."""


@dataclass(frozen=True)
class Tools:
    """The Python of the ranks, their ``mpiexec``, the folders of its modules, and the versions in words."""

    python: str
    mpiexec: str
    folders: tuple[str, ...]
    versions: str


def tools() -> Tools:
    """What ranks are started with, or :class:`MissingMPIError`; looked for once per setting."""
    names = (SETTING, "PATH", "PETSC_DIR", "SLEPC_DIR")
    found = _tools(*(os.environ.get(name, "") for name in names))
    if isinstance(found, str):
        raise MissingMPIError(found)
    return found


@lru_cache
def _tools(setting: str, path: str, *dirs: str) -> Tools | str:
    python = shutil.which(setting or SYSTEM) or shutil.which("" if setting else "python3")
    said = f"{SETTING}={setting}" if setting else f"{SETTING} is not set"
    remedy = f"{DEBIAN}, or set {SETTING} to a Python that has numpy, petsc4py and slepc4py"
    if python is None:
        return f"the solver 'slepc' found no Python ({said}): {remedy}"
    beside = shutil.which("mpiexec", path=str(Path(python).parent))
    mpiexec = beside if setting and beside else shutil.which("mpiexec")
    if mpiexec is None:
        return f"the solver 'slepc' found no mpiexec: {remedy}"
    wrong = ""
    for folders in ((), module_folders()) if setting else (module_folders(),):
        versions, wrong = _versions(python, folders)
        if versions:
            return Tools(python, mpiexec, folders, versions)
    return f"the solver 'slepc' cannot be used by {python} ({said}; {wrong}): {remedy}"


def _versions(python: str, folders: tuple[str, ...]) -> tuple[str, str]:
    """The versions that a Python imports, or why it does not."""
    try:
        done = subprocess.run(
            [python, "-c", LOOK], env=environment(folders), capture_output=True, text=True, timeout=STARTS, check=False
        )
    except (OSError, subprocess.SubprocessError) as error:
        return "", type(error).__name__
    lines = done.stderr.strip().splitlines()
    return (done.stdout.strip(), "") if done.returncode == 0 else ("", lines[-1] if lines else "it ended at once")


def module_folders(root: Path = Path("/")) -> tuple[str, ...]:
    """Where petsc4py and slepc4py lie: below PETSC_DIR and SLEPC_DIR, else where Debian puts them, newest first.

    Those with real numbers and integers of 32 bits come first: Laplacians are real.
    """
    found = []
    for package in ("petsc", "slepc"):
        set_ = os.environ.get(f"{package.upper()}_DIR")
        there = [Path(set_)] if set_ else []
        there += sorted(
            root.glob(f"usr/lib/{package}dir/*/*"),
            key=lambda at: ("real" in at.name, "64-real" not in at.name, _numbers(at.parent.name)),
            reverse=True,
        )
        found += [str(at / MODULES) for at in there if (at / MODULES / f"{package}4py").is_dir()][:1]
    return tuple(found)


def _numbers(name: str) -> list[int]:
    """The numbers in the name of a folder, such as petsc3.18."""
    return [int(part) for part in name.lstrip("abcdefghijklmnopqrstuvwxyz-").split(".") if part.isdigit()]


def environment(folders: tuple[str, ...]) -> dict[str, str]:
    """What ranks see: their own modules instead of ours, one thread each; what the user has set for Open MPI stays."""
    ours = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV")
    env = {name: value for name, value in os.environ.items() if name not in ours}
    env |= {"PYTHONPATH": os.pathsep.join(folders), "PYTHONDONTWRITEBYTECODE": "1"}
    env |= dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    wanted = {
        "OMPI_MCA_rmaps_base_oversubscribe": "1",  # more ranks than cores are slow, not wrong
        "OMPI_MCA_mpi_yield_when_idle": "1",  # a rank that waits does not take the core of one that works
        "OMPI_MCA_hwloc_base_binding_policy": "none",  # else two runs share the first cores and leave the others idle
    }
    if hasattr(os, "geteuid") and os.geteuid() == 0:  # in a container; mpiexec asks to be told twice
        wanted |= dict.fromkeys(("OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"), "1")
    return wanted | env


class RunningRanks:
    """Ranks that are running, spoken to in lines of JSON (see :mod:`tadropedge._old.spectrum.mpi.worker`)."""

    def __init__(self, process: subprocess.Popen[bytes], complaints: Any) -> None:
        self.process, self.complaints = process, complaints
        self.buffer = b""
        assert process.stdout is not None
        self.selector = DefaultSelector()
        self.selector.register(process.stdout, EVENT_READ)

    def ask(self, **words: Any) -> None:
        """Say what is to be done."""
        assert self.process.stdin is not None
        with suppress(BrokenPipeError):  # they have ended: why, they say when they are heard
            self.process.stdin.write((json.dumps(words) + "\n").encode())
            self.process.stdin.flush()

    def hear(self, word: str, patience: float = SILENCE) -> Any:
        """What they say under ``word``; the next thing they say must be that."""
        said = self.next(patience)
        if word not in said:
            raise RuntimeError(f"expected {word} of the ranks, heard {', '.join(said)}")
        return said[word]

    def next(self, patience: float = SILENCE) -> dict[str, Any]:
        """The next line; an error of theirs, their end or their silence is raised."""
        until = time.monotonic() + patience
        while True:
            line, mark, rest = self.buffer.partition(b"\n")
            if mark:
                self.buffer = rest
                said = self._read(line)
                if said is not None:
                    return said
                continue
            left = until - time.monotonic()
            if left <= 0 or not self.selector.select(left):
                raise RuntimeError(f"the ranks said nothing for {patience:g} s and were ended")
            assert self.process.stdout is not None
            new = os.read(self.process.stdout.fileno(), 2**16)
            if not new:
                raise RuntimeError(f"the ranks ended early: {self.last_words()}")
            self.buffer += new

    def _read(self, line: bytes) -> dict[str, Any] | None:
        """A line of ours; libraries may print others."""
        try:
            said = json.loads(line)
        except ValueError:
            return None
        if not isinstance(said, dict):
            return None
        if "error" in said:
            raise RuntimeError(said["error"])
        return said

    def last_words(self) -> str:
        """Why ``mpiexec`` gave up: of the lines that it or a rank left, the first that is no frame."""
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(ENDS)
        self.complaints.seek(0)
        lines = [line.strip() for line in self.complaints.read().decode(errors="replace").splitlines()]
        words = " ".join(line for line in lines if line and not line.startswith(("-----", "[")))
        code = self.process.returncode
        ended = f"by signal {-code}" if code is not None and code < 0 else f"with exit code {code}"
        return f"{words[:200] or 'no reason given'} ({ended})"

    def end(self) -> None:
        """End all of them: ``mpiexec`` is asked first, and passes it on."""
        self.selector.close()
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                with suppress(OSError):
                    pipe.close()
        if self.process.poll() is None:
            self.process.terminate()
        try:
            self.process.wait(ENDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


@contextmanager
def started(ranks: int, worker: Path = WORKER) -> Iterator[RunningRanks]:
    """Run ``mpiexec`` with so many ranks; however the block is left, none stays behind."""
    use = tools()
    # A session of its own: Ctrl-C reaches us alone, and we end the ranks.
    with tempfile.TemporaryFile() as complaints:
        process = subprocess.Popen(
            [use.mpiexec, "-n", str(ranks), use.python, str(worker)],
            env=environment(use.folders), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=complaints,
            start_new_session=sys.platform != "win32",
        )  # fmt: skip
        running = RunningRanks(process, complaints)
        try:
            yield running
            if process.stdin is not None:
                process.stdin.close()
            with suppress(subprocess.TimeoutExpired):
                process.wait(ENDS)
        finally:
            running.end()
