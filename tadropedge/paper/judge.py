"""From measurements to verdicts: means with standard errors, and the word for a claim that holds or does not."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from tadropedge.paper.item import IMPOSSIBLE, NOT_REPRODUCED, REPRODUCED, Verdict

# DropEdge as an adaptive strategy is compared with it, where nothing is trained.
HOW = {"same_p": "at the same p", "same_budget": "that keeps as many edges"}
CLEAR = 2.0  # standard errors from zero that a difference must lie to count

Numbers = Sequence[float] | npt.NDArray[np.float64]


def judged(claim: str, holds: bool, reason: str) -> Verdict:
    """A claim that was measured.

    >>> judged("2 < 3", True, "2 is 1 less than 3").status
    'reproduced'
    """
    return Verdict(claim, REPRODUCED if holds else NOT_REPRODUCED, reason)


def counted(claim: str, measured: object, printed: object, reason: str) -> Verdict:
    """A claim that the files decide by themselves: where they say something else, it cannot be as stated.

    >>> counted("the largest component has 2,484 nodes", 2485, 2484, "2,485 in the files").status
    'cannot be as stated'
    """
    return Verdict(claim, REPRODUCED if measured == printed else IMPOSSIBLE, reason)


def mean_and_error(values: Numbers) -> tuple[float, float]:
    """The mean of independent measurements and its standard error.

    >>> mean_and_error([1.0, 3.0])
    (2.0, 1.0)
    """
    array = np.asarray(values, dtype=np.float64)
    error = float(array.std(ddof=1) / np.sqrt(len(array))) if len(array) > 1 else float("nan")
    return float(array.mean()), error


def ranking(scores: npt.NDArray[np.float64], positive: npt.NDArray[np.bool_]) -> float:
    """The probability that a random positive outranks a random negative, ties halved (the area under the ROC curve).

    >>> ranking(np.array([0.1, 0.2, 0.9]), np.array([False, True, True]))
    1.0
    """
    ascending = np.sort(scores[~positive])
    below = np.searchsorted(ascending, scores[positive], side="left")
    up_to = np.searchsorted(ascending, scores[positive], side="right")
    return float((below + up_to).mean() / (2 * len(ascending)))
