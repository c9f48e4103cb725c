"""What a smaller effect than this run could find would take: further seeds, or more choosing splits."""

from __future__ import annotations

from collections.abc import Sequence

from tadropedge._old.comparison.judging import KINDS, Against
from tadropedge._old.comparison.results import MethodRow, Protocol
from tadropedge._old.publish.wording import points


def outlook(rows: Sequence[MethodRow], protocol: Protocol | None = None) -> list[str]:
    """A sentence for each kind of reference: the gain that every test of it finds, and what half of that takes.

    >>> outlook([])
    []
    """
    tests: dict[str, list[Against]] = {}
    for row in rows:
        for kind, test in row.tests.items():
            if test.evidence is not None:
                tests.setdefault(kind, []).append(test)
    return [f"Against {words}: {_said(tests[kind], protocol)}." for kind, words in KINDS.items() if kind in tests]


def _said(tests: Sequence[Against], protocol: Protocol | None) -> str:
    seeds = max(test.seeds + test.failed for test in tests)
    known = [test.evidence for test in tests if test.evidence is not None]
    found = [one.detectable for one in known if one.detectable is not None]
    if len(found) < len(known):
        few = max((one.fewest_seeds or 0 for one in known), default=0)
        if seeds < few:
            return f"{seeds} seeds are too few to find any difference; take at least {few} (--seeds {few})"
        return "the replicates do not tell what difference would be found"
    least = max(found)
    said = f"a true difference of {_points(least)} is found with a chance of 80 %"
    halves = [one.seeds_for_half for one in known if one.seeds_for_half is not None]
    if len(halves) < len(known):
        splits = "" if protocol is None else f", now {protocol.choose_splits}"
        return (
            f"{said}; no number of seeds finds half of it, because the luck of choosing settings is as large: more "
            f"choosing splits are what it takes (--choose-splits{splits})"
        )
    most = max(halves)
    return f"{said}; half of it, {_points(least / 2)}, takes {most - seeds} further seeds (--seeds {most})"


def _points(size: float) -> str:
    return f"{points(size).removeprefix('+')} points"
