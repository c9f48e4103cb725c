"""How often a family of claims errs where nothing differs: simulated differences, and searches on shuffled labels.

python -m experiments.false_alarms                  # simulation, seconds
python -m experiments.false_alarms --shuffled 30    # and 30 whole comparisons on a graph whose labels mean nothing
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from scipy.special import stdtrit

from experiments.frame import commit, machine, write_rows
from tadropedge.lab import Candidate, Experiment, Search, TrainingSettings, decide, load, nested

LEVEL = 0.05  # of all claims of a family together, as decide() has it
CLAIMS = 6  # candidates of a family, all against one reference
REPLICATES = (5, 10, 20, 50)
FIRST, LAST, WIDTH = 5, 50, 0.8  # of the stopping rules; a half-width in standard deviations of one difference
METHODS = ("original", "dropedge", "degree-proportional")

Draw = Callable[[np.random.Generator, int, int], np.ndarray]


def normal(rng: np.random.Generator, rounds: int, count: int) -> np.ndarray:
    """Differences ``[rounds, claims, count]`` of normal scores from one shared reference."""
    scores = rng.standard_normal((rounds, CLAIMS + 1, count))
    return scores[:, 1:] - scores[:, :1]


def heavy(rng: np.random.Generator, rounds: int, count: int) -> np.ndarray:
    """The same of scores from Student's distribution with 3 degrees of freedom: heavy tails."""
    scores = rng.standard_t(3, (rounds, CLAIMS + 1, count))
    return scores[:, 1:] - scores[:, :1]


def skewed(rng: np.random.Generator, rounds: int, count: int) -> np.ndarray:
    """Exponential differences of mean 0: small gains as a rule, and now and then a great loss."""
    return 1.0 - rng.exponential(size=(rounds, CLAIMS, count))


def misses(differences: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """After each replicate from the second on: whether the interval of a claim misses 0, and half of its width.

    Both are ``[rounds, claims, count − 1]``; the interval is that of :func:`tadropedge.lab.decide`.
    """
    counts = np.arange(1, differences.shape[-1] + 1)
    mean = differences.cumsum(axis=-1) / counts
    squares = np.maximum((differences**2).cumsum(axis=-1) - counts * mean**2, 0.0)[..., 1:]
    n = counts[1:]
    half = stdtrit(n - 1, 1 - LEVEL / CLAIMS / 2) * np.sqrt(squares / (n * (n - 1)))
    return np.abs(mean[..., 1:]) > half, half


def at_once(differences: np.ndarray) -> float:
    """The share of families in which some interval misses 0, all replicates being looked at once."""
    return float(misses(differences)[0][..., -1].any(axis=1).mean())


def stopped(differences: np.ndarray, by_width: bool) -> float:
    """The same where every replicate from the fifth on is looked at.

    By width, a family stops when all of its intervals are narrow; else as soon as one of them misses 0, which is what
    nobody may do.
    """
    missed, half = (each[..., FIRST - 2 :] for each in misses(differences))
    alarm = missed.any(axis=1)
    if not by_width:
        return float(alarm.any(axis=1).mean())
    narrow = (half <= WIDTH).all(axis=1)
    narrow[:, -1] = True
    return float(alarm[np.arange(len(alarm)), narrow.argmax(axis=1)].mean())


def shuffled(families: int, seed: int) -> int:
    """In how many searches on shuffled labels, where all candidates are equally good, one is called better or worse."""
    alarms = 0
    for number in range(families):
        data = load("clusters", seed=seed + number)
        order = torch.randperm(len(data.labels), generator=torch.Generator().manual_seed(seed + number))
        data = replace(data, labels=data.labels[order])
        experiment = Experiment(data=data, hidden=8, training=TrainingSettings(epochs=20))
        search = Search(trials=3, replicates=10, seed=seed + number)
        found = nested([Candidate.parse(name) for name in METHODS], experiment, search)
        scores = {name: [one.test for one in replicates] for name, replicates in found.items()}
        verdicts = decide(scores, [(name, METHODS[0]) for name in METHODS[1:]])
        alarms += any(one.word in ("better", "worse") for one in verdicts.values())
    return alarms


def main() -> None:
    """Print the table of docs/statistics.md, and write it."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--shuffled", type=int, default=0, metavar="FAMILIES", help="search so many families, too")
    parser.add_argument("--out", type=Path, default=Path("results/false-alarms.csv"))
    options = parser.parse_args()
    rows = []
    for draw in (normal, heavy, skewed):
        rng = np.random.default_rng(options.seed)
        row: dict[str, Any] = {"differences": draw.__name__, "families": options.rounds}
        row |= {f"{count} replicates": at_once(draw(rng, options.rounds, count)) for count in REPLICATES}
        differences = draw(rng, options.rounds, LAST)
        row |= {"stopped by width": stopped(differences, True), "stopped when decided": stopped(differences, False)}
        rows.append(row)
    if options.shuffled:
        alarms = shuffled(options.shuffled, options.seed)
        searched = {"families": options.shuffled, "10 replicates": alarms / options.shuffled}
        rows.append({"differences": "searches on shuffled labels", **searched})
    table = pd.DataFrame(rows)
    print(table.to_string(index=False))
    write_rows(table.assign(seed=options.seed, commit=commit(), machine=machine("cpu")), options.out)


if __name__ == "__main__":
    main()
