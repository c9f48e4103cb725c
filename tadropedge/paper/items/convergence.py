"""Figure 2a: training and validation loss of each strategy and of DropEdge, at the same p and at the same budget.

At the same p a strategy drops fewer edges than DropEdge. So beside DropEdge at p stands DropEdge with the expected
kept share of each strategy: what is left of a difference there is topology.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from tadropedge.paper.figures.convergence import draw
from tadropedge.paper.item import NOT_REPRODUCED, REPRODUCED, Bench, Item, Table, Verdict
from tadropedge.paper.paired import BUDGETS, UNDECIDED, Array, Gap, counted, gaps, surely_below
from tadropedge.paper.stopwatch import Stopwatch
from tadropedge.paper.trainings import Repeats, Tally
from tadropedge.publish.wording import NOTHING, p_value
from tadropedge.search.study import POINTS, Finished
from tadropedge.training.config import Architecture, Trial
from tadropedge.training.laboratory import Laboratory

Row = dict[str, Any]

LOSSES = {"train_loss": "training", "val_loss": "validation"}


def run(bench: Bench) -> Item:
    """All curves of each Laplacian, from the same starts."""
    recipe, clock = bench.recipe, Stopwatch.of(bench)
    dataset = bench.dataset(recipe["dataset"])
    architecture = Architecture(recipe["backbone"], recipe["layers"], recipe["hidden"])
    storage, rows = bench.storage(), []
    count = (1 + 2 * len(recipe["strategies"])) * recipe["seeds"] * len(recipe["laplacians"])
    tally = Tally(bench, count)
    for laplacian in recipe["laplacians"]:
        clock.start()
        laboratory = Laboratory(dataset, architecture, recipe["epochs"], laplacian, cache_dir=bench.cache_dir)
        # The paper's own split: the figure is about the course of a training, not about accuracy on new nodes.
        repeats = Repeats(laboratory, laplacian, recipe["seeds"], bench.seed, fresh_splits=False, curves=True)
        base = dict(recipe["trial"], keep_prob=recipe["keep_prob"])
        shares = {"dropedge": laboratory.kept_share(repeats.add("dropedge", Trial("dropedge", **base)))}
        for method in recipe["strategies"]:
            trial = repeats.add(method, Trial(method, **base))
            shares[method] = shares[f"dropedge as {method}"] = laboratory.kept_share(trial)
            repeats.add_reference(f"dropedge as {method}", trial)
        rows += _rows(laplacian, repeats.run(storage, partial(clock.lap, laplacian), tally.show), shares)
        tally.finish()
    settings = f"{recipe['seeds']} fresh seeds on the paper's split, {recipe['epochs']} epochs, fixed settings"
    notes = [
        "“dropedge as cdf” is DropEdge with the expected number of kept edges of cdf; so for the other strategies.",
        "Losses are of the training pass, with dropped edges and dropout, and of validation nodes on the whole graph.",
        f"Faster: a lower mean of the loss. Lower: a lower smallest loss. Both over {_stored(recipe['epochs'])}.",
    ]
    run = {"settings": settings, "seconds_of": clock.seconds, "trained_on": clock.trained_on}
    return Item(rows, judge(rows, recipe["keep_prob"]), draw(rows), notes, run=run)


def _stored(epochs: int) -> str:
    """The epochs that a stored curve holds.

    >>> _stored(200), _stored(400)
    ('all epochs', 'one epoch in 2, those of the stored curves')
    """
    stride = -(-epochs // POINTS)
    return "all epochs" if stride <= 1 else f"one epoch in {stride}, those of the stored curves"


def _rows(laplacian: str, found: Mapping[str, Sequence[Finished]], shares: Mapping[str, float]) -> list[Row]:
    """A row a method: its mean curves with bands, and its differences to both kinds of DropEdge."""
    measures = {
        (label, loss, kind): _measure(runs, loss, kind)
        for label, runs in found.items()
        for loss in LOSSES
        for kind in ("mean", "smallest")
    }
    strategies = [label for label in found if f"dropedge as {label}" in found]
    judged: dict[tuple[str, str, str], dict[str, Gap]] = {}
    for loss in LOSSES:
        for kind in ("mean", "smallest"):
            for budget in BUDGETS:
                pairs = {}
                for label in strategies:
                    other = "dropedge" if budget == "same_p" else f"dropedge as {label}"
                    pairs[label] = (measures[label, loss, kind], measures[other, loss, kind])
                judged[loss, kind, budget] = gaps(pairs)
    return [
        {
            **{"laplacian": laplacian, "method": label, "kept_share": round(shares[label], 4), "seeds": len(runs)},
            **{f"{kind}_{loss}": _known_mean(measures[label, loss, kind]) for loss in LOSSES
               for kind in ("mean", "smallest")},
            **{f"{kind}_{loss}_{budget}": table[label] for (loss, kind, budget), table in judged.items()
               if label in table},
            **_curves(runs),
        }
        for label, runs in found.items()
    ]  # fmt: skip


def _stacked(runs: Sequence[Finished], loss: str) -> Array:
    """The curves ``[S, points]`` of the runs that did not fail."""
    return np.array([run.curves[loss] for run in runs if run.curves is not None], dtype=np.float64)


def _measure(runs: Sequence[Finished], loss: str, kind: str) -> Array:
    """A number of each curve ``[S]``; NaN where a run failed."""
    reduce = np.mean if kind == "mean" else np.min
    return np.array([np.nan if run.curves is None else reduce(run.curves[loss]) for run in runs], dtype=np.float64)


def _known_mean(values: Array) -> float | None:
    """The mean over the runs that did not fail; None where all did."""
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else None


def _curves(runs: Sequence[Finished]) -> Row:
    """Mean curves, and the bands that hold two thirds of the runs."""
    first = next((run.curves for run in runs if run.curves is not None), None)
    if first is None:
        return {}
    shown: Row = {"epoch": [int(epoch) for epoch in first["epoch"]]}
    for loss in LOSSES:
        curves = _stacked(runs, loss)
        low, high = np.quantile(curves, [1 / 6, 5 / 6], axis=0)
        for name, line in ((loss, curves.mean(axis=0)), (f"{loss}_low", low), (f"{loss}_high", high)):
            shown[name] = [float(f"{value:.5g}") for value in line]
    return shown


def judge(rows: Sequence[Row], keep_prob: float) -> list[Verdict]:
    """Faster and lower, for both losses, at the same p and at the same budget."""
    verdicts = []
    for budget, words in BUDGETS.items():
        said, holds = [], False
        for laplacian in dict.fromkeys(row["laplacian"] for row in rows):
            mine = [row for row in rows if row["laplacian"] == laplacian]
            parts, everywhere = [], True
            for loss, name in LOSSES.items():
                for kind in ("mean", "smallest"):
                    found = [row[f"{kind}_{loss}_{budget}"] for row in mine if f"{kind}_{loss}_{budget}" in row]
                    everywhere = everywhere and all(map(surely_below, found))
                    parts.append(f"{kind} {name} loss {counted(found)}")
            holds = holds or everywhere
            said.append(f"{laplacian} Laplacian: {'; '.join(parts)}")
        claim = f"TADropEdge converges faster with lower training and validation loss than DropEdge {words}"
        verdicts.append(
            Verdict(f"{claim} (p = {keep_prob:g})", REPRODUCED if holds else NOT_REPRODUCED, ". ".join(said))
        )
    return verdicts


def tables(rows: Sequence[Mapping[str, Any]]) -> list[Table]:
    """The losses of each method, and their differences to DropEdge."""
    cells = []
    for row in rows:
        line = [row["method"], row["laplacian"], f"{row['kept_share']:.3f}"]
        for loss in LOSSES:
            smallest = row[f"smallest_{loss}"]
            line.append(NOTHING if smallest is None else f"{smallest:.4f}")
            for budget in BUDGETS:
                gap = row.get(f"smallest_{loss}_{budget}", UNDECIDED)
                known = gap["difference"] is not None
                line.append(f"{gap['difference']:+.4f} (p {p_value(gap['p_value'])})" if known else NOTHING)
        cells.append(line)
    columns = ["method", "Laplacian", "kept share"]
    for name in LOSSES.values():
        columns += [f"smallest {name} loss", "to DropEdge, same p", "to DropEdge, same budget"]
    return [Table("smallest losses, means over seeds", columns, cells)]
