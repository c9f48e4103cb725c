"""The rows of Table 2 and what they say: the best of as many trials, and paired means on the same starts and splits."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated

import numpy as np
import numpy.typing as npt

from tadropedge._old.comparison.statistics import Interval, mean_interval
from tadropedge._old.paper.cells import Result
from tadropedge._old.paper.gains import effect, fresh_interval
from tadropedge._old.paper.item import Verdict
from tadropedge._old.paper.judge import Gap, Summary, gaps, judged, where_it_holds
from tadropedge._old.paper.recipe import Recipe
from tadropedge._old.paper.rows import WITHOUT_NAME, Column, Row, grouped, title
from tadropedge._old.paper.sentences import shown
from tadropedge._old.paper.trainings import Fresh
from tadropedge._old.publish.wording import NOTHING, plus_minus, points

Array = npt.NDArray[np.float64]
KINDS = (ORIGINAL, DROPEDGE, TADROPEDGE) = ("Original", "DropEdge", "TADropEdge")
COMPETITOR = "competitor"


@dataclass(frozen=True)
class Contest:
    """What a number of a row was trained with."""

    method: str | None = None
    layers: int | None = None
    laplacian: str | None = None

    @property
    def words(self) -> str:
        """The method, and its Laplacian."""
        return ", ".join(filter(None, (self.method, self.laplacian))) or NOTHING


@dataclass(frozen=True, kw_only=True)
class Contender(Row):
    """A row of the table on one dataset: its best test accuracy and its honest mean."""

    row: str
    dataset: str
    source: str  # "measured", or "printed" where it was not run here
    printed: float | None
    accuracy: float
    honest: Annotated[Summary, Column("honest", inlined=True)] = field(default_factory=Summary)
    choice: Annotated[Contest, WITHOUT_NAME]  # of the best test accuracy
    honest_choice: Annotated[Contest, Column("honest", inlined=True)] = field(default_factory=Contest)
    fresh: Annotated[Fresh, WITHOUT_NAME] = field(default_factory=Fresh)  # of what the honest mean is of
    looks: int | None = None  # at the test set, of which the accuracy is the best: the number of trials

    @property
    def kind(self) -> str:
        """``"Original"``, ``"DropEdge"`` or ``"TADropEdge"`` of a backbone, or ``"competitor"``."""
        front = self.row.partition("-")[0]
        return front if front in KINDS else COMPETITOR

    @property
    def backbone(self) -> str:
        """The backbone in the name of a row of ours."""
        return self.row.partition("-")[2]


Pairs = Mapping[tuple[str, str], Gap]


def judge(rows: Sequence[Contender], measured: Sequence[Result], recipe: Recipe) -> list[Verdict]:
    """The sentences of the paper on Table 2, and our own questions; ``measured`` are the rows of Table 1."""
    measured_rows = [row for row in rows if row.source == "measured"]
    groups = grouped(measured_rows, lambda row: row.dataset).items()
    there = {name: mine for name, mine in groups if {TADROPEDGE, COMPETITOR} <= {row.kind for row in mine}}
    # One correction is over all comparisons of a dataset, so they are made when all rows are there.
    known = [distinct(mine) for mine in there.values() if all(len(_fresh(row)) > 1 for row in mine)]
    asked = [(mine, compared(mine)) for mine in known]
    return [
        *(_better(mine, recipe) for mine in there.values()),
        *_more_significant(there, recipe),
        *_shallow(measured, recipe),
        *_reached(measured_rows, recipe),
        *(_honestly(kind, mine, pairs, recipe) for kind in KINDS[::-1] for mine, pairs in asked),
        *(_above(other, mine, pairs, recipe) for other in KINDS[:2] for mine, pairs in asked),
    ]


def distinct(rows: Sequence[Contender]) -> list[Contender]:
    """The rows without a backbone that has the trainings of another: IncepGCN of 3 layers has JKNet's."""
    ours = grouped((row for row in rows if row.kind != COMPETITOR), lambda row: row.backbone)
    once: dict[object, list[Contender]] = {}
    for mine in ours.values():
        once.setdefault(tuple((row.kind, row.choice, row.honest_choice, row.accuracy, row.fresh) for row in mine), mine)
    return [*(row for mine in once.values() for row in mine), *_of_kind(rows, COMPETITOR)]


def compared(rows: Sequence[Contender]) -> dict[tuple[str, str], Gap]:
    """Each row of ours minus each competitor, and TADropEdge minus the others of its backbone; one Holm correction."""
    known = {row.row: _fresh(row) for row in rows}
    ours = [row for row in rows if row.kind != COMPETITOR]
    named = [(one.row, other.row) for one in ours for other in _of_kind(rows, COMPETITOR)]
    for one in _of_kind(rows, TADROPEDGE):
        named += [(one.row, name) for kind in KINDS[:2] if (name := f"{kind}-{one.backbone}") in known]
    return gaps({(one, other): _alike(known[one], known[other]) for one, other in named})


def _fresh(row: Contender) -> Array:
    return np.array(row.fresh.fresh_accuracies or (), dtype=np.float64)  # None is NaN


def _alike(one: Array, other: Array) -> tuple[Array, Array]:
    size = min(len(one), len(other))
    return one[:size], other[:size]


def _better(rows: Sequence[Contender], recipe: Recipe) -> Verdict:
    """The paper's protocol: the best of TADropEdge's trials against the best of each competitor's."""
    ours, rival = _of_kind(rows, TADROPEDGE), max(_of_kind(rows, COMPETITOR), key=lambda row: row.accuracy)
    printed_rival = max((row.printed or 0.0 for row in _of_kind(rows, COMPETITOR)), default=math.nan)
    cases = {row.backbone: row.accuracy > rival.accuracy for row in ours}
    gap = {row.backbone: (row.accuracy - rival.accuracy, (row.printed or math.nan) - printed_rival) for row in ours}
    numbers = {
        "name": title(rival.dataset),
        "rival": rival,
        "effect": ", ".join(f"{name} {points(printed)}" for name, (_, printed) in gap.items()),
        "found": ", ".join(f"{name} {points(found)}" for name, (found, _) in gap.items()),
    }
    return judged(recipe, "better", where_it_holds(cases), **numbers)


def _of_kind(rows: Sequence[Contender], kind: str) -> list[Contender]:
    return [row for row in rows if row.kind == kind]


def _honestly(kind: str, rows: Sequence[Contender], pairs: Pairs, recipe: Recipe) -> Verdict:
    """Whether one kind of our rows is surely above each competitor on fresh seeds and splits."""
    rivals = [row.row for row in _of_kind(rows, COMPETITOR)]
    found = {row: {rival: pairs[row.row, rival] for rival in rivals} for row in _of_kind(rows, kind)}
    nearest = {row: min(mine, key=lambda rival: mine[rival].difference or 0.0) for row, mine in found.items()}
    said = [
        f"{row.backbone} ({row.honest_choice.words}): "
        + ", ".join(f"{_shown(gap)} to {rival}" for rival, gap in mine.items())
        for row, mine in found.items()
    ]
    numbers = {
        "name": title(rows[0].dataset),
        "kind": kind,
        "said": "; ".join(said),
        "found": ", ".join(f"{row.backbone} {_shown(found[row][rival])} ({rival})" for row, rival in nearest.items()),
        "count": len(pairs),
    }
    cases = {row.backbone: all(gap.sign > 0 for gap in mine.values()) for row, mine in found.items()}
    return judged(recipe, "honestly", where_it_holds(cases), **numbers)


def _above(other: str, rows: Sequence[Contender], pairs: Pairs, recipe: Recipe) -> Verdict:
    """Whether TADropEdge is surely above Original, or DropEdge, of its backbone."""
    found = {row.backbone: pairs[row.row, f"{other}-{row.backbone}"] for row in _of_kind(rows, TADROPEDGE)}
    numbers = {
        "name": title(rows[0].dataset),
        "other": other,
        "found": ", ".join(f"{name} {_shown(gap)}" for name, gap in found.items()),
        "count": len(pairs),
    }
    return judged(recipe, "above", where_it_holds({name: gap.sign > 0 for name, gap in found.items()}), **numbers)


def _shown(gap: Gap) -> str:
    return f"{plus_minus(points(gap.difference), gap.low, gap.high)} points"


def improvement(rows: Sequence[Contender]) -> Interval | None:
    """TADropEdge, mean over its backbones, minus the competitor with the highest mean, over replicates."""
    ours, rivals = _of_kind(distinct(rows), TADROPEDGE), _of_kind(rows, COMPETITOR)
    if not rivals or any(row.honest.mean is None for row in (*ours, *rivals)):
        return None
    rival = max(rivals, key=lambda row: row.honest.mean or 0.0)
    size = min(len(_fresh(row)) for row in (*ours, rival))
    gain = np.mean([_fresh(row)[:size] for row in ours], axis=0) - _fresh(rival)[:size]
    return mean_interval(gain) if (~np.isnan(gain)).sum() > 1 else None


def _more_significant(there: Mapping[str, Sequence[Contender]], recipe: Recipe) -> list[Verdict]:
    """Whether the improvement over the competitors is larger on well-clustered graphs."""
    names = [*recipe["clustered"], recipe["less_clustered"]]
    gains = {name: gain for name in names if name in there and (gain := improvement(there[name])) is not None}
    if set(gains) != set(names):
        return []
    last = gains[names[-1]]
    more = {name: _minus(gains[name], last) for name in names[:-1]}
    best = {name: _largest(there[name], lambda row: row.accuracy) for name in names}
    printed = {name: _largest(there[name], lambda row: row.printed or 0.0) for name in names}
    numbers = {
        "effect": ", ".join(f"{title(name)} {points(gain)}" for name, gain in printed.items()),
        "at_best": ", ".join(f"{title(name)} {points(gain)}" for name, gain in best.items()),
        "found": ", ".join(f"{title(name)} {shown(gain)}" for name, gain in gains.items()),
        "more": ", ".join(f"{title(name)} {shown(gain)}" for name, gain in more.items()),
    }
    holds = where_it_holds({title(name): gap.low > 0 for name, gap in more.items()})
    return [judged(recipe, "significant", holds, **numbers)]


def _minus(one: Interval, other: Interval) -> Interval:
    """The difference of two independent means."""
    mean, half = one.mean - other.mean, math.hypot(one.high - one.low, other.high - other.low) / 2
    return Interval(mean=mean, low=mean - half, high=mean + half, count=one.count + other.count)


def _largest(rows: Sequence[Contender], value: Callable[[Contender], float]) -> float:
    """The best TADropEdge minus the best competitor."""
    ours, rivals = (max(map(value, _of_kind(rows, kind))) for kind in (TADROPEDGE, COMPETITOR))
    return ours - rivals


def _shallow(measured: Sequence[Result], recipe: Recipe) -> list[Verdict]:
    """Whether most backbones of Table 1 reach their best accuracy with TADropEdge in 2 or 3 layers."""
    groups = grouped((row for row in measured if row.laplacian), lambda row: (row.dataset, row.backbone)).values()
    cases = [mine for mine in groups if len({row.layers > SHALLOW for row in mine}) > 1]
    if not cases:
        return []
    printed = sum(_in_shallow(mine, lambda row: row.printed or 0.0) for mine in cases)
    best = sum(_in_shallow(mine, lambda row: row.paper_protocol.best_test) for mine in cases)
    layers = {(row.dataset, row.backbone, row.method, row.laplacian, row.layers): row for row in measured}
    found = [
        effect(row, deep)
        for row in measured
        if row.laplacian and row.layers == SHALLOW
        and (deep := layers.get((row.dataset, row.backbone, row.method, row.laplacian, SHALLOW + 1)))
    ]  # fmt: skip
    numbers = {"printed_count": printed, "count": len(cases), "best": best, "found": shown(fresh_interval(found))}
    return [judged(recipe, "depth", 2 * best > len(cases), **numbers)]


SHALLOW = 3  # layers, at most


def _in_shallow(rows: Sequence[Result], value: Callable[[Result], float]) -> bool:
    shallow, deep = (max(value(row) for row in rows if (row.layers > SHALLOW) == far) for far in (False, True))
    return shallow >= deep


def _reached(rows: Sequence[Contender], recipe: Recipe) -> list[Verdict]:
    """Whether each competitor that was run has the accuracy that is printed for it, neither less nor more."""
    tolerance, verdicts = recipe["tolerance"], []
    for name, mine in grouped(_of_kind(rows, COMPETITOR), lambda row: row.row).items():
        off = {title(row.dataset): round(row.accuracy - row.printed, 6) for row in mine if row.printed is not None}
        cases = {dataset: abs(above) <= tolerance for dataset, above in off.items()}
        side = {dataset: "above print" if above > 0 else "below print" for dataset, above in off.items()}
        said = ", ".join(f"{dataset} {'as printed' if cases[dataset] else side[dataset]}" for dataset in off)
        numbers = {
            "name": name,
            "points": 100 * tolerance,
            "said": said,
            "effect": ", ".join(f"{title(row.dataset)} {row.printed:.4f}" for row in mine if row.printed is not None),
            "found": ", ".join(f"{dataset} {points(above)}" for dataset, above in off.items()),
        }
        verdicts.append(judged(recipe, "reached", where_it_holds(cases), **numbers))
    return verdicts
