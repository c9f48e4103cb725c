"""A made-up comparison with every kind of row: better, worse, undecided, failed, without reference."""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np

from tadropedge.comparison.advice import advise
from tadropedge.comparison.evidence import gathered
from tadropedge.comparison.judging import judged_together
from tadropedge.comparison.procedure import Simulated
from tadropedge.comparison.results import Convergence, KeepProbPoint, MethodRow, PaperProtocol, Protocol, Results
from tadropedge.comparison.statistics import Honest, honest_rows, judge

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
    "command": "tadropedge compare cora --trials 30 --seeds 20",
    "commit": "0123abcd",
    "machine": "2 cores, no GPU",
    "seconds": 812.4,
    "versions": {"tadropedge": "0.1.0", "torch": "2.13.0"},
}

PROTOCOL = Protocol(
    trials=30,
    choose_splits=3,
    seeds=20,
    judge_splits=20,
    epochs=400,
    shared="Settings were chosen on 3 splits and judged on others, whose test nodes had no part in the choice.",
    disjoint=True,
    simulated=Simulated(
        families=1000, tests=16, level=0.05, false_alarms=0.031, error=0.005, at_five_per_cent=0.031,
        without_choice=0.21, effects=(0.005, 0.01), power=(0.42, 0.97), detectable=0.008,
    ),
)  # fmt: skip


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


def comparison(dataset: str = "cora", gains: dict[str, float] = GAINS, seeds: int = 20, trials: int = 30) -> Results:
    """Results for every method of ``gains``, its true advantage over DropEdge, judged against its references."""
    random = np.random.default_rng(0)
    split = random.normal(0.862, 0.012, seeds)
    scores = {method: split + gain + random.normal(0, 0.003, seeds) for method, gain in gains.items()}
    if "effective-cdf" in scores:
        scores["effective-cdf"][3] = np.nan
    adaptive = [method for method in gains if method not in ALONE]
    scores |= {f"dropedge at the budget of {method}": split + random.normal(0, 0.003, seeds) for method in adaptive}
    against = {method: references(method, gains) for method in gains}
    tests = judged_together(scores, against)
    rows = []
    for place, method in enumerate(gains):
        settings = {"keep_prob": 0.7, "kept_share": 0.7} if method != "original" else {}
        rows.append(
            bare(
                dataset=dataset,
                method=method,
                laplacian="combinatorial",
                paper_protocol=PaperProtocol(float(np.nanmax(scores[method])), trials),
                honest=honest_rows({method: scores[method]}, {})[method],
                evidence=gathered({method: scores[method]}, {})[method],
                against={
                    kind: replace(test, settings={"learning_rate": 0.01}, unconverged=0)
                    for kind, test in tests.get(method, {}).items()
                },
                measure="accuracy",
                trial=place,
                unconverged=0,
                settings=settings | {"learning_rate": 0.005, "normalization": "gcn"},
                convergence=curve(random, 60),
            )
        )
    return Results(rows, RUN, advice=advise(rows), protocol=PROTOCOL)


def references(method: str, gains: dict[str, float]) -> dict[str, str]:
    """What a method of the made-up comparison is judged against, as far as it is there."""
    tuned = {"none": "original", "dropedge": "dropedge"} if method not in ALONE else {"none": "original"}
    found = {kind: name for kind, name in tuned.items() if name in gains and name != method}
    return found | ({"budget": f"dropedge at the budget of {method}"} if method not in ALONE else {})


def older(gains: dict[str, float] = GAINS, seeds: int = 20, evidence: bool = True) -> Results:
    """The same as versions 0.1 and 0.2 wrote it: one test for each adaptive method, and trials along p."""
    random = np.random.default_rng(0)
    split = random.normal(0.862, 0.012, seeds)
    accuracy = {method: split + gain + random.normal(0, 0.003, seeds) for method, gain in gains.items()}
    reference = {method: split + random.normal(0, 0.003, seeds) for method in gains if method not in ALONE}
    rows, proofs = judge(accuracy, reference)
    return Results(
        [
            bare(
                method=method,
                laplacian="combinatorial",
                paper_protocol=PaperProtocol(0.9, 100),
                honest=row,
                evidence=proofs[method] if evidence else None,
                settings={"keep_prob": 0.7},
                convergence=curve(random, 60),
                by_keep_prob=[KeepProbPoint(0.5, 0.8)],
            )
            for method, row in rows.items()
        ],
        RUN,
    )


def renamed(results: Results, **names: str) -> Results:
    """The same results with other names in every row."""
    return replace(results, rows=[replace(row, **names) for row in results.rows])
