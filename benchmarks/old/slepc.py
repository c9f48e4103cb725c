"""The solver ``slepc`` on 1 and more ranks beside our own ladder: time, memory of each rank, and how scores agree.

Every run has its own process. Its seconds are those of finding the modes of the largest component, the start of the
ranks and the file they read included; memory is the peak of a process: of ours, which reads the graph and checks the
answer, and of each rank. A score differs from that of our ladder by at most what the last column says.

    python benchmarks/old/slepc.py [--graphs email-enron com-dblp] [--ranks 1 2] [--limit 600] [--out FILE]
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from report import data_root, write

from tadropedge._old import Graph
from tadropedge._old.blocks import Block, blocks
from tadropedge._old.scores.aggregate import modal_scores
from tadropedge._old.spectrum import LAPLACIANS, SOLVERS
from tadropedge._old.spectrum.ladder import Check, execute
from tadropedge._old.spectrum.mpi import solver
from tadropedge._old.spectrum.plan import Wish, plan

FILES = {"email-enron": "email-enron.txt.gz", "com-dblp": "com-dblp.tsv.gz"}
Q = 7


def largest(name: str) -> Block:
    """The largest component of a graph."""
    *_, block = blocks(Graph.from_file(data_root() / "graphs" / FILES[name]))
    return block


def measured(name: str, laplacian: str, ranks: int, scores: str) -> dict[str, Any]:
    """One run in this process; 0 ranks stand for our ladder."""
    found: list[solver.Found] = []

    def recorded(*asked: Any) -> Any:
        found.append(solver.solve_on_ranks(*asked))
        return found[-1].pairs

    SOLVERS["slepc"] = recorded
    block = largest(name)
    wish = Wish(q=Q, laplacian=laplacian, solver="slepc" if ranks else "auto", ranks=ranks or None)
    begun = time.perf_counter()
    (step,) = plan([block], wish)
    modes = execute(step)
    seconds = time.perf_counter() - begun
    assert step.system is not None
    np.save(scores, modal_scores(modes))
    return {
        "seconds": seconds,
        "solver": modes.solver,
        "steps": [one.steps for one in found],
        "angle": float(modes.error[0]),
        "allowed": Check(step, step.system).modes(modes.values[0])[2],
        "process": 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss,
        "memory": [int(peak) for peak in np.max([one.memory for one in found], axis=0)] if found else [],
    }


def alone(name: str, laplacian: str, ranks: int, scores: Path, limit: float) -> dict[str, Any]:
    """The same in a process of its own."""
    command = [sys.executable, __file__, "--one", name, laplacian, str(ranks), str(scores)]
    row = {"graph": name, "laplacian": laplacian, "ranks": ranks, "load": os.getloadavg()[0]}
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=limit, check=True)
    except subprocess.TimeoutExpired:
        return {**row, "error": f"> {limit:g} s"}
    except subprocess.CalledProcessError as error:
        return {**row, "error": error.stderr.strip().splitlines()[-1]}
    return {**row, **json.loads(done.stdout.splitlines()[-1])}


def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--graphs", nargs="+", choices=FILES, default=list(FILES))
    parser.add_argument("--laplacians", nargs="+", choices=LAPLACIANS, default=list(LAPLACIANS))
    parser.add_argument("--ranks", nargs="+", type=int, default=[1, 2])
    parser.add_argument("--limit", type=float, default=600)
    parser.add_argument("--out", type=Path, default=Path("results/benchmarks/slepc.json"))
    parser.add_argument("--one", nargs=4, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        name, laplacian, ranks, scores = given.one
        print(json.dumps(measured(name, laplacian, int(ranks), scores)))
        return
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for name in given.graphs:
            for laplacian in given.laplacians:
                for ranks in (0, *given.ranks):
                    row = alone(name, laplacian, ranks, Path(folder, f"{ranks}.npy"), given.limit)
                    if ranks and "error" not in row and Path(folder, "0.npy").exists():
                        ours, theirs = (np.load(Path(folder, f"{which}.npy")) for which in (0, ranks))
                        row["differ"] = float(abs(ours - theirs).max())
                    rows.append(row)
                    print(json.dumps(row), flush=True)
    write(given.out, {"slepc": rows})


if __name__ == "__main__":
    main()
