"""The simulation of false alarms looks at the intervals that ``decide`` makes."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from experiments.false_alarms import CLAIMS, at_once, misses, normal
from tadropedge.lab import decide


def test_the_interval_is_that_of_decide():
    differences = normal(np.random.default_rng(0), 3, 7)
    missed, half = misses(differences)
    for count in (2, 5, 7):
        scores = {str(claim): differences[1, claim, :count] for claim in range(CLAIMS)} | {"none": np.zeros(count)}
        found = decide(scores, [(str(claim), "none") for claim in range(CLAIMS)])
        for claim in range(CLAIMS):
            one = found[str(claim), "none"]
            assert half[1, claim, count - 2] == pytest.approx((one.high - one.low) / 2)
            assert missed[1, claim, count - 2] == (one.low > 0 or one.high < 0)


def test_families_err_as_often_as_allowed():
    assert at_once(normal(np.random.default_rng(1), 4000, 10)) < 0.05 + 3 * (0.05 * 0.95 / 4000) ** 0.5


def test_the_table_of_the_docs():
    root = Path(__file__).resolve().parents[2]
    rows = pd.read_csv(root / "results" / "false-alarms.csv").loc[:, "5 replicates":"stopped when decided"]
    lines = (
        (root / "docs" / "statistics.md").read_text(encoding="utf-8").partition("| differences of |")[2].splitlines()
    )
    assert [line.split("|")[2:8] for line in lines[2:5]] == [
        [f" {100 * one:.1f} % " for one in row] for row in rows.values
    ]
