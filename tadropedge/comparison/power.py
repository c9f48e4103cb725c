"""What a comparison of so many replicates can find: the smallest difference, and the replicates that more would take.

Differences are in standard deviations of a paired difference. The rule is that of ``paired.deciding_p_values`` at the
level of the first of Holm's steps; normal replicates are drawn with a fixed seed, so that the same question has the
same answer. The sign-flip test, which asks hardly more than the t-test, counts by its least p-value alone.
"""

from __future__ import annotations

import math
from functools import cache

import numpy as np
import numpy.typing as npt
from scipy.special import stdtrit

from tadropedge.comparison.paired import ALPHA, moments, skewness, without_skew

Array = npt.NDArray[np.float64]

WANTED = 0.8  # the chance of finding a difference that is there
DRAWN = 100_000  # numbers per estimate
LARGEST = 64.0  # standard deviations


def fewest_replicates(tests: int) -> int:
    """How many replicates it takes to find any difference, however large, in one of ``tests``: 2 / 2^S ≤ 0.05 / tests.

    >>> [fewest_replicates(tests) for tests in (1, 4, 5, 8)]
    [6, 8, 8, 9]
    """
    return math.ceil(1 + math.log2(max(tests, 1) / ALPHA))


def power(difference: float, replicates: int, tests: int) -> float:
    """The chance of finding one true ``difference`` among ``tests``.

    >>> [round(power(difference, 20, 4), 2) for difference in (0.5, 1.0, 2.0)]
    [0.21, 0.82, 0.98]
    """
    if replicates < fewest_replicates(tests):
        return 0.0
    mean, spread, skew = _drawn(replicates)
    t = (mean + difference) / spread * np.sqrt(replicates)
    least = without_skew(np.abs(t), np.sign(t) * skew, np.array(replicates))
    return float((least >= stdtrit(replicates - 1, 1 - ALPHA / tests / 2)).mean())


@cache
def detectable(replicates: int, tests: int) -> float | None:
    """The smallest true difference that is found with a chance of 80 %; ``None`` where no difference can be found.

    >>> round(detectable(20, 1), 1), detectable(6, 4)
    (0.7, None)
    """
    low, high = 0.0, LARGEST
    if power(high, replicates, tests) < WANTED:
        return None
    while high - low > 0.002 * high:
        middle = (low + high) / 2
        low, high = (low, middle) if power(middle, replicates, tests) >= WANTED else (middle, high)
    return high


@cache
def replicates_for_half(replicates: int, tests: int) -> int | None:
    """How many replicates would find half of that difference with a chance of 80 %.

    >>> replicates_for_half(20, 1)
    64
    """
    if (difference := detectable(replicates, tests)) is None:
        return None
    low, high = replicates, 2 * replicates
    while power(difference / 2, high, tests) < WANTED:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if power(difference / 2, middle, tests) >= WANTED else (middle, high)
    return high


@cache
def _drawn(replicates: int) -> tuple[Array, Array, Array]:
    """Mean, standard deviation and skewness of samples of normal numbers."""
    random = np.random.default_rng(0)
    numbers = random.standard_normal((max(250, DRAWN // replicates), replicates))
    _, mean, error = moments(numbers)
    return mean, error * np.sqrt(replicates), skewness(numbers)
