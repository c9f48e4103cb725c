"""From measurements to verdicts: means with standard errors, paired differences, and the word for a claim."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np
import numpy.typing as npt

from tadropedge._old.comparison.paired import ALPHA, holm
from tadropedge._old.comparison.statistics import Honest, mean_interval, paired_difference
from tadropedge._old.paper.item import IMPOSSIBLE, NOT_REPRODUCED, PARTLY, REPRODUCED, Verdict
from tadropedge._old.paper.recipe import Claim as Claim
from tadropedge._old.paper.recipe import Recipe
from tadropedge._old.paper.rows import OPTIONAL, K, Measured
from tadropedge._old.publish.wording import percent, plus_minus, points
from tadropedge._old.search.study import Finished

# The two kinds of DropEdge that an adaptive strategy is compared with, in trainings and where nothing is trained.
BUDGETS = {"same_p": "at the same p", "same_budget": "with the same expected number of kept edges"}
HOW = {"same_p": "at the same p", "same_budget": "that keeps as many edges"}
CLEAR = 2.0  # standard errors from zero that a difference must lie to count

Array = npt.NDArray[np.float64]
Numbers = Sequence[float] | Array
Holds = bool | str | None


MINUS = re.compile(r"(?<=[ (])-(?=\d)")  # of a number as Python writes it


def judged(recipe: Recipe, claim: str, holds: Holds, /, **numbers: object) -> Verdict:
    """A claim of a recipe that was measured; None: it cannot be as stated; a text: where it holds.

    >>> words = Claim(claim="2 < {other}", reason="2 is {by} less than {other}", printed="2 < 4", measured="by {by}")
    >>> recipe = Recipe("x", "", "", "quick", settings={}, claims={"less": words})
    >>> found = judged(recipe, "less", True, other=3, by=1)
    >>> found.claim, found.status, found.reason, found.printed, found.measured
    ('2 < 3', 'reproduced', '2 is 1 less than 3', '2 < 4', 'by 1')
    >>> judged(recipe, "less", 2 < 1 or None, other=1, by=-1).status
    'cannot be as stated'
    >>> judged(recipe, "less", "on Mondays", other=1, by=-1).word
    'partly: on Mondays'
    """
    words = recipe.claims[claim]
    claimed, reason, printed, measured = (
        MINUS.sub("−", recipe.text(getattr(words, name), **numbers))
        for name in ("claim", "reason", "printed", "measured")
    )
    where = holds if isinstance(holds, str) else None
    status = IMPOSSIBLE if holds is None else PARTLY if where else REPRODUCED if holds else NOT_REPRODUCED
    return Verdict(
        claimed, status, reason, own=words.own, printed=printed or None, measured=measured or None, where=where
    )


def where_it_holds(cases: Mapping[str, bool]) -> bool | str:
    """True if a claim holds in all cases, False if in none, else the names of those where it holds.

    >>> where_it_holds({"Cora": True, "PubMed": True}), where_it_holds({"Cora": True, "PubMed": False})
    (True, 'Cora')
    """
    good = [name for name, holds in cases.items() if holds]
    return ", ".join(good) if 0 < len(good) < len(cases) else bool(good)


def mean_and_error(values: Numbers) -> Measured:
    """The mean of independent measurements and its standard error.

    >>> mean_and_error([1.0, 3.0])
    Measured(value=2.0, error=1.0)
    """
    array = np.asarray(values, dtype=np.float64)
    error = float(array.std(ddof=1) / np.sqrt(len(array))) if len(array) > 1 else float("nan")
    return Measured(float(array.mean()), error)


def ranking(scores: Array, positive: npt.NDArray[np.bool_]) -> float:
    """The probability that a random positive outranks a random negative, ties halved (the area under the ROC curve).

    >>> ranking(np.array([0.1, 0.2, 0.9]), np.array([False, True, True]))
    1.0
    """
    ascending = np.sort(scores[~positive])
    below = np.searchsorted(ascending, scores[positive], side="left")
    up_to = np.searchsorted(ascending, scores[positive], side="right")
    return float((below + up_to).mean() / (2 * len(ascending)))


@dataclass(frozen=True, kw_only=True)
class Summary:
    """A mean over fresh seeds and its 95 % interval; None is unknown."""

    mean: float | None = None
    low: float | None = None
    high: float | None = None
    seeds: int | None = None


@dataclass(frozen=True, kw_only=True)
class Gap:
    """A paired difference, its 95 % interval and its corrected p-value; None where nothing is decided."""

    difference: float | None = None
    low: float | None = None
    high: float | None = None
    p_value: float | None = None

    @property
    def sign(self) -> int:
        """+1 or −1 where the difference is surely above or below zero, else 0."""
        if self.p_value is None or self.difference is None or self.p_value > ALPHA:
            return 0
        return int(np.sign(self.difference))


def accuracies(runs: Iterable[Finished]) -> Array:
    """The test accuracy of each training, ``[S]``; NaN where it failed."""
    return np.array([run.test_accuracy for run in runs], dtype=np.float64)


def summary(values: Array) -> Summary:
    """Mean and 95 % interval of ``values [S]``; None where fewer than two numbers are known."""
    known = int((~np.isnan(values)).sum())
    if known < 2:
        return Summary(seeds=known)
    interval = mean_interval(values)
    return Summary(mean=interval.mean, low=interval.low, high=interval.high, seeds=interval.count)


def gaps(pairs: Mapping[K, tuple[Array, Array]]) -> dict[K, Gap]:
    """Value minus reference for each key, with a p-value corrected by Holm's rule over all keys.

    Where fewer than two pairs are finite nothing is decided: every number of such a gap is None.

    >>> one = np.array([0.83, 0.85, 0.84])
    >>> found = gaps({"cdf": (one, one - 0.02), "cutoff": (one, one[::-1])})
    >>> round(found["cdf"].difference, 6), found["cdf"].p_value, found["cutoff"].p_value
    (0.02, 0.5, 1.0)
    """
    found = {
        key: paired_difference(ours, theirs) if (~np.isnan(ours - theirs)).sum() > 1 else None
        for key, (ours, theirs) in pairs.items()
    }
    # An undecided gap counts in the correction, as one that says nothing.
    corrected = holm([1.0 if gap is None else gap.p_value for gap in found.values()])
    return {
        key: Gap() if gap is None else Gap(difference=gap.mean, low=gap.low, high=gap.high, p_value=float(p_value))
        for (key, gap), p_value in zip(found.items(), corrected, strict=True)
    }


@dataclass(frozen=True, kw_only=True)
class BothBudgets:
    """The differences of a strategy to both kinds of DropEdge; DropEdge itself has none."""

    same_p: Annotated[Gap | None, OPTIONAL] = None
    same_budget: Annotated[Gap | None, OPTIONAL] = None

    def at(self, budget: str) -> Gap | None:
        """The difference ``"same_p"`` or ``"same_budget"``."""
        return self.same_p if budget == "same_p" else self.same_budget


def accuracy(found: Summary | Honest) -> str:
    """A mean in per cent, with its interval."""
    return plus_minus(percent(found.mean), found.low, found.high)


def difference(honest: Honest) -> str:
    """A paired difference in points, with its interval."""
    return plus_minus(points(honest.difference), honest.difference_low, honest.difference_high)


def told(found: Sequence[Gap]) -> str:
    """How many differences are above, below and undecided.

    >>> told([Gap(difference=0.1, p_value=0.01), Gap(difference=0.1, p_value=0.5)])
    'surely above in 1, surely below in 0, undecided in 1 of 2'
    """
    above, below, undecided = (sum(gap.sign == sign for gap in found) for sign in (1, -1, 0))
    return f"surely above in {above}, surely below in {below}, undecided in {undecided} of {len(found)}"
