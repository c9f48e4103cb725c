"""Where a number comes from: the commit and the machine that results are labelled with."""

from __future__ import annotations

import os
import platform
import subprocess
from collections.abc import Iterable
from pathlib import Path

import torch

ROOT = Path(__file__).resolve().parents[2]
MEASURED = ("tadropedge", "benchmarks")  # what decides a number; changed docs or results do not


def commit(root: Path = ROOT) -> str:
    """The commit of a checkout, and whether its code was changed since; a copy is told by ``TADROPEDGE_COMMIT``."""
    if told := os.environ.get("TADROPEDGE_COMMIT"):
        return told
    if not (root / ".git").exists():
        return "not a checkout"
    head = _git(root, "rev-parse", "--short=12", "HEAD")
    return (head or "unknown") + (" with local changes" if _git(root, "status", "--porcelain", "--", *MEASURED) else "")


def commits(found: Iterable[str | None]) -> str | None:
    """The commits behind a number that was made of several, each once, in their order; None where none is known.

    >>> commits(["094abb8381f2", None, "ca26fe9e159a", "094abb8381f2"]), commits([None])
    ('094abb8381f2, ca26fe9e159a', None)
    """
    return ", ".join(dict.fromkeys(filter(None, found))) or None


def machine(device: str) -> str:
    """Cores, threads and, where it was used, the GPU."""
    cpu = f"{os.cpu_count()} cores, {platform.machine()}, {torch.get_num_threads()} torch threads"
    return f"{torch.cuda.get_device_name()}; {cpu}" if device == "cuda" else cpu


def _git(root: Path, *arguments: str) -> str:
    try:
        return subprocess.run(["git", "-C", str(root), *arguments], capture_output=True, text=True).stdout.strip()
    except OSError:  # no git here
        return ""
