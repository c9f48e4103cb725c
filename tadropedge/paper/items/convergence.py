"""Figure 2a: training and validation loss of each strategy and of DropEdge, at the same p and at the same budget."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from tadropedge.paper.figures.fixed import draw_losses
from tadropedge.paper.fixed import Fixed, Trained
from tadropedge.paper.item import Bench, Item, Table, Verdict
from tadropedge.paper.judge import BUDGETS, Against, Array, judged_by_laplacian, told
from tadropedge.paper.rows import INLINED, OPTIONAL, Column, Row, grouped
from tadropedge.publish.wording import NOTHING, p_value
from tadropedge.search.study import POINTS, Finished

LOSSES = {"train_loss": "training", "val_loss": "validation"}
KINDS = ("mean", "smallest")
MEASURES = [(kind, loss) for loss in LOSSES for kind in KINDS]


@dataclass(frozen=True, kw_only=True)
class Band:
    """The mean curve of all runs, and the band that holds two thirds of them; None where all runs failed."""

    value: Annotated[tuple[float, ...] | None, OPTIONAL] = None
    low: Annotated[tuple[float, ...] | None, OPTIONAL] = None
    high: Annotated[tuple[float, ...] | None, OPTIONAL] = None


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
    mean_train_against: Annotated[Against, Column("mean_train_loss", inlined=True)]
    smallest_train_against: Annotated[Against, Column("smallest_train_loss", inlined=True)]
    mean_val_against: Annotated[Against, Column("mean_val_loss", inlined=True)]
    smallest_val_against: Annotated[Against, Column("smallest_val_loss", inlined=True)]
    epoch: Annotated[tuple[int, ...] | None, OPTIONAL] = None
    train_loss: Annotated[Band, INLINED]
    val_loss: Annotated[Band, INLINED]

    def against(self, kind: str, loss: str) -> Against:
        """The differences of the mean or the smallest loss to DropEdge."""
        found = (
            *(self.mean_train_against, self.smallest_train_against),
            *(self.mean_val_against, self.smallest_val_against),
        )
        return found[MEASURES.index((kind, loss))]


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
    settings = f"{recipe['seeds']} fresh seeds on the paper's split, {recipe['epochs']} epochs, fixed settings"
    notes = [
        "“dropedge as cdf” is DropEdge with the expected number of kept edges of cdf; so for the other strategies.",
        "Losses are of the training pass, with dropped edges and dropout, and of validation nodes on the whole graph.",
        f"Faster: a lower mean of the loss. Lower: a lower smallest loss. Both over {_stored(recipe['epochs'])}.",
    ]
    return Item(rows, judge(rows, recipe["keep_prob"]), draw_losses(rows), notes, run=work.run(settings))


def _stored(epochs: int) -> str:
    """The epochs that a stored curve holds.

    >>> _stored(200), _stored(400)
    ('all epochs', 'one epoch in 2, those of the stored curves')
    """
    stride = -(-epochs // POINTS)
    return "all epochs" if stride <= 1 else f"one epoch in {stride}, those of the stored curves"


def _rows(group: Sequence[Trained]) -> list[Losses]:
    """A row for each method and for each reference; differences of one measure are corrected together."""
    found = [
        Against.of({
            one.method: (_measure(one.runs, *of), _measure(one.same_p, *of), _measure(one.same_budget, *of))
            for one in group
            if one.same_budget
        })
        for of in MEASURES
    ]  # fmt: skip
    rows = []
    for one in group:
        against = [table.get(one.method, Against()) for table in found]
        rows.append(_row(one, one.method, one.runs, against))
        if one.same_budget:
            rows.append(_row(one, f"dropedge as {one.method}", one.same_budget, [Against()] * len(MEASURES)))
    return rows


def _row(one: Trained, method: str, runs: Sequence[Finished], against: Sequence[Against]) -> Losses:
    numbers = [_known_mean(_measure(runs, *of)) for of in MEASURES]
    epochs = next((run.curves["epoch"] for run in runs if run.curves is not None), None)
    return Losses(
        laplacian=one.laplacian,
        method=method,
        kept_share=one.kept_share,
        seeds=len(runs),
        mean_train_loss=numbers[0],
        smallest_train_loss=numbers[1],
        mean_val_loss=numbers[2],
        smallest_val_loss=numbers[3],
        mean_train_against=against[0],
        smallest_train_against=against[1],
        mean_val_against=against[2],
        smallest_val_against=against[3],
        epoch=None if epochs is None else tuple(int(epoch) for epoch in epochs),
        train_loss=_band(runs, "train_loss"),
        val_loss=_band(runs, "val_loss"),
    )


def _measure(runs: Sequence[Finished], kind: str, loss: str) -> Array:
    """A number of each curve ``[S]``; NaN where a run failed."""
    reduce = np.mean if kind == "mean" else np.min
    return np.array([np.nan if run.curves is None else reduce(run.curves[loss]) for run in runs], dtype=np.float64)


def _known_mean(values: Array) -> float | None:
    """The mean over the runs that did not fail; None where all did."""
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else None


def _band(runs: Sequence[Finished], loss: str) -> Band:
    curves = np.array([run.curves[loss] for run in runs if run.curves is not None], dtype=np.float64)
    if not len(curves):
        return Band()
    low, high = np.quantile(curves, [1 / 6, 5 / 6], axis=0)
    value, low, high = (tuple(float(f"{x:.5g}") for x in line) for line in (curves.mean(axis=0), low, high))
    return Band(value=value, low=low, high=high)


def judge(rows: Sequence[Losses], keep_prob: float) -> list[Verdict]:
    """Faster and lower, for both losses, at the same p and at the same budget."""
    verdicts = []
    for budget, words in BUDGETS.items():
        found = {}
        for laplacian, mine in grouped(rows, lambda row: row.laplacian).items():
            gaps = {of: [gap for row in mine if (gap := row.against(*of).at(budget)) is not None] for of in MEASURES}
            lower = all(gap.sign < 0 for some in gaps.values() for gap in some)
            said = [f"{kind} {LOSSES[loss]} loss {told(some)}" for (kind, loss), some in gaps.items()]
            found[laplacian] = (lower, "; ".join(said))
        claim = f"TADropEdge converges faster with lower training and validation loss than DropEdge {words}"
        verdicts.append(judged_by_laplacian(f"{claim} (p = {keep_prob:g})", found, ". "))
    return verdicts


def tables(rows: Sequence[Losses]) -> list[Table]:
    """The losses of each method, and their differences to DropEdge."""
    cells = []
    for row in rows:
        line = [row.method, row.laplacian, f"{row.kept_share:.3f}"]
        for loss, smallest in zip(LOSSES, (row.smallest_train_loss, row.smallest_val_loss), strict=True):
            line.append(NOTHING if smallest is None else f"{smallest:.4f}")
            for budget in BUDGETS:
                gap = row.against("smallest", loss).at(budget)
                known = gap is not None and gap.difference is not None
                line.append(f"{gap.difference:+.4f} (p {p_value(gap.p_value)})" if gap and known else NOTHING)
        cells.append(line)
    columns = ["method", "Laplacian", "kept share"]
    for name in LOSSES.values():
        columns += [f"smallest {name} loss", "to DropEdge, same p", "to DropEdge, same budget"]
    return [Table("smallest losses, means over seeds", columns, cells)]
