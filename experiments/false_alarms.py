"""How often a family of claims errs where nothing differs: simulated differences, and searches on shuffled labels.

python -m experiments.false_alarms                  # simulation, seconds
python -m experiments.false_alarms --shuffled 30    # and 30 whole comparisons on a graph whose labels mean nothing
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import torch

from tadropedge.lab import Candidate, Experiment, Search, TrainingSettings, decide, load
from tadropedge.lab.comparison.statistics import LEVEL, interval, quantile
from tadropedge.lab.search.protocol import nested

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


def at_once(differences: np.ndarray) -> float:
    """The share of families in which some interval misses 0, all replicates being looked at once."""
    _, low, high = interval(differences, LEVEL / CLAIMS)
    return float(((low > 0) | (high < 0)).any(axis=1).mean())


def stopped(differences: np.ndarray, by_width: bool) -> float:
    """The same where every replicate from the fifth on is looked at.

    By width, a family stops when all of its intervals are narrow; else as soon as one of them misses 0, which is what
    nobody may do.
    """
    counts = np.arange(1, differences.shape[-1] + 1)
    mean = differences.cumsum(axis=-1) / counts
    squares = (differences**2).cumsum(axis=-1) - counts * mean**2
    factors = np.array([np.nan, *(quantile(n, LEVEL / CLAIMS) / np.sqrt(n * (n - 1)) for n in counts[1:])])
    half = factors * np.sqrt(np.maximum(squares, 0.0))
    misses = (np.abs(mean) > half).any(axis=1)[:, FIRST - 1 :]
    if not by_width:
        return float(misses.any(axis=1).mean())
    narrow = (half <= WIDTH).all(axis=1)[:, FIRST - 1 :]
    narrow[:, -1] = True
    return float(misses[np.arange(len(misses)), narrow.argmax(axis=1)].mean())


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
    """Print the table of docs/statistics.md."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--shuffled", type=int, default=0, metavar="FAMILIES")
    options = parser.parse_args()
    print(f"| differences | {' | '.join(f'{n} replicates' for n in REPLICATES)} | stopped by width | when decided |")
    print(f"|---|{'---:|' * (len(REPLICATES) + 2)}")
    for draw in (normal, heavy, skewed):
        rng = np.random.default_rng(options.seed)
        shares = [at_once(draw(rng, options.rounds, count)) for count in REPLICATES]
        differences = draw(rng, options.rounds, LAST)
        shares += [stopped(differences, by_width) for by_width in (True, False)]
        print(f"| {draw.__name__} | {' | '.join(f'{100 * share:.1f} %' for share in shares)} |")
    if options.shuffled:
        alarms = shuffled(options.shuffled, options.seed)
        print(f"\nshuffled labels: {alarms} of {options.shuffled} families with a false alarm")


if __name__ == "__main__":
    main()
