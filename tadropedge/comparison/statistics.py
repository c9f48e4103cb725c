"""The honest protocol's numbers: means, paired differences to DropEdge, corrected p-values, and what they say.

Replicate s is one fresh seed and split, shared by all methods, so methods are compared pair by pair: the luck of a
split cancels in the difference. The intervals speak of this graph under new seeds and splits, not of other graphs.

Accuracies are shares in [0, 1]; sentences speak of points, that is percentage points.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import torch
from scipy.special import stdtr, stdtrit

from tadropedge.errors import TadropedgeError, check_numbers, check_table, show
from tadropedge.publish.wording import gap, listed
from tadropedge.typed import Count, Share

Array = npt.NDArray[np.float64]
Accuracies = Sequence[float] | Array

LEVEL = 0.95  # of every interval
ALPHA = 0.05  # the chance, over all methods together, of calling an equal one better or worse
MEANS, DIFFERENCES = ("mean", "low", "high"), ("difference", "difference_low", "difference_high", "p_value")
ROUNDING = 1e-7  # accuracies are shares of fewer than ten million nodes: what is closer than this is equal


@dataclass(frozen=True, kw_only=True)
class Interval:
    """A mean of ``count`` numbers and its 95 % interval."""

    mean: float
    low: float
    high: float
    count: int


@dataclass(frozen=True, kw_only=True)
class Difference(Interval):
    """A mean of ``count`` paired differences, its 95 % interval, and the p-value of "there is no difference"."""

    p_value: float


@dataclass(frozen=True, kw_only=True)
class Honest:
    """What the honest protocol says of one method: the ``honest`` part of a row of ``results.json``.

    ``seeds`` replicates were used; ``failed`` were left out because this method or its reference failed there.
    ``p_value`` is corrected for the number of methods. What cannot be said is ``None``: the difference of a method
    without a reference, and every number of a method with fewer than two replicates left.
    """

    mean: Share | None
    low: float | None
    high: float | None
    seeds: Count
    difference: float | None
    difference_low: float | None
    difference_high: float | None
    p_value: Share | None
    verdict: str | None
    failed: Count = 0

    def __post_init__(self) -> None:
        for group in (MEANS, DIFFERENCES):  # given together or not at all
            lacking = [name for name in group if getattr(self, name) is None]
            if 0 < len(lacking) < len(group):
                raise TadropedgeError(f"must give {', '.join(group)} or none of them, but lacks {', '.join(lacking)}")

    @property
    def outcome(self) -> str | None:
        """``"better"``, ``"worse"`` or ``"undecided"``; ``"failed"``; ``None``: compared with nothing."""
        if self.mean is None:
            return "failed"
        if self.difference is None or self.p_value is None:
            return None
        if self.p_value > ALPHA:
            return "undecided"
        return "better" if self.difference > 0 else "worse"

    def gap(self, signed: bool = False) -> str:
        """The difference to DropEdge in a sentence, such as ``0.12 ± 0.08 points``."""
        return gap(self.difference, self.difference_low, self.difference_high, signed)


def mean_interval(values: Accuracies) -> Interval:
    """The mean of ``values [S]`` and its 95 % t-interval, mean ± t(0.975, S − 1) · s / √S; NaN is left out.

    >>> interval = mean_interval([0.80, 0.82, 0.84, float("nan")])
    >>> round(interval.low, 6), round(interval.mean, 6), round(interval.high, 6), interval.count
    (0.770317, 0.82, 0.869683, 3)
    """
    counts, means, errors = _moments(_vector("values", values))
    count, mean, error = int(counts), float(means), float(errors)
    if count < 2:
        raise TadropedgeError(f"an interval needs at least 2 finished replicates, got {count}")
    half = stdtrit(count - 1, (1 + LEVEL) / 2).item() * error
    return Interval(mean=mean, low=mean - half, high=mean + half, count=count)


def paired_difference(values: Accuracies, reference: Accuracies) -> Difference:
    """The mean of d = ``values − reference``, both ``[S]``, its 95 % t-interval and the paired t-test's p-value.

    The p-value is that of :func:`paired_p_values`. A pair with a NaN is left out.

    >>> difference = paired_difference([0.83, 0.85, 0.84], [0.80, 0.82, 0.83])
    >>> round(difference.mean, 6), round(difference.p_value, 4), difference.count
    (0.023333, 0.0728, 3)
    """
    ours, theirs = _vector("values", values), _vector("reference", reference)
    if len(ours) != len(theirs):
        raise TadropedgeError(f"values and reference are paired, got {len(ours)} and {len(theirs)} replicates")
    return Difference(**vars(mean_interval(_gaps(ours, theirs))), p_value=float(paired_p_values(ours, theirs)))


def paired_p_values(values: Array, reference: Array) -> Array:
    """The two-sided p-values ``[...]`` of many paired t-tests at once; ``values`` and ``reference`` are ``[..., S]``.

    With d = values − reference, t = mean(d) / (s / √S) has S − 1 degrees of freedom. Where all d are equal there is no
    s: if they are 0 then p = 1, otherwise p is 2 / 2^S, the chance of S equal signs, which does not call two lucky
    replicates a discovery. NaN where fewer than two pairs are left.

    >>> paired_p_values(np.array([[0.5, 0.5], [0.75, 1.0]]), np.array([[0.5, 0.5], [0.5, 0.75]])).tolist()
    [1.0, 0.5]
    """
    values, reference = _numbers("values", values), _numbers("reference", reference)
    if values.shape != reference.shape or not values.ndim:
        told = f"{list(values.shape)} and {list(reference.shape)}"
        raise TadropedgeError(f"values and reference are paired, both [..., S], got shapes {told}")
    count, mean, error = _moments(_gaps(values, reference))
    t = np.abs(mean) / np.where(error > 0, error, 1.0)
    without_spread = np.where(mean == 0, 1.0, 2.0 ** (1 - count))
    p_values: Array = np.where(error > 0, 2 * stdtr(count - 1, -t), without_spread)
    return np.where(count < 2, np.nan, p_values)


def holm(p_values: Accuracies) -> Array:
    """Holm's correction of m p-values ``[..., m]``: the k-th smallest (from 0) times m − k, never falling, at most 1.

    Whoever then calls those of at most 0.05 discoveries errs at all with a chance of at most 5 %.

    >>> holm([0.01, 0.04, 0.03]).round(6).tolist()
    [0.03, 0.06, 0.06]
    """
    values = check_numbers("p_values", p_values).detach().cpu().to(torch.float64).numpy()
    if not values.ndim or not bool(((values >= 0) & (values <= 1)).all()):
        raise TadropedgeError(f"p_values must lie in [0, 1], got {show(values.tolist(), typed=False)}")
    order = np.argsort(values, axis=-1, kind="stable")
    scaled = np.take_along_axis(values, order, axis=-1) * np.arange(values.shape[-1], 0, -1)
    corrected = np.empty_like(values)
    np.put_along_axis(corrected, order, np.minimum(np.maximum.accumulate(scaled, axis=-1), 1.0), axis=-1)
    return corrected


def honest_rows(accuracy: Mapping[str, Accuracies], reference: Mapping[str, Accuracies]) -> dict[str, Honest]:
    """One :class:`Honest` for each method, in the order given.

    ``accuracy[method] [S]`` holds test accuracies, replicate by replicate, NaN where a trial failed;
    ``reference[method] [S]`` those of DropEdge with the method's expected number of kept edges. A method without a
    reference (``original``, ``dropedge``) gets a mean and no verdict. p-values are corrected for all that have one.

    >>> rows = honest_rows({"dropedge": [0.80, 0.82, 0.81], "cdf": [0.83, 0.85, 0.85]}, {"cdf": [0.80, 0.82, 0.81]})
    >>> rows["cdf"].verdict
    'cdf is better than DropEdge by 3.33 ± 1.43 points'
    >>> rows["dropedge"].verdict is None
    True
    """
    check_table("accuracy", accuracy, "methods to accuracies")
    check_table("reference", reference, "methods to accuracies")
    arrays = {method: _vector(f"accuracy of {method}", values) for method, values in accuracy.items()}
    references = {method: _vector(f"the reference of {method}", values) for method, values in reference.items()}
    _check(arrays, references)
    rows = {method: _uncorrected(values, references.get(method)) for method, values in arrays.items()}
    tested = {method: row.p_value for method, row in rows.items() if row.p_value is not None}
    for method, p_value in zip(tested, holm(list(tested.values())), strict=True):
        rows[method] = replace(rows[method], p_value=float(p_value))
    return {method: replace(row, verdict=sentence(method, row)) for method, row in rows.items()}


def sentence(method: str, row: Honest) -> str | None:
    """What can be said of one method, or ``None`` where there was nothing to compare it with.

    >>> rows = honest_rows({"cdf": [0.83, 0.82, 0.85]}, {"cdf": [0.83, 0.83, 0.84]})
    >>> sentence("cdf", rows["cdf"])
    'cdf cannot be told apart from DropEdge (0.00 ± 2.48 points)'
    """
    match row.outcome:
        case None:
            return None
        case "failed":
            return f"{method} failed in {row.failed} of {row.seeds + row.failed} replicates"
        case "undecided":
            return f"{method} cannot be told apart from DropEdge ({row.gap(signed=True)})"
        case outcome:
            return f"{method} is {outcome} than DropEdge by {row.gap()}"


def verdict(rows: Mapping[str, Honest]) -> str:
    """One sentence for all methods: the better ones first, then the worse, the undecided and the failed.

    It does not depend on the order of the methods.

    >>> accuracy = {"cdf": [0.83, 0.82, 0.85], "cutoff": [0.86, 0.86, 0.88]}
    >>> verdict(honest_rows(accuracy, {"cdf": [0.83, 0.83, 0.84], "cutoff": [0.83, 0.83, 0.84]}))
    'cutoff is better than DropEdge by 3.33 ± 1.43 points; cdf cannot be told apart'
    """
    groups: dict[str | None, list[str]] = {}
    for method in sorted(rows):
        groups.setdefault(rows[method].outcome, []).append(method)
    clauses: list[str] = []
    for outcome in ("better", "worse"):
        for method in sorted(groups.get(outcome, []), key=lambda method: -abs(rows[method].difference or 0.0)):
            than = "" if clauses else " than DropEdge"  # named once
            clauses.append(f"{method} is {outcome}{than} by {rows[method].gap()}")
    if "undecided" in groups:
        clauses.append(f"{listed(groups['undecided'])} cannot be told apart{'' if clauses else ' from DropEdge'}")
    if "failed" in groups:
        clauses.append(f"{listed(groups['failed'])} failed too often to be judged")
    return "; ".join(clauses) or "no method was compared with DropEdge"


def _uncorrected(values: Array, reference: Array | None) -> Honest:
    """The row of one method: over complete pairs, so that its mean and its difference speak of the same replicates."""
    used = ~np.isnan(values) if reference is None else ~(np.isnan(values) | np.isnan(reference))
    count = int(used.sum())
    level = mean_interval(values[used]) if count > 1 else None
    gap = paired_difference(values[used], reference[used]) if level and reference is not None else None
    numbers = {name: getattr(level, name, None) for name in MEANS}
    numbers |= {name: getattr(gap, part, None) for name, part in zip(DIFFERENCES, (*MEANS, "p_value"), strict=True)}
    return Honest(**numbers, seeds=count, verdict=None, failed=len(values) - count)


def _gaps(values: Array, reference: Array) -> Array:
    """Paired differences ``[..., S]``, exactly 0 where the two are equal up to rounding."""
    gaps = values - reference
    return np.where(np.abs(gaps) < ROUNDING, 0.0, gaps)


def _moments(numbers: Array) -> tuple[npt.NDArray[np.int64], Array, Array]:
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


def _vector(name: str, values: Accuracies) -> Array:
    array = _numbers(name, values)
    if array.ndim != 1:
        raise TadropedgeError(f"{name} must be a vector of numbers, got shape {list(array.shape)}")
    return array


def _numbers(name: str, values: object) -> Array:
    array: Array = check_numbers(name, values).detach().cpu().to(torch.float64).numpy()
    if bool(np.isinf(array).any()):
        raise TadropedgeError(f"{name} must be finite, or NaN for a failed trial, got {array[np.isinf(array)][0]}")
    return array


def _check(arrays: Mapping[str, Array], references: Mapping[str, Array]) -> None:
    """Every array must hold shares of the same replicates, at least two, and every reference belong to a method."""
    everything = [*arrays.items(), *((f"the reference of {method}", values) for method, values in references.items())]
    for name, values in everything:
        if len(wrong := values[(values < 0) | (values > 1)]):
            raise TadropedgeError(f"accuracies of {name} must be shares in [0, 1], got {wrong[0]:g}")
    for method in references:
        if method not in arrays:
            raise TadropedgeError(f"a reference is given for {method!r}, but accuracies only for {', '.join(arrays)}")
    lengths = {len(values) for _, values in everything}
    if len(lengths) > 1:
        ours, theirs = (
            ", ".join(f"{method} {len(values)}" for method, values in given.items()) for given in (arrays, references)
        )
        raise TadropedgeError(f"all methods must have the same replicates, got {ours}; references {theirs or 'none'}")
    if lengths and min(lengths) < 2:
        raise TadropedgeError(f"an interval needs at least 2 replicates (seeds), got {min(lengths)}")
