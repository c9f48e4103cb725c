"""A made-up comparison with every kind of row: better, worse, undecided, failed, without reference."""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np

from tadropedge.comparison.results import Convergence, KeepProbPoint, MethodRow, PaperProtocol, Results
from tadropedge.comparison.statistics import Honest, judge

GAINS = {
    "original": -0.004,
    "dropedge": 0.0,
    "cutoff": 0.004,
    "division": 0.001,
    "cdf": 0.0,
    "effective-cdf": 0.0005,
    "inverse-cdf": -0.006,
}
HONEST = [member.name for member in fields(Honest)]
ALONE = ("original", "dropedge")
RUN = {
    "command": "tadropedge compare cora --trials 100 --seeds 20",
    "commit": "0123abcd",
    "machine": "2 cores, no GPU",
    "seconds": 812.4,
    "versions": {"tadropedge": "0.1.0", "torch": "2.13.0"},
}


def bare(**members) -> MethodRow:
    """A row of cdf on Cora that knows no more than it is told."""
    return MethodRow(**{"dataset": "cora", "backbone": "gcn", "layers": 2, "method": "cdf"} | members)


def honest(mean=None, low=None, high=None, *, seeds=20, **members) -> Honest:
    """The honest part of a row; what is not told is not known."""
    return Honest(
        **dict.fromkeys(HONEST) | {"mean": mean, "low": low, "high": high, "seeds": seeds, "failed": 0} | members
    )


def curve(random: np.random.Generator, epochs: int) -> Convergence:
    """Losses that fall, the one on validation data less far."""
    time = np.arange(1, epochs + 1)
    wave = 0.02 * random.standard_normal((2, epochs))
    train = 1.8 * np.exp(-time / (12 + 6 * random.random())) + 0.2 + wave[0]
    return Convergence(time, train, 1.3 * np.exp(-time / 20) + 0.5 + 0.1 * random.random() + wave[1] / 2)


def comparison(dataset: str = "cora", gains: dict[str, float] = GAINS, seeds: int = 20, trials: int = 100) -> Results:
    """Results for every method of ``gains``, its true advantage over DropEdge."""
    random = np.random.default_rng(0)
    split = random.normal(0.862, 0.012, seeds)
    accuracy = {method: split + gain + random.normal(0, 0.003, seeds) for method, gain in gains.items()}
    reference = {method: split + random.normal(0, 0.003, seeds) for method in gains if method not in ALONE}
    if "effective-cdf" in accuracy:
        accuracy["effective-cdf"][3] = np.nan
    rows = []
    honests, evidence = judge(accuracy, reference)
    for method, judged in honests.items():
        p = random.uniform(0.05, 0.95, trials)
        found = 0.86 + gains[method] - 0.06 * (p - 0.7) ** 2 + random.normal(0, 0.01, trials)
        points = [KeepProbPoint(x, y) for x, y in zip(p, found, strict=True)] if method != "original" else []
        rows.append(
            bare(
                dataset=dataset,
                method=method,
                laplacian=None if method in ALONE else "combinatorial",
                paper_protocol=PaperProtocol(float(np.nanmax(found)), trials),
                honest=judged,
                evidence=evidence.get(method),
                settings={}
                if method == "original"
                else {"keep_prob": 0.7, "learning_rate": 0.005, "normalization": "gcn"},
                convergence=curve(random, 60),
                by_keep_prob=points,
            )
        )
    return Results(rows, RUN)


def renamed(results: Results, **names: str) -> Results:
    """The same results with other names in every row."""
    return replace(results, rows=[replace(row, **names) for row in results.rows])
