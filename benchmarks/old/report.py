"""What every benchmark prints and writes beside its numbers: where and on what they were measured."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from tadropedge._old.publish.label import run_label

ROOT = Path(__file__).resolve().parents[2]


def data_root() -> Path:
    """The folder with the citation sets and the larger graphs."""
    return Path(os.environ.get("TADROPEDGE_DATA", ROOT.parent / "shared" / "data"))


def write(path: str | Path, rows: dict[str, list[dict[str, Any]]], device: str = "cpu") -> None:
    """Write the rows and, apart from them, the label of the run, with the version of the peer."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({**rows, "run": run_label(device, packages=("torch-geometric",))}, indent=1) + "\n")
    print(f"written: {path}")
