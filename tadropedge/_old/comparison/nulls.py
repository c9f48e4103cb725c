"""What "no difference" may look like, and how often the rule then calls a method better or worse all the same.

Every null has a mean difference of exactly 0. ``benchmarks/false_alarms.py`` measures the rates and writes them beside
this file, and every report prints those nearest to its own number of replicates and methods.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tadropedge._old.comparison.paired import ALPHA, deciding_p_values, holm, paired_p_values, skewed_p_values

Array = npt.NDArray[np.float64]
Size = tuple[int, int, int]  # comparisons, methods, replicates

MEASURED = Path(__file__).with_name("false_alarms.json")


@dataclass(frozen=True)
class Null:
    """Differences of mean 0 in points: ``draw(random, size)``; ``held``: false alarms stay within 5 %."""

    words: str
    draw: Callable[[np.random.Generator, Size], Array]
    held: bool = True


def _mixture(share: float, low: float, high: float, spread: float) -> Callable[[np.random.Generator, Size], Array]:
    """A ``share`` of replicates around ``low``, the others around ``high``."""

    def draw(random: np.random.Generator, size: Size) -> Array:
        return np.where(random.random(size) < share, low, high) + spread * random.standard_normal(size)

    return draw


def _contaminated(random: np.random.Generator, size: Size) -> Array:
    return random.standard_normal(size) * np.where(random.random(size) < 0.1, 5.0, 1.0)


def _shared(random: np.random.Generator, size: Size) -> Array:
    return random.standard_normal(size) - random.standard_normal((size[0], 1, size[2]))


def _ties(random: np.random.Generator, size: Size) -> Array:
    return (random.binomial(20, 0.8, size) - random.binomial(20, 0.8, size)).astype(np.float64) * 5


def _failures(random: np.random.Generator, size: Size) -> Array:
    return np.where(random.random(size) < 0.2, np.nan, random.standard_normal(size))


def _lognormal(sigma: float) -> Callable[[np.random.Generator, Size], Array]:
    return lambda random, size: random.lognormal(0.0, sigma, size) - np.exp(sigma**2 / 2)


NULLS: dict[str, Null] = {
    "normal": Null("normal", lambda random, size: random.standard_normal(size)),
    "shared": Null("normal, one reference shared by all methods", _shared),
    "heavy tails": Null("heavy tails (Student, 3 degrees of freedom)", lambda r, size: r.standard_t(3, size)),
    "contaminated": Null("10 % of replicates spread five times as wide", _contaminated),
    "two peaks": Null("two peaks of equal weight", _mixture(0.5, -1.0, 1.0, 0.3)),
    "unequal peaks": Null("30 % lose 2.1 points, 70 % gain 0.9, spread 1", _mixture(0.3, -2.1, 0.9, 1.0)),
    "skewed": Null("skewed (gamma, skewness 1)", lambda random, size: random.gamma(4.0, size=size) - 4.0),
    "lognormal": Null("skewed (lognormal, σ = 0.5, skewness 1.75)", _lognormal(0.5)),
    "exponential": Null("skewed (exponential, skewness 2)", lambda r, size: r.exponential(size=size) - 1.0),
    "ties": Null("20 test nodes, so most accuracies are tied", _ties),
    "failures": Null("normal, 20 % of pairs failed", _failures),
    "long tail": Null("very skewed (lognormal, σ = 1, skewness 6.2)", _lognormal(1.0), held=False),
    "frequent collapse": Null("20 % lose 4 points, 80 % gain 1, spread 1", _mixture(0.2, -4.0, 1.0, 1.0), held=False),
    "rare collapse": Null("5 % lose 19 points, 95 % gain 1, spread 0.5", _mixture(0.05, -19.0, 1.0, 0.5), held=False),
}


def raised(gaps: Array) -> npt.NDArray[np.bool_]:
    """Which comparisons, of paired differences ``[W, m, S]`` in points, call any of their methods better or worse.

    A method that is left with fewer than two pairs is not tested. Sign flips, the slow part, are only tried where the
    other tests leave the question open.

    >>> raised(np.array([[[1.0, 1.1, 0.9, 1.2, 0.8, 1.0, 1.1]], [[1.0, -1.0, 1.0, -1.0, 1.0, -1.0, 0.5]]])).tolist()
    [True, False]
    """
    scaled = gaps / 100
    nothing = np.zeros_like(scaled)
    p_values = np.nan_to_num(np.maximum(paired_p_values(scaled, nothing), skewed_p_values(scaled, nothing)), nan=1.0)
    undecided = p_values <= ALPHA
    p_values[undecided] = deciding_p_values(scaled[undecided], nothing[undecided])
    return np.asarray((holm(p_values) <= ALPHA).any(axis=-1))


def false_alarms(seeds: int, methods: int) -> dict[str, float]:
    """The rate of false alarms under each null, as measured at the :func:`nearest` replicates and methods."""
    table = _measured()
    seeds, methods = nearest(seeds, methods)
    row, column = table["seeds"].index(seeds), table["methods"].index(methods)
    return {name: table["rates"][name][row][column] for name in NULLS}


def nearest(seeds: int, methods: int) -> tuple[int, int]:
    """The numbers of replicates and methods that were measured, nearest to these in ratio.

    >>> nearest(25, 5), nearest(3, 40)
    ((20, 4), (5, 8))
    """
    table = _measured()
    return _near(table["seeds"], seeds), _near(table["methods"], methods)


def _near(among: list[int], number: int) -> int:
    return min(among, key=lambda one: abs(np.log(one / max(number, 1))))


@cache
def _measured() -> dict[str, Any]:
    content: dict[str, Any] = json.loads(MEASURED.read_text(encoding="utf-8"))
    return content
