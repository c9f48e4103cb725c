"""The noise of source localisation at which the tuned model without edge dropping scores what the paper prints.

For each noise and each of twelve graphs: the test accuracy of the best of sixty settings by validation accuracy, beside
the Bayes-optimal accuracy. A GPU is advised.

    python benchmarks/old/calibration.py [--device cuda] [--graphs 12] [--epochs 300] [--out FILE]
"""

from __future__ import annotations

import argparse
import itertools

import numpy as np
from report import write

from tadropedge._old.data import bayes_accuracy, load_source_localization
from tadropedge._old.training.config import Architecture, Trial
from tadropedge._old.training.laboratory import Laboratory

NOISES = (5e-4, 1e-3, 1.5e-3, 2e-3, 2.5e-3, 3e-3)
RATES, DECAYS, DROPOUTS = (0.002, 0.005, 0.01), (1e-5, 5e-4), (0.0, 0.3)
NORMALIZATIONS = ("gcn", "first-order", "gcn-residual", "random-walk", "adjacency")


def tuned_accuracy(noise: float, seed: int, epochs: int, device: str) -> float:
    """The test accuracy of the settings that are best on validation, on one graph."""
    dataset = load_source_localization(seed=seed, noise=noise).to(device)
    laboratory = Laboratory(dataset, Architecture("gcnn", 1, 32), epochs=epochs)
    settings = itertools.product(RATES, DECAYS, DROPOUTS, NORMALIZATIONS)
    trials = [
        Trial.of("original", learning_rate=rate, weight_decay=decay, dropout=drop, normalization=name, seed=place)
        for place, (rate, decay, drop, name) in enumerate(settings)
    ]
    good = [outcome.kept for outcome in laboratory.train(trials) if not outcome.failed]
    return max(good, key=lambda kept: (kept["val_accuracy"], -kept["val_loss"]))["test_accuracy"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--graphs", type=int, default=12)
    parser.add_argument("--epochs", type=int, default=300)
    parser.add_argument("--out", default="results/benchmarks/calibration.json")
    options = parser.parse_args()
    rows = []
    for noise in NOISES:
        tuned = [tuned_accuracy(noise, seed, options.epochs, options.device) for seed in range(options.graphs)]
        rows.append(
            {
                "noise": noise,
                "tuned_original": round(float(np.mean(tuned)), 4),
                "deviation_between_graphs": round(float(np.std(tuned, ddof=1)), 4),
                "bayes": round(float(np.mean([bayes_accuracy(seed, noise) for seed in range(options.graphs)])), 4),
                "graphs": options.graphs,
                "epochs": options.epochs,
            }
        )
        print(rows[-1], flush=True)
    write(options.out, {"calibration": rows}, options.device)


if __name__ == "__main__":
    main()
