"""What a comparison found: one row per method, and the run that made them; how rows are named and grouped."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated

from tadropedge.comparison.statistics import Honest
from tadropedge.errors import TadropedgeError
from tadropedge.publish.wording import counted
from tadropedge.typed import NONE_IS_NAN, Count, MaybeNan, Share


@dataclass(frozen=True)
class PaperProtocol:
    """The best test accuracy of ``trials`` trials."""

    best_test: Share
    trials: Count


@dataclass(frozen=True)
class Convergence:
    """Losses of one training run, one number for each of ``epochs``; NaN where there is none."""

    epochs: Sequence[Count]
    train_loss: Sequence[MaybeNan]
    val_loss: Sequence[MaybeNan]

    def __post_init__(self) -> None:
        for name in ("train_loss", "val_loss"):
            if (found := len(getattr(self, name))) != len(self.epochs):
                raise TadropedgeError(f"{name} has {found} entries, but there are {len(self.epochs)} epochs")


@dataclass(frozen=True)
class KeepProbPoint:
    """The accuracy of one trial, and the probability p of keeping an edge it was trained with."""

    keep_prob: Share
    accuracy: Annotated[Share, NONE_IS_NAN]


@dataclass(frozen=True, kw_only=True)
class Row:
    """One method on one dataset with one backbone, under both protocols; ``settings`` were chosen on validation."""

    dataset: str
    backbone: str
    layers: Count
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


def labelled(rows: Sequence[Row]) -> dict[str, Row]:
    """The rows of a group by name: the method, and its Laplacian where a method stands there twice.

    >>> rows = [Row(dataset="cora", backbone="gcn", layers=2, method="cdf", laplacian=name) for name in ("L", "N")]
    >>> list(labelled(rows[:1])), list(labelled(rows))
    (['cdf'], ['cdf (L)', 'cdf (N)'])
    """
    methods = [row.method for row in rows]
    twice = {method for method in methods if methods.count(method) > 1}
    return {
        f"{row.method} ({row.laplacian})" if row.laplacian and row.method in twice else row.method: row for row in rows
    }


def judged(rows: Sequence[Row]) -> dict[str, Honest]:
    """The honest part of each row that has one, by its label."""
    return {label: row.honest for label, row in labelled(rows).items() if row.honest}


def title(rows: Sequence[Row]) -> str:
    """Dataset, backbone and depth of a group.

    >>> title([Row(dataset="cora", backbone="gcn", layers=2, method="cdf")])
    'cora, gcn with 2 layers'
    """
    return f"{rows[0].dataset}, {rows[0].backbone} with {counted(rows[0].layers, 'layer')}" if rows else ""


def paper_label(rows: Iterable[Row]) -> str:
    """The name of the first protocol, with its number of trials.

    >>> paper_label([])
    'paper protocol (best test accuracy of the trials)'
    """
    trials = {row.paper_protocol.trials for row in rows if row.paper_protocol}
    return f"paper protocol (best test accuracy of {counted(trials, 'trial') if trials else 'the trials'})"


def honest_label(rows: Iterable[Row]) -> str:
    """The name of the second protocol, with its number of replicates, failed ones included."""
    seeds = {row.honest.seeds + row.honest.failed for row in rows if row.honest}
    many = counted(seeds, "fresh seed") if seeds else "fresh seeds"
    return f"honest protocol (settings chosen on validation, retrained on {many} and splits)"
