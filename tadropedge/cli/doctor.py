"""``tadropedge doctor``: what is installed and found here, and what to do about what is wrong."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tadropedge import __version__
from tadropedge.cli.options import RunOptions
from tadropedge.cli.output import show

NEEDED = ("", "lab", "fast", "files")  # extras of which nothing may be missing: the core and the command line
EXTRAS = (*NEEDED, "ray")


def doctor(*, running: RunOptions = RunOptions()) -> int:
    """Look at what is installed here: packages, devices, folders of data; say what to do about what is wrong.

    It changes nothing and needs no network. The exit code is 1 if something that the command line needs is wrong.
    """
    running.begin()
    packages, problems = _packages()
    found: dict[str, dict[str, str]] = {"versions": _versions(), "packages": packages}
    for section, look in (("devices", _devices), ("data", _data)):
        try:
            found[section] = dict(look())
        except Exception as error:  # whatever is broken here, the rest is told
            problems.append(f"{section}: {type(error).__name__}: {' '.join(str(error).split())}")
    show({**found, "problems": problems}, running.json, _told(found, problems))
    return 1 if problems else 0


def _told(found: dict[str, dict[str, str]], problems: list[str]) -> Iterator[Any]:
    from tadropedge.lab.reports.text import facts

    for section, entries in found.items():
        yield section
        yield facts({f"  {name}": words for name, words in entries.items()})
    yield from (f"wrong: {problem}" for problem in problems)
    if not problems:
        yield "all is well"


def _versions() -> dict[str, str]:
    return {
        "tadropedge": f"{__version__} in {Path(__file__).resolve().parents[2]}",
        "Python": f"{platform.python_version()} in {sys.executable}",
        "system": platform.platform(),
    }


def _packages() -> tuple[dict[str, str], list[str]]:
    """What the package requires, and what of it is here."""
    from importlib import metadata

    from packaging.requirements import Requirement

    found: dict[str, str] = {}
    problems: list[str] = []
    try:
        required = metadata.requires("tadropedge") or []
    except metadata.PackageNotFoundError:
        return {}, ["tadropedge is not installed: pip install -e '.[lab]' in a checkout"]
    for requirement in map(Requirement, required):
        name, marker = requirement.name, requirement.marker
        extra = next((each for each in EXTRAS if marker is None or marker.evaluate({"extra": each})), None)
        if extra is None or name == "tadropedge":
            continue
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            found[name] = "missing"
            if extra in NEEDED:
                problems.append(f"{name} is missing: pip install 'tadropedge{f'[{extra}]' if extra else ''}'")
            continue
        if not requirement.specifier.contains(found[name], prereleases=True):
            wanted = f"{name}{requirement.specifier}"
            problems.append(f"{name} {found[name]} is not {wanted}: pip install --upgrade '{wanted}'")
    return found, problems


def _devices() -> Iterator[tuple[str, str]]:
    import torch

    from tadropedge._support.memory import free_bytes, size
    from tadropedge.operators.kernels import has_numba

    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    yield "CPU", f"{cores} cores ({platform.machine()}), {size(free_bytes())} of memory free"
    yield (
        "threads",
        f"{torch.get_num_threads()} of torch (OMP_NUM_THREADS {os.environ.get('OMP_NUM_THREADS', 'not set')})",
    )
    compiled = "compiled by numba" if has_numba() else "torch and SciPy, slower: pip install 'tadropedge[fast]'"
    yield "CPU kernels", compiled
    if not torch.cuda.is_available():
        built = f"built for CUDA {torch.version.cuda}" if torch.version.cuda else "built for CPUs alone"
        yield "GPU", f"none that torch can use ({built})"
    for number in range(torch.cuda.device_count()):
        yield f"GPU {number}", f"{torch.cuda.get_device_name(number)}, {size(free_bytes(f'cuda:{number}'))} free"


def _data() -> Iterator[tuple[str, str]]:
    from tadropedge.lab.data.pyg import SETS, cache_folder, data_folder, raw_folder

    told = "TADROPEDGE_DATA" if os.environ.get("TADROPEDGE_DATA") else "the default; TADROPEDGE_DATA names another"
    there = "" if data_folder().is_dir() else ", not there yet"
    yield "data", f"{data_folder()} ({told}{there})"
    yield "cache", str(cache_folder())
    here = [known.name for known in SETS.values() if raw_folder(known.name) is not None]
    yield "here", f"{len(here)} of {len(SETS)} datasets of PyTorch Geometric (tadropedge datasets lists them)"
