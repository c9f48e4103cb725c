"""The whole procedure of a comparison, simulated with the numbers of the run itself: false alarms and power.

If no method has any effect, a setting is as good for one method as for another. In each simulated family

* the qualities of the settings are drawn as in ``selection``, those of one method at random standing for all of them;
* every method and every tuned reference is searched with fresh validation noise and takes its best setting;
* every difference gets the replicates of this run, less their mean, drawn again with replacement, the same replicates
  for all tests, so that skewness, ties, failures and what tests share are those of the run;
* the difference in quality of the two settings is added, and the family is judged by the code that judges the run.

The share of families in which anything is called better or worse is the rate of false alarms. If it exceeds 5 %, tests
are held to the largest ``level`` at which it does not.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from tadropedge.comparison.paired import ALPHA, deciding_p_values, half_width, moments, paired_p_values
from tadropedge.comparison.selection import Fitted, Selection, between, fitted, fitted_means, selection, truths
from tadropedge.errors import TadropedgeError

Array = npt.NDArray[np.float64]
Key = TypeVar("Key", bound=Hashable)

FAMILIES = 1000
EFFECTS = (0.0025, 0.005, 0.01, 0.02, 0.04)  # shares: from a quarter of a point to four points
WANTED = 0.8  # the chance of finding a difference that is there


@dataclass(frozen=True, kw_only=True)
class Simulated:
    """What ``families`` simulated families say of the procedure on this page.

    ``false_alarms`` at ``level`` ± ``error``, the Monte-Carlo standard error; ``at_five_per_cent`` and
    ``without_choice``: what the rate would be at a level of 5 %, and if the choice of settings were left out of
    account. ``power``: the chance of finding an effect, for each of ``effects``, in one test; ``detectable``: the
    smallest effect that is found with a chance of 80 %.
    """

    families: int
    tests: int
    level: float
    false_alarms: float
    error: float
    at_five_per_cent: float
    without_choice: float
    effects: Sequence[float]
    power: Sequence[float]
    detectable: float


def simulated(
    searches: Mapping[Key, Array],
    replicates: Mapping[Key, Array],
    tests: Sequence[tuple[Key, Key]],
    *,
    nodes: int | None = None,
    families: int = FAMILIES,
    effects: Sequence[float] = EFFECTS,
) -> Simulated:
    """False alarms and power of the procedure that made these numbers.

    * ``searches``: validation scores ``[I, K]`` of every method and of every reference with a search of its own, as in
      ``selection.selections``, with ``nodes`` validation nodes;
    * ``replicates``: scores ``[S]`` of the same on fresh seeds and splits, replicate by replicate, NaN where one failed;
    * ``tests``: the family, pairs of a method and its reference.

    >>> random = np.random.default_rng(0)
    >>> names = ("cdf", "original", "dropedge", "dropedge at the budget of cdf")
    >>> quality = 0.8 + 0.02 * random.random((20, 1))
    >>> searches = {name: quality + 0.01 * random.standard_normal((20, 3)) for name in names}
    >>> fresh = {name: 0.81 + 0.01 * random.standard_normal(20) for name in names}
    >>> tests = [("cdf", name) for name in names[1:]] + [("dropedge", "original")]
    >>> found = simulated(searches, fresh, tests, families=200)
    >>> found.false_alarms <= 0.05 < found.without_choice, found.power[0] < found.power[-1]
    (True, True)
    """
    raise NotImplementedError
