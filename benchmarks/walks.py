"""How far a reader walks: the files of ours that a PyG call, a command or an epoch enters, and what the PyG door loads.

* ``walks``: files of the package in which a function ran, by ``sys.setprofile``. PyG's calls see two triangles that
  share an edge: the first call on a graph scores it, later ones draw. ``most`` is the goal.
* ``walks-loaded``: modules of the package after the import of the PyG door in a fresh interpreter, and their lines.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from argparse import Namespace
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from inspect import CO_OPTIMIZED  # of functions, but not of modules and classes that are being imported
from io import StringIO
from pathlib import Path
from types import FrameType
from typing import Any

import torch

import tadropedge
from benchmarks.frame import ROOT, Row, run
from tadropedge.cli.app import run as command
from tadropedge.lab import Callback, Candidate, Experiment, TrainingSettings, Trial, load, train
from tadropedge.pyg import DropEdge, dropout_edge

PACKAGE = Path(tadropedge.__file__).parent
METHODS = (
    "dropedge", "degree-proportional", "cdf", "jaccard-proportional:weighted", "degree-proportional:pruned",
    "degree-proportional:connected",
)  # fmt: skip
MOST_FILES, MOST_OF_EPOCH, MOST_MODULES, MOST_LINES = 9, 12, 25, 4_500
COMMANDS = {
    "compare karate": (["compare", "karate", "--trials", "2", "--replicates", "2", "--epochs", "10"], 60),
    "weights karate": (["weights", "karate"], 35),
}
LOADED = """
import sys
from tadropedge.pyg import TADropEdge
print(*(module.__file__ for name, module in sys.modules.items() if name.partition(".")[0] == "tadropedge"), sep="\\n")
"""


class Walk(Callback):
    """The files of the package in which a function runs during a block, or during the third epoch of a training."""

    def __init__(self) -> None:
        self.found: dict[str, None] = {}

    def __enter__(self) -> None:
        sys.setprofile(self.look)

    def __exit__(self, *error: object) -> None:
        sys.setprofile(None)

    def look(self, frame: FrameType, event: str, argument: object) -> None:
        file = Path(frame.f_code.co_filename)
        if event == "call" and frame.f_code.co_flags & CO_OPTIMIZED and file.is_relative_to(PACKAGE):
            self.found[str(file.relative_to(PACKAGE))] = None

    def epoch(self, run: Any) -> None:
        if run.epoch in (2, 3):
            sys.setprofile(self.look if run.epoch == 2 else None)

    def row(self, call: str, most: int | None) -> Row:
        return {"call": call, "files": len(self.found), "most": most, "which": " ".join(self.found)}


def calls(options: Namespace) -> Iterator[Row]:
    """Each method as a module, ``dropout_edge``, commands, and an epoch of a GCN."""
    edge_index = torch.tensor([[0, 1, 1, 2, 2, 0, 2, 3, 3, 1], [1, 0, 2, 1, 0, 2, 3, 2, 1, 3]])
    for method in METHODS:
        drop = DropEdge(method, **({"q": 2, "keep_prob": 0.5} if method == "cdf" else {"keep_ratio": 0.75}))
        for when, most in (("first", None), ("second", None), ("later", MOST_FILES)):
            with (walk := Walk()):
                drop(edge_index)
            if when != "second":
                yield walk.row(f"{method}, {when}", most)
    for name, given in (("dropout_edge", {}), ("dropout_edge(seed=0)", {"force_undirected": True, "seed": 0})):
        with (walk := Walk()):
            dropout_edge(edge_index, **given)
        yield walk.row(name, MOST_FILES)
    for name, (words, most) in COMMANDS.items():
        quiet = redirect_stdout(StringIO()), redirect_stderr(StringIO())
        with tempfile.TemporaryDirectory() as folder, quiet[0], quiet[1], (walk := Walk()):
            command([*words, "--out", str(Path(folder) / "out")])
        yield walk.row(name, most)
    experiment, walk = Experiment(data=load("clusters"), training=TrainingSettings(epochs=10)), Walk()
    train(experiment, [Trial(candidate=Candidate.parse("degree-proportional@0.5"))], [walk])
    yield walk.row("an epoch", MOST_OF_EPOCH)


def loaded(options: Namespace) -> Iterator[Row]:
    """The modules that the import of the PyG door brings."""
    answer = subprocess.run([sys.executable, "-c", LOADED], capture_output=True, text=True, check=True, cwd=ROOT)
    files = [Path(file) for file in answer.stdout.split()]
    lines = [len(file.read_text(encoding="utf-8").splitlines()) for file in files]
    yield {"module": f"all {len(files)} (at most {MOST_MODULES})", "lines": sum(lines), "most": MOST_LINES}
    for file, count in zip(files, lines, strict=True):
        yield {"module": str(file.relative_to(PACKAGE)), "lines": count}


TABLES = {"walks": calls, "walks-loaded": loaded}

if __name__ == "__main__":
    run(TABLES)
