"""Table 2: the best TADropEdge of each backbone, from Table 1, beside the competitors.

Competitors are searched in spaces of their own with the same number of trials, and judged by both protocols. Where a
preset leaves a dataset out, its rows show the printed numbers and say so.

The paper's protocol takes the best test accuracy over all strategies, depths and Laplacians. The honest mean comes from
the one of them whose chosen trial has the best validation accuracy: the test set has no say in it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Annotated, TypeVar

import numpy as np

from tadropedge.comparison.statistics import Honest, honest_rows, paired_difference
from tadropedge.errors import TadropedgeError
from tadropedge.paper.document import read_document
from tadropedge.paper.figures import tables as figures
from tadropedge.paper.item import Bench, Cells, Item, Table, Verdict, table_of
from tadropedge.paper.items import table1
from tadropedge.paper.items.table1 import Result
from tadropedge.paper.judge import Summary, accuracy, judged
from tadropedge.paper.recipe import Recipe, load_recipe
from tadropedge.paper.rows import WITHOUT_NAME, Column, Row, grouped, title
from tadropedge.paper.trainings import Fresh, Search, Work, laboratory, trainings
from tadropedge.publish.wording import NOTHING, percent, points
from tadropedge.search.protocol import adaptive, paper
from tadropedge.search.space import method_space
from tadropedge.training.batch import MOST_STEPS

TOLERANCE = 0.01  # below the printed accuracy of a competitor


@dataclass(frozen=True)
class Contest:
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
    honest: Annotated[Summary, Column("honest", inlined=True)] = field(default_factory=Summary)
    choice: Annotated[Contest, WITHOUT_NAME]  # of the best test accuracy
    honest_choice: Annotated[Contest, Column("honest", inlined=True)] = field(default_factory=Contest)
    fresh: Annotated[Fresh, WITHOUT_NAME] = field(default_factory=Fresh)  # of what the honest mean is of
    looks: int | None = None  # at the test set, of which the accuracy is the best

    @property
    def ours(self) -> bool:
        """Whether it is TADropEdge."""
        return self.row.startswith("TADropEdge")


C = TypeVar("C", Contender, Result)
ROWS = (Contender,)


def run(bench: Bench) -> Item:
    """Rows of Table 1 that are in the folder are taken from there; otherwise Table 1 is run."""
    recipe = bench.recipe
    wanted = _wanted(bench)  # a part that is not there is refused before Table 1 is run
    measured, source, complete = _table1_rows(bench, load_recipe("table1", recipe.preset))
    competitors, seeds = list(recipe["competitors"]), recipe["seeds"]
    work = Work(bench, sum(trainings(competitors, recipe["trials"], seeds[dataset]) for dataset in wanted))
    found = {dataset: _competitors(work, dataset, dataset in wanted) for dataset in seeds}
    known = {(row.row, row.dataset): row for rows in found.values() for row in rows}
    columns = [column.lower() for column in recipe.published["columns"]]
    printed = [_printed(recipe, method, dataset) for method in competitors for dataset in columns]
    rows = [*_ours(recipe, measured), *(known.get((row.row, row.dataset), row) for row in printed)]
    unknown = any(row.source == "measured" and row.honest.mean is None for row in rows)
    notes = recipe.said(
        source=[{"source": source}],
        splits=other_splits(rows),
        backbones=without_topology(measured),
        steps=[{"steps": MOST_STEPS}],
        unknown=[{}] * unknown,
        printed=[{}] * any(row.source == "printed" for row in rows),
    )
    counts = ", ".join(f"{dataset} {count}" for dataset, count in seeds.items())
    verdicts = [*judge(rows, recipe), *reached(rows, recipe)]
    whole = complete and all(found.values())
    return Item(
        rows, verdicts, {"table2": figures.contenders(rows)}, notes, complete=whole, run=work.run(counts=counts)
    )


def _table1_rows(bench: Bench, recipe: Recipe) -> tuple[Sequence[Result], str, bool]:
    path = bench.folder / "results.json"
    entry = read_document(path).get("table1") if path.exists() else None
    if entry is None or (entry.run["fingerprint"], entry.run["seed"]) != (recipe.fingerprint, bench.seed):
        found = table1.run(replace(bench, recipe=recipe, parts=()))
        rows, source, complete = found.rows, "TADropEdge's rows come from the trainings of table1.", found.complete
    else:
        rows, source, complete = entry.rows, "TADropEdge's rows come from table1 in the same folder.", entry.complete
        source += "" if complete else f" Table 1 is not complete: {entry.run.get('cells')} cells."
    return [row for row in rows if isinstance(row, Result)], source, complete


def printed_accuracy(recipe: Recipe, row: str, dataset: str) -> float | None:
    """What the paper prints for a row and a dataset."""
    columns = [column.lower() for column in recipe.published["columns"]]
    return float(recipe.published[row][columns.index(dataset)]) if dataset in columns else None


def _ours(recipe: Recipe, measured: Sequence[Result]) -> list[Contender]:
    """One row for each backbone and dataset: the best of Table 1."""
    rows = []
    groups = grouped(filter(lambda row: adaptive(row.method), measured), lambda row: (row.backbone, row.dataset))
    for backbone, name in recipe["backbones"].items():
        for dataset in dict.fromkeys(row.dataset for row in measured):
            if not (mine := groups.get((backbone, dataset))):
                continue
            best, chosen = max(mine, key=lambda row: row.paper_protocol.best_test), best_on_validation(mine)
            rows.append(
                Contender(
                    row=name,
                    dataset=dataset,
                    source="measured",
                    printed=printed_accuracy(recipe, name, dataset),
                    accuracy=best.paper_protocol.best_test,
                    honest=_summary(chosen.honest) if chosen else Summary(),
                    choice=Contest(best.method, best.layers, best.laplacian),
                    honest_choice=Contest(chosen.method, chosen.layers, chosen.laplacian) if chosen else Contest(),
                    fresh=chosen.fresh if chosen else Fresh(),
                    looks=sum(row.paper_protocol.trials for row in mine),
                )
            )
    return rows


def _summary(honest: Honest) -> Summary:
    return Summary(mean=honest.mean, low=honest.low, high=honest.high, seeds=honest.seeds)


def _competitors(work: Work, dataset: str, now: bool) -> list[Contender]:
    """The competitors on one dataset; none where they are not finished."""
    bench, recipe = work.bench, work.bench.recipe
    data = bench.dataset(dataset)
    search = Search(
        laboratory=laboratory(bench, data),
        space=partial(method_space, gamma=data.gamma),
        methods=list(recipe["competitors"]),
        trials=recipe["trials"],
        seeds=recipe["seeds"][dataset],
        place=dataset,
    )
    work.journal.start()
    both = search.run(work, bench.storage(dataset), dataset, now)
    if both is None:  # it belongs to another part
        return []
    table, fresh = both
    honest = honest_rows(fresh.accuracy, fresh.reference)
    return [
        replace(
            _printed(recipe, method, dataset),
            source="measured",
            accuracy=best.test_accuracy,
            honest=_summary(honest[method]),
            fresh=search.fresh(fresh, method),
            looks=len(table[method]),
        )
        for method, best in paper(table).items()
    ]


def _printed(recipe: Recipe, method: str, dataset: str) -> Contender:
    """A competitor that was not run here."""
    name = recipe["competitors"][method]
    printed, choice = printed_accuracy(recipe, name, dataset), Contest(method, 2, None)
    return Contender(
        row=name,
        dataset=dataset,
        source="printed",
        printed=printed,
        accuracy=math.nan if printed is None else printed,
        choice=choice,
        honest_choice=choice,
    )


def _wanted(bench: Bench) -> list[str]:
    """The datasets that are trained now: those of the parts that were asked for, or all of the recipe."""
    datasets = list(bench.recipe["seeds"])
    for part in bench.parts:
        if part not in datasets:
            raise TadropedgeError(f"no part {part!r} in this recipe; take one of {', '.join(datasets)}")
    return [dataset for dataset in datasets if not bench.parts or dataset in bench.parts]


def judge(rows: Sequence[Contender], recipe: Recipe) -> list[Verdict]:
    """On each dataset, whether TADropEdge is above every competitor, by both protocols."""
    verdicts: list[Verdict] = []
    honest: list[Verdict] = []
    for dataset, mine in grouped(rows, lambda row: title(row.dataset)).items():
        ours, others = [row for row in mine if row.ours], [row for row in mine if not row.ours]
        if not ours or not others:
            continue
        best, rival = (max(group, key=lambda row: row.accuracy) for group in (ours, others))
        theirs = "" if rival.looks is None else f", the other of {rival.looks:,}"
        numbers = {"name": dataset, "best": best, "rival": rival, "theirs": theirs}
        verdicts.append(judged(recipe, "better", best.accuracy > rival.accuracy, **numbers))
        honest += _better_honestly(ours, others, dataset, recipe)
    return [*verdicts, *honest]


def _better_honestly(
    ours: Sequence[Contender], others: Sequence[Contender], name: str, recipe: Recipe
) -> list[Verdict]:
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
    numbers = {"name": name, "mine": mine.row, "mean": percent(mine.honest.mean), "said": said, "how": how}
    return [judged(recipe, "honestly", all(gap > half for gap, half in gaps.values()), **numbers)]


def best_on_validation(rows: Sequence[C]) -> C | None:
    """The row whose chosen trial has the best validation accuracy; None where one does not say."""
    if not rows or any(row.fresh.val_accuracy is None for row in rows):
        return None
    return max(rows, key=lambda row: row.fresh.val_accuracy or 0.0)


def above(one: Contender, other: Contender) -> tuple[float, float]:
    """The difference of two honest means and half its 95 % interval, paired where replicates have the same splits.

    >>> rows = [Contender(row=name, dataset="cora", source="measured", printed=None, accuracy=0.9, choice=Contest(),
    ...                   fresh=Fresh(0.8, found, 100))
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


def reached(rows: Sequence[Contender], recipe: Recipe) -> list[Verdict]:
    """Whether each competitor that was run reaches what is printed for it."""
    verdicts = []
    run = [row for row in rows if not row.ours and row.source == "measured"]
    for name, mine in grouped(run, lambda row: row.row).items():
        known = [(row, row.printed) for row in mine if row.printed is not None]
        said = ", ".join(f"{row.dataset} {row.accuracy:.3f} ({printed:.3f})" for row, printed in known)
        good = all(row.accuracy >= printed - TOLERANCE for row, printed in known)
        verdicts.append(judged(recipe, "reached", good, tolerance=TOLERANCE, name=name, said=said))
    return verdicts


def without_topology(measured: Sequence[Result]) -> list[dict[str, str]]:
    """What the rows of Table 1 that do not look at the topology have, chosen in the same way: the backbones' share."""
    said = []
    uniform = [row for row in measured if row.laplacian is None]
    for method, mine in grouped(uniform, lambda row: row.method).items():
        groups = grouped(mine, lambda row: title(row.dataset)).items()
        best = [(name, chosen) for name, group in groups if (chosen := best_on_validation(group))]
        means = [f"{accuracy(row.honest)} % on {name}" for name, row in best if row.honest.mean is not None]
        if means:
            said.append(f"{method} has {', '.join(means)}")
    return [{"said": "; ".join(said)}] if said else []


def other_splits(rows: Sequence[Contender]) -> list[dict[str, object]]:
    """Where TADropEdge and the competitors are tested on different numbers of nodes, and how many."""
    mine, theirs = ({row.dataset: row.fresh.test_nodes for row in rows if row.ours == ours and row.fresh.test_nodes}
                    for ours in (True, False))  # fmt: skip
    return [
        {"name": title(dataset), "count": count, "theirs": theirs[dataset]}
        for dataset, count in mine.items()
        if theirs.get(dataset, count) != count
    ]


def tables(rows: Sequence[Contender]) -> list[Table]:
    """Printed and measured, a line for each row and dataset."""
    columns: Cells[Contender] = {
        "row": lambda row: row.row,
        "dataset": lambda row: row.dataset,
        "printed (%)": lambda row: percent(row.printed),
        "measured, best (%)": lambda row: percent(row.accuracy) if row.source == "measured" else NOTHING,
        "looks at the test set": lambda row: NOTHING if row.looks is None else f"{row.looks:,}",
        "honest mean, 95 % interval (%)": lambda row: accuracy(row.honest),
        "source": lambda row: row.source,
    }
    return [table_of("best test accuracy, and the honest mean", rows, columns)]
