"""One interval decides: paired differences over replicates, one t-interval per claim, wide enough for all of them.

Claims are asked together: each gets the share ``level / claims`` of the allowed error (Bonferroni), so that with a
chance of at least 1 − ``level`` *every* interval holds its true difference. What a reader sees is what decides:

==============  =================================================
``better``      the interval lies above 0
``worse``       the interval lies below 0
``same``        the interval holds 0 and lies within ± ``margin``
``undecided``   none of these
==============  =================================================
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from tadropedge._support.checks import check_integer, check_mapping, check_number
from tadropedge.errors import TadropedgeError, show

Array = npt.NDArray[np.float64]
Numbers = Sequence[float] | Array
Pair = tuple[str, str]
Word = Literal["better", "worse", "same", "undecided"]

LEVEL = 0.05
MARGIN = 0.01
LEAST = 5  # fewer replicates decide nothing where all differences are equal, as they often are on small test sets
ROUNDING = 1e-7  # scores are float32: what differs by less is equal
MOST = 1_000_000  # replicates that anyone will ask for


@dataclass(frozen=True, kw_only=True)
class Replicate:
    """One replicate of a candidate: what validation chose on its split, and how that did there.

    ``chosen`` is a :class:`~tadropedge.lab.Trial`, in results its settings as plain values; ``kept_share`` the expected
    share of edges that it kept, ``None`` where nobody knows it. ``test`` is NaN where every training of the search
    failed.
    """

    number: int
    chosen: Any
    validation: float
    test: float
    kept_share: float | None = 1.0


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """What replicates say of the mean difference between a candidate and a reference.

    ``low`` and ``high`` are the ends of the simultaneous interval. ``needed``, of what is undecided: the replicates
    after which the interval would be as narrow, from end to end, as the margin; then it decides, whatever it shows.
    With fewer than two pairs nothing is known: the difference is NaN and the interval has no ends.
    """

    word: Word
    difference: float
    low: float
    high: float
    replicates: int
    needed: int | None = None


def decide(
    scores: Mapping[str, Numbers],
    pairs: Sequence[Pair],
    margin: float = MARGIN,
    level: float = LEVEL,
    claims: int | None = None,
) -> dict[Pair, Verdict]:
    """The verdict on every pair (candidate, reference), whose ``scores`` are paired: one of each replicate.

    With d the S differences of a pair and m claims, the interval is

        mean(d) ± t · s / √S,   t = the quantile 1 − level / (2 m) of Student's distribution with S − 1 degrees

    Args:
        scores: of each candidate by replicate, in the same order; NaN where it failed, which leaves the pair out.
        pairs: what is asked, as (candidate, reference).
        margin: how large a difference may be and still count as none.
        level: the chance, for all claims together, that some interval misses its true difference.
        claims: m, by default the number of pairs. Controls of a claim that was itself one of m have its m: that a
            candidate beats *all* of them needs no correction of its own.

    >>> found = decide({"a": [0.82, 0.84, 0.80], "b": [0.79, 0.80, 0.78]}, [("a", "b")])["a", "b"]
    >>> found.word, round(found.difference, 4), round(found.low, 4), round(found.high, 4)  # 0.03 ± 4.303 · 0.01 / √3
    ('better', 0.03, 0.0052, 0.0548)
    """
    margin, level = check_number("margin", margin, 0), check_number("level", level, 0, 1)
    share = level / (check_integer("claims", claims, least=1) if claims is not None else max(1, len(pairs)))
    check_mapping("scores", scores)
    found = {}
    for pair in pairs:
        if not isinstance(pair, tuple | list) or len(pair) != 2:
            raise TadropedgeError(f"pairs are (candidate, reference), got {show(pair)}", argument="pairs")
        candidate, reference = pair
        for name in (candidate, reference):
            if name not in scores:
                raise TadropedgeError(f"{name!r} has no scores; there are {', '.join(scores)}", argument="pairs")
        one, other = (np.asarray(scores[name], dtype=np.float64) for name in (candidate, reference))
        if one.shape != other.shape or one.ndim != 1:
            raise TadropedgeError(
                f"{candidate!r} and {reference!r} have {one.size} and {other.size} scores: each replicate needs both"
            )
        gaps = one - other
        found[candidate, reference] = _verdict(gaps[~np.isnan(gaps)], margin, share)
    return found


def interval(numbers: Numbers | Array, level: float = LEVEL) -> tuple[Any, Any, Any]:
    """The mean of numbers ``[..., S]`` and both ends of its t-interval at ``1 - level``, each ``[...]``.

    >>> mean, low, high = interval([0.82, 0.84, 0.80])
    >>> [round(float(value), 4) for value in (mean, low, high)]
    [0.82, 0.7703, 0.8697]
    """
    values = np.asarray(numbers, dtype=np.float64)
    count = values.shape[-1]
    mean = values.mean(axis=-1) if count else np.full(values.shape[:-1], np.nan)
    if count < 2:
        return mean, mean - np.inf, mean + np.inf
    half = quantile(count, level) * values.std(axis=-1, ddof=1) / math.sqrt(count)
    return mean, mean - half, mean + half


def quantile(count: int, level: float) -> float:
    """By how many standard errors an interval of ``count`` numbers reaches to both sides.

    >>> round(quantile(20, 0.05), 3)
    2.093
    """
    from scipy.special import stdtrit

    return float(stdtrit(count - 1, 1 - level / 2))


def needed(spread: float, width: float, level: float = LEVEL) -> int:
    """How many replicates whose differences have a standard deviation ``spread`` an interval of ``width`` takes.

    The least S with 2 t s / √S ≤ width, where t depends on S.

    >>> needed(0.02, width=0.01), needed(0.02, width=0.02)
    (64, 18)
    """
    return 2 + bisect_left(
        range(2, MOST), True, key=lambda count: 2 * quantile(count, level) * spread <= width * math.sqrt(count)
    )


def paired(played: Mapping[str, Iterable[Replicate]], num_splits: int | None = None) -> dict[str, list[float]]:
    """The test scores of the replicates that all of these candidates have; those of one split are averaged.

    >>> three = [Replicate(number=number, chosen=None, validation=0.0, test=number) for number in range(3)]
    >>> paired({"a": three, "b": three[1:]}), paired({"a": three}, num_splits=2)
    ({'a': [1, 2], 'b': [1, 2]}, {'a': [1.0, 1.0]})
    """
    tests = {name: {one.number: one.test for one in some} for name, some in played.items()}
    common = sorted(set.intersection(*map(set, tests.values())))
    if num_splits is None or len(common) <= num_splits:
        return {name: [of[number] for number in common] for name, of in tests.items()}
    groups = [[number for number in common if number % num_splits == split] for split in range(num_splits)]
    return {name: [math.fsum(of[n] for n in group) / len(group) for group in groups] for name, of in tests.items()}


def _verdict(gaps: Array, margin: float, level: float) -> Verdict:
    count = len(gaps)
    difference, low, high = (float(value) for value in interval(gaps, level))
    equal = count > 0 and float(np.ptp(gaps)) < ROUNDING
    word: Word = "undecided"
    more = None
    if count < 2 or (equal and count < LEAST):
        more = LEAST if equal else None
    elif low > ROUNDING:
        word = "better"
    elif high < -ROUNDING:
        word = "worse"
    elif -margin < low and high < margin:
        word = "same"
    elif margin > 0:
        more = needed(float(gaps.std(ddof=1)), margin, level)
    return Verdict(word=word, difference=difference, low=low, high=high, replicates=count, needed=more)
