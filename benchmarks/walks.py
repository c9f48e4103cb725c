"""How far a reader walks: the files of ours that a PyG call, a command or an epoch enters, and what the PyG door loads.

A call enters a file when a function that stands in it runs. The first call on a graph scores it; later ones draw.

    python benchmarks/walks.py [--out FILE]
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from inspect import CO_OPTIMIZED  # of functions, but not of modules and classes that are being imported
from io import StringIO
from pathlib import Path
from types import FrameType

import torch
from report import ROOT, Row, table, write

import tadropedge
from tadropedge.cli.app import run
from tadropedge.lab import Candidate, Experiment, TrainingSettings, Trial, load
from tadropedge.lab.training.batch import Batch
from tadropedge.lab.training.fit import Run, run_epoch
from tadropedge.pyg import DropEdge, dropout_edge

PACKAGE = Path(tadropedge.__file__).parent
METHODS = (
    "dropedge", "degree-proportional", "cdf", "jaccard-proportional:weighted", "degree-proportional:pruned",
    "degree-proportional:connected",
)  # fmt: skip
MOST_FILES, MOST_MODULES, MOST_LINES = 9, 25, 4_500
COMMANDS = {
    "compare karate": (["compare", "karate", "--trials", "2", "--replicates", "2", "--epochs", "10"], 60),
    "weights karate": (["weights", "karate"], 35),
}
MOST_OF_EPOCH = 12
PROTOCOL = (
    "files of the package in which a function ran, by sys.setprofile, on two triangles that share an edge; modules of "
    "the package in sys.modules after the import in a fresh interpreter, and the lines of their files"
)
LOADED = """
import sys
from tadropedge.pyg import TADropEdge
print(*(module.__file__ for name, module in sys.modules.items() if name.partition(".")[0] == "tadropedge"), sep="\\n")
"""


def entered(call: Callable[[], object]) -> list[str]:
    """The files of the package in which a function runs during a call, in the order in which they are entered."""
    found: dict[str, None] = {}

    def look(frame: FrameType, event: str, argument: object) -> None:
        file = Path(frame.f_code.co_filename)
        if event == "call" and frame.f_code.co_flags & CO_OPTIMIZED and file.is_relative_to(PACKAGE):
            found[str(file.relative_to(PACKAGE))] = None

    sys.setprofile(look)
    try:
        call()
    finally:
        sys.setprofile(None)
    return list(found)


def walks() -> list[Row]:
    """Each method as a module, first and later, and ``dropout_edge``."""
    edge_index = torch.tensor([[0, 1, 1, 2, 2, 0, 2, 3, 3, 1], [1, 0, 2, 1, 0, 2, 3, 2, 1, 3]])
    calls: list[tuple[str, Callable[[], object]]] = []
    for method in METHODS:
        settings = {"q": 2} if method == "cdf" else {}
        share = {"keep_prob": 0.5} if method == "cdf" else {"keep_ratio": 0.75}
        drop = DropEdge(method, **share, **settings)
        calls += [(f"{method}, {when}", lambda drop=drop: drop(edge_index)) for when in ("first", "second", "later")]
    seeded = {"force_undirected": True, "seed": 0}
    calls += [("dropout_edge", lambda: dropout_edge(edge_index))]
    calls += [("dropout_edge(seed=0)", lambda: dropout_edge(edge_index, **seeded))]
    rows = []
    for name, call in calls:
        files = entered(call)
        rows.append({"call": name, "files": len(files), "which": " ".join(files)})
    return [row for row in rows if not row["call"].endswith("second")]


def commands() -> list[Row]:
    """Two commands, and an epoch of training a GCN."""
    rows = []
    for name, (words, most) in COMMANDS.items():
        with tempfile.TemporaryDirectory() as folder, redirect_stdout(StringIO()), redirect_stderr(StringIO()):
            files = entered(lambda words=words, folder=folder: run([*words, "--out", str(Path(folder) / "out")]))
        rows.append({"call": name, "files": len(files), "goal": most, "which": " ".join(files)})
    experiment = Experiment(data=load("clusters"), training=TrainingSettings(epochs=10))
    training = Run(Batch(experiment, [Trial(candidate=Candidate.parse("degree-proportional@0.5"))]))
    run_epoch(training)
    files = entered(lambda: run_epoch(training))
    return [*rows, {"call": "an epoch", "files": len(files), "goal": MOST_OF_EPOCH, "which": " ".join(files)}]


def loaded() -> list[Row]:
    """The modules of the package that the import of the PyG door brings, with their lines."""
    command = [sys.executable, "-c", LOADED]
    files = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT).stdout.split()
    return [
        {"module": str(Path(file).relative_to(PACKAGE)), "lines": len(Path(file).read_text().splitlines())}
        for file in files
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, help="file for the numbers (default results/benchmarks/walks.json)")
    options = parser.parse_args()
    calls, modules = walks(), loaded()
    later = max(row["files"] for row in calls if not row["call"].endswith("first"))
    lines = sum(row["lines"] for row in modules)
    for row in calls:
        print(f"{row['files']:3d}  {row['call']}: {row['which']}")
    print(table(modules))
    print(f"\na later call enters at most {later} files (goal {MOST_FILES})")
    print(f"{len(modules)} modules (goal {MOST_MODULES}) of {lines:,} lines (goal {MOST_LINES:,}) are loaded")
    longer = commands()
    for row in longer:
        print(f"{row['call']} enters {row['files']} files (goal {row['goal']})")
    summary = {"files_of_a_later_call": later, "modules": len(modules), "lines": lines}
    tables = {"summary": summary, "calls": calls, "commands": longer, "loaded": modules}
    write("walks", PROTOCOL, tables, options.out)


if __name__ == "__main__":
    main()
