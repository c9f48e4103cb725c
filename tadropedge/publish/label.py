"""The label of a run: what depends on the run and not on the result."""

from __future__ import annotations

import platform
from importlib import metadata

import torch

from tadropedge.provenance import commit, machine

FIRST = ("command", "commit", "machine", "versions", "seconds")  # shown in this order, the rest after them


def run_label(device: str, command: str | None = None, seconds: float | None = None, *more: str) -> dict[str, object]:
    """Command, seconds, commit, machine, device and versions of Python, of the libraries and of the packages ``more``.

    >>> list(run_label("cpu", "tadropedge weights karate"))
    ['command', 'commit', 'machine', 'device', 'versions']
    """
    versions = {name: metadata.version(name) for name in ("numpy", "scipy", *more)}
    known = {
        "command": command,
        "seconds": None if seconds is None else round(seconds, 1),
        "commit": commit(),
        "machine": machine(device),
        "device": device,
        # torch names its build ("+cpu") where its package does not
        "versions": {"python": platform.python_version(), "torch": str(torch.__version__), **versions},
    }
    return {name: value for name, value in known.items() if value is not None}
