"""Equal methods, many times over: how often any of them is called better or worse; and numbers at the edge.

Every simulated case draws its comparisons afresh, with another seed than the rates that reports print.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np

from tadropedge.comparison.nulls import NULLS, raised
from tadropedge.comparison.paired import ALPHA, deciding_p_values, holm
from tadropedge.comparison.statistics import judge, verdict
from torture import Case

TRIES = "false alarms of the verdict, and degenerate accuracies"

COMPARISONS = 4000
SEEDS, METHODS = (5, 6, 10, 20, 50), (1, 3, 8)
NAN = float("nan")


def cases() -> Iterator[Case]:
    """Every null that is held, one method that differs among equal ones, and every degenerate comparison."""
    for name, null in NULLS.items():
        for seeds in SEEDS:
            for methods in METHODS:
                if null.held:
                    yield Case(f"{name}: {methods} methods, {seeds} seeds", partial(held, name, seeds, methods))
    for seeds in (9, 10, 20, 50):
        yield Case(f"one better method of eight, {seeds} seeds", partial(others_unharmed, seeds))
        yield Case(f"a collapse nobody saw, {seeds} seeds", partial(conditional, seeds))
    for name, (values, reference, outcome) in EDGES.items():
        yield Case(name, partial(judged, values, reference, outcome))
    for seeds in (2, 3, 5, 17, 40):
        yield Case(f"any accuracies, {seeds} seeds", partial(anything, seeds))


def bound(rate: float, count: int) -> None:
    """At most 5 %, but for the luck of so many draws: three standard errors."""
    most = ALPHA + 3 * np.sqrt(ALPHA * (1 - ALPHA) / count)
    assert rate <= most, f"{rate:.1%} of {count} comparisons raise a false alarm, more than {most:.1%}"


def held(name: str, seeds: int, methods: int, folder: Path) -> None:
    """Any method better or worse is a false alarm."""
    random = np.random.default_rng([99, list(NULLS).index(name), seeds, methods])
    bound(float(raised(NULLS[name].draw(random, (COMPARISONS, methods, seeds))).mean()), COMPARISONS)


def others_unharmed(seeds: int, folder: Path) -> None:
    """Holm's rule: a real difference of one method does not get the equal ones called."""
    gaps = np.random.default_rng([98, seeds]).standard_normal((1000, 8, seeds)) / 100
    gaps[:, 0] += 0.05
    found = holm(deciding_p_values(gaps, np.zeros_like(gaps))) <= ALPHA
    bound(float(found[:, 1:].any(axis=-1).mean()), len(gaps))


def conditional(seeds: int, folder: Path) -> None:
    """No rule sees what did not happen: whenever such a method is called better, the limit stands beside it."""
    random = np.random.default_rng([97, seeds])
    for gaps in NULLS["rare collapse"].draw(random, (40, 1, seeds))[:, 0] / 100:
        rows, evidence = judge({"cdf": 0.7 + gaps}, {"cdf": np.full(seeds, 0.7)})
        if rows["cdf"].outcome == "better":
            words = f"{seeds} replicates cannot exclude a collapse in up to {100 * evidence['cdf'].collapse_rate:.0f} %"
            assert words in rows["cdf"].verdict, rows["cdf"].verdict
            assert words in verdict(rows, evidence), verdict(rows, evidence)
        elif gaps.min() < -0.1:
            assert evidence["cdf"].collapses == (gaps < -0.1).sum()


EDGES: dict[str, tuple[list[float], list[float], str | None]] = {
    "all accuracies equal": ([0.5] * 10, [0.5] * 10, "undecided"),
    "accuracies exactly 1": ([1.0] * 10, [1.0] * 10, "undecided"),
    "accuracies exactly 0": ([0.0] * 10, [0.0] * 10, "undecided"),
    "1 against 0 in ten replicates": ([1.0] * 10, [0.0] * 10, "better"),
    "0 against 1 in ten replicates": ([0.0] * 10, [1.0] * 10, "worse"),
    "1 against 0 in five replicates": ([1.0] * 5, [0.0] * 5, "undecided"),
    "1 against 0 in two replicates": ([1.0] * 2, [0.0] * 2, "undecided"),
    "differences of 1e-16": ([0.5 + 1e-16 * place for place in range(10)], [0.5] * 10, "undecided"),
    "differences of one unit in the last place": ([float(np.nextafter(0.5, 1))] * 20, [0.5] * 20, "undecided"),
    "differences of half a rounding": ([0.5 + 5e-8] * 20, [0.5] * 20, "undecided"),
    "one replicate left": ([0.5] + [NAN] * 9, [0.4] * 10, "failed"),
    "two replicates left": ([0.5, 0.6] + [NAN] * 8, [0.4] * 10, "undecided"),
    "all failed": ([NAN] * 10, [0.5] * 10, "failed"),
    "the reference failed": ([0.5] * 10, [NAN] * 10, "failed"),
    "failures in turns": ([NAN, 0.5] * 5, [0.5, NAN] * 5, "failed"),
    "one gain among ties": ([0.55] + [0.5] * 19, [0.5] * 20, "undecided"),
    "one loss of everything": ([0.0] + [0.6] * 19, [0.5] * 20, "undecided"),
    "equal gains and one failure": ([0.6] * 9 + [NAN], [0.5] * 10, "better"),
}


def judged(values: list[float], reference: list[float], outcome: str | None, folder: Path) -> None:
    """The outcome is as expected, and every number is one."""
    rows, evidence = judge({"cdf": values}, {"cdf": reference})
    assert rows["cdf"].outcome == outcome, rows["cdf"]
    assert verdict(rows, evidence)
    _sane(rows, evidence)


def anything(seeds: int, folder: Path) -> None:
    """Accuracies of 0, 1, a few nodes, and failures, in any mixture."""
    random = np.random.default_rng([96, seeds])
    for _ in range(60):
        values = random.choice([0.0, 1.0, 0.5, 0.55, NAN, random.random()], (2, 3, seeds))
        rows, evidence = judge(dict(zip("abc", values[0], strict=True)), dict(zip("abc", values[1], strict=True)))
        assert verdict(rows, evidence)
        _sane(rows, evidence)


def _sane(rows: dict, evidence: dict) -> None:
    assert set(evidence) == {name for name, row in rows.items() if row.outcome != "failed"}
    for name, one in evidence.items():
        numbers = {key: value for key, value in vars(one).items() if isinstance(value, float)}
        assert all(np.isfinite(value) for value in numbers.values()), (name, numbers)
        for key in ("worst", "collapse_rate", "t_p_value", "sign_flip_p_value", "skewed_p_value"):
            assert 0 <= numbers[key] <= 1, (name, key, numbers[key])
        assert rows[name].p_value >= numbers["t_p_value"], (rows[name], one)
        assert 1 <= one.worst_replicate <= len(one.differences)
