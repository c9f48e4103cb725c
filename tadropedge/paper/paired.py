"""Paired differences of any quantity, all of one family corrected together, as plain values of a row."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tadropedge.comparison.statistics import ALPHA, Difference, holm, mean_interval, paired_difference
from tadropedge.search.study import Finished

Array = npt.NDArray[np.float64]
Gap = dict[str, Any]

# The two kinds of DropEdge that an adaptive strategy is compared with.
BUDGETS = {"same_p": "at the same p", "same_budget": "with the same expected number of kept edges"}

UNDECIDED: Gap = {"difference": None, "low": None, "high": None, "p_value": None}


def metric(runs: Iterable[Finished], name: str = "test_accuracy") -> Array:
    """One number of each finished training, ``[S]``; NaN where it failed."""
    return np.array([getattr(run, name) for run in runs], dtype=np.float64)


def summary(values: Array) -> dict[str, Any]:
    """Mean and 95 % interval; None where fewer than two numbers are known."""
    known = int((~np.isnan(values)).sum())
    if known < 2:
        return {"mean": None, "low": None, "high": None, "seeds": known}
    interval = mean_interval(values)
    return {"mean": interval.mean, "low": interval.low, "high": interval.high, "seeds": interval.count}


def gaps(pairs: Mapping[Any, tuple[Array, Array]]) -> dict[Any, Gap]:
    """Value minus reference for each key, with a p-value corrected by Holm's rule over all keys.

    Where fewer than two pairs are finite nothing is decided: every number of such a gap is None.

    >>> one = np.array([0.83, 0.85, 0.84])
    >>> found = gaps({"cdf": (one, one - 0.02), "cutoff": (one, one[::-1])})
    >>> round(found["cdf"]["difference"], 6), found["cdf"]["p_value"], found["cutoff"]["p_value"]
    (0.02, 0.5, 1.0)
    """
    found: dict[Any, Difference | None] = {
        key: paired_difference(ours, theirs) if (~np.isnan(ours - theirs)).sum() > 1 else None
        for key, (ours, theirs) in pairs.items()
    }
    # An undecided gap counts in the correction, as one that says nothing.
    corrected = holm([1.0 if gap is None else gap.p_value for gap in found.values()])
    return {
        key: dict(UNDECIDED)
        if gap is None
        else {"difference": gap.mean, "low": gap.low, "high": gap.high, "p_value": float(p_value)}
        for (key, gap), p_value in zip(found.items(), corrected, strict=True)
    }


def surely_above(gap: Gap) -> bool:
    """Whether a difference is positive after correction."""
    return gap["p_value"] is not None and bool(gap["p_value"] <= ALPHA and gap["difference"] > 0)


def surely_below(gap: Gap) -> bool:
    """Whether a difference is negative after correction."""
    return gap["p_value"] is not None and bool(gap["p_value"] <= ALPHA and gap["difference"] < 0)


def counted(found: Sequence[Gap]) -> str:
    """How many differences are above, below and undecided.

    >>> counted([{"difference": 0.1, "p_value": 0.01}, {"difference": 0.1, "p_value": 0.5}])
    'surely above in 1, surely below in 0, undecided in 1 of 2'
    """
    above, below = sum(map(surely_above, found)), sum(map(surely_below, found))
    undecided = len(found) - above - below
    return f"surely above in {above}, surely below in {below}, undecided in {undecided} of {len(found)}"
