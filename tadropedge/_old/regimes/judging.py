"""One family of tests over the whole map: every method of every cell against each of its references.

A method's references are those of a comparison: not dropping, DropEdge tuned, and DropEdge at the same budget. Methods
of a spectral score are also held against the degree score, which costs one pass over the edges. All are tuned alike and
paired over the same fresh splits; p-values include the luck of choosing settings, and are corrected for all tests of
the map by their false discovery rate: of what is called better or worse, at most 5 % are expected to be neither. Only
p-values far below 5 % survive that. Those are computed again with so many simulated choices that rare ones count, and
the larger of the two is taken.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from tadropedge._old.comparison.paired import deciding_p_values, differences, false_discovery_rates, half_width
from tadropedge._old.comparison.selection import Selection, between
from tadropedge._old.comparison.statistics import LEVEL, mean_interval
from tadropedge._old.method import Method
from tadropedge._old.regimes.results import FAILED, JUDGED, OUT_OF_REACH, MapCell, MapRow, MapTest

Array = npt.NDArray[np.float64]
SPECTRAL = ("aggregate", "effective")  # scores that are made of the Laplacian
DEGREE = "degree-proportional"  # what they are held against
LOW = 1e-3  # a p-value above this is never a discovery among hundreds of tests
EVERY = 8  # of the sorted shifts: an eighth of them gives the same interval in an eighth of the time


@dataclass(frozen=True, kw_only=True, eq=False)
class Played:
    """A cell whose trainings are done.

    ``scores[name] [S]``: test scores of methods and references on the same S splits, NaN where one failed;
    ``selected[name]``: what the luck of choosing settings does to a mean; ``against[method]``: its references by kind;
    ``told[method]``: what its row says besides; ``least_share``: of methods that cannot keep so few edges. ``rare``
    gives ``selected`` with rare choices.
    """

    cell: MapCell
    scores: Mapping[str, Array]
    selected: Mapping[str, Selection]
    against: Mapping[str, Mapping[str, str]]
    told: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    least_share: Mapping[str, float] = field(default_factory=dict)
    rare: Callable[[], Mapping[str, Selection]] | None = None

    @cached_property
    def rarely(self) -> Mapping[str, Selection]:
        """What the luck of choosing does to a mean, rare choices included."""
        return self.selected if self.rare is None else self.rare()

    @property
    def references(self) -> dict[str, dict[str, str]]:
        """What each method is held against, by kind, with the degree score for those of a spectral one."""
        found = {method: dict(kinds) for method, kinds in self.against.items()}
        for method, kinds in found.items():
            if Method.of(method).score in SPECTRAL and DEGREE in self.scores:
                kinds["degree"] = DEGREE
        return found


@dataclass(frozen=True, kw_only=True)
class _Uncorrected:
    """A test before the others are known."""

    place: tuple[str, str, str]  # cell, method, kind
    reference: str
    difference: float
    half: float
    settled_half: float
    p_value: float


def map_rows(played: Sequence[Played]) -> list[MapRow]:
    """The rows of all cells, in their order, judged together.

    >>> from tadropedge._old.comparison.card import data_card
    >>> from tadropedge._old.data import load_karate
    >>> how = {"backbone": "gcn", "layers": 2, "hidden": 8, "epochs": 9, "trials": 2, "choose_splits": 1, "seeds": 12}
    >>> cell = MapCell(dataset="karate", kind="base", value=None, data=data_card(load_karate()), **how)
    >>> scores = {"original": np.array([0.80, 0.81, 0.79] * 4), "dropedge": np.array([0.83, 0.85, 0.82] * 4)}
    >>> luck = {name: Selection(shifts=np.zeros(4), noise=0.0) for name in scores}
    >>> against = {"original": {}, "dropedge": {"none": "original"}}
    >>> rows = map_rows([Played(cell=cell, scores=scores, selected=luck, against=against)])
    >>> rows[1].method, rows[1].tests["none"].outcome, round(rows[1].tests["none"].difference, 4)
    ('dropedge', 'better', 0.0333)
    """
    tests = [test for one in played for test in _tests(one)]
    corrected = false_discovery_rates([test.p_value for test in tests]).tolist() if tests else []
    found: dict[tuple[str, str], dict[str, MapTest]] = {}
    for test, p_value in zip(tests, corrected, strict=True):
        cell, method, kind = test.place
        found.setdefault((cell, method), {})[kind] = MapTest(
            reference=test.reference,
            difference=test.difference,
            low=test.difference - test.half,
            high=test.difference + test.half,
            p_value=test.p_value,
            corrected=p_value,
            settled_half=test.settled_half,
        )
    return [row for one in played for row in _rows(one, found)]


def _tests(one: Played) -> Iterator[_Uncorrected]:
    for method, kinds in one.references.items():
        for kind, name in kinds.items():
            ours, theirs = one.scores[method], one.scores[name]
            gaps = differences(ours, theirs)
            if np.isfinite(gaps).sum() < 2:
                continue
            luck = between(one.selected[method], one.selected[name])
            yield _Uncorrected(
                place=(one.cell.key, method, kind),
                reference=name,
                difference=float(np.nanmean(gaps)),
                half=half_width(gaps, _thinned(luck), LEVEL),
                settled_half=half_width(gaps, None, LEVEL),
                p_value=_p_value(one, method, name),
            )


def _p_value(one: Played, method: str, name: str) -> float:
    """That of "there is no difference" between a method and its reference."""
    found = _with_luck(one, method, name, one.selected)
    return found if found > LOW else max(found, _with_luck(one, method, name, one.rarely))


def _with_luck(one: Played, method: str, name: str, selected: Mapping[str, Selection]) -> float:
    luck = between(selected[method], selected[name])
    return float(deciding_p_values(one.scores[method], one.scores[name], luck, fine=True))


def _thinned(shifts: Array) -> Array:
    return np.sort(shifts)[EVERY // 2 :: EVERY] if len(shifts) > EVERY**2 else shifts


def _rows(one: Played, tests: Mapping[tuple[str, str], Mapping[str, MapTest]]) -> Iterator[MapRow]:
    """The methods of a cell: those that were trained, then those that are out of reach."""
    cell = one.cell
    place: dict[str, Any] = {"dataset": cell.dataset, "kind": cell.kind, "value": cell.value}
    for method in one.against:
        scores = one.scores[method]
        told: dict[str, Any] = {"seeds": int(np.isfinite(scores).sum()), **one.told.get(method, {})}
        if told["seeds"] < 2:
            yield MapRow(**place, method=method, state=FAILED, **told)
            continue
        mean = mean_interval(scores)
        found = tests.get((cell.key, method), {})
        numbers: dict[str, Any] = {"mean": mean.mean, "low": mean.low, "high": mean.high}
        yield MapRow(**place, method=method, state=JUDGED, **numbers, **told, tests=found)
    for method, share in one.least_share.items():
        yield MapRow(**place, method=method, state=OUT_OF_REACH, least_share=share)
