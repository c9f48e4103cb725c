"""What a comparison found: one row for each method, and the run that made them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from tadropedge.comparison.statistics import Honest


@dataclass(frozen=True)
class PaperProtocol:
    """The best test accuracy of ``trials`` trials."""

    best_test: float
    trials: int


@dataclass(frozen=True)
class Convergence:
    """Losses of one training run, one number for each of ``epochs``; NaN where there is none."""

    epochs: Sequence[int]
    train_loss: Sequence[float]
    val_loss: Sequence[float]


@dataclass(frozen=True)
class KeepProbPoint:
    """The accuracy of one trial, and the probability p of keeping an edge it was trained with."""

    keep_prob: float
    accuracy: float


@dataclass(frozen=True)
class Row:
    """One method on one dataset with one backbone, under both protocols; ``settings`` were chosen on validation."""

    dataset: str
    backbone: str
    layers: int
    method: str
    laplacian: str | None = None
    paper_protocol: PaperProtocol | None = None
    honest: Honest | None = None
    settings: Mapping[str, object] = field(default_factory=dict)
    convergence: Convergence | None = None
    by_keep_prob: Sequence[KeepProbPoint] = ()


@dataclass(frozen=True)
class Results:
    """All rows of a comparison, and what depends on the run alone: seconds, commit, machine, versions, command."""

    rows: Sequence[Row]
    run: Mapping[str, object] = field(default_factory=dict)


def grouped(rows: Iterable[Row]) -> list[list[Row]]:
    """Rows that may be compared with each other: of one dataset, backbone and depth, in the order of the document."""
    groups: dict[tuple[str, str, int], list[Row]] = {}
    for row in rows:
        groups.setdefault((row.dataset, row.backbone, row.layers), []).append(row)
    return list(groups.values())


def labels(rows: Sequence[Row]) -> list[str]:
    """The name of each row in its group: the method, and its Laplacian where a method stands there twice.

    >>> rows = [Row("cora", "gcn", 2, "cdf", laplacian) for laplacian in ("combinatorial", "normalized")]
    >>> labels(rows[:1]), labels(rows)
    (['cdf'], ['cdf (combinatorial)', 'cdf (normalized)'])
    """
    methods = [row.method for row in rows]
    return [
        f"{row.method} ({row.laplacian})" if row.laplacian and methods.count(row.method) > 1 else row.method
        for row in rows
    ]
