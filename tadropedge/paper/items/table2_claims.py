"""Table 2 judged: whether TADropEdge outperforms the competitors, and whether those reach what is printed for them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tadropedge.comparison.statistics import paired_difference
from tadropedge.data.planetoid import NAMES
from tadropedge.paper.item import NOT_REPRODUCED, REPRODUCED, Verdict
from tadropedge.publish.wording import percent, plus_minus, points

Row = Mapping[str, Any]

TOLERANCE = 0.01  # below the printed accuracy of a competitor


def judge(rows: Sequence[Row]) -> list[Verdict]:
    """On each dataset, whether TADropEdge is above every competitor, by both protocols."""
    verdicts: list[Verdict] = []
    honest: list[Verdict] = []
    for dataset in dict.fromkeys(row["dataset"] for row in rows):
        mine = [row for row in rows if row["dataset"] == dataset]
        ours = [row for row in mine if is_ours(row)]
        others = [row for row in mine if row not in ours]
        if not ours or not others:
            continue
        best, rival = (max(group, key=lambda row: row["accuracy"]) for group in (ours, others))
        verdicts.append(
            Verdict(
                f"TADropEdge outperforms the five competitors (paper protocol): {NAMES.get(dataset, dataset)}",
                REPRODUCED if best["accuracy"] > rival["accuracy"] else NOT_REPRODUCED,
                f"{best['row']} {best['accuracy']:.3f} measured ({best['printed']:.3f} printed) against {rival['row']} "
                f"{rival['accuracy']:.4f} ({rival['source']}); ours is the best of {best['looks']:,} looks at the "
                f"test set{_looks(rival)}",
            )
        )
        honest += _better_honestly(ours, others, dataset)
    return [*verdicts, *honest]


def _looks(rival: Row) -> str:
    return "" if rival["looks"] is None else f", the other of {rival['looks']:,}"


def _better_honestly(ours: Sequence[Row], others: Sequence[Row], dataset: str) -> list[Verdict]:
    """Whether the TADropEdge that is best on validation is clearly above each competitor.

    The claim is on all of them at once, so every test has to succeed and none needs a correction.
    """
    mine = best_on_validation(ours)
    if mine is None or any(row["honest_mean"] is None for row in (mine, *others)):
        return []
    gaps = {row["row"]: above(mine, row) for row in others}
    said = ", ".join(f"{points(gap)} ± {100 * half:.2f} points to {name}" for name, (gap, half) in gaps.items())
    alike = all(_paired(mine, row) for row in others)
    how = "on the same starts and splits" if alike else "not paired, for the test nodes are others"
    return [
        Verdict(
            f"TADropEdge outperforms the five competitors (honest protocol): {NAMES.get(dataset, dataset)}",
            REPRODUCED if all(gap > half for gap, half in gaps.values()) else NOT_REPRODUCED,
            f"{mine['row']} has {percent(mine['honest_mean'])} %: {said} ({how})",
        )
    ]


def best_on_validation(rows: Sequence[Row]) -> Row | None:
    """The row whose chosen trial has the best validation accuracy; None where one does not tell it.

    >>> best_on_validation([{"val_accuracy": 0.8}, {"val_accuracy": 0.9}]), best_on_validation([{}])
    ({'val_accuracy': 0.9}, None)
    """
    if not rows or any(row.get("val_accuracy") is None for row in rows):
        return None
    return max(rows, key=lambda row: float(row["val_accuracy"]))


def above(one: Row, other: Row) -> tuple[float, float]:
    """The difference of two honest means and half its 95 % interval, paired where replicates have the same splits.

    >>> mine = {"fresh_accuracies": [0.80, 0.83, 0.81, 0.9], "test_nodes": 100}
    >>> [round(number, 4) for number in above(mine, {"fresh_accuracies": [0.79, 0.82, 0.80], "test_nodes": 100})]
    [0.01, 0.0]
    """
    if _paired(one, other):
        both = zip(one["fresh_accuracies"], other["fresh_accuracies"], strict=False)  # one may have more replicates
        values = np.array(list(both), dtype=np.float64)  # None is NaN
        if (~np.isnan(values).any(axis=1)).sum() > 1:
            gap = paired_difference(values[:, 0], values[:, 1])
            return gap.mean, (gap.high - gap.low) / 2
    halves = ((row["honest_high"] - row["honest_low"]) / 2 for row in (one, other))
    return one["honest_mean"] - other["honest_mean"], math.hypot(*halves)


def _paired(one: Row, other: Row) -> bool:
    """Whether replicate s of both has the same start and split."""
    known = all(row.get("fresh_accuracies") is not None for row in (one, other))
    return known and one["test_nodes"] == other["test_nodes"]


def reached(rows: Sequence[Row]) -> list[Verdict]:
    """Whether each competitor that was run reaches what is printed for it."""
    verdicts = []
    for title in dict.fromkeys(row["row"] for row in rows if not is_ours(row)):
        mine = [
            row for row in rows if row["row"] == title and row["source"] == "measured" and row["printed"] is not None
        ]
        if mine:
            good = all(row["accuracy"] >= row["printed"] - TOLERANCE for row in mine)
            numbers = ", ".join(f"{row['dataset']} {row['accuracy']:.3f} ({row['printed']:.3f})" for row in mine)
            claim = f"The printed accuracy minus {TOLERANCE:g} is reached (best test accuracy of the trials): {title}"
            verdicts.append(Verdict(claim, REPRODUCED if good else NOT_REPRODUCED, f"measured (printed): {numbers}"))
    return verdicts


def without_topology(measured: Sequence[Row]) -> list[str]:
    """What the rows of Table 1 that do not look at the topology have, chosen in the same way: the backbones' share."""
    said = []
    for method in dict.fromkeys(row["method"] for row in measured if row["laplacian"] is None):
        means = []
        for dataset in dict.fromkeys(row["dataset"] for row in measured):
            mine = [row for row in measured if (row["method"], row["dataset"]) == (method, dataset)]
            best = best_on_validation(mine)
            if best is not None and best["honest"]["mean"] is not None:
                honest = best["honest"]
                mean = plus_minus(percent(honest["mean"]), honest["low"], honest["high"])
                means.append(f"{mean} % on {NAMES.get(dataset, dataset)}")
        if means:
            said.append(f"{method} has {', '.join(means)}")
    if not said:
        return []
    return [f"Backbones and search have their share in TADropEdge's means. Chosen in the same way, {'; '.join(said)}."]


def other_splits(rows: Sequence[Row]) -> list[str]:
    """Where TADropEdge and the competitors are tested on different numbers of nodes, and how many."""
    mine = {row["dataset"]: row["test_nodes"] for row in rows if is_ours(row) and row["test_nodes"]}
    theirs = {row["dataset"]: row["test_nodes"] for row in rows if not is_ours(row) and row["test_nodes"]}
    return [
        f"Fresh splits of {NAMES.get(dataset, dataset)} test TADropEdge on {count:,} nodes and the competitors on "
        f"{theirs[dataset]:,}; who is tested on more is trained on fewer."
        for dataset, count in mine.items()
        if theirs.get(dataset, count) != count
    ]


def is_ours(row: Row) -> bool:
    """Whether a row is TADropEdge's."""
    return str(row["row"]).startswith("TADropEdge")
