"""The label of a run: what depends on the run and not on the result."""

from __future__ import annotations

import platform
from collections.abc import Iterable
from importlib import metadata

import torch

from tadropedge.provenance import commit, machine

FIRST = ("command", "commit", "machine", "versions", "seconds")  # shown in this order, the rest after them


def run_label(
    device: str, command: str | None = None, seconds: float | None = None, packages: Iterable[str] = ()
) -> dict[str, object]:
    """Command and seconds where they are known, commit, machine, device, versions of Python and of what decides numbers.

    >>> label = run_label("cpu", "tadropedge weights karate")
    >>> list(label), list(label["versions"])
    (['command', 'commit', 'machine', 'device', 'versions'], ['python', 'torch', 'numpy', 'scipy'])
    """
    given = {"command": command, "seconds": None if seconds is None else round(seconds, 1)}
    versions = {
        "python": platform.python_version(),
        "torch": str(torch.__version__),  # names its build ("+cpu"), which its package does not
        **{name: metadata.version(name) for name in ("numpy", "scipy", *packages)},
    }
    where = {"commit": commit(), "machine": machine(device), "device": device, "versions": versions}
    return {name: value for name, value in given.items() if value is not None} | where
