"""Numbers and names as readers see them, the same in the terminal, the pictures and the report."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from tadropedge.comparison.rows import Row, labels
from tadropedge.comparison.statistics import Honest

NOTHING = "–"


def percent(share: float | None, digits: int = 2) -> str:
    """An accuracy in per cent.

    >>> percent(0.8153), percent(None)
    ('81.53', '–')
    """
    return NOTHING if share is None else f"{100 * share:.{digits}f}"


def points(difference: float | None) -> str:
    """A difference of accuracies in points, with its sign.

    >>> points(0.0012), points(-0.0012), points(-0.00001)
    ('+0.12', '−0.12', '0.00')
    """
    if difference is None:
        return NOTHING
    text = f"{100 * difference:+.2f}"
    return "0.00" if float(text) == 0 else text.replace("-", "−")


def interval(low: float | None, high: float | None, signed: bool = False) -> str:
    """Both ends of an interval, in per cent or, with their signs, in points.

    >>> interval(0.8, 0.82), interval(-0.001, 0.002, signed=True)
    ('80.00 to 82.00', '−0.10 to +0.20')
    """
    if low is None or high is None:
        return NOTHING
    return f"{points(low)} to {points(high)}" if signed else f"{percent(low)} to {percent(high)}"


def plus_minus(middle: str, low: float | None, high: float | None) -> str:
    """A number and half the width of its interval.

    >>> plus_minus(percent(0.81), 0.80, 0.82), plus_minus(NOTHING, None, None)
    ('81.00 ± 1.00', '–')
    """
    return middle if low is None or high is None else f"{middle} ± {50 * (high - low):.2f}"


def p_value(value: float | None) -> str:
    """A p-value with as many digits as anyone needs.

    >>> p_value(0.0421), p_value(0.00002), p_value(1.0)
    ('0.042', '< 0.001', '1')
    """
    if value is None:
        return NOTHING
    if value < 0.001:
        return "< 0.001"
    return "1" if value > 0.9995 else f"{value:.3f}"


def outcome(honest: Honest | None) -> str:
    """The verdict in one or two words, empty where there is none.

    >>> outcome(Honest(0.8, 0.7, 0.9, 20, 0.01, -0.02, 0.04, p_value=0.6))
    'undecided'
    """
    said = honest.outcome if honest else None
    return "" if said is None else "undecided" if said == "equal" else said


def paper_label(rows: Iterable[Row]) -> str:
    """The name of the first protocol, with its number of trials.

    >>> paper_label([])
    'paper protocol (best test accuracy of the trials)'
    """
    trials = {row.paper_protocol.trials for row in rows if row.paper_protocol}
    return f"paper protocol (best test accuracy of {_counted(trials, 'trial') or 'the trials'})"


def honest_label(rows: Iterable[Row]) -> str:
    """The name of the second protocol, with its number of replicates, failed ones included."""
    seeds = {row.honest.seeds + row.honest.failed for row in rows if row.honest}
    many = _counted(seeds, "fresh seed") or "fresh seeds"
    return f"honest protocol (settings chosen on validation, retrained on {many} and splits)"


def title(row: Row) -> str:
    """Dataset, backbone and depth.

    >>> title(Row("cora", "gcn", 2, "cdf"))
    'cora, gcn with 2 layers'
    """
    return f"{row.dataset}, {row.backbone} with {_counted({row.layers}, 'layer')}"


def judged(rows: Sequence[Row]) -> Mapping[str, Honest]:
    """The honest part of each row that has one, by its label."""
    return {label: row.honest for label, row in zip(labels(rows), rows, strict=True) if row.honest}


def _counted(numbers: set[int], thing: str) -> str:
    """``20 trials``, or ``80 to 100 trials`` where rows differ."""
    if not numbers:
        return ""
    low, high = min(numbers), max(numbers)
    return f"{low} to {high} {thing}s" if low < high else f"{low} {thing}{'' if low == 1 else 's'}"
