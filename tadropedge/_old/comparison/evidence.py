"""What stands behind a verdict: the worst replicates, collapses, other tests of the same question, and the power."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tadropedge._old.comparison.collapse import collapsed, largest_rate
from tadropedge._old.comparison.paired import (
    ALPHA,
    differences,
    holm,
    moments,
    paired_p_values,
    sign_flip_p_values,
    skewed_p_values,
    skewness,
)
from tadropedge._old.comparison.power import detectable, fewest_replicates, replicates_for_half
from tadropedge._old.publish.wording import p_value
from tadropedge._old.typed import Count, MaybeNan, Share

Array = npt.NDArray[np.float64]

# What the absolute skewness of so many normal numbers exceeds in 1 % of samples (simulated).
SIZES = (3, 4, 5, 6, 7, 8, 10, 14, 20, 50, 100)
SKEWED = (1.74, 1.97, 2.08, 2.10, 2.05, 2.00, 1.87, 1.65, 1.42, 0.912, 0.645)
LOWEST = 1e-12  # stands for a level of 0, at which nothing is found


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """What the replicates of one method show beside their means: the ``evidence`` of a row of ``results.json``.

    Replicates are counted from 1. ``collapse_rate`` is the largest rate of collapse that the replicates cannot
    exclude. The p-values are those of three tests, each corrected for the number of methods; the one that decides is
    made of the largest of each method. ``detectable`` is the smallest true difference that would be found with a
    chance of 80 %, ``seeds_for_half`` what it takes for half of it, and ``fewest_seeds`` for any difference at all.
    What belongs to a difference is ``None`` for a method without a reference.
    """

    worst: Share
    worst_replicate: Count
    worst_difference: float | None = None
    worst_difference_replicate: Count | None = None
    collapses: Count
    collapse_rate: Share
    skewness: float | None = None
    t_p_value: Share | None = None
    sign_flip_p_value: Share | None = None
    skewed_p_value: Share | None = None
    detectable: float | None = None
    seeds_for_half: Count | None = None
    fewest_seeds: Count | None = None
    warnings: Sequence[str] = ()
    differences: Sequence[MaybeNan] = ()


def gathered(
    accuracy: Mapping[str, Array],
    reference: Mapping[str, Array],
    shifts: Mapping[str, Array] | None = None,
    level: float = ALPHA,
) -> dict[str, Evidence]:
    """The evidence of every method that has two complete replicates; all as in ``statistics.judge``.

    >>> gains = np.array([0.01, 0.02, 0.01, 0.015, -0.19, 0.01])
    >>> found = gathered({"cdf": 0.8 + gains}, {"cdf": np.full(6, 0.8)})["cdf"]
    >>> found.worst_difference_replicate, found.collapses, round(found.collapse_rate, 2)
    (5, 1, 0.58)
    """
    pairs = {method: (values, reference.get(method)) for method, values in accuracy.items()}
    complete = {method: _complete(*pair) for method, pair in pairs.items() if _complete(*pair).sum() > 1}
    tested = {method: differences(accuracy[method], reference[method]) for method in complete if method in reference}
    moved = {method: (shifts or {}).get(method, np.zeros(1)) for method in tested}
    p_values = _p_values(list(tested.values()), list(moved.values()))
    found = {}
    for method, used in complete.items():
        values = np.where(used, accuracy[method], np.nan)
        worst = int(np.nanargmin(values))
        lost = int(collapsed(tested.get(method, values)).sum())
        members: dict[str, object] = {"worst": float(values[worst]), "worst_replicate": worst + 1}
        if method in tested:
            place = list(tested).index(method)
            mine = {name: float(column[place]) for name, column in p_values.items()}
            # A lower level asks as much of each test as more of them at 5 % would.
            tests = len(tested) * (ALPHA / max(level, LOWEST))
            members |= mine | _of_differences(tested[method], tests, moved[method])
            members["warnings"] = _warnings(tested[method], mine, lost)
        members |= {"collapses": lost, "collapse_rate": largest_rate(lost, int(used.sum()))}
        found[method] = Evidence(**members)  # type: ignore[arg-type]
    return found


def _complete(values: Array, reference: Array | None) -> npt.NDArray[np.bool_]:
    return ~np.isnan(values if reference is None else values - reference)


def _p_values(gaps: Sequence[Array], shifts: Sequence[Array]) -> dict[str, Array]:
    """Each of the three tests of every method, corrected by Holm's rule on its own."""
    if not gaps:
        return {}
    stacked, moved = np.stack(gaps), np.stack(shifts)
    nothing = np.zeros_like(stacked)
    tests = {"t_p_value": paired_p_values, "sign_flip_p_value": sign_flip_p_values, "skewed_p_value": skewed_p_values}
    return {name: holm(test(stacked, nothing, moved)) for name, test in tests.items()}


def _of_differences(gaps: Array, tests: float, shifts: Array) -> dict[str, object]:
    """What belongs to the differences of one of so many methods that are tested together."""
    counts, _, errors = moments(gaps)
    count, worst = int(counts), int(np.nanargmin(gaps))
    spread = float(errors) * math.sqrt(count)
    moved = shifts / spread if spread else None
    found = detectable(count, tests, moved) if spread else None  # equal differences tell nothing of those to come
    return {
        "worst_difference": float(gaps[worst]),
        "worst_difference_replicate": worst + 1,
        "skewness": float(skewness(gaps)),
        "detectable": None if found is None else found * spread,
        "seeds_for_half": None if found is None else replicates_for_half(count, tests, moved),
        "fewest_seeds": fewest_replicates(tests),
        "differences": tuple(gaps.tolist()),
    }


def usual_skewness(count: int) -> float:
    """The absolute skewness that ``count`` normal numbers exceed in 1 % of samples.

    >>> usual_skewness(10), round(usual_skewness(400), 2)
    (1.87, 0.32)
    """
    return float(np.interp(count, SIZES, SKEWED)) if count <= SIZES[-1] else 2.576 * float(np.sqrt(6 / count))


def _warnings(gaps: Array, p_values: Mapping[str, float], lost: int) -> tuple[str, ...]:
    """Why a reader should look at the replicates of a method, in words that follow its name and a colon."""
    counts, mean, _ = moments(gaps)
    count, skew = int(counts), float(skewness(gaps))
    said = [f"collapsed in {lost} of {count} replicates"] if lost else []
    if abs(skew) > (usual := usual_skewness(count)):
        tail = "a few replicates far below the others" if skew < 0 else "a few replicates far above the others"
        sign = "−" if skew < 0 else "+"
        said.append(f"skewed, {tail} (skewness {sign}{abs(skew):.1f}; {count} normal ones stay within ±{usual:.1f})")
    t, flip, skewed = (p_values[name] for name in ("t_p_value", "sign_flip_p_value", "skewed_p_value"))
    if len({p <= ALPHA for p in (t, flip, skewed)}) > 1:
        word = "better" if mean > 0 else "worse"
        verb = f"would call it {word}" if t <= ALPHA else "would not decide"
        said.append(
            f"the tests disagree: the t-test alone {verb} (p = {p_value(t)}), the sign-flip test has "
            f"p = {p_value(flip)}, the test for skewed differences p = {p_value(skewed)}"
        )
    return tuple(said)
