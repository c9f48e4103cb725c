"""Training with edge dropping and evaluation each epoch: ours against PyTorch Geometric's, in one run.

PyTorch Geometric's is written in two ways (``peer.py``), and the faster one counts; ``pyg_way`` names it.

On a CPU: one trial of a two-layer GCN; the two take turns in blocks of a few epochs, and the ratio is that of the
median seconds per epoch. ``products_milliseconds`` are those of the matrix products of such an epoch alone, without
coins, operators, dropout, losses and Adam: a bound. On a GPU: 100 trials of 400 epochs at once, against
PyTorch Geometric training them one by one, of which 40 epochs of one trial are measured and scaled
(``pyg_seconds_scaled``). Ours also with ``precision="high"``, where the GPU rounds the factors of dense products to
TF32; PyTorch Geometric, whose time goes into launching kernels, in float32 only.

    python benchmarks/old/training.py [--device cuda] [--out FILE] [--quick]
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Iterator
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import torch
from peer import WAYS, pyg_epoch
from report import data_root, write

from tadropedge._old.data import Dataset, load_dataset
from tadropedge._old.search.space import Space
from tadropedge._old.shift import shift_operator
from tadropedge._old.sparse import KeptProducts, multiply
from tadropedge._old.training.batch import Batch, Course
from tadropedge._old.training.config import Architecture, Trial
from tadropedge._old.training.laboratory import PRECISIONS, Laboratory, make_task

GRAPHS = ("cora", "citeseer", "pubmed")
HIDDEN = 128
BLOCK = 5  # epochs that one side runs before it is the other's turn
ONE = Trial("dropedge", learning_rate=0.01, weight_decay=5e-4, dropout=0.5, keep_prob=0.7)
METHODS = ("original", "dropedge", "cutoff", "division", "cdf")
SPACE = Space.of(
    {
        "learning_rate": {"uniform": [0.001, 0.01], "step": 0.001},
        "weight_decay": [1e-5, 5e-5, 1e-4, 5e-4, 1e-3, 5e-3],
        "dropout": [0.3, 0.5, 0.8],
        "keep_prob": {"uniform": [0.05, 0.95], "step": 0.05},
        "normalization": ["gcn", "first-order", "gcn-residual", "random-walk"],
    }
)


def seconds(call: Callable[[], object], device: str) -> float:
    """How long a call takes, work left on the GPU included."""
    if device == "cuda":
        torch.cuda.synchronize()
    start = time.perf_counter()
    call()
    if device == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter() - start


def medians(calls: list[Callable[[], object]], blocks: int, device: str) -> list[float]:
    """Median seconds of each call; they take turns, so noise affects all of them; the first block of each warms up."""
    times: list[list[float]] = [[] for _ in calls]
    for block in range(blocks + 1):
        for place, call in enumerate(calls):
            block_times = [seconds(call, device) for _ in range(BLOCK)]
            if block > 0:
                times[place] += block_times
    return [statistics.median(each) for each in times]


def one_trial(dataset: Dataset, blocks: int, layers: int = 2) -> dict[str, Any]:
    """(a) One trial on the CPU."""
    task = make_task(dataset, [dataset.split])
    architecture = Architecture(layers=layers, hidden=HIDDEN)
    epochs = BLOCK * (blocks + 1)
    batch = Batch(task, architecture, [ONE], [0], Course(epochs=epochs))
    peers = [pyg_epoch(dataset, ONE, HIDDEN, layers, way) for way in WAYS]
    ours, least, *others = medians([batch.run_epoch, products(dataset), *peers], blocks, "cpu")
    theirs, way = min(zip(others, WAYS, strict=True))
    return {
        "graph": dataset.name,
        "device": "cpu",
        "layers": layers,
        "trials": 1,
        "milliseconds_an_epoch": round(1e3 * ours, 2),
        "pyg_milliseconds": round(1e3 * theirs, 2),
        "pyg_way": way,
        "pyg_usual_milliseconds": round(1e3 * others[WAYS.index("usual")], 2),
        "products_milliseconds": round(1e3 * least, 2),
        "times_faster": round(theirs / ours, 2),
        "epochs_measured": BLOCK * blocks,
    }


def products(dataset: Dataset) -> Callable[[], object]:
    """The matrix products of an epoch of a two-layer GCN: features once, for what is evaluated is trained on next."""
    nodes, classes = dataset.graph.num_nodes, dataset.num_classes
    features, shift = KeptProducts.of(dataset.features), shift_operator(dataset.graph)
    places, values = shift.pattern.places, shift.values[None]
    shapes = ((dataset.num_features, HIDDEN), (HIDDEN, classes), (nodes, HIDDEN), (nodes, classes))
    first, second, wide, narrow = (torch.randn(1, *shape) for shape in shapes)

    def call() -> None:
        features.product(first, None)
        features.gradient(wide)
        for _ in range(3):  # training, its gradient, evaluation
            multiply(places, values, wide)
            multiply(places, values, narrow)
        for one, other in ((wide, second), (wide, second), (narrow, second.mT), (wide.mT, narrow)):
            torch.bmm(one, other)

    return call


def mixed_trials(count: int) -> list[Trial]:
    """Trials that differ in everything a batch allows: method, rates, dropout, keep_prob, normalisation and seed."""
    return [Trial.of(METHODS[i % len(METHODS)], seed=i, **SPACE.draw(seed=0, i=i)) for i in range(count)]


def many_trials(dataset: Dataset, layers: int, count: int, epochs: int) -> Iterator[dict[str, Any]]:
    """(b) Many trials at once, set-up included; edge scores are computed before and timed separately."""
    device = dataset.device.type
    architecture = Architecture(layers=layers, hidden=HIDDEN)
    trials = mixed_trials(count)
    measured = min(40, epochs)
    theirs, way = min((pyg_seconds(dataset, layers, way, measured) * count * epochs, way) for way in WAYS)
    for precision in PRECISIONS:
        lab = Laboratory(dataset, architecture, epochs=epochs, precision=precision)
        weighing = seconds(partial(lab.scores, "aggregate"), device)
        lab.epochs = 3
        lab.train(trials)  # compiles the kernels
        lab.epochs = epochs
        ours = seconds(partial(lab.train, trials), device)
        yield {
            "graph": dataset.name,
            "device": device,
            "layers": layers,
            "precision": precision,
            "trials": count,
            "epochs": epochs,
            "trials_at_once": min(count, lab.fitting()),
            "seconds": round(ours, 3),
            "milliseconds_an_epoch": round(1e3 * ours / epochs, 3),
            "weights_seconds": round(weighing, 3),
            "pyg_seconds_scaled": round(theirs, 1),
            "pyg_way": way,
            "pyg_epochs_measured": measured,
            "times_faster": round(theirs / ours, 1),
        }


def pyg_seconds(dataset: Dataset, layers: int, way: str, epochs: int) -> float:
    """Seconds of one epoch of one trial after a warm-up."""
    peer = pyg_epoch(dataset, ONE, HIDDEN, layers, way)
    for _ in range(min(10, epochs)):
        peer()
    return seconds(lambda: [peer() for _ in range(epochs)], dataset.device.type) / epochs


def measured_rows(device: str, root: Path, quick: bool) -> Iterator[dict[str, Any]]:
    """Every row that belongs to a device; ``quick`` tries all code at tiny size; its numbers mean nothing."""
    names = GRAPHS[:1] if quick else GRAPHS
    datasets = [load_dataset(name, root=root).to(device) for name in names]
    if device == "cpu":
        yield from (one_trial(dataset, blocks=1 if quick else 12) for dataset in datasets)
    if device == "cuda" or quick:
        size = (4, 4) if quick else (100, 400)
        for dataset, layers in product(datasets, (2, 3)):
            yield from many_trials(dataset, layers, *size)


def line(row: dict[str, Any]) -> str:
    """A row for the terminal."""
    what = "{graph:9s} {device}  {layers} layers  {trials:3d} trials  ".format(**row) + row.get("precision", "") + "  "
    if "seconds" in row:
        numbers = "ours {seconds:8.2f} s   PyG {pyg_seconds_scaled:8.1f} s (scaled)   ".format(**row)
    else:
        numbers = "ours {milliseconds_an_epoch:7.2f} ms   PyG {pyg_milliseconds:7.2f} ms   ".format(**row)
        numbers += "as usual {pyg_usual_milliseconds:7.2f} ms   products {products_milliseconds:6.2f} ms   ".format(
            **row
        )
    return what + numbers + "{times_faster:6.2f} times faster ({pyg_way})".format(**row)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--data-root", type=Path, default=data_root())
    parser.add_argument("--out", help="file for the numbers (default results/benchmarks/training-DEVICE.json)")
    parser.add_argument("--quick", action="store_true", help="try all code at tiny size; writes only with --out")
    options = parser.parse_args()
    rows = []
    for row in measured_rows(options.device, options.data_root, options.quick):
        rows.append(row)
        print(line(row), flush=True)
    if options.out or not options.quick:
        write(options.out or f"results/benchmarks/training-{options.device}.json", {"training": rows}, options.device)


if __name__ == "__main__":
    main()
