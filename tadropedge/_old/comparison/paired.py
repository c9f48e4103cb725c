"""Tests of "the mean paired difference is zero", many at once, and the correction for asking many times.

Three tests look at the same differences d = values − reference, S of them:

* the paired **t-test**, right for normal differences;
* the **sign-flip** test, exact for symmetric ones of any shape: if method and reference are alike in every respect,
  their replicates could be exchanged, so every pattern of signs is equally likely;
* a **t-test for skewed** differences: Hall's cubic transformation of t, with a skewness one standard error towards the
  dangerous side, for the tail that would refute a difference is the one that few replicates do not show.

A method is called better or worse if all three agree: the largest of the three p-values decides. What each of them
and all of them together let through is measured by ``benchmarks/false_alarms.py``.

Replicates belong to settings that were chosen by chance. Where that chance is known as ``shifts``, by which the true
mean of d may have been moved (``selection.between``), each test asks for the chance that replicates and choice together
give a mean as far from 0: its tail is averaged over the mean less and plus every shift. Without shifts, or if all of
them are 0, nothing changes; with shifts a p-value never falls.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import numpy.typing as npt
import torch
from scipy.special import stdtr, stdtrit

from tadropedge._old.checks import check_numbers
from tadropedge._old.errors import TadropedgeError, show

Array = npt.NDArray[np.float64]
Numbers = Sequence[float] | Array

ALPHA = 0.05  # the chance, over all methods together, of calling an equal one better or worse
ROUNDING = 1e-7  # accuracies are shares of fewer than ten million nodes: what is closer than this is equal
EXACT = 16  # up to so many replicates all patterns of signs are tried, from there on as many random ones
TINY = 1e-12  # stands for the error of differences that are all equal
BLOCK = 2**11  # patterns, and tests, at once
STEPS = 20_000  # of the grid on which the sums of all patterns of signs are counted


def deciding_p_values(values: Array, reference: Array, shifts: Array | None = None, *, fine: bool = False) -> Array:
    """The p-values ``[...]`` that decide, for ``values`` and ``reference`` ``[..., S]``: the largest of three tests.

    ``shifts [..., B]``: by how much the choice of settings may have moved the difference. ``fine``: sign flips are
    counted to the last one, for families of so many tests that the 2^15 random patterns could never decide.

    >>> gains = np.array([[0.01, 0.02, 0.03, 0.02, 0.01, 0.02, 0.03, 0.02], [0.01, 0, -0.01, 0, 0.01, 0, -0.01, 0]])
    >>> deciding_p_values(0.8 + gains, np.full((2, 8), 0.8)).round(4).tolist()
    [0.0091, 1.0]
    >>> deciding_p_values(0.8 + gains, np.full((2, 8), 0.8), np.array([[-0.02, 0, 0, 0.02], [0, 0, 0, 0]])).tolist()[1]
    1.0
    """
    tests = (paired_p_values, skewed_p_values, fine_sign_flip_p_values if fine else sign_flip_p_values)
    p_values: Array = np.maximum.reduce([test(values, reference, shifts) for test in tests])
    return p_values


def paired_p_values(values: Array, reference: Array, shifts: Array | None = None) -> Array:
    """The two-sided p-values ``[...]`` of many paired t-tests at once; ``values`` and ``reference`` are ``[..., S]``.

    With d = values − reference, t = mean(d) / (s / √S) has S − 1 degrees of freedom. Where all d are equal there is no
    s: if they are 0 then p = 1, otherwise p is 2 / 2^S, the chance of S equal signs, which does not call two lucky
    replicates a discovery. NaN where fewer than two pairs are left.

    >>> paired_p_values(np.array([[0.5, 0.5], [0.75, 1.0]]), np.array([[0.5, 0.5], [0.5, 0.75]])).tolist()
    [1.0, 0.5]
    """
    count, mean, error = moments(differences(values, reference))
    return _moved(_t_test(count, mean, error), mean, shifts, lambda x: t_tail(x, error, count))


def skewed_p_values(values: Array, reference: Array, shifts: Array | None = None) -> Array:
    """The same for skewed differences, by :func:`without_skew`; 1 where two pairs are left, which have no skewness."""
    gaps = differences(values, reference)
    count, mean, error = moments(gaps)
    skew = np.sign(mean) * skewness(gaps)
    t = without_skew(np.abs(mean) / np.where(error > 0, error, 1.0), skew, count)
    p_values = np.where(error > 0, np.minimum(2 * stdtr(count - 1, -t), 1.0), _t_test(count, mean, error))
    p_values = _moved(p_values, mean, shifts, lambda x: skewed_tail(x, error, skew, count))
    return np.where(count == 2, 1.0, p_values)


def without_skew(t: Array, skew: Array, count: npt.NDArray[np.int64]) -> Array:
    """Hall's transformation of statistics ``t ≥ 0`` of means of ``count`` numbers with a sample skewness of ``skew``.

    With T = t / √S and k the skewness that counts, it is √S (T + k T² / 3 + k² T³ / 27 + k / 6S), which grows with T.
    k is ``skew`` less its standard error for normal numbers, and at most 0: skewness is never a reason to find more.

    >>> without_skew(np.array([3.0, 3.0]), np.array([0.0, -1.0]), np.array([20, 20])).round(2).tolist()
    [2.65, 2.04]
    """
    size = np.maximum(count, 3).astype(np.float64)
    error = np.sqrt(6 * size * (size - 1) / ((size - 2) * (size + 1) * (size + 3)))
    k, part = np.minimum(skew - error, 0.0), t / np.sqrt(size)
    made = np.sqrt(size) * (part + k * part**2 / 3 + k**2 * part**3 / 27 + k / (6 * size))
    return np.minimum(made, t)  # the cubic overtakes t where T > 9 / |k|


def sign_flip_p_values(values: Array, reference: Array, shifts: Array | None = None) -> Array:
    """The share ``[...]`` of patterns of signs whose sum Σ ±d is at least as far from 0 as Σ d.

    Up to 16 replicates these are all patterns, beyond that 2^15 random ones, always the same, and the one that was
    seen. Zeros and pairs that are left out change nothing, so n others cannot give less than 2 / 2^n.

    >>> sign_flip_p_values(np.array([0.5, 0.75, 0.5, 0.5]), np.array([0.25, 0.5, 0.0, 0.5])).item()
    0.25
    """
    gaps = differences(values, reference)
    flat = np.nan_to_num(gaps, nan=0.0).reshape(-1, gaps.shape[-1])
    least = np.abs(flat.sum(axis=-1)) - 1e-9 * np.abs(flat).sum(axis=-1)  # sums of the same numbers, up to rounding
    found = np.zeros(len(flat), dtype=np.int64)
    patterns = 0
    for signs in _patterns(flat.shape[-1]):
        patterns += len(signs)
        for start in range(0, len(flat), BLOCK):
            part = slice(start, start + BLOCK)
            found[part] += (np.abs(flat[part] @ signs.T) >= least[part, None]).sum(axis=-1)
    count = (~np.isnan(gaps)).sum(axis=-1)
    p_values: Array = np.where(count < 2, np.nan, (found / patterns).reshape(gaps.shape[:-1]))
    mean = flat.sum(axis=-1).reshape(count.shape) / np.maximum(count, 1)
    return _moved(p_values, mean, shifts, lambda x: _flipped_tail(x, flat, count))


def fine_sign_flip_p_values(values: Array, reference: Array, shifts: Array | None = None) -> Array:
    """The same share of **all** 2^S patterns, from the distribution of Σ ±d on a grid of :data:`STEPS` steps.

    What rounding to the grid may have done counts against the finding: the share is too large rather than too small.

    >>> gains = np.full(40, 0.01)
    >>> fine, rough = (test(0.8 + gains, np.full(40, 0.8)) for test in (fine_sign_flip_p_values, sign_flip_p_values))
    >>> f"{fine:.2g} {2 / 2**40:.2g} {rough:.2g}"
    '1.8e-12 1.8e-12 3.1e-05'
    """
    gaps = differences(values, reference)
    flat = np.nan_to_num(gaps, nan=0.0).reshape(-1, gaps.shape[-1])
    count = (~np.isnan(gaps)).sum(axis=-1)
    mean = flat.sum(axis=-1).reshape(count.shape) / np.maximum(count, 1)
    p_values = np.minimum(2 * _fine_tail(np.abs(mean)[..., None], flat, count)[..., 0], 1.0)
    p_values = np.where(count < 2, np.nan, np.where(np.abs(mean) > 0, p_values, 1.0))
    return _moved(p_values, mean, shifts, lambda x: _fine_tail(x, flat, count))


def _fine_tail(x: Array, flat: Array, count: npt.NDArray[np.int64]) -> Array:
    """The share of all patterns of signs whose mean is at least x ``[..., B]``, for gaps ``flat [T, S]``."""
    sums = x * count[..., None]
    shares = np.empty((len(flat), x.shape[-1]))
    for place, (gaps, wanted) in enumerate(zip(flat, sums.reshape(shares.shape), strict=True)):
        step, tails = _flip_tails(np.abs(gaps[gaps != 0]))
        least = np.ceil(wanted / step - len(gaps) / 2 - 1e-6).astype(np.int64)  # each gap may have lost half a step
        shares[place] = tails[np.clip(least + len(tails) // 2, 0, len(tails) - 1)]
        shares[place][least > len(tails) // 2] = 0.0
    return shares.reshape(x.shape)


def _flip_tails(sizes: Array) -> tuple[float, Array]:
    """A step of the grid, and the chance ``[2K + 1]`` that Σ ±d is at least −K, …, K steps."""
    step = float(sizes.sum()) / STEPS or 1.0
    whole = np.rint(sizes / step).astype(np.int64)
    ends = int(whole.sum())
    chances = np.zeros(2 * ends + 1)
    chances[ends] = 1.0  # of a sum of 0, before the first sign
    for size in whole:
        moved = np.zeros_like(chances)
        moved[: len(moved) - size] += chances[size:] / 2
        moved[size:] += chances[: len(chances) - size] / 2
        chances = moved
    return step, np.cumsum(chances[::-1])[::-1]


def half_width(numbers: Array, shifts: Array | None = None, level: float = 1 - ALPHA) -> float:
    """Half of the interval of the mean of ``numbers [S]``, without their NaN: replicates and choice together.

    Without shifts it is that of the t-interval. With them it is the h that leaves 1 − ``level`` outside of ± h, which
    no number of replicates makes narrower than the shifts.

    >>> numbers = np.array([0.01, 0.02, 0.03, 0.02])
    >>> round(half_width(numbers), 4), round(half_width(numbers, np.array([-0.05, 0.0, 0.0, 0.05])), 4)
    (0.013, 0.0567)
    """
    count, _, error = moments(as_floats("numbers", numbers))
    low = float(stdtrit(count - 1, (1 + level) / 2) * error)
    if shifts is None or not (shifts := _shifts(shifts, ())).any():
        return low
    high = low + float(np.abs(shifts).max())
    while high - low > 1e-4 * high:
        middle = (low + high) / 2
        outside = both_tails(np.array(middle), shifts, lambda x: t_tail(x, error, count))
        low, high = (low, middle) if outside <= 1 - level else (middle, high)
    return high


def holm(p_values: Numbers) -> Array:
    """Holm's correction of m p-values ``[..., m]``: the k-th smallest (from 0) times m − k, never falling, at most 1.

    Whoever then calls those of at most 0.05 discoveries errs at all with a chance of at most 5 %.

    >>> holm([0.01, 0.04, 0.03]).round(6).tolist()
    [0.03, 0.06, 0.06]
    """
    values = _probabilities(p_values)
    order = np.argsort(values, axis=-1, kind="stable")
    scaled = np.take_along_axis(values, order, axis=-1) * np.arange(values.shape[-1], 0, -1)
    corrected = np.empty_like(values)
    np.put_along_axis(corrected, order, np.minimum(np.maximum.accumulate(scaled, axis=-1), 1.0), axis=-1)
    return corrected


def false_discovery_rates(p_values: Numbers) -> Array:
    """Benjamini and Hochberg's correction of m p-values ``[m]``: the k-th smallest (from 1) times m / k, never rising.

    Whoever then calls those of at most 0.05 discoveries expects at most 5 % of these discoveries to be false; this
    holds for tests that are independent, or that depend on each other as those do that share a reference.

    >>> false_discovery_rates([0.01, 0.04, 0.03, 0.5]).round(6).tolist()
    [0.04, 0.053333, 0.053333, 0.5]
    """
    values = _probabilities(p_values)
    order = np.argsort(values, kind="stable")
    scaled = values[order] * len(values) / np.arange(1, len(values) + 1)
    corrected = np.empty_like(values)
    corrected[order] = np.minimum(np.minimum.accumulate(scaled[::-1])[::-1], 1.0)
    return corrected


def _probabilities(p_values: Numbers) -> Array:
    values = as_floats("p_values", p_values)
    if not values.ndim or not bool(((values >= 0) & (values <= 1)).all()):
        raise TadropedgeError(f"p_values must lie in [0, 1], got {show(values.tolist(), typed=False)}")
    return values


def differences(values: Array, reference: Array) -> Array:
    """Paired differences ``[..., S]``, exactly 0 where the two are equal up to rounding."""
    values, reference = as_floats("values", values), as_floats("reference", reference)
    if values.shape != reference.shape or not values.ndim:
        told = f"{list(values.shape)} and {list(reference.shape)}"
        raise TadropedgeError(f"values and reference are paired, both [..., S], got shapes {told}")
    gaps = values - reference
    return np.where(np.abs(gaps) < ROUNDING, 0.0, gaps)


def moments(numbers: Array) -> tuple[npt.NDArray[np.int64], Array, Array]:
    """Count, mean and s / √count of ``numbers [..., S]`` without their NaN, each ``[...]``.

    Numbers that are equal up to rounding have exactly no spread; fewer than two have neither mean nor spread.
    """
    known = ~np.isnan(numbers)
    count = known.sum(axis=-1)
    enough = np.where(count < 2, np.nan, count)
    mean = np.where(known, numbers, 0.0).sum(axis=-1) / enough
    off = np.where(known, numbers - mean[..., None], 0.0)
    error = np.sqrt((off**2).sum(axis=-1) / (enough - 1) / enough)
    return count, mean, np.where(np.abs(off).max(axis=-1, initial=0.0) < ROUNDING, 0.0, error)


def skewness(numbers: Array) -> Array:
    """The sample skewness G₁ ``[...]`` of ``numbers [..., S]`` without their NaN; 0 for fewer than three or equal ones.

    >>> skewness(np.array([[0.0, 0.0, 0.0, 1.0], [0.0, 1.0, 2.0, np.nan]])).round(6).tolist()
    [2.0, 0.0]
    """
    count, mean, error = moments(numbers)
    size = np.maximum(count, 3).astype(np.float64)
    spread = np.where(error > 0, error * np.sqrt(size), 1.0)
    cubes = np.nan_to_num(((numbers - mean[..., None]) / spread[..., None]) ** 3, nan=0.0).sum(axis=-1)
    return np.where((count > 2) & (error > 0), cubes * size / ((size - 1) * (size - 2)), 0.0)


def _t_test(count: npt.NDArray[np.int64], mean: Array, error: Array) -> Array:
    t = np.abs(mean) / np.where(error > 0, error, 1.0)
    without_spread = np.where(mean == 0, 1.0, 2.0 ** (1 - count))
    p_values: Array = np.where(error > 0, 2 * stdtr(count - 1, -t), without_spread)
    return np.where(count < 2, np.nan, p_values)


def _moved(p_values: Array, mean: Array, shifts: Array | None, tail: Callable[[Array], Array]) -> Array:
    """The p-values where ``shifts [..., B]`` may move the true mean; ``tail``: that of the test, at x ``[..., 2B]``."""
    if shifts is None or not (known := _shifts(shifts, mean.shape)).any():
        return p_values
    return np.maximum(p_values, np.minimum(both_tails(np.abs(mean), known, tail), 1.0))


def _shifts(shifts: object, tests: tuple[int, ...]) -> Array:
    """``shifts [..., B]`` as float64: finite, and of a shape that fits the ``tests``."""
    array = as_floats("shifts", shifts)
    if not array.ndim or not array.shape[-1] or array.shape[:-1] not in ((), tests):
        raise TadropedgeError(
            f"shifts must be [B] or [{', '.join(map(str, (*tests, 'B')))}], got shape {list(array.shape)}"
        )
    if bool(np.isnan(array).any()):
        raise TadropedgeError("shifts must be finite, got nan")
    return array


def both_tails(far: Array, shifts: Array, tail: Callable[[Array], Array]) -> Array:
    """The chance of a mean beyond ± ``far [...]``: shifts are as likely as the same with the other sign."""
    moved = np.broadcast_to(shifts, (*np.shape(far), np.shape(shifts)[-1]))
    both: Array = 2 * tail(far[..., None] + np.concatenate([moved, -moved], axis=-1)).mean(axis=-1)
    return both


def t_tail(x: Array, error: Array, count: npt.NDArray[np.int64]) -> Array:
    """The chance that a mean without a true difference exceeds x ``[..., B]``."""
    tail: Array = stdtr(np.maximum(count, 2)[..., None] - 1, -x / np.maximum(error, TINY)[..., None])
    return tail


def skewed_tail(x: Array, error: Array, skew: Array, count: npt.NDArray[np.int64]) -> Array:
    """The same for numbers of a sample skewness ``skew``, positive towards x."""
    t = x / np.maximum(error, TINY)[..., None]
    t = np.where(t > 0, without_skew(np.abs(t), skew[..., None], count[..., None]), t)
    tail: Array = stdtr(np.maximum(count, 2)[..., None] - 1, -t)
    return tail


def _flipped_tail(x: Array, flat: Array, count: npt.NDArray[np.int64]) -> Array:
    """The share of patterns of signs whose mean is at least x ``[..., B]``, for gaps ``flat [T, S]``."""
    signs = np.concatenate(list(_patterns(flat.shape[-1])))
    sums = x * count[..., None]
    shares = np.empty((len(flat), x.shape[-1]))
    for place, (gaps, wanted) in enumerate(zip(flat, sums.reshape(shares.shape), strict=True)):
        flips = gaps @ signs.T
        sorted_flips = np.sort(np.concatenate([flips, -flips]))
        least = wanted - 1e-9 * np.abs(gaps).sum()
        shares[place] = 1 - np.searchsorted(sorted_flips, least, side="left") / len(sorted_flips)
    return shares.reshape(x.shape)


def _patterns(size: int) -> Iterator[Array]:
    """Blocks of patterns of ±1 ``[B, S]``, the first of all +1; all signs turned around tell nothing new."""
    if size <= EXACT:
        numbers = np.arange(2 ** max(size - 1, 0))
        bits = (numbers[:, None] >> np.arange(size)) & 1
    else:
        bits = np.random.default_rng(0).integers(0, 2, (2 ** (EXACT - 1), size))
        bits[0] = 0
    for start in range(0, len(bits), BLOCK):
        yield (1 - 2 * bits[start : start + BLOCK]).astype(np.float64)


def as_floats(name: str, values: object) -> Array:
    """``values`` as float64, which must be finite or NaN."""
    array: Array = check_numbers(name, values).detach().cpu().to(torch.float64).numpy()
    if bool(np.isinf(array).any()):
        raise TadropedgeError(f"{name} must be finite, or NaN for a failed trial, got {array[np.isinf(array)][0]}")
    return array
