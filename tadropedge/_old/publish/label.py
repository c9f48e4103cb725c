"""The label of a run: what depends on the run and not on the result."""

from __future__ import annotations

import platform
from collections.abc import Iterable
from importlib import metadata

import torch

from tadropedge._old.provenance import commit, machine

FIRST = ("command", "commit", "machine", "versions", "seconds")  # shown in this order, the rest after them


def run_label(
    device: str, command: str | None = None, seconds: float | None = None, packages: Iterable[str] = ()
) -> dict[str, object]:
    """Command and seconds where they are known, commit, machine, device, and the versions of what decides numbers.

    >>> label = run_label("cpu", "tadropedge weights karate")
    >>> list(label), list(label["versions"])
    (['command', 'commit', 'machine', 'device', 'versions'], ['python', 'torch', 'numpy', 'scipy'])
    """
    versions = {name: metadata.version(name) for name in ("numpy", "scipy", *packages)}
    return {
        **({} if command is None else {"command": command}),
        **({} if seconds is None else {"seconds": round(seconds, 1)}),
        "commit": commit(),
        "machine": machine(device),
        "device": device,
        # torch names its build ("+cpu"), which its package does not
        "versions": {"python": platform.python_version(), "torch": str(torch.__version__), **versions},
    }
