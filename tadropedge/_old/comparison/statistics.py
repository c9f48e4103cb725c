"""The honest protocol's numbers: means, paired differences to DropEdge, corrected p-values, and what they say.

Replicate s is one fresh seed and split, shared by all methods, so methods are compared pair by pair: the luck of a
split cancels in the difference. The intervals speak of this graph under new seeds and splits, not of other graphs.

Accuracies are shares in [0, 1]; sentences speak of points, that is percentage points.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from tadropedge._old.checks import check_function, check_table
from tadropedge._old.comparison.evidence import Evidence, gathered
from tadropedge._old.comparison.paired import (
    ALPHA,
    as_floats,
    deciding_p_values,
    differences,
    half_width,
    holm,
    moments,
    paired_p_values,
)
from tadropedge._old.errors import TadropedgeError
from tadropedge._old.publish.wording import counted, gap, listed, percent
from tadropedge._old.typed import Count, Share

Array = npt.NDArray[np.float64]
Accuracies = Sequence[float] | Array
Test = Callable[..., Array]  # from values and references [S] to a p-value

LEVEL = 0.95  # of every interval
MEANS, DIFFERENCES = ("mean", "low", "high"), ("difference", "difference_low", "difference_high", "p_value")


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
    ``p_value`` is corrected for the number of methods, and decides. What cannot be said is ``None``: the difference of
    a method without a reference, and every number of a method with fewer than two replicates left.
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
    def threshold(self) -> float:
        """The largest p-value that decides."""
        return ALPHA

    @property
    def outcome(self) -> str | None:
        """``"better"``, ``"worse"`` or ``"undecided"``; ``"failed"``; ``None``: compared with nothing."""
        if self.mean is None:
            return "failed"
        if self.difference is None or self.p_value is None:
            return None
        if self.p_value > self.threshold:
            return "undecided"
        return "better" if self.difference > 0 else "worse"

    def gap(self, signed: bool = False) -> str:
        """The difference in a sentence, such as ``0.12 ± 0.08 points``."""
        return gap(self.difference, self.difference_low, self.difference_high, signed)


def mean_interval(values: Accuracies) -> Interval:
    """The mean of ``values [S]`` and its 95 % t-interval, mean ± t(0.975, S − 1) · s / √S; NaN is left out.

    >>> interval = mean_interval([0.80, 0.82, 0.84, float("nan")])
    >>> round(interval.low, 6), round(interval.mean, 6), round(interval.high, 6), interval.count
    (0.770317, 0.82, 0.869683, 3)
    """
    return _interval(_vector("values", values), None)


def _interval(values: Array, shifts: Array | None) -> Interval:
    """The same, as wide as the luck of choosing settings makes it, which may have moved the mean by ``shifts``."""
    counts, means, _ = moments(values)
    count, mean = int(counts), float(means)
    if count < 2:
        raise TadropedgeError(f"an interval needs at least 2 finished replicates, got {count}")
    half = half_width(values, shifts, LEVEL)
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
    return Difference(**vars(mean_interval(differences(ours, theirs))), p_value=float(paired_p_values(ours, theirs)))


def honest_rows(
    accuracy: Mapping[str, Accuracies], reference: Mapping[str, Accuracies], test: Test = paired_p_values
) -> dict[str, Honest]:
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
    arrays, references = _checked(accuracy, reference)
    check_function("test", test, "test(values [S], reference [S]) -> a p-value", arguments=2)
    rows = _corrected({method: _uncorrected(values, references.get(method), test) for method, values in arrays.items()})
    return {method: replace(row, verdict=sentence(method, row)) for method, row in rows.items()}


def judge(
    accuracy: Mapping[str, Accuracies],
    reference: Mapping[str, Accuracies],
    shifts: Mapping[str, Array] | None = None,
    level: float = ALPHA,
) -> tuple[dict[str, Honest], dict[str, Evidence]]:
    r"""The rows of a comparison and the evidence behind them: decided by three tests that must agree.

    The tests are those of ``paired.deciding_p_values``: together they also hold where differences are skewed or tied.
    ``shifts[method] [B]`` are those by which the luck of choosing settings may have moved its difference
    (``selection.between``): they widen the interval and raise the p-values. What could be found
    is that with p-values of at most ``level``.

    >>> gains = [0.010, 0.012, 0.008, 0.011, 0.009, 0.010, 0.012, 0.008, 0.011, 0.009]
    >>> rows, evidence = judge({"cdf": [0.8 + gain for gain in gains]}, {"cdf": [0.8] * 10})
    >>> print(*rows["cdf"].verdict.split("; "), sep=";\n")
    cdf is better than DropEdge by 1.00 ± 0.11 points;
    these 10 replicates cannot exclude a collapse in up to 26 % of runs
    """
    arrays, references = _checked(accuracy, reference)
    moved = shifts or {}
    evidence = gathered(arrays, references, moved, level)
    rows = _corrected(
        {
            method: _uncorrected(values, references.get(method), deciding_p_values, moved.get(method))
            for method, values in arrays.items()
        }
    )
    return {name: replace(row, verdict=sentence(name, row, evidence.get(name))) for name, row in rows.items()}, evidence


def _corrected(rows: Mapping[str, Honest]) -> dict[str, Honest]:
    """The rows with their p-values corrected for all that have one."""
    tested = {method: row.p_value for method, row in rows.items() if row.p_value is not None}
    corrected = dict(zip(tested, holm(list(tested.values())).tolist(), strict=True))
    return {method: replace(row, p_value=corrected.get(method)) for method, row in rows.items()}


def sentence(method: str, row: Honest, evidence: Evidence | None = None, than: str = "DropEdge") -> str | None:
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
            said = f"{method} cannot be told apart from {than} ({row.gap(signed=True)})"
        case outcome:
            said = f"{method} is {outcome} than {than} by {row.gap()}"
    return "; ".join([said, *_limits({method: row}, {method: evidence} if evidence else {})])


def verdict(rows: Mapping[str, Honest], evidence: Mapping[str, Evidence] | None = None) -> str:
    """One sentence for all methods: the better ones first, then the worse, the undecided and the failed.

    With the ``evidence`` at hand it also says what the replicates cannot show. It does not depend on the order of the
    methods.

    >>> accuracy = {"cdf": [0.83, 0.82, 0.85], "cutoff": [0.86, 0.86, 0.88]}
    >>> reference = {"cdf": [0.83, 0.83, 0.84], "cutoff": [0.83, 0.83, 0.84]}
    >>> verdict(honest_rows(accuracy, reference))
    'cutoff is better than DropEdge by 3.33 ± 1.43 points; cdf cannot be told apart'
    >>> print(verdict(*judge(accuracy, reference)))
    cdf and cutoff cannot be told apart from DropEdge; 3 replicates are too few to tell any difference: take at least 7
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
    return "; ".join([*clauses, *_limits(rows, evidence or {})]) or "no method was compared with DropEdge"


def _limits(rows: Mapping[str, Honest], evidence: Mapping[str, Evidence]) -> list[str]:
    """What the replicates cannot show: collapses of a method that is called better, or any difference at all."""
    better = {method: evidence[method] for method in sorted(evidence) if rows[method].outcome == "better"}
    seen = {method: one.collapses for method, one in better.items() if one.collapses}
    clauses = [f"{method} collapsed in {many} of {rows[method].seeds} replicates" for method, many in seen.items()]
    if better:
        rate = percent(max(one.collapse_rate for one in better.values()), 0)
        many = counted({rows[method].seeds for method in better}, "replicate")
        clauses.append(f"these {many} cannot exclude a collapse in up to {rate} % of runs")
    few = [method for method, one in evidence.items() if rows[method].seeds < (one.fewest_seeds or 0)]
    if few and len(few) == sum(row.p_value is not None for row in rows.values()):
        many = counted({rows[method].seeds for method in few}, "replicate")
        least = max(evidence[method].fewest_seeds or 0 for method in few)
        clauses.append(f"{many} are too few to tell any difference: take at least {least}")
    return clauses


def _uncorrected(values: Array, reference: Array | None, test: Test, shifts: Array | None = None) -> Honest:
    """The row of one method: over complete pairs, so that its mean and its difference speak of the same replicates."""
    used = ~np.isnan(values) if reference is None else ~(np.isnan(values) | np.isnan(reference))
    count = int(used.sum())
    level = mean_interval(values[used]) if count > 1 else None
    numbers = {name: getattr(level, name, None) for name in MEANS}
    gap, p_value = None, None
    if level and reference is not None:
        gap = _interval(differences(values, reference), shifts)
        p_value = float(test(values, reference) if shifts is None else test(values, reference, shifts))
    numbers |= {name: getattr(gap, part, p_value) for name, part in zip(DIFFERENCES, (*MEANS, "p_value"), strict=True)}
    return Honest(**numbers, seeds=count, verdict=None, failed=len(values) - count)


def _checked(
    accuracy: Mapping[str, Accuracies], reference: Mapping[str, Accuracies]
) -> tuple[dict[str, Array], dict[str, Array]]:
    check_table("accuracy", accuracy, "methods to accuracies")
    check_table("reference", reference, "methods to accuracies")
    arrays = {method: _vector(f"accuracy of {method}", values) for method, values in accuracy.items()}
    references = {method: _vector(f"the reference of {method}", values) for method, values in reference.items()}
    _check(arrays, references)
    return arrays, references


def _vector(name: str, values: Accuracies) -> Array:
    array = as_floats(name, values)
    if array.ndim != 1:
        raise TadropedgeError(f"{name} must be a vector of numbers, got shape {list(array.shape)}")
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
