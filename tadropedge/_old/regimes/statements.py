"""What a map says of each question, one sentence with numbers: depth, labels, budget, noise, heterophily, features."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median

from tadropedge._old.errors import TadropedgeError
from tadropedge._old.method import Method
from tadropedge._old.publish.wording import counted, listed, plus_minus, points
from tadropedge._old.regimes.across import Across, across, foremost
from tadropedge._old.regimes.results import BASE, MapRow, RegimeMap
from tadropedge._old.regimes.summary import (
    Condition,
    Finding,
    capital,
    condition_words,
    conditions,
    difference,
    findings,
    homophily,
    record,
    tally,
    under,
)

MIXED = 0.5  # edge homophily below which a dataset is called heterophilous
QUESTIONS = {  # of each, the kind of condition that asks it
    "depth": "depth",
    "few labels": "labels",
    "low budget": "budget",
    "noise": "noise",
    "heterophily": "",
    "missing features": "features",
}


@dataclass(frozen=True)
class Statement:
    """A sentence on one question, and the number of judged cells it rests on."""

    name: str
    words: str
    cells: int


def statements(found: RegimeMap) -> list[Statement]:
    """One sentence for each question; where no cell was judged, it says that."""
    every, tests = findings(found), across(found)
    made = []
    for name, kind in QUESTIONS.items():
        if name == "heterophily":
            words, cells = _heterophily(every, homophily(found))
        else:
            asked = [one for one in conditions(found) if one[0] == kind]
            some = {condition_words(*one): under(every, *one) for one in asked}
            cells = tally([one for part in some.values() for one in part]).cells
            words = "" if not cells else _budget(some) if kind == "budget" else _helped(some, under(every, BASE))
            means = [told for one in asked if (told := _mean(tests, one))]
            words += f" In the mean over datasets, {listed(means)}." if cells and means else ""
        made.append(Statement(name, words or "No cell was judged.", cells))
    return made


def _helped(some: dict[str, list[Finding]], base: Sequence[Finding]) -> str:
    """Where dropping helps under each value of a condition, and in the base setting."""
    parts = [f"with {words} in {_gains(part)}" for words, part in some.items()]
    everywhere = [one for part in some.values() for one in part]
    usual = tally(base)
    base_words = f"in the base setting in {_of(usual.gains, usual.cells)}"
    return f"Dropping is better than not dropping {listed(parts)}; {base_words}. {_further(everywhere)}"


def _mean(tests: Across, condition: Condition) -> str:
    """The method with the largest mean over datasets, and whether that is sure."""
    best = foremost(tests, condition)
    if best is None:
        return ""
    told = plus_minus(points(best.mean), best.low, best.high)
    if best.mean <= 0:
        return f"nothing gains with {condition_words(*condition)} (at best {best.method}, {told} points)"
    doubt = "" if best.outcome == "better" else ", which cannot be told from none"
    return f"{best.method} gains most with {condition_words(*condition)} ({told} points over not dropping{doubt})"


def _gains(part: Sequence[Finding]) -> str:
    found = tally(part)
    said = _of(found.gains, found.cells)
    if not found.gains:
        return said
    return f"{said} ({points(found.median_gain)} points in the median, most often {found.often})"


def _further(some: Sequence[Finding]) -> str:
    """The largest gain, and how often something beats DropEdge as well."""
    found, top = tally(some), _largest(some)
    beyond = f"a method is also better than DropEdge in {_of(found.beyond, found.cells)}"
    if top is None:
        return f"{capital(beyond)}."
    best, where = top.best, top.cell.dataset
    told = difference(best.tests["none"]) if best else ""
    return f"The largest gain is {told} points ({best.method if best else ''} on {where}), and {beyond}."


def _largest(some: Iterable[Finding]) -> Finding | None:
    return max(
        (one for one in some if one.best is not None),
        key=lambda one: one.best.tests["none"].difference if one.best else 0.0,
        default=None,
    )


def _budget(some: dict[str, list[Finding]]) -> str:
    """What so few edges cost, for the best score and for DropEdge, and whether scores are better at the same budget."""
    parts = []
    for words, part in some.items():
        leaders = [row for one in part if (row := best_score(one)) is not None]
        if not leaders:
            continue
        lost = median(row.tests["none"].difference for row in leaders)
        uniform = record(part, "dropedge").median
        beside = "" if uniform is None else f", DropEdge by {points(uniform)}"
        better = sum(any(outcome(row, "budget") == "better" for row in scored(one)) for one in part)
        above = _of(tally(part).gains, tally(part).cells)
        parts.append(
            f"with {words} the best score differs from the whole graph by {points(lost)} points in the median of "
            f"{counted(len(leaders), 'cell')}{beside}; a score is better than DropEdge at the same budget in "
            f"{_of(better, len(leaders))}, and some dropping better than the whole graph in {above}"
        )
    return "".join(f"{capital(part)}. " for part in parts).rstrip()


def _heterophily(every: Sequence[Finding], known: dict[str, float]) -> tuple[str, int]:
    """Cells of heterophilous datasets beside those of the others, under all conditions."""
    sides = [[one for one in every if (known.get(one.cell.dataset, 1.0) < MIXED) is mixed] for mixed in (True, False)]
    mixed, other = (tally(side) for side in sides)
    if not mixed.cells:
        return "", 0
    names = listed(dict.fromkeys(one.cell.dataset for one in sides[0]))
    edgeless = sum(one.edgeless for one in sides[0])
    return (
        f"On heterophilous datasets (edge homophily below {MIXED:g}: {names}), under all conditions together, dropping "
        f"is better than not dropping in {_gains(sides[0])}, on the others in {_of(other.gains, other.cells)}; every "
        f"method is worse in {_of(mixed.losses, mixed.cells)} and {_of(other.losses, other.cells)}. A network that "
        f"sees no edges is better than one that sees the whole graph in {_of(edgeless, mixed.cells)} of the "
        "heterophilous datasets."
    ), mixed.cells


def scored(one: Finding) -> list[MapRow]:
    """The judged methods of a cell that drop edges by a score."""
    return [row for name, row in one.droppings.items() if by_score(name)]


def by_score(name: str) -> bool:
    """Whether a method drops edges by a score.

    >>> by_score("degree-proportional"), by_score("cdf"), by_score("dropedge"), by_score("auto")
    (True, True, False, False)
    """
    try:
        return Method.of(name).score is not None
    except TadropedgeError:  # of a plug-in that is not here
        return False


def best_score(one: Finding) -> MapRow | None:
    """The score with the largest mean in a cell."""
    return max(scored(one), key=lambda row: row.mean or 0.0, default=None)


def outcome(row: MapRow, reference: str) -> str | None:
    """The word of a test, where there is one."""
    test = row.tests.get(reference)
    return None if test is None else test.outcome


def _of(some: int, cells: int) -> str:
    return f"{some} of {cells} cells"
