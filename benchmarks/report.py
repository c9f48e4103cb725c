"""What every benchmark prints and writes beside its numbers: where and on what they were measured."""

from __future__ import annotations

import json
import os
import platform
from pathlib import Path
from typing import Any

import numpy
import scipy
import torch
import torch_geometric

from tadropedge.provenance import commit, machine

ROOT = Path(__file__).resolve().parent.parent


def data_root() -> Path:
    """The folder with the citation sets and the larger graphs."""
    return Path(os.environ.get("TADROPEDGE_DATA", ROOT.parent / "shared" / "data"))


def run_info(device: str = "cpu") -> dict[str, Any]:
    """Commit, machine and versions: what depends on the run and not on the result."""
    return {
        "commit": commit(),
        "machine": machine(device),
        "versions": {
            "python": platform.python_version(),
            "torch": torch.__version__,
            "torch-geometric": torch_geometric.__version__,
            "numpy": numpy.__version__,
            "scipy": scipy.__version__,
        },
    }


def write(path: str | Path, rows: dict[str, list[dict[str, Any]]], device: str = "cpu") -> None:
    """Write the rows and, apart from them, the run."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({**rows, "run": run_info(device)}, indent=1) + "\n")
    print(f"written: {path}")
