"""Runs that fail without saying so: which replicates collapsed, and how often it may happen unseen.

A replicate **collapsed** if its number (the paired difference, or the accuracy of a method without a reference) lies
below the median of all replicates by more than one point and by more than 8 robust standard deviations, each 1.4826
times the median distance to the median (or, where more than half of the numbers are equal, half of the mean
distance). Of S ≥ 6 normal replicates that flags one in at most 1 % of runs, and the others cannot hide a collapse, as
they would in the standard deviation. A replicate is **clean** if it finished and did not collapse.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.special import betaincinv

Array = npt.NDArray[np.float64]

FAR = 8.0  # robust standard deviations
POINT = 0.01
CONFIDENCE = 0.95


def collapsed(numbers: Array) -> npt.NDArray[np.bool_]:
    """Which of ``numbers [S]`` lie far below the others; NaN does not.

    >>> collapsed(np.array([0.010, 0.012, -0.190, 0.008, 0.011])).tolist()
    [False, False, True, False, False]
    """
    known = numbers[~np.isnan(numbers)]
    if not len(known):
        return np.zeros(len(numbers), dtype=bool)
    middle = np.median(known)
    distances = np.abs(known - middle)
    deviation = 1.4826 * np.median(distances) or 0.5 * distances.mean()
    return np.asarray(numbers < middle - max(FAR * deviation, POINT) - 1e-9)


def largest_rate(seen: int, replicates: int) -> float:
    """The largest rate of collapse that ``seen`` collapses in ``replicates`` cannot exclude, at a confidence of 95 %.

    It is the upper limit of Clopper and Pearson; where none was seen that is 1 − 0.05^(1 / replicates).

    >>> [round(largest_rate(0, replicates), 3) for replicates in (10, 20, 50)], round(largest_rate(1, 10), 3)
    ([0.259, 0.139, 0.058], 0.394)
    """
    return 1.0 if seen >= replicates else float(betaincinv(seen + 1, replicates - seen, CONFIDENCE))
