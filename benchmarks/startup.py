"""How long a user waits before anything happens: imports and short answers of the command line, beside torch's import.

The best of five fresh processes each, which take turns; the start of Python itself is included.
"""

from __future__ import annotations

import os
import subprocess
import sys
from argparse import Namespace
from collections.abc import Iterator

from benchmarks.frame import ROOT, Row, run, timed

COMMAND = ["-m", "tadropedge"]
CASES = {
    "python": ["-c", ""],
    "import torch": ["-c", "import torch"],
    "import torch_geometric": ["-c", "import torch_geometric"],
    "import tadropedge": ["-c", "import tadropedge"],
    "first use of tadropedge.Graph": ["-c", "import tadropedge; tadropedge.Graph.from_edge_index([[0], [1]])"],
    "from tadropedge.pyg import DropEdge": ["-c", "from tadropedge.pyg import DropEdge"],
    "from tadropedge.lab import train": ["-c", "from tadropedge.lab import train"],
    "tadropedge --help": [*COMMAND, "--help"],
    "tadropedge --version": [*COMMAND, "--version"],
    "tadropedge compare --help": [*COMMAND, "compare", "--help"],
    "tadropedge datasets": [*COMMAND, "datasets"],
    "tadropedge trian (a typo)": [*COMMAND, "trian"],
    "tadropedge train karat (a typo)": [*COMMAND, "train", "karat"],
}


def starts(options: Namespace) -> Iterator[Row]:
    """Seconds of every case, and CPU seconds, which other work on the machine changes less."""
    runs = 1 if options.quick else 5
    wall: dict[str, list[float]] = {case: [] for case in CASES}
    work: dict[str, list[float]] = {case: [] for case in CASES}
    for _ in range(runs):
        for case, words in CASES.items():
            before = os.times()
            command = [sys.executable, *words]
            took = timed(lambda command=command: subprocess.run(command, cwd=ROOT, capture_output=True, check=False))
            after = os.times()
            wall[case].append(took)
            work[case].append(sum(after[2:4]) - sum(before[2:4]))
    torch = min(wall["import torch"])
    for case, seconds in wall.items():
        row: Row = {"case": case, "seconds": min(seconds), "cpu_seconds": min(work[case])}
        yield row | {"beyond_torch_s": min(seconds) - torch, "runs": runs}


TABLES = {"startup": starts}

if __name__ == "__main__":
    run(TABLES)
