"""The laboratory against the old package, in one run: training alone and side by side, mini-batches, process starts.

Both train the same trials for the same epochs with an evaluation after each, and take turns: a ratio is that of two
medians. The goal is at most 1.3 times the old package's time.

    python benchmarks/lab.py [--graphs cora,pubmed] [--seconds 10] [--only training] [--out FILE]
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from report import Row, data_folder, medians, table, write

from tadropedge._old.data import load_dataset
from tadropedge._old.neighbours.plan import MiniBatches
from tadropedge._old.training.batch import Course
from tadropedge._old.training.config import Architecture
from tadropedge._old.training.config import Trial as OldTrial
from tadropedge._old.training.laboratory import Laboratory, make_task
from tadropedge._old.training.mini_batches import SampledTraining
from tadropedge.lab import Candidate, Experiment, MiniBatch, TrainingSettings, Trial, load, train

GOAL = 1.3
NETWORKS = ("gcn", "jknet", "resgcn", "gcnii", "appnp", "gat", "sage", "mlp")
DROPPINGS = {
    "dropedge": 0.7,
    "degree-proportional": 0.5,
    "jaccard-cdf:connected": 0.8,
    "degree-proportional:unbiased": 0.5,
}
EPOCHS, HIDDEN = 10, 64
PROTOCOL = (
    f"median seconds of {EPOCHS} epochs of 2 layers (gcnii, resgcn: 4) with {HIDDEN} hidden units on the paper's full "
    "split, an evaluation after each, set-up included; calls take turns in changing order, after a warm-up round, at "
    "least 3 rounds of each; ratio: new over old"
)

Pair = tuple[str, Callable[[], object], Callable[[], object]]


def training(name: str) -> Iterator[Pair]:
    """Every network alone, ways of dropping, and many trials side by side."""
    for network in NETWORKS:
        yield f"{network}, 1 trial", *both(name, network, "original" if network == "mlp" else "dropedge", 1)
    for dropping in DROPPINGS:
        yield f"gcn, {dropping}, 1 trial", *both(name, "gcn", dropping, 1)
    for trials in (4, 16):
        yield f"gcn, {trials} trials", *both(name, "gcn", "dropedge", trials)


def both(name: str, network: str, dropping: str, trials: int) -> tuple[Callable[[], object], Callable[[], object]]:
    """The same training by the new package and by the old one."""
    layers = 4 if network in ("gcnii", "resgcn") else 3 if network == "jknet" else 2
    share = {} if dropping == "original" else {"keep_ratio": DROPPINGS[dropping]}
    method = dropping + "".join(f"@{value}" for value in share.values())
    if ":" in dropping:
        front, _, option = dropping.partition(":")
        method = f"{front}@{share['keep_ratio']}:{option}"
    data = load(name, split="full")
    settings = TrainingSettings(epochs=EPOCHS, keep="loss")
    experiment = Experiment(data=data, network=network, layers=layers, hidden=HIDDEN, training=settings)
    mine = [Trial(candidate=Candidate.parse(method), seed=seed) for seed in range(trials)]
    theirs = [OldTrial.of(dropping, seed=seed, **share) for seed in range(trials)]
    before = Laboratory(load_dataset(name, data_folder() / "planetoid"), Architecture(network, layers, HIDDEN), EPOCHS)
    return lambda: train(experiment, mine), lambda: before.train(theirs)


def mini_batches(name: str) -> Iterator[Pair]:
    """Two epochs of sampled neighbours."""
    settings = TrainingSettings(epochs=2, keep="loss", mini_batch=MiniBatch(size=256, fanout=(10, 5)))
    experiment = Experiment(data=load(name, split="full"), hidden=HIDDEN, training=settings)
    trial = Trial(candidate=Candidate.parse("dropedge@0.5"))
    old = load_dataset(name, data_folder() / "planetoid")
    task, course = make_task(old, [old.split]), Course(epochs=2)
    before, plan = OldTrial.of("dropedge", keep_ratio=0.5), MiniBatches(size=256, fanout=(10, 5))
    architecture = Architecture("gcn", 2, HIDDEN)
    yield (
        "mini-batches of 256",
        lambda: train(experiment, [trial]),
        lambda: SampledTraining(task, architecture, before, course, plan=plan).run(),
    )


def starts(name: str) -> Iterator[Pair]:
    """Processes that do nothing but begin."""
    for words in (["--help"], ["compare", "--help"], ["datasets"]):
        calls = [
            lambda package=package, words=words: subprocess.run(
                [sys.executable, "-m", package, *words], capture_output=True, env=os.environ, check=True
            )
            for package in ("tadropedge", "tadropedge._old")
        ]
        yield f"tadropedge {' '.join(words)}", *calls


GROUPS = {"training": training, "mini-batches": mini_batches, "starts": starts}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--graphs", default="cora,pubmed")
    parser.add_argument("--only", help=f"some of {', '.join(GROUPS)}")
    parser.add_argument("--seconds", type=float, default=10.0, help="for each pair of calls (default 10)")
    parser.add_argument("--out", type=Path, help="file for the numbers (default results/benchmarks/lab.json)")
    options = parser.parse_args()
    os.environ.setdefault("TADROPEDGE_DATA", str(data_folder()))
    chosen = (options.only or ",".join(GROUPS)).split(",")
    rows: list[Row] = []
    for number, name in enumerate(options.graphs.split(",")):
        for group in (group for group in GROUPS if group in chosen and (group != "starts" or number == 0)):
            for what, mine, other in GROUPS[group](name):
                took = medians({"new": mine, "old": other}, options.seconds)
                rows.append({"graph": name, "what": what, **took, "ratio": took["new"] / took["old"]})
                print(table(rows[-1:]).splitlines()[-1], flush=True)
    print("\n" + table(rows))
    slow = [f"{row['graph']}: {row['what']} ({row['ratio']:.2f})" for row in rows if row["ratio"] > GOAL]
    print(f"\nbeyond the goal: {'; '.join(slow) or 'none'}")
    write("lab", PROTOCOL, {"against_old": rows}, options.out)


if __name__ == "__main__":
    main()
