"""Remark 1: how much the weights change when q is chosen at the eigengap instead of as the number of classes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from torch import Tensor

from tadropedge._old.data.dataset import Dataset
from tadropedge._old.paper.figures import theory as figures
from tadropedge._old.paper.item import Bench, Item, Verdict
from tadropedge._old.paper.journal import Journal
from tadropedge._old.paper.judge import judged, where_it_holds
from tadropedge._old.paper.recipe import Recipe
from tadropedge._old.paper.rows import Row, title
from tadropedge._old.paper.trained_filters import rank_correlation
from tadropedge._old.scores.solve import Scored, solve
from tadropedge._old.strategies import keep_probabilities
from tadropedge._old.training.laboratory import data_fingerprints

ALIKE = 0.9  # a rank correlation, or a share of the critical edges, from which on two choices of q count as one


@dataclass(frozen=True, kw_only=True)
class Agreement(Row):
    """Weights with q at the eigengap beside weights with q = classes, of one dataset and Laplacian.

    ``chosen`` is q of the largest component; ``changed`` of ``components`` with modes of their own use another number
    of modes. ``overlap`` is the share of the critical edges, the largest weights, that both have. ``cutoff``,
    ``division`` and ``cdf`` are the mean |difference| of the keep probabilities.
    """

    dataset: str
    laplacian: str
    classes: int
    chosen: int
    components: int
    changed: int
    rank_correlation: float
    overlap: float
    cutoff: float
    division: float
    cdf: float


ROWS = (Agreement,)


def run(bench: Bench) -> Item:
    """Score the edges of each dataset with each Laplacian, both ways."""
    recipe, journal = bench.recipe, Journal(bench)
    cases = [(name, laplacian) for name in recipe["datasets"] for laplacian in recipe["laplacians"]]
    rows: list[Agreement] = []
    for name, laplacian in bench.each("weights", cases, lambda case: case[0]):
        dataset = bench.dataset(name)
        make = partial(_measure, bench, dataset, laplacian)
        rows += journal.rows(f"{name}/{laplacian}", (data_fingerprints(dataset), dataset.gamma), Agreement, make)
    pictures = {"eigengap": figures.choices_of_q(rows, recipe["keep_prob"])}
    return Item(rows, judge(rows, recipe), pictures, recipe.said(), run=journal.run)


def _measure(bench: Bench, dataset: Dataset, laplacian: str) -> list[Agreement]:
    recipe, classes = bench.recipe, dataset.num_classes
    by_classes, by_gap = (
        solve(dataset.graph, "aggregate", {how: classes, "laplacian": laplacian}, cache_dir=bench.cache_dir)
        for how in ("q", "desired_clusters")
    )
    return [compared(dataset, laplacian, by_classes, by_gap, recipe["critical"], recipe["keep_prob"])]


def compared(
    dataset: Dataset, laplacian: str, by_classes: Scored, by_gap: Scored, critical: float, p: float
) -> Agreement:
    """One row, from both ways of scoring."""
    gamma: float | str = "auto" if dataset.gamma is None else dataset.gamma
    first, second = by_classes.values, by_gap.values

    def differ(strategy: str) -> float:
        one, other = (keep_probabilities(s, keep_prob=p, strategy=strategy, gamma=gamma) for s in (first, second))
        return float((one - other).abs().mean())

    return Agreement(
        dataset=dataset.name,
        laplacian=laplacian,
        classes=dataset.num_classes,
        chosen=by_gap.chosen,
        components=int((by_gap.modes > 0).sum()),
        changed=int((by_gap.modes != by_classes.modes).sum()),
        rank_correlation=rank_correlation(first.cpu().numpy(), second.cpu().numpy()),
        overlap=overlap(first, second, critical),
        cutoff=differ("cutoff"),
        division=differ("division"),
        cdf=differ("cdf"),
    )


def overlap(first: Tensor, second: Tensor, share: float) -> float:
    """The part of the ``share`` of the edges with the largest scores that is the same in both, equal ones in order.

    >>> import torch
    >>> overlap(torch.tensor([1.0, 2.0, 3.0, 4.0]), torch.tensor([4.0, 1.0, 2.0, 3.0]), 0.5)
    0.5
    """
    count = max(1, round(share * len(first)))
    tops = [set(np.argsort(-scores.cpu().numpy(), kind="stable")[:count].tolist()) for scores in (first, second)]
    return len(tops[0] & tops[1]) / count


def judge(rows: Sequence[Agreement], recipe: Recipe) -> list[Verdict]:
    """Whether it matters which of the two the tables use."""

    def said(of: str, form: str) -> str:
        return ", ".join(f"{title(row.dataset)} ({row.laplacian}) {getattr(row, of):{form}}" for row in rows)

    chosen = ", ".join(f"{title(row.dataset)} ({row.laplacian}) {row.chosen} for {row.classes} classes" for row in rows)
    most = {name: max(getattr(row, name) for row in rows) for name in ("cutoff", "division", "cdf")}
    numbers = {
        "chosen": chosen,
        "ranks": said("rank_correlation", ".3f"),
        "tops": said("overlap", ".0%"),
        "alike": ALIKE,
        **most,
    }
    return [
        judged(recipe, "ranks", _where(rows, "rank_correlation"), **numbers),
        judged(recipe, "critical", _where(rows, "overlap"), **numbers),
    ]


def _where(rows: Sequence[Agreement], of: str) -> bool | str:
    return where_it_holds({f"{title(row.dataset)} ({row.laplacian})": getattr(row, of) >= ALIKE for row in rows})
