"""The label of a run: what depends on the run and not on the result."""

from __future__ import annotations

import os
import platform
import subprocess
from collections.abc import Iterable, Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

import torch

from tadropedge import __version__
from tadropedge.lab.reports.text import shown

ROOT = Path(__file__).resolve().parents[3]
MEASURED = ("tadropedge", "benchmarks")  # what decides a number; changed docs or results do not
FIRST = ("command", "commit", "machine", "versions", "seconds")  # shown in this order, the rest after them
MADE_BY = f"tadropedge {__version__}"


def run_label(
    device: str, command: str | None = None, seconds: float | None = None, packages: Iterable[str] = ()
) -> dict[str, Any]:
    """Command and seconds where they are known, commit, machine, device, and the versions of what decides numbers.

    >>> label = run_label("cpu", "tadropedge weights karate")
    >>> list(label), list(label["versions"])
    (['made_by', 'command', 'commit', 'machine', 'device', 'versions'], ['python', 'torch', 'numpy', 'scipy'])
    """
    versions = {name: metadata.version(name) for name in ("numpy", "scipy", *packages)}
    return {
        "made_by": MADE_BY,
        **({} if command is None else {"command": command}),
        **({} if seconds is None else {"seconds": round(seconds, 1)}),
        "commit": commit(),
        "machine": machine(device),
        "device": device,
        # torch names its build ("+cpu"), which its package does not
        "versions": {"python": platform.python_version(), "torch": str(torch.__version__), **versions},
    }


def run_lines(run: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The members of a run's label as words, the usual ones first.

    >>> run_lines({"device": "cpu", "commit": "0123abcd"})
    [('commit', '0123abcd'), ('device', 'cpu')]
    """
    order = [name for name in FIRST if name in run] + [name for name in run if name not in FIRST]
    return [(name.replace("_", " "), shown(run[name])) for name in order]


def commit(root: Path = ROOT) -> str:
    """The commit of a checkout, and whether its code was changed since; a copy is told by ``TADROPEDGE_COMMIT``."""
    if told := os.environ.get("TADROPEDGE_COMMIT"):
        return told
    if not (root / ".git").exists():
        return "not a checkout"
    head = _git(root, "rev-parse", "--short=12", "HEAD")
    return (head or "unknown") + (" with local changes" if _git(root, "status", "--porcelain", "--", *MEASURED) else "")


def machine(device: str) -> str:
    """Cores, threads and, where it was used, the GPU."""
    cpu = f"{os.cpu_count()} cores, {platform.machine()}, {torch.get_num_threads()} torch threads"
    return f"{torch.cuda.get_device_name()}; {cpu}" if device.startswith("cuda") else cpu


def _git(root: Path, *arguments: str) -> str:
    try:
        return subprocess.run(["git", "-C", str(root), *arguments], capture_output=True, text=True).stdout.strip()
    except OSError:  # no git here
        return ""
