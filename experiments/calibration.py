"""The noise of source localisation at which the tuned model without edge dropping scores what the paper prints.

For each noise, over several graphs: the test accuracy of the best of sixty settings by validation, beside that of the
classifier that knows everything, which no other can exceed.

python -m experiments.calibration --graphs 12 --out results/calibration.csv
"""

from __future__ import annotations

import argparse
from itertools import product
from pathlib import Path
from statistics import mean, stdev

import pandas as pd

from experiments.frame import commit, machine, write_rows
from experiments.paper.signals import SignalTrial, Task, fit_signals

NOISES = (5e-4, 1e-3, 1.5e-3, 2e-3, 2.5e-3, 3e-3)
SPACE = {
    "learning_rate": (0.001, 0.002, 0.005, 0.01, 0.02, 0.05),
    "weight_decay": (1e-5, 5e-4),
    "normalization": ("gcn", "first-order", "gcn-residual", "random-walk", "adjacency"),
}


def tuned(task: Task, epochs: int) -> float:
    """The test accuracy of the settings that are best on validation; of equal ones, that of the lower loss."""
    drawn = [dict(zip(SPACE, values, strict=True)) for values in product(*SPACE.values())]
    trials = [SignalTrial(seed=number, **settings) for number, settings in enumerate(drawn)]
    return max(
        fit_signals(task, trials, epochs=epochs), key=lambda one: (one.val_accuracy, -one.val_loss)
    ).test_accuracy


def main() -> None:
    """Measure and write a csv file."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--graphs", type=int, default=12)
    parser.add_argument("--epochs", type=int, default=300)
    parser.add_argument("--samples", type=int, nargs=3, default=(100, 500, 1000), metavar=("TRAIN", "VAL", "TEST"))
    parser.add_argument("--out", type=Path, default=Path("results/calibration.csv"))
    options = parser.parse_args()
    rows = []
    for noise in NOISES:
        tasks = [Task(seed, noise, tuple(options.samples)) for seed in range(options.graphs)]
        found = [tuned(task, options.epochs) for task in tasks]
        bayes = mean(task.bayes_accuracy() for task in tasks)
        row = {"noise": noise, "tuned": mean(found), "deviation_between_graphs": stdev(found), "bayes": bayes}
        about = {"graphs": len(tasks), "epochs": options.epochs, "samples": list(options.samples)}
        rows.append({**row, **about, "seeds": f"0 to {len(tasks) - 1}", "commit": commit(), "machine": machine("cpu")})
        write_rows(pd.DataFrame(rows), options.out)
        print(row, flush=True)


if __name__ == "__main__":
    main()
