"""Table 2 judged: whether TADropEdge outperforms the competitors, and whether those reach what is printed for them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, TypeVar

import numpy as np

from tadropedge.comparison.statistics import paired_difference
from tadropedge.paper.item import Verdict
from tadropedge.paper.items.table1_claims import Result, accuracy
from tadropedge.paper.judge import Summary, judged
from tadropedge.paper.rows import WITHOUT_NAME, Column, Row, grouped, title
from tadropedge.paper.trainings import Fresh
from tadropedge.publish.wording import percent, points

TOLERANCE = 0.01  # below the printed accuracy of a competitor


@dataclass(frozen=True)
class Choice:
    """What a number of a row was trained with."""

    method: str | None = None
    layers: int | None = None
    laplacian: str | None = None


@dataclass(frozen=True, kw_only=True)
class Contender(Row):
    """A row of the printed table on one dataset: its best test accuracy and its honest mean."""

    row: str
    dataset: str
    source: str  # "measured", or "printed" where it was not run here
    printed: float | None
    accuracy: float
    honest: Annotated[Summary, Column("honest", inlined=True)]
    choice: Annotated[Choice, WITHOUT_NAME]  # of the best test accuracy
    honest_choice: Annotated[Choice, Column("honest", inlined=True)]
    fresh: Annotated[Fresh, WITHOUT_NAME]  # of what the honest mean is of
    looks: int | None = None  # at the test set, of which the accuracy is the best

    @property
    def ours(self) -> bool:
        """Whether it is TADropEdge."""
        return self.row.startswith("TADropEdge")


C = TypeVar("C", Contender, Result)


def judge(rows: Sequence[Contender]) -> list[Verdict]:
    """On each dataset, whether TADropEdge is above every competitor, by both protocols."""
    verdicts: list[Verdict] = []
    honest: list[Verdict] = []
    for dataset, mine in grouped(rows, lambda row: row.dataset).items():
        ours, others = [row for row in mine if row.ours], [row for row in mine if not row.ours]
        if not ours or not others:
            continue
        best, rival = (max(group, key=lambda row: row.accuracy) for group in (ours, others))
        theirs = "" if rival.looks is None else f", the other of {rival.looks:,}"
        verdicts.append(
            judged(
                f"TADropEdge outperforms the five competitors (paper protocol): {title(dataset)}",
                best.accuracy > rival.accuracy,
                f"{best.row} {best.accuracy:.3f} measured ({best.printed:.3f} printed) against {rival.row} "
                f"{rival.accuracy:.4f} ({rival.source}); ours is the best of {best.looks:,} looks at the "
                f"test set{theirs}",
            )
        )
        honest += _better_honestly(ours, others, dataset)
    return [*verdicts, *honest]


def _better_honestly(ours: Sequence[Contender], others: Sequence[Contender], dataset: str) -> list[Verdict]:
    """Whether the TADropEdge that is best on validation is clearly above each competitor.

    The claim is on all of them at once, so every test has to succeed and none needs a correction.
    """
    mine = best_on_validation(ours)
    if mine is None or any(row.honest.mean is None for row in (mine, *others)):
        return []
    gaps = {row.row: above(mine, row) for row in others}
    said = ", ".join(f"{points(gap)} ± {100 * half:.2f} points to {name}" for name, (gap, half) in gaps.items())
    alike = all(_paired(mine, row) for row in others)
    how = "on the same starts and splits" if alike else "not paired, for the test nodes are others"
    return [
        judged(
            f"TADropEdge outperforms the five competitors (honest protocol): {title(dataset)}",
            all(gap > half for gap, half in gaps.values()),
            f"{mine.row} has {percent(mine.honest.mean)} %: {said} ({how})",
        )
    ]


def best_on_validation(rows: Sequence[C]) -> C | None:
    """The row whose chosen trial has the best validation accuracy; None where one does not say."""
    if not rows or any(row.fresh.val_accuracy is None for row in rows):
        return None
    return max(rows, key=lambda row: row.fresh.val_accuracy or 0.0)


def above(one: Contender, other: Contender) -> tuple[float, float]:
    """The difference of two honest means and half its 95 % interval, paired where replicates have the same splits.

    >>> rows = [Contender(row=name, dataset="cora", source="measured", printed=None, accuracy=0.9, honest=Summary(),
    ...                   choice=Choice(), honest_choice=Choice(), fresh=Fresh(0.8, found, 100))
    ...         for name, found in (("a", (0.80, 0.83, 0.81, 0.9)), ("b", (0.79, 0.82, 0.80)))]
    >>> [round(number, 4) for number in above(*rows)]
    [0.01, 0.0]
    """
    if _paired(one, other):
        both = zip(
            one.fresh.fresh_accuracies or (), other.fresh.fresh_accuracies or (), strict=False
        )  # one may have more of them
        values = np.array(list(both), dtype=np.float64)  # None is NaN
        if (~np.isnan(values).any(axis=1)).sum() > 1:
            gap = paired_difference(values[:, 0], values[:, 1])
            return gap.mean, (gap.high - gap.low) / 2
    (mean, half), (other_mean, other_half) = (_honest(row) for row in (one, other))
    return mean - other_mean, math.hypot(half, other_half)


def _honest(row: Contender) -> tuple[float, float]:
    """An honest mean and half its interval; NaN where it is not known."""
    mean, low, high = (math.nan if end is None else end for end in (row.honest.mean, row.honest.low, row.honest.high))
    return mean, (high - low) / 2


def _paired(one: Contender, other: Contender) -> bool:
    """Whether replicate s of both has the same start and split."""
    known = one.fresh.fresh_accuracies is not None and other.fresh.fresh_accuracies is not None
    return known and one.fresh.test_nodes == other.fresh.test_nodes


def reached(rows: Sequence[Contender]) -> list[Verdict]:
    """Whether each competitor that was run reaches what is printed for it."""
    verdicts = []
    run = [row for row in rows if not row.ours and row.source == "measured"]
    for name, mine in grouped(run, lambda row: row.row).items():
        known = [(row, row.printed) for row in mine if row.printed is not None]
        numbers = ", ".join(f"{row.dataset} {row.accuracy:.3f} ({printed:.3f})" for row, printed in known)
        claim = f"The printed accuracy minus {TOLERANCE:g} is reached (best test accuracy of the trials): {name}"
        good = all(row.accuracy >= printed - TOLERANCE for row, printed in known)
        verdicts.append(judged(claim, good, f"measured (printed): {numbers}"))
    return verdicts


def without_topology(measured: Sequence[Result]) -> list[str]:
    """What the rows of Table 1 that do not look at the topology have, chosen in the same way: the backbones' share."""
    said = []
    uniform = [row for row in measured if row.laplacian is None]
    for method, mine in grouped(uniform, lambda row: row.method).items():
        groups = grouped(mine, lambda row: row.dataset).items()
        best = {dataset: best_on_validation(group) for dataset, group in groups}
        means = [
            f"{accuracy(row.honest)} % on {title(dataset)}"
            for dataset, row in best.items()
            if row is not None and row.honest.mean is not None
        ]
        if means:
            said.append(f"{method} has {', '.join(means)}")
    if not said:
        return []
    return [f"Backbones and search have their share in TADropEdge's means. Chosen in the same way, {'; '.join(said)}."]


def other_splits(rows: Sequence[Contender]) -> list[str]:
    """Where TADropEdge and the competitors are tested on different numbers of nodes, and how many."""
    mine, theirs = ({row.dataset: row.fresh.test_nodes for row in rows if row.ours == ours and row.fresh.test_nodes}
                    for ours in (True, False))  # fmt: skip
    return [
        f"Fresh splits of {title(dataset)} test TADropEdge on {count:,} nodes and the competitors on "
        f"{theirs[dataset]:,}; who is tested on more is trained on fewer."
        for dataset, count in mine.items()
        if theirs.get(dataset, count) != count
    ]
