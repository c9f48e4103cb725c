"""What Ray costs and gives: the overhead per batch, and the same search with 1 and 2 workers and without Ray.

Workers have one CPU each, and every batch the same trials wherever it is trained. The start of Ray and of its workers
is measured apart: it is paid once.

    python benchmarks/old/ray_engine.py [--batches N] [--epochs N] [--nodes N] [--out FILE]
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from typing import Any

import ray
import torch
from report import write

from tadropedge._old.data.synthetic import load_clusters
from tadropedge._old.search import Local, RayEngine, training_with
from tadropedge._old.search.engines import crew
from tadropedge._old.training.config import Outcome, Trial
from tadropedge._old.training.laboratory import Laboratory, laboratory_for

BATCH = 8


def nothing(trials: Sequence[Trial]) -> list[Outcome]:
    """A trainer that trains nothing: what is left is the overhead."""
    return []


def timed(train: Any, batches: Sequence[Sequence[Trial]]) -> float:
    """Seconds until the last of the batches is back."""
    start = time.perf_counter()
    for _ in crew().trained(train, batches):
        pass
    return time.perf_counter() - start


def measured(workers: int, laboratory: Laboratory, batches: Sequence[Sequence[Trial]]) -> dict[str, Any]:
    """One row; 0 workers is this process without Ray."""
    start = time.perf_counter()
    if workers:
        ray.init("local", num_cpus=workers, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    with training_with(RayEngine(batch=BATCH) if workers else Local()):
        timed(laboratory.train, batches[: max(1, 2 * workers)])  # imports, the data, compiled parts
        started = time.perf_counter() - start
        seconds = timed(laboratory.train, batches)
        timed(nothing, batches[:2])
        empty = timed(nothing, list(batches) * 10) / (10 * len(batches))
    ray.shutdown()
    return {
        "workers": workers or "without Ray",
        "start_seconds": round(started, 1),
        "overhead_ms_per_batch": round(1000 * empty, 2),
        "seconds": round(seconds, 2),
        "seconds_per_batch": round(seconds / len(batches), 3),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--batches", type=int, default=16)
    parser.add_argument("--epochs", type=int, default=50)
    parser.add_argument("--nodes", type=int, default=200, help="per cluster, of 7")
    parser.add_argument("--out", default="results/benchmarks/ray-cpu.json")
    options = parser.parse_args()
    torch.set_num_threads(1)  # as workers do
    laboratory = laboratory_for(load_clusters(clusters=7, nodes=options.nodes), hidden=32, epochs=options.epochs)
    trials = [Trial("dropedge", seed=seed) for seed in range(BATCH * options.batches)]
    batches = [trials[first : first + BATCH] for first in range(0, len(trials), BATCH)]
    rows = [measured(workers, laboratory, batches) for workers in (0, 1, 2)]
    for row in rows:
        row["speed"] = round(rows[1]["seconds"] / row["seconds"], 2)  # of one worker
    print(" ".join(f"{name:>22}" for name in rows[0]))
    for row in rows:
        print(" ".join(f"{value!s:>22}" for value in row.values()))
    write(options.out, {"ray_engine": rows})


if __name__ == "__main__":
    main()
