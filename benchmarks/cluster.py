"""More than one process: what Ray costs and gives, and mini-batches whose nodes torchrun's processes share.

* ``cluster-ray``: the same batches of trials without Ray and with 1 and 2 workers of one CPU each; the start of Ray and
  of its workers is measured apart; ``overhead_ms``: per batch, of batches in which nothing is trained;
* ``cluster-torchrun``: an epoch of mini-batches on 1 and 2 processes of one thread each, without evaluation.

``speed``: of one worker or process.
"""

from __future__ import annotations

import json
import math
import subprocess
import sys
import time
from argparse import Namespace
from collections.abc import Callable, Iterator, Sequence

import torch

from benchmarks.epoch import Turns
from benchmarks.frame import ROOT, Row, installed, name_of, run, timed
from benchmarks.graphs import dataset_of, random_graph
from tadropedge.lab import Candidate, Experiment, MiniBatch, Outcome, TrainingSettings, Trial, load
from tadropedge.lab.search.executors import Executor, Local
from tadropedge.lab.search.ray import Ray
from tadropedge.lab.training.ranks import joined_ranks
from tadropedge.lab.training.trainer import Trainer

BATCH = 8  # trials
FEATURES, CLASSES = 128, 16


def nothing(trials: Sequence[Trial]) -> list[Outcome]:
    """A trainer that trains nothing: what is left is the overhead."""
    return []


def workers(options: Namespace) -> Iterator[Row]:
    """Batches here and on Ray."""
    if options.device == "cuda" or not installed("ray", "cluster-ray"):
        return
    count, nodes, epochs = (2, 20, 5) if options.quick else (6, 200, 40)
    experiment = Experiment(
        data=load("clusters", clusters=7, nodes=nodes), hidden=32, training=TrainingSettings(epochs=epochs)
    )
    trials = [Trial(candidate=Candidate.parse("dropedge@0.5"), seed=seed) for seed in range(BATCH * count)]
    batches = [trials[first : first + BATCH] for first in range(0, len(trials), BATCH)]
    torch.set_num_threads(1)  # as workers have
    one = None
    for number in (0, 1, 2):
        start = time.perf_counter()
        if number:
            with Ray(workers=number) as executor:
                row = on(executor, Trainer(experiment).train, batches, start)
        else:
            row = on(Local(), Trainer(experiment).train, batches, start)
        one = row["seconds"] if number == 1 else one
        speed = one / row["seconds"] if one else None
        yield {"workers": number or "without Ray", "batches": count, **row, "speed": speed}


def on(executor: Executor, train: Callable[..., list[Outcome]], batches: list[list[Trial]], start: float) -> Row:
    """Seconds of the start, with the first batches, and of all batches after it."""
    list(executor.map(train, batches[: 2 * executor.workers]))  # imports, the data
    started = time.perf_counter() - start
    seconds = timed(lambda: list(executor.map(train, batches)))
    list(executor.map(nothing, batches[:2]))
    many = [*batches] * 10
    empty = timed(lambda: list(executor.map(nothing, many))) / len(many)
    return {"start_s": started, "overhead_ms": 1e3 * empty, "seconds": seconds}


def job(quick: bool, device: str) -> Row:
    """What each process of torchrun runs."""
    torch.set_num_threads(1)
    nodes, edges, size, steps = (1_000, 10_000, 64, 4) if quick else (100_000, 1_000_000, 1_024, 8)
    with joined_ranks(device) as ranks:
        here = f"cuda:{ranks.rank % torch.cuda.device_count()}" if device == "cuda" else device
        data = dataset_of(random_graph(nodes, edges), FEATURES, CLASSES, split=(size * steps, 200, 200))
        settings = TrainingSettings(epochs=12, mini_batch=MiniBatch(size=size, fanout=(15, 10)))
        experiment = Experiment(data=data, hidden=128, training=settings, device=here)
        turns = Turns({}, seconds=math.inf, turn=1, evaluated=False)  # no rank may end before the others
        Trainer(experiment, ranks=ranks).train([Trial(candidate=Candidate.parse("dropedge@0.7"))], [turns])
    return {"edges": data.graph.num_edges, "epoch_s": turns.medians()["ours"]}


def ranks(options: Namespace) -> Iterator[Row]:
    """Mini-batches over the processes of torchrun, which all run :func:`job`."""
    arguments = json.dumps({"quick": options.quick, "device": options.device})
    one = None
    for count in (1, 2) if options.device == "cpu" else range(1, torch.cuda.device_count() + 1):
        command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(count)]
        command += ["-m", "benchmarks.frame", name_of(job), arguments]
        done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT)
        row = json.loads(done.stdout.splitlines()[-1])
        one = one or row["epoch_s"]
        yield {"processes": count, **row, "speed": one / row["epoch_s"]}


TABLES = {"cluster-ray": workers, "cluster-torchrun": ranks}

if __name__ == "__main__":
    run(TABLES)
