"""What holds in the mean over datasets: each dataset is one observation, with the luck of its own choices in it.

In one cell the luck of choosing settings is often larger than what dropping edges does, however many splits there are.
It is another luck in every dataset, so the mean over datasets shows what a cell cannot. Under each condition, for each
method and reference,

    mean ± t(0.975, D − 1) · s / √D    over the differences of D datasets,

a p-value by flipping their signs, exact, and the false discovery rate over all such tests of a map.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tadropedge._old.comparison.paired import ALPHA, false_discovery_rates, sign_flip_p_values
from tadropedge._old.comparison.statistics import mean_interval
from tadropedge._old.publish.tables import Table
from tadropedge._old.publish.wording import NOTHING, plus_minus, points
from tadropedge._old.regimes.results import RegimeMap
from tadropedge._old.regimes.summary import (
    AUTO,
    CONTROLS,
    NOT_DROPPING,
    Condition,
    capital,
    condition_words,
    conditions,
    findings,
    methods,
    under,
)

FEWEST = 6  # datasets: the signs of five could not decide anything at 5 %
ASKED = ("none", "dropedge")  # the references; where the budget is given, DropEdge keeps to it


@dataclass(frozen=True, kw_only=True)
class AcrossTest:
    """A method minus a reference in the mean over ``datasets``, under one condition: shares, not points."""

    condition: Condition
    method: str
    reference: str
    datasets: int
    mean: float
    low: float
    high: float
    p_value: float
    corrected: float = 1.0

    @property
    def outcome(self) -> str:
        """``"better"``, ``"worse"`` or ``"undecided"``."""
        if self.corrected > ALPHA:
            return "undecided"
        return "better" if self.mean > 0 else "worse"

    @property
    def words(self) -> str:
        """The mean and half of its interval in points, and which way it is sure.

        >>> told = {"condition": ("noise", 1.0), "method": "cdf", "reference": "none", "datasets": 12, "p_value": 1e-3}
        >>> AcrossTest(**told, mean=0.03, low=0.01, high=0.05, corrected=0.01).words
        '+3.00 ± 2.00 ▲'
        """
        mark = {"better": " ▲", "worse": " ▼", "undecided": ""}[self.outcome]
        return f"{plus_minus(points(self.mean), self.low, self.high)}{mark}"


Across = dict[tuple[Condition, str, str], AcrossTest]


def across(found: RegimeMap) -> Across:
    """Every test over datasets, by condition, method and reference; conditions with few datasets have none."""
    every, made = findings(found), []
    for condition in conditions(found):
        some = under(every, *condition)
        for method in (name for name in methods(found) if name != NOT_DROPPING):
            for reference in ASKED:
                tests = (one.test(method, reference) for one in some)
                gaps = [test.difference for test in tests if test is not None]
                if len(gaps) >= FEWEST:
                    made.append(_test(condition, method, reference, gaps))
    rates = false_discovery_rates([one.p_value for one in made]).tolist() if made else []
    return {
        (one.condition, one.method, one.reference): AcrossTest(**{**vars(one), "corrected": rate})
        for one, rate in zip(made, rates, strict=True)
    }


def _test(condition: Condition, method: str, reference: str, gaps: Sequence[float]) -> AcrossTest:
    values = np.array(gaps)
    found = mean_interval(values)
    return AcrossTest(
        condition=condition,
        method=method,
        reference=reference,
        datasets=len(gaps),
        mean=found.mean,
        low=found.low,
        high=found.high,
        p_value=float(sign_flip_p_values(values, np.zeros_like(values))),
    )


def foremost(tests: Across, condition: Condition, reference: str = "none") -> AcrossTest | None:
    """The method that drops edges with the largest mean difference under a condition, sure or not."""
    some = [
        test
        for (where, method, against), test in tests.items()
        if where == condition and against == reference and method not in CONTROLS
    ]
    return max(some, key=lambda test: test.mean, default=None)


def means_table(found: RegimeMap, tests: Across) -> Table:
    """Per condition: the method with the largest mean over datasets and ``auto``, each against both references."""
    rows = []
    for condition in conditions(found):
        best = foremost(tests, condition)
        if best is None:
            continue
        beside = (best.method, AUTO)
        cells = [_words(tests, condition, method, reference) for method in beside for reference in ASKED]
        words = capital(condition_words(*condition))
        rows.append((words, str(best.datasets), best.method, *cells))
    columns = (
        *("condition", "datasets", "largest mean", "against not\ndropping", "against\nDropEdge"),
        *("auto against\nnot dropping", "auto against\nDropEdge"),
    )
    return Table("in the mean over datasets", columns, rows, left=(0, 2))


def methods_table(found: RegimeMap, tests: Across, condition: Condition) -> Table:
    """Every method under one condition, in the mean over datasets."""
    rows = [
        (method, str(test.datasets), *(_words(tests, condition, method, reference) for reference in ASKED))
        for method in methods(found)
        if (test := tests.get((condition, method, ASKED[0]))) is not None
    ]
    columns = ("method", "datasets", "against not dropping", "against DropEdge")
    return Table(f"in the mean over datasets, {condition_words(*condition)}", columns, rows, left=(0,))


def _words(tests: Across, condition: Condition, method: str, reference: str) -> str:
    test = tests.get((condition, method, reference))
    return NOTHING if test is None else test.words
