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

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tadropedge._old.checks import check_integer
from tadropedge._old.comparison.paired import (
    ALPHA,
    both_tails,
    deciding_p_values,
    differences,
    moments,
    paired_p_values,
    skewed_p_values,
    skewed_tail,
    skewness,
    t_tail,
)
from tadropedge._old.comparison.power import WANTED, fewest_replicates
from tadropedge._old.comparison.selection import Fitted, between, fitted, fitted_means, selection, truths
from tadropedge._old.errors import TadropedgeError, show

Array = npt.NDArray[np.float64]
Places = npt.NDArray[np.int64]

FAMILIES = 1000
EFFECTS = (0.0025, 0.005, 0.01, 0.02, 0.04)  # shares: from a quarter of a point to four points
POWERED = 200  # families in which an effect is looked for
DRAWS = 512  # truths of each choice: fewer than for the run itself, which makes p-values noisier, but no smaller


@dataclass(frozen=True, kw_only=True)
class Simulated:
    """What ``families`` simulated families say of the procedure on this page.

    ``false_alarms`` at ``level`` ± ``error``, the Monte-Carlo standard error; ``at_five_per_cent`` and
    ``without_choice``: what the rate would be at a level of 5 %, and if the choice of settings were left out of
    account. ``power``: the chance of finding an effect, for each of ``effects``, in one test; ``detectable``: the
    smallest effect that is found with a chance of 80 %, ``None`` if there is none.
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
    detectable: float | None


def simulated(
    searches: Mapping[str, Array],
    replicates: Mapping[str, Array],
    tests: Sequence[tuple[str, str]],
    *,
    nodes: int | None = None,
    families: int = FAMILIES,
    effects: Sequence[float] = EFFECTS,
) -> Simulated:
    """False alarms and power of the procedure that made these numbers.

    * ``searches``: validation scores ``[I, K]`` of every method and of every reference with a search of its own, as in
      ``selection.selections``, with ``nodes`` validation nodes;
    * ``replicates``: scores ``[S]`` of the same on fresh seeds and splits, NaN where one failed, paired;
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
    fit, places, gaps = fitted(searches, nodes), _places(searches, tests), _gaps(replicates, tests)
    world = _drawn(fit, places, gaps, check_integer("families", families, least=1))
    smallest, plainly = smallest_p_values(world, places)
    level = _level(smallest * len(places))
    rate = float((smallest * len(places) <= level).mean())
    needed = needed_effects(world, places, level)
    return Simulated(
        families=families,
        tests=len(places),
        level=level,
        false_alarms=rate,
        error=math.sqrt(max(rate * (1 - rate), 1 / families) / families),
        at_five_per_cent=float((smallest * len(places) <= ALPHA).mean()),
        without_choice=float((plainly * len(places) <= ALPHA).mean()),
        effects=tuple(effects),
        power=tuple(float((needed <= effect).mean()) for effect in effects),
        detectable=found if math.isfinite(found := float(np.quantile(needed, WANTED, method="higher"))) else None,
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class World:
    """F simulated families.

    ``scores [F, M, n]``: mean validation scores, NaN for a failed trial; ``noise [F]``: the standard error that is
    estimated for them, with ``freedom`` degrees of freedom; ``gaps [F, T, S]``: paired differences of all tests.
    """

    scores: Array
    noise: Array
    freedom: int
    gaps: Array

    def fit(self, family: int) -> Fitted:
        """What the searches of one family say."""
        return fitted_means(self.scores[family], float(self.noise[family]), self.freedom)


def _drawn(fit: Fitted, places: Places, gaps: Array, families: int) -> World:
    random = np.random.default_rng(0)
    methods = len(fit.means)
    drawn = np.stack([truths(fit, place) for place in range(methods)])  # [M, B, n]
    numbers = np.arange(families)
    quality = drawn[random.integers(methods, size=families), numbers % drawn.shape[1]]
    scores = quality[:, None] + fit.noise * random.standard_normal((families, methods, quality.shape[-1]))
    chosen = np.take_along_axis(quality, scores.argmax(axis=-1), axis=-1)  # [F, M]
    noise = fit.noise * np.sqrt(random.chisquare(fit.freedom, families) / fit.freedom)
    again = gaps[:, random.integers(gaps.shape[1], size=(families, gaps.shape[1]))].swapaxes(0, 1)  # [F, T, S]
    moved = chosen[:, places[:, 0]] - chosen[:, places[:, 1]]
    return World(
        scores=np.where(np.isinf(scores), np.nan, scores),
        noise=noise,
        freedom=fit.freedom,
        gaps=again + moved[..., None],
    )


def smallest_p_values(world: World, places: Places) -> tuple[Array, Array]:
    """The smallest p-value of each family, with the choice and without it; 1 where it cannot alarm at all.

    Holm's first step decides whether a family alarms, so only p-values of at most 0.05 / T are followed up, in the
    order of what the tests cost. Without the choice, sign flips count by their least p-value alone.
    """
    least = ALPHA / len(places)
    nothing, count = np.zeros_like(world.gaps), (~np.isnan(world.gaps)).sum(axis=-1)
    tests = (paired_p_values(world.gaps, nothing), skewed_p_values(world.gaps, nothing), 2.0 ** (1 - count))
    plain = np.nan_to_num(np.maximum.reduce(tests), nan=1.0)
    smallest = np.ones(len(plain))
    for family in map(int, np.flatnonzero((plain <= least).any(axis=1))):
        fit = world.fit(family)
        found = {place: selection(fit, place, DRAWS) for place in np.unique(places[plain[family] <= least])}
        for test in np.flatnonzero(plain[family] <= least):
            shifts = between(*(found[place] for place in places[test]))
            gaps, zeros = world.gaps[family, test], nothing[family, test]
            if (np.abs(shifts) >= abs(np.nanmean(gaps))).mean() > 2 * least:
                continue  # each of these shifts alone adds at least half of its share to the p-value
            if all(p(gaps, zeros, shifts) <= least for p in (paired_p_values, skewed_p_values)):
                smallest[family] = min(smallest[family], float(deciding_p_values(gaps, zeros, shifts)))
    return smallest, plain.min(axis=1)


def _level(corrected: Array) -> float:
    """The largest level up to 0.05, in steps of 0.0001, at which at most 5 % of families alarm."""
    first = float(np.sort(corrected)[int(ALPHA * len(corrected))])  # the first alarm that is too many
    return ALPHA if first > ALPHA else max(math.ceil(first * 1e4) - 1, 0) / 1e4


def needed_effects(world: World, places: Places, level: float) -> Array:
    """The effect that is just found in each of the first families, in one test, all tests in turn; infinite: none is.

    Sign flips count by their least p-value alone.
    """
    needed = np.full(min(POWERED, len(world.gaps)), np.inf)
    for family in range(len(needed)):
        test = family % len(places)
        gaps, fit = world.gaps[family, test], world.fit(family)
        count, mean, _ = moments(gaps)
        if count >= fewest_replicates(len(places)) and level > 0:
            shifts = between(*(selection(fit, place, DRAWS) for place in places[test]))
            shifts = np.sort(np.abs(shifts))[1::4]  # enough to look for an effect
            needed[family] = _distance(gaps, shifts, level / len(places)) - mean
    return needed


def _distance(gaps: Array, shifts: Array, level: float) -> float:
    """The smallest mean that both the t-test and the one for skewed differences would find in ``gaps [S]``."""
    count, _, error = moments(gaps)
    skew = skewness(gaps)

    def outside(far: float) -> float:
        tails = (lambda x: t_tail(x, error, count)), (lambda x: skewed_tail(x, error, skew, count))
        return max(float(both_tails(np.array(far), shifts, tail)) for tail in tails)

    low, high = 0.0, float(error) + float(shifts.max())
    while outside(high) > level:
        low, high = high, 2 * high
    while high - low > 0.01 * high:
        middle = (low + high) / 2
        low, high = (low, middle) if outside(middle) <= level else (middle, high)
    return high


def _places(searches: Mapping[str, Array], tests: Sequence[tuple[str, str]]) -> Places:
    order = list(searches)
    for pair in tests:
        for name in pair:
            if name not in searches:
                raise TadropedgeError(f"tests must name searches, got {show(name)}, which is none of {show(order)}")
    return np.array([[order.index(name) for name in pair] for pair in tests])


def _gaps(replicates: Mapping[str, Array], tests: Sequence[tuple[str, str]]) -> Array:
    """The differences ``[T, S]`` of each test less their mean, spread as those of all possible replicates."""
    gaps = np.stack([differences(replicates[ours], replicates[theirs]) for ours, theirs in tests])
    count, mean, _ = moments(gaps)
    scale: Array = np.sqrt(count / np.maximum(count - 1, 1))
    return (gaps - mean[:, None]) * scale[:, None]
