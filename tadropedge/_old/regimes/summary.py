"""What a map says, cell by cell and condition by condition: pure functions of its rows.

The best method of a cell is surely better than not dropping and has the largest mean of those that neither DropEdge
nor the degree score beats. Where there is none, either every method is surely worse (a loss), or the cell is grey. A
network that sees no edges is a control and never the best way of dropping them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import median

from tadropedge._old.publish.wording import NOTHING, plus_minus, points
from tadropedge._old.regimes.results import BASE, JUDGED, KINDS, MapCell, MapRow, MapTest, RegimeMap, Value

NOT_DROPPING, DROPEDGE, AUTO = "original", "dropedge", "auto"
CONTROLS = ("mlp",)  # networks without edges: they ask whether the graph is needed, and drop nothing
NARROW = 0.005  # half a point: the half-width that most cells should have
GAIN, LOSS, GREY, UNJUDGED = "gain", "loss", "grey", "unjudged"
Condition = tuple[str, Value]


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One cell and what was found there; ``rows`` by method.

    ``best`` is surely better than not dropping; ``leader`` has the largest mean of all that drop edges, sure or not.
    """

    cell: MapCell
    rows: dict[str, MapRow]

    @cached_property
    def droppings(self) -> dict[str, MapRow]:
        """The methods that drop edges and were judged against not dropping."""
        return {
            name: row
            for name, row in self.rows.items()
            if row.state == JUDGED and "none" in row.tests and name not in CONTROLS
        }

    @cached_property
    def best(self) -> MapRow | None:
        """The best method; ``None`` where none is surely better than not dropping."""
        better = [row for row in self.droppings.values() if row.tests["none"].outcome == "better"]
        return _leader([row for row in better if not _beaten(row)] or better)

    @property
    def leader(self) -> MapRow | None:
        """The method with the largest mean."""
        return _leader(self.droppings.values())

    @property
    def state(self) -> str:
        """``gain``, ``loss`` (every method is surely worse), ``grey`` (neither) or ``unjudged``."""
        if not self.droppings:
            return UNJUDGED
        if self.best is not None:
            return GAIN
        worse = all(row.tests["none"].outcome == "worse" for row in self.droppings.values())
        return LOSS if worse else GREY

    @property
    def half_width(self) -> float | None:
        """Half the width of the interval of a difference to not dropping: the median of the methods."""
        return median(map(half, (row.tests["none"] for row in self.droppings.values()))) if self.droppings else None

    @property
    def settled_half(self) -> float | None:
        """The same for the settings as they were chosen, without the luck of choosing them."""
        known = [half for row in self.droppings.values() if (half := row.tests["none"].settled_half) is not None]
        return median(known) if known else None

    @property
    def beyond(self) -> list[str]:
        """The methods that are surely better than not dropping and than DropEdge."""
        return [name for name in self.droppings if self.outcomes(name) == ("better", "better")]

    @property
    def edgeless(self) -> bool:
        """Whether a network that sees no edges is surely better than not dropping: the graph does harm here."""
        tests = (self.rows[name].tests.get("none") for name in CONTROLS if name in self.rows)
        return any(test is not None and test.outcome == "better" for test in tests)

    def test(self, method: str, reference: str) -> MapTest | None:
        """The test of a method against ``none``, ``dropedge``, ``budget`` or ``degree``, where there is one.

        Where the budget is given, DropEdge keeps to it, too: there the test against DropEdge is that of ``budget``.
        """
        tests = self.rows[method].tests if method in self.rows else {}
        return tests.get(reference, tests.get("budget") if reference == DROPEDGE else None)

    def outcomes(self, method: str) -> tuple[str | None, str | None]:
        """How a method did against not dropping and against DropEdge."""
        tests = [self.test(method, reference) for reference in ("none", DROPEDGE)]
        return tests[0].outcome if tests[0] else None, tests[1].outcome if tests[1] else None


def _leader(rows: Iterable[MapRow]) -> MapRow | None:
    return max(rows, key=lambda row: row.mean or 0.0, default=None)


def _beaten(row: MapRow) -> bool:
    return any(test.outcome == "worse" for test in row.tests.values())


def half(test: MapTest) -> float:
    """Half the width of an interval."""
    return (test.high - test.low) / 2


def findings(found: RegimeMap) -> list[Finding]:
    """What was found in every cell, in the order of the map."""
    rows: dict[str, dict[str, MapRow]] = {cell.key: {} for cell in found.cells}
    for row in found.rows:
        rows.setdefault(row.cell, {})[row.method] = row
    return [Finding(cell=cell, rows=rows[cell.key]) for cell in found.cells]


def conditions(found: RegimeMap) -> list[Condition]:
    """Every condition of a map: kinds in the order of ``KINDS``, values in that of the map."""
    order = list(KINDS)
    there = dict.fromkeys((cell.kind, cell.value) for cell in found.cells)
    return sorted(there, key=lambda one: order.index(one[0]) if one[0] in order else len(order))


def datasets(found: RegimeMap) -> list[str]:
    """Every dataset of a map, in its order."""
    return list(dict.fromkeys(cell.dataset for cell in found.cells))


def methods(found: RegimeMap) -> list[str]:
    """Every method of a map, in its order."""
    return list(dict.fromkeys(row.method for row in found.rows))


def under(found: Sequence[Finding], kind: str, value: Value = None) -> list[Finding]:
    """The findings under one condition."""
    return [one for one in found if (one.cell.kind, one.cell.value) == (kind, value)]


def condition_words(kind: str, value: Value) -> str:
    """A condition in a sentence, after "with".

    >>> condition_words("labels", "full"), condition_words("noise", 0.25), condition_words("depth", 32)
    ('all labels', '25 % random edges added', '32 layers')
    """
    share = f"{100 * value:g} %" if isinstance(value, int | float) else str(value)
    words = {
        BASE: "the base setting",
        "labels": "all labels" if value == "full" else f"{value} label{'' if value == 1 else 's'} per class",
        "budget": f"{share} of the edges kept",
        "depth": f"{value} layers",
        "noise": f"{share} random edges added",
        "features": "all features hidden" if value == 1 else f"the features of {share} of the nodes hidden",
        "network": f"the network {value}",
    }
    return words.get(kind, f"{kind} {value}")


def capital(words: str) -> str:
    """Words at the start of a sentence.

    >>> capital("all labels")
    'All labels'
    """
    return words[:1].upper() + words[1:]


def heading(kind: str, value: Value) -> str:
    r"""A condition at the head of a column: two short lines.

    >>> heading("noise", 1.0), heading("base", None), heading("labels", "full")
    ('noise\n+100 %', 'base', 'labels\nfull')
    """
    if isinstance(value, int | float) and kind in ("budget", "noise", "features"):
        return f"{kind}\n{'+' if kind == 'noise' else ''}{100 * value:g} %"
    return kind if value is None else f"{kind}\n{value}"


def homophily(found: RegimeMap) -> dict[str, float]:
    """The edge homophily of every dataset as it is: noise changes that of its cells."""
    known = [cell for cell in found.cells if cell.kind != "noise"] + list(found.cells)
    own: dict[str, float] = {}
    for cell in known:
        if cell.data.homophily is not None:
            own.setdefault(cell.dataset, cell.data.homophily)
    return own


@dataclass(frozen=True, kw_only=True)
class MethodRecord:
    """How often a method was better, worse or undecided against one reference, and its median difference."""

    better: int = 0
    worse: int = 0
    undecided: int = 0
    median: float | None = None

    @property
    def cells(self) -> int:
        """How many cells have the test."""
        return self.better + self.worse + self.undecided

    @property
    def words(self) -> str:
        """The three counts.

        >>> MethodRecord(better=2, undecided=7, worse=1).words
        '2 better, 7 undecided, 1 worse'
        """
        return f"{self.better} better, {self.undecided} undecided, {self.worse} worse"


def record(found: Iterable[Finding], method: str, reference: str = "none") -> MethodRecord:
    """The record of a method over some cells."""
    tests = [test for one in found if (test := one.test(method, reference)) is not None]
    counts = Counter(test.outcome for test in tests)
    middle = median(test.difference for test in tests) if tests else None
    return MethodRecord(**{name: counts[name] for name in ("better", "worse", "undecided")}, median=middle)


@dataclass(frozen=True, kw_only=True)
class CellCounts:
    """Some cells in numbers: how many were judged, where dropping helps, and where a method beats DropEdge, too."""

    cells: int
    gains: int
    losses: int
    beyond: int
    often: str | None
    often_cells: int
    median_gain: float | None


def tally(found: Sequence[Finding]) -> CellCounts:
    """Count what was found in some cells; of methods that are best equally often, the one named first in the map."""
    best = [(one.best.method, one.best.tests["none"].difference) for one in found if one.best is not None]
    often = Counter(method for method, _ in best).most_common(1)
    return CellCounts(
        cells=sum(one.state != UNJUDGED for one in found),
        gains=len(best),
        losses=sum(one.state == LOSS for one in found),
        beyond=sum(bool(one.beyond) for one in found),
        often=often[0][0] if often else None,
        often_cells=often[0][1] if often else 0,
        median_gain=median(gain for _, gain in best) if best else None,
    )


def difference(test: MapTest | None) -> str:
    """A difference with half the width of its interval, in points."""
    return NOTHING if test is None else plus_minus(points(test.difference), test.low, test.high)


def narrow(found: Sequence[Finding], *, settled: bool = False) -> tuple[int, int]:
    """The cells whose half-width is at most half a point, and all that have one; ``settled``: without luck."""
    every = (one.settled_half if settled else one.half_width for one in found)
    widths = [one for one in every if one is not None]
    return sum(one <= NARROW for one in widths), len(widths)


def reference_of(kind: str) -> str:
    """What a method is chosen by under a condition: where the budget is given, DropEdge must keep to it, too."""
    return "budget" if kind == "budget" else "none"


@dataclass(frozen=True, kw_only=True)
class MapChoice:
    """One method for all datasets under one condition, and its ``record`` against ``reference``; None: no method."""

    condition: Condition
    method: str | None
    reference: str
    record: MethodRecord

    @property
    def often(self) -> bool:
        """Whether the method is better in at least half of the cells."""
        return 2 * self.record.better >= self.record.cells > 0


def choice(found: RegimeMap, condition: Condition) -> MapChoice:
    """The method that is better in most cells, counting those where it is worse against it.

    One method is judged over all cells, unlike the best of each cell; where several do as well, it is the one with the
    largest median difference. No method, where none is better anywhere or each is worse as often.
    """
    some, reference = under(findings(found), *condition), reference_of(condition[0])
    records = {name: record(some, name, reference) for name in methods(found) if name not in (NOT_DROPPING, *CONTROLS)}
    known = {name: one for name, one in records.items() if one.better > one.worse}

    def rank(name: str) -> tuple[int, float]:
        return known[name].better - known[name].worse, known[name].median or 0.0

    use = max(known, key=rank, default=None)
    least = MethodRecord(undecided=max((one.cells for one in records.values()), default=0))
    return MapChoice(condition=condition, method=use, reference=reference, record=known[use] if use else least)
