"""What a comparison of so many replicates can find: the smallest difference, and the replicates that more would take.

Differences are in standard deviations of a paired difference. The rule is that of ``paired.deciding_p_values`` at the
level of the first of Holm's steps; normal replicates are drawn with a fixed seed, so that the same question has the
same answer. The sign-flip test, which asks hardly more than the t-test, counts by its least p-value alone.

``shifts`` by which the choice of settings may move the difference (``selection.between``), in the same unit, stay as
wide with any number of replicates: from some point on only more choosing splits help. With them, replicates count as
one normal error, as large as gives the right answer without shifts.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr, ndtri, stdtrit

from tadropedge._old.comparison.paired import ALPHA, TINY, both_tails, moments, skewness, without_skew

Array = npt.NDArray[np.float64]

WANTED = 0.8  # the chance of finding a difference that is there
DRAWN = 100_000  # numbers per estimate
LARGEST = 64.0  # standard deviations
MOST = 10**6  # replicates


def fewest_replicates(tests: float) -> int:
    """How many replicates it takes to find any difference, however large, in one of ``tests``: 2 / 2^S ≤ 0.05 / tests.

    >>> [fewest_replicates(tests) for tests in (1, 4, 5, 8)]
    [6, 8, 8, 9]
    """
    return math.ceil(1 + math.log2(max(tests, 1) / ALPHA))


def power(difference: float, replicates: int, tests: float) -> float:
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


def detectable(replicates: int, tests: float, shifts: Array | None = None) -> float | None:
    """The smallest true difference that is found with a chance of 80 %; ``None`` where no difference can be found.

    >>> round(detectable(20, 1), 1), detectable(6, 4)
    (0.7, None)
    >>> round(detectable(20, 1, np.array([-0.5, 0.0, 0.0, 0.5])), 1)
    1.2
    """
    found = _detectable(replicates, tests)
    if found is None or shifts is None or not shifts.any():
        return found
    return _moved(found / float(ndtri(1 - ALPHA / tests / 2) + ndtri(WANTED)), tests, shifts)


def replicates_for_half(replicates: int, tests: float, shifts: Array | None = None) -> int | None:
    """How many replicates would find half of that difference with a chance of 80 %; ``None`` if no number would.

    >>> replicates_for_half(20, 1), replicates_for_half(20, 1, np.array([-0.5, 0.0, 0.0, 0.5]))
    (64, None)
    """
    if (difference := detectable(replicates, tests, shifts)) is None:
        return None
    if shifts is None or not shifts.any():
        return _fewest(replicates, lambda many: power(difference / 2, many, tests) >= WANTED)
    if _moved(TINY, tests, shifts) > difference / 2:
        return None
    return _fewest(replicates, lambda many: (detectable(many, tests, shifts) or math.inf) <= difference / 2)


def _fewest(replicates: int, enough: Callable[[int], bool]) -> int | None:
    """The fewest of more than so many ``replicates`` that are enough; ``None`` if a million are not."""
    low, high = replicates, 2 * replicates
    while not enough(high):
        if (high := 2 * high) > MOST:
            return None
        low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


@cache
def _detectable(replicates: int, tests: float) -> float | None:
    if power(LARGEST, replicates, tests) < WANTED:
        return None
    return _smallest(lambda difference: power(difference, replicates, tests) >= WANTED, LARGEST)


def _moved(error: float, tests: float, shifts: Array) -> float:
    """The same for differences with a normal ``error``, of which the choice is no part."""
    most = 16 * error + 2 * float(np.abs(shifts).max())

    def tail(x: Array) -> Array:
        return np.asarray(ndtr(-x / error))

    critical = _smallest(lambda far: bool(both_tails(np.array(far), shifts, tail) <= ALPHA / tests), most)
    both = np.concatenate([shifts, -shifts])
    return _smallest(lambda difference: bool(tail(critical - difference - both).mean() >= WANTED), 2 * most)


def _smallest(found: Callable[[float], bool], high: float) -> float:
    """The smallest number up to ``high`` that is found, to 0.2 %."""
    low = 0.0
    while high - low > 0.002 * high:
        middle = (low + high) / 2
        low, high = (low, middle) if found(middle) else (middle, high)
    return high


@cache
def _drawn(replicates: int) -> tuple[Array, Array, Array]:
    """Mean, standard deviation and skewness of samples of normal numbers."""
    random = np.random.default_rng(0)
    numbers = random.standard_normal((max(250, DRAWN // replicates), replicates))
    _, mean, error = moments(numbers)
    return mean, error * np.sqrt(replicates), skewness(numbers)
