"""Comparisons whose scores are made up, and so cost nothing."""

from dataclasses import replace

import numpy as np

from tadropedge.lab import Candidate
from tadropedge.lab.comparison.advice import answered
from tadropedge.lab.comparison.claims import two_rounds
from tadropedge.lab.statistics import Replicate

DATA = {"name": "cora", "nodes": 2708, "edges": 5278}
ABOUT = {"made_by": "tadropedge", "margin": 0.01, "measure": "accuracy", "network": "gcn", "epochs": 400, "data": DATA}


def made(gains, *, replicates=20, spread=0.002, mlp=None, costs=None, fall=None, run=None, **rounds):
    """A comparison of candidates, each with its mean gain over ``original``; what is not named gains nothing."""
    split = 0.8 + 0.02 * np.random.default_rng(0).standard_normal(replicates)
    asked = []

    def replicates_of(name, count):
        gain = mlp if name == "mlp" else gains.get(name, 0.0)
        noise = np.random.default_rng(sum(map(ord, name))).standard_normal(replicates)
        test = split if name == "original" else split + gain + spread * noise
        test = np.where((np.arange(replicates) == 3) & (name == fall), test - 0.19, test)
        budget = {} if "@" in name or name == "original" else {"keep_ratio": 0.3}
        chosen = {"method": name, **budget, "learning_rate": 0.01}
        share = 1.0 if name == "original" else 0.3
        scores = [{"number": n, "validation": float(test[n]), "test": float(test[n])} for n in range(count)]
        return [Replicate(chosen=chosen, kept_share=share, **one) for one in scores]

    def play(candidates, most):
        asked.append([str(candidate) for candidate in candidates])
        names = [*asked[-1], *(["mlp"] if mlp is not None and most is None else [])]
        return {name: replicates_of(name, most or replicates) for name in names}

    candidates = [Candidate.parse(name) for name in ("original", *gains)]
    yardstick = None if mlp is None else "mlp"
    rows, yardstick = two_rounds(candidates, play, margin=0.01, yardstick=yardstick, **rounds)
    for name, (seconds, size) in (costs or {}).items():
        told = {"seconds_per_epoch": {"train": seconds, "evaluate": 0.1}, "peak_bytes": size}
        rows = [replace(row, **told) if row.candidate == name else row for row in rows]
    return answered(rows, ABOUT | (run or {}), yardstick), asked
