"""``tadropedge doctor``: what is installed and found here, and what to do about what is wrong."""

from __future__ import annotations

import importlib
import os
import platform
import shutil
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import typer

from tadropedge._old import __version__
from tadropedge._old.cli.options import Json_, Root_
from tadropedge._old.cli.report import show
from tadropedge._old.errors import one_line
from tadropedge._old.memory import free_bytes, size

CORE, LAB = "everything", "the command line, searches, reports and saved models"
PACKAGES = {  # as pip calls them: what they are imported as, the oldest that will do, what needs them
    "numpy": ("numpy", "1.26", CORE),
    "scipy": ("scipy", "1.11", CORE),
    "torch": ("torch", "2.6", CORE),
    "torch-geometric": ("torch_geometric", "2.6", CORE),
    "jinja2": ("jinja2", "3.1", LAB),
    "matplotlib": ("matplotlib", "3.8", LAB),
    "networkx": ("networkx", "3.0", LAB),
    "optuna": ("optuna", "4.0", LAB),
    "rich": ("rich", "13.0", LAB),
    "safetensors": ("safetensors", "0.4", LAB),
    "typer": ("typer", "0.12", LAB),
    "triton": ("triton", "0", "the fast kernels on a GPU"),
    "ray": ("ray", "2.60", "--engine ray"),
    "pymetis": ("pymetis", "2023.1", "smaller boundaries under torchrun"),
}
LITTLE_DISK = 1e9  # bytes
INSTALL = {CORE: "pip install tadropedge", LAB: "pip install 'tadropedge[lab]'"}


@dataclass
class Findings:
    """What was found, section by section, with what is wrong (``problems``) and what is only worth knowing (``notes``).

    A look that fails is a problem of its own and ends no other.
    """

    sections: dict[str, dict[str, str]] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def look(self, section: str, found: Callable[[Findings], Iterator[tuple[str, str]]]) -> None:
        """Add a section."""
        entries = self.sections.setdefault(section, {})
        try:
            for name, words in found(self):
                entries[name] = words
        except Exception as error:  # whatever is broken here, the rest is told
            words = " ".join(f"{type(error).__name__}: {error}".split())
            self.problems.append(f"{section}: {one_line(words)}")


def doctor_command(data_root: Root_ = None, as_json: Json_ = False) -> None:
    """What is installed here, which devices and datasets are found, and what to do about what is wrong.

    It changes nothing and needs no network. The exit code is 0 unless something that every command needs is broken.
    """
    found = Findings()
    found.look("versions", lambda _: _versions())
    found.look("packages", _packages)
    found.look("devices", _devices)
    found.look("ranks", lambda _: _ranks())
    found.look("data", lambda findings: _data(findings, data_root))
    found.look("disk", lambda findings: _disk(findings, data_root))
    found.look("a small graph", lambda _: _tried())
    document = {**found.sections, "problems": found.problems, "notes": found.notes, "well": not found.problems}
    if as_json or find_spec("rich") is not None:
        show(document, as_json, _page(found))
    else:
        print("\n".join(_plain(found)))
    if found.problems:
        raise typer.Exit(1)


def _versions() -> Iterator[tuple[str, str]]:
    yield "tadropedge", f"{__version__} in {Path(__file__).resolve().parents[2]}"
    yield "Python", f"{platform.python_version()} in {sys.executable}"
    yield "system", platform.platform()


def _packages(found: Findings) -> Iterator[tuple[str, str]]:
    missing: dict[str, list[str]] = {}
    for name, (module, least, needed) in PACKAGES.items():
        version = _version(name) if find_spec(module) is not None else None
        if version is None:
            yield name, f"missing; needed by {needed}"
            missing.setdefault(needed, []).append(name)
        elif _numbers(version) < _numbers(least):
            yield name, f"{version}, older than {least}; needed by {needed}"
            found.problems.append(f"{name} {version} is older than {least}: pip install --upgrade '{name}>={least}'")
        else:
            yield name, f"{version}, for {needed}"
    for needed, names in missing.items():
        if needed in INSTALL:
            found.problems.append(f"{', '.join(names)}: missing, needed by {needed}: {INSTALL[needed]}")


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:  # a copy without its metadata
        return str(getattr(importlib.import_module(PACKAGES[name][0]), "__version__", "0"))


def _numbers(version: str) -> tuple[int, ...]:
    """The leading whole numbers of a version.

    >>> _numbers("2.6.0+cu124"), _numbers("4.0rc1"), _numbers("2.10") > _numbers("2.6")
    ((2, 6, 0), (4, 0), True)
    """
    found = []
    for part in version.partition("+")[0].split("."):
        digits = "".join(part[: next((at for at, sign in enumerate(part) if not sign.isdigit()), len(part))])
        if not digits:
            break
        found.append(int(digits))
    return tuple(found)


def _devices(found: Findings) -> Iterator[tuple[str, str]]:
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    free = free_bytes()
    memory = "" if free is None else f", {size(free)} of memory free"
    yield "CPU", f"{cores} cores ({platform.machine()}){memory}"
    torch = importlib.import_module("torch")
    yield (
        "threads",
        f"{torch.get_num_threads()} of torch (OMP_NUM_THREADS {os.environ.get('OMP_NUM_THREADS', 'not set')})",
    )
    built = f"built for CUDA {torch.version.cuda}" if torch.version.cuda else "built for CPUs alone"
    if not torch.cuda.is_available():
        yield "GPU", f"none that torch can use ({built})"
        return
    for number in range(torch.cuda.device_count()):
        facts = torch.cuda.get_device_properties(number)
        left, _ = torch.cuda.mem_get_info(number)
        yield f"GPU {number}", f"{facts.name}, {size(facts.total_memory)}, {size(left)} free, torch {built}"
    if find_spec("triton") is None:
        found.notes.append("triton is missing, so trainings on a GPU are slower than they could be: pip install triton")


def _ranks() -> Iterator[tuple[str, str]]:
    """Whether the solver that runs under MPI can be used: it is wanted by few, so it is no problem where it cannot."""
    from tadropedge._old.spectrum.mpi.launch import MissingMPIError, tools

    try:
        use = tools()
    except MissingMPIError as error:
        yield "solver slepc", f"cannot be used: {error}"
    else:
        yield "solver slepc", f"can be used: {use.versions} of {use.python}, {use.mpiexec}"


def _data(found: Findings, root: Path | None) -> Iterator[tuple[str, str]]:
    from tadropedge._old.data.planetoid import NAMES, citation_files, data_root
    from tadropedge._old.registry import DATASETS

    folder, told = data_root(root), os.environ.get("TADROPEDGE_DATA")
    why = (
        "--data-root" if root is not None else "TADROPEDGE_DATA" if told else "the default; TADROPEDGE_DATA is not set"
    )
    yield "folder", f"{folder} ({why})"
    if (root is not None or told) and not folder.is_dir():
        fault = "is a file: name a folder" if folder.exists() else "is not there: make it or name another"
        found.problems.append(f"the folder of the datasets, '{folder}' ({why}), {fault}")
    for name in DATASETS:
        if name not in NAMES:
            yield name, "needs no files"
            continue
        files = citation_files(name, root)
        lacking = [path.name for path in files if not path.is_file()]
        if lacking and len(lacking) < len(files):
            yield name, f"incomplete: {', '.join(lacking)} missing, downloaded when {name} is first used"
        else:
            yield name, "not here, downloaded when it is first used" if lacking else "here"


def _disk(found: Findings, root: Path | None) -> Iterator[tuple[str, str]]:
    from tadropedge._old.data.planetoid import data_root

    for name, folder in (("current folder", Path.cwd()), ("folder of the datasets", data_root(root))):
        there = next(path for path in (folder, *folder.absolute().parents) if path.exists())
        free, writable = shutil.disk_usage(there).free, os.access(there, os.W_OK)
        yield name, f"{folder}: {size(free)} free{'' if writable else ', cannot be written'}"
        if free < LITTLE_DISK:
            found.notes.append(f"only {size(free)} are free in the {name}, '{folder}'")
        if not writable and name == "current folder":
            found.notes.append("the current folder cannot be written: name another with --out")


def _tried() -> Iterator[tuple[str, str]]:
    """Score a triangle with a tail: the effective resistances are 2/3 and 1."""
    from tadropedge._old.graph import Graph
    from tadropedge._old.scores.solve import edge_scores

    values = edge_scores(Graph.from_edge_index([[0, 1, 2, 2], [1, 2, 0, 3]]), "effective").tolist()
    if max(abs(value - expected) for value, expected in zip(values, (2 / 3, 2 / 3, 2 / 3, 1), strict=True)) > 1e-6:
        raise ArithmeticError(f"its edge scores are {values}, and not 2/3, 2/3, 2/3 and 1")
    yield "edge scores", "right"


def _last(found: Findings) -> Iterator[str]:
    yield from (f"note: {words}" for words in found.notes)
    yield from (f"wrong: {words}" for words in found.problems)
    if not found.problems:
        yield "all is well"


def _page(found: Findings) -> Iterator[Any]:
    from tadropedge._old.publish.terminal import facts

    for section, entries in found.sections.items():
        yield section
        yield facts({f"  {name}": words for name, words in entries.items()})
    yield from _last(found)


def _plain(found: Findings) -> Iterator[str]:
    for section, entries in found.sections.items():
        yield section
        yield from (f"  {name}  {words}" for name, words in entries.items())
    yield from _last(found)
