"""Seconds and peak memory of one training of each method on Cora and PubMed, beside our two-layer GCN, in one run.

Every training runs in its own process, so that its peak memory is its own, with the defaults of its method: an epoch
is a pass over the training nodes (at most four mini-batches) and an evaluation on the whole graph. The first epoch,
which sets up and compiles, is timed separately. On a CPU the peak is that of the process with PyTorch and the dataset,
and ``base_mb`` is what it holds before the training; on a GPU it is what PyTorch allocated. ``seconds_400_scaled`` is
what 400 epochs would take.

    python benchmarks/old/baselines.py [--device cuda] [--epochs 50] [--out FILE] [--quick]
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from report import data_root, write

from tadropedge._old.data import load_dataset
from tadropedge._old.training.config import Architecture, Trial
from tadropedge._old.training.laboratory import Laboratory

GRAPHS = ("cora", "pubmed")
METHODS = ("original", "graphsage", "fastgcn", "as-gcn", "neuralsparse", "ptdnet")


def peak_mb() -> float:
    """The most memory that this process has held."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def measured(graph: str, method: str, device: str, epochs: int, root: Path) -> dict[str, Any]:
    """One training in this process."""
    dataset = load_dataset(graph, root=root).to(device)
    cuda = device == "cuda"
    base = torch.cuda.memory_allocated() / 2**20 if cuda else peak_mb()
    times = [time.perf_counter()]

    def tick(done: int, total: int) -> None:
        if cuda:
            torch.cuda.synchronize()
        times.append(time.perf_counter())

    laboratory = Laboratory(dataset, Architecture(hidden=128), epochs=epochs, progress=tick)
    [outcome] = laboratory.train([Trial(method)])
    later = (times[-1] - times[1]) / max(1, len(times) - 2)
    return {
        "graph": graph,
        "device": device,
        "method": method,
        "epochs": epochs,
        "seconds": round(times[-1] - times[0], 2),
        "milliseconds_an_epoch": round(1e3 * later, 2),
        "seconds_400_scaled": round(400 * later, 1),
        "base_mb": round(base),
        "peak_mb": round(torch.cuda.max_memory_allocated() / 2**20 if cuda else peak_mb()),
        "test_accuracy": round(outcome.kept["test_accuracy"], 4),
    }


def rows(device: str, epochs: int, root: Path, quick: bool) -> Iterator[dict[str, Any]]:
    """Every training in its own process; ``quick`` tries the code at tiny size."""
    for graph in GRAPHS[:1] if quick else GRAPHS:
        reference = None
        for method in METHODS:
            command = [sys.executable, __file__, "--one", graph, method, "--device", device, "--data-root", str(root)]
            done = subprocess.run([*command, "--epochs", str(epochs)], check=True, capture_output=True, text=True)
            row = json.loads(done.stdout.splitlines()[-1])
            reference = reference or row["milliseconds_an_epoch"]
            yield {**row, "times_our_gcn": round(row["milliseconds_an_epoch"] / reference, 2)}


def line(row: dict[str, Any]) -> str:
    """A row for the terminal."""
    front = "{graph:7s} {device}  {method:12s} {milliseconds_an_epoch:9.1f} ms an epoch  ".format(**row)
    return front + "{times_our_gcn:6.2f} times our GCN  peak {peak_mb:6d} MB (before: {base_mb} MB)".format(**row)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--epochs", type=int, default=50)
    parser.add_argument("--data-root", type=Path, default=data_root())
    parser.add_argument("--out", help="file for the numbers (default results/benchmarks/baselines-DEVICE.json)")
    parser.add_argument("--quick", action="store_true", help="try all code at tiny size; writes only with --out")
    parser.add_argument("--one", nargs=2, metavar=("GRAPH", "METHOD"), help="one training, printed as JSON")
    options = parser.parse_args()
    epochs = 3 if options.quick else options.epochs
    if options.one:
        print(json.dumps(measured(*options.one, options.device, epochs, options.data_root)))
        return
    found = []
    for row in rows(options.device, epochs, options.data_root, options.quick):
        found.append(row)
        print(line(row), flush=True)
    if options.out or not options.quick:
        write(
            options.out or f"results/benchmarks/baselines-{options.device}.json", {"baselines": found}, options.device
        )


if __name__ == "__main__":
    main()
