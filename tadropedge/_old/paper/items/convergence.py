"""Figure 2a: training and validation loss of each strategy and of DropEdge, at the same p and at the same budget."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Annotated, Any

import numpy as np
import scipy.stats

from tadropedge._old.paper.figures.fixed import draw_losses
from tadropedge._old.paper.fixed import Fixed, Trained, against, extremes, held
from tadropedge._old.paper.item import Bench, Item, Table, Verdict
from tadropedge._old.paper.judge import BUDGETS, Array, BothBudgets, Gap, judged, told
from tadropedge._old.paper.recipe import Recipe
from tadropedge._old.paper.rows import INLINED, OPTIONAL, Column, Row, grouped
from tadropedge._old.publish.wording import NOTHING, p_value
from tadropedge._old.search.study import POINTS, Finished

# What is measured of a curve, and of which; the fields of a row begin with these names.
MEASURES: dict[str, tuple[Any, str, str]] = {
    "mean_train": (np.mean, "train_loss", "mean training loss"),
    "smallest_train": (np.min, "train_loss", "smallest training loss"),
    "mean_val": (np.mean, "val_loss", "mean validation loss"),
    "smallest_val": (np.min, "val_loss", "smallest validation loss"),
}


@dataclass(frozen=True, kw_only=True)
class Band:
    """The mean curve of all runs, and the band that holds two thirds of them; None where all runs failed."""

    value: Annotated[tuple[float, ...] | None, OPTIONAL] = None
    low: Annotated[tuple[float, ...] | None, OPTIONAL] = None
    high: Annotated[tuple[float, ...] | None, OPTIONAL] = None


@dataclass(frozen=True, kw_only=True)
class Apart:
    """A curve minus that of both kinds of DropEdge, means over pairs of runs, each with its 95 % interval."""

    same_p: Annotated[Band, INLINED] = field(default_factory=Band)
    same_budget: Annotated[Band, INLINED] = field(default_factory=Band)

    def at(self, budget: str) -> Band:
        """The difference ``"same_p"`` or ``"same_budget"``."""
        return self.same_p if budget == "same_p" else self.same_budget


@dataclass(frozen=True, kw_only=True)
class Losses(Row):
    """The losses of one method: numbers of its curves, their differences to DropEdge, and the curves themselves."""

    laplacian: str
    method: str
    kept_share: float
    seeds: int
    mean_train_loss: float | None
    smallest_train_loss: float | None
    mean_val_loss: float | None
    smallest_val_loss: float | None
    mean_train_against: Annotated[BothBudgets, Column("mean_train_loss", inlined=True)]
    smallest_train_against: Annotated[BothBudgets, Column("smallest_train_loss", inlined=True)]
    mean_val_against: Annotated[BothBudgets, Column("mean_val_loss", inlined=True)]
    smallest_val_against: Annotated[BothBudgets, Column("smallest_val_loss", inlined=True)]
    epoch: Annotated[tuple[int, ...] | None, OPTIONAL] = None
    train_loss: Annotated[Band, INLINED]
    val_loss: Annotated[Band, INLINED]
    train_apart: Annotated[Apart, INLINED]
    val_apart: Annotated[Apart, INLINED]

    def at(self, measure: str, budget: str) -> Gap | None:
        """The difference of a measure to DropEdge ``"same_p"`` or ``"same_budget"``."""
        found: BothBudgets = getattr(self, f"{measure}_against")
        return found.at(budget)


ROWS = (Losses,)


def run(bench: Bench) -> Item:
    """All curves of each Laplacian, from the same starts."""
    recipe = bench.recipe
    plan = Fixed(
        strategies=recipe["strategies"],
        keep_probs=[recipe["keep_prob"]],
        label="{method}",
        reference_label="dropedge as {method}",
        fresh_splits=False,  # the paper's own split: this is about the course of a training, not about new nodes
        curves=True,
    )
    work = plan.work(bench)
    rows = [row for group in plan.run(work) for row in _rows(group)]
    notes = recipe.said(stored=[{"stored": _stored(recipe["epochs"])}])
    return Item(rows, judge(rows, recipe), draw_losses(rows), notes, run=work.run())


def _stored(epochs: int) -> str:
    """The epochs that a stored curve holds.

    >>> _stored(200), _stored(400)
    ('all epochs', 'one epoch in 2, those of the stored curves')
    """
    stride = -(-epochs // POINTS)
    return "all epochs" if stride <= 1 else f"one epoch in {stride}, those of the stored curves"


def _rows(group: Sequence[Trained]) -> list[Losses]:
    """A row for each method and for each reference; differences of one measure are corrected together."""
    found = {name: against(group, partial(_measure, name)) for name in MEASURES}
    rows = []
    for one in group:
        method = one.setting.method
        rows.append(_row(one, method, one.runs, {name: table.get(one.setting) for name, table in found.items()}))
        if one.same_budget:
            rows.append(_row(one, f"dropedge as {method}", one.same_budget, {}))
    return rows


def _row(one: Trained, method: str, runs: Sequence[Finished], gaps: Mapping[str, BothBudgets | None]) -> Losses:
    numbers: dict[str, Any] = {f"{name}_loss": _known_mean(_measure(name, runs)) for name in MEASURES}
    numbers |= {f"{name}_against": gaps.get(name) or BothBudgets() for name in MEASURES}
    epochs = next((run.curves["epoch"] for run in runs if run.curves is not None), None)
    return Losses(
        laplacian=one.setting.laplacian,
        method=method,
        kept_share=one.setting.kept_share,
        seeds=len(runs),
        epoch=None if epochs is None else tuple(int(epoch) for epoch in epochs),
        train_loss=_band(runs, "train_loss"),
        val_loss=_band(runs, "val_loss"),
        train_apart=_apart(one, runs, "train_loss"),
        val_apart=_apart(one, runs, "val_loss"),
        commit=one.commit,
        **numbers,
    )


def _measure(name: str, runs: Sequence[Finished]) -> Array:
    """A number of each curve ``[S]``; NaN where a run failed."""
    reduce, loss, _ = MEASURES[name]
    return np.array([np.nan if run.curves is None else reduce(run.curves[loss]) for run in runs], dtype=np.float64)


def _known_mean(values: Array) -> float | None:
    """The mean over the runs that did not fail; None where all did."""
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else None


def _band(runs: Sequence[Finished], loss: str) -> Band:
    curves = np.array([run.curves[loss] for run in runs if run.curves is not None], dtype=np.float64)
    if not len(curves):
        return Band()
    return _rounded(curves.mean(axis=0), *np.quantile(curves, [1 / 6, 5 / 6], axis=0))


def _apart(one: Trained, runs: Sequence[Finished], loss: str) -> Apart:
    """Of a strategy; a reference stands apart from nothing."""
    if runs is not one.runs:
        return Apart()
    return Apart(same_p=_difference(runs, one.same_p, loss), same_budget=_difference(runs, one.same_budget, loss))


def _difference(runs: Sequence[Finished], others: Sequence[Finished], loss: str) -> Band:
    """The mean over pairs of runs, epoch by epoch, and its 95 % interval by Student's t."""
    both = [(ours.curves, theirs.curves) for ours, theirs in zip(runs, others, strict=False)]
    pairs = [np.subtract(a[loss], b[loss], dtype=np.float64) for a, b in both if a is not None and b is not None]
    if len(pairs) < 2:
        return Band()
    mean, error = np.mean(pairs, axis=0), np.std(pairs, axis=0, ddof=1) / np.sqrt(len(pairs))
    half = scipy.stats.t.ppf(0.975, len(pairs) - 1) * error
    return _rounded(mean, mean - half, mean + half)


def _rounded(*lines: Array) -> Band:
    value, low, high = (tuple(float(f"{x:.5g}") for x in line) for line in lines)
    return Band(value=value, low=low, high=high)


def judge(rows: Sequence[Losses], recipe: Recipe) -> list[Verdict]:
    """Faster and lower, for both losses and all strategies, at the same p and, our question, at the same budget."""
    verdicts = []
    for budget, claim in (("same_p", "converges"), ("same_budget", "converges_same_budget")):
        found = {
            laplacian: {
                words: [gap for row in mine if (gap := row.at(name, budget)) is not None]
                for name, (_, _, words) in MEASURES.items()
            }
            for laplacian, mine in grouped(rows, lambda row: row.laplacian).items()
        }
        lower = {
            laplacian: {words: all(gap.sign < 0 for gap in some) for words, some in mine.items()}
            for laplacian, mine in found.items()
        }
        said = ". ".join(
            f"{laplacian} Laplacian: " + "; ".join(f"{words} {told(some)}" for words, some in mine.items())
            for laplacian, mine in found.items()
        )
        spans = "; ".join(
            f"{words} ({laplacian}) {extremes(some, _with_interval)}"
            for laplacian, mine in found.items()
            for words, some in mine.items()
        )
        verdicts.append(judged(recipe, claim, held(lower), said=said, spans=spans))
    return verdicts


def _with_interval(gap: Gap) -> str:
    half = 0.5 * ((gap.high or 0.0) - (gap.low or 0.0))
    return f"{gap.difference:+.4f} ± {half:.4f}".replace("-", "−")


def tables(rows: Sequence[Losses]) -> list[Table]:
    """The losses of each method, and their differences to DropEdge."""
    columns = ["method", "Laplacian", "kept share"]
    cells = [[row.method, row.laplacian, f"{row.kept_share:.3f}"] for row in rows]
    for name in ("smallest_train", "smallest_val"):
        columns += [MEASURES[name][-1], "to DropEdge, same p", "to DropEdge, same budget"]
        for row, line in zip(rows, cells, strict=True):
            loss = getattr(row, f"{name}_loss")
            line.append(NOTHING if loss is None else f"{loss:.4f}")
            line += [_shown(row.at(name, budget)) for budget in BUDGETS]
    return [Table("smallest losses, means over seeds", columns, cells)]


def _shown(gap: Gap | None) -> str:
    known = gap is not None and gap.difference is not None
    return f"{gap.difference:+.4f} (p {p_value(gap.p_value)})" if gap and known else NOTHING
