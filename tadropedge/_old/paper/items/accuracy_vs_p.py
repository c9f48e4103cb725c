"""Figure 2b–d: accuracy of each strategy against p, beside DropEdge at the same p and at the same budget."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from tadropedge._old.paper.figures.fixed import draw_accuracy
from tadropedge._old.paper.fixed import Fixed, FixedSetting, Trained, against, extremes, in_points
from tadropedge._old.paper.item import Bench, Cells, Item, Table, Verdict, table_of
from tadropedge._old.paper.judge import BothBudgets, Gap, Holds, Summary, accuracies, accuracy, judged, summary, told
from tadropedge._old.paper.recipe import Recipe
from tadropedge._old.paper.rows import OPTIONAL, WITHOUT_NAME, Row, grouped, title
from tadropedge._old.publish.wording import NOTHING, p_value, plus_minus, points


@dataclass(frozen=True, kw_only=True)
class Accuracy(FixedSetting, Row):
    """One method at one p: its accuracy and, for a strategy, that of DropEdge and the differences to it."""

    accuracy: Annotated[Summary, WITHOUT_NAME]
    against: Annotated[BothBudgets, WITHOUT_NAME]
    dropedge_same_budget: Annotated[Summary | None, OPTIONAL] = None


ROWS = (Accuracy,)


def run(bench: Bench) -> Item:
    """Every strategy and both kinds of DropEdge at every p, on the same fresh seeds and splits."""
    recipe = bench.recipe
    plan = Fixed(strategies=recipe["strategies"], keep_probs=recipe["keep_probs"])
    work = plan.work(bench)
    rows = [row for group in plan.run(work) for row in rows_of(group)]
    return Item(rows, judge(rows, recipe), draw_accuracy(rows), recipe.said(), run=work.run())


def rows_of(group: Sequence[Trained]) -> list[Accuracy]:
    """A row for each method and p of one dataset and Laplacian; their differences are corrected together."""
    found = against(group, accuracies)
    return [
        Accuracy(
            **vars(one.setting),
            accuracy=summary(accuracies(one.runs)),
            against=found.get(one.setting, BothBudgets()),
            dropedge_same_budget=summary(accuracies(one.same_budget)) if one.same_budget else None,
            commit=one.commit,
        )
        for one in group
    ]


def judge(rows: Sequence[Accuracy], recipe: Recipe) -> list[Verdict]:
    """Whether TADropEdge is above DropEdge in almost all scenarios, at the same p and at the same budget."""
    verdicts = []
    for budget, claim in (("same_p", "above"), ("same_budget", "above_same_budget")):
        groups = grouped(rows, lambda row: row.laplacian)
        found = {laplacian: strategies(mine, budget) for laplacian, mine in groups.items()}
        every = {laplacian: [gap for some in mine.values() for gap in some] for laplacian, mine in found.items()}
        said = "; ".join(
            f"{laplacian} Laplacian: mean above in {above(mine)} of {len(mine)} scenarios, {told(mine)}"
            for laplacian, mine in every.items()
        )
        spans = "; ".join(
            f"{name} ({laplacian}) {extremes(some, in_points)}"
            for laplacian, mine in found.items()
            for name, some in mine.items()
        )
        holds: Holds = any(almost_all(mine, recipe["almost_all"]) for mine in every.values())
        # The claim is on almost all scenarios: it does not hold in part where most of them say nothing.
        if not holds and any(2 * sum(gap.sign > 0 for gap in mine) >= len(mine) for mine in every.values()):
            holds = surely_above(rows, budget)
        where = surely_above(rows, budget) or "nowhere"
        verdicts.append(judged(recipe, claim, holds, said=f"{said}; surely above: {where}", spans=spans))
    return verdicts


def strategies(rows: Sequence[Accuracy], budget: str) -> dict[str, list[Gap]]:
    """The differences of each strategy to DropEdge, p by p."""
    found = [(row.method, gap) for row in rows if (gap := row.against.at(budget)) is not None]
    return {name: [gap for _, gap in some] for name, some in grouped(found, lambda pair: pair[0]).items()}


def above(found: Sequence[Gap]) -> int:
    """How many means are above DropEdge's, however little."""
    return sum((gap.difference or 0) > 0 for gap in found)


def almost_all(found: Sequence[Gap], share: float) -> bool:
    """Whether so many means are above, and more of the differences are surely above than surely below."""
    return above(found) >= share * len(found) and sum(gap.sign for gap in found) > 0


def surely_above(rows: Sequence[Accuracy], budget: str) -> str | bool:
    """At which p each strategy is surely above DropEdge; False if at none."""
    sure = [row for row in rows if (gap := row.against.at(budget)) is not None and gap.sign > 0]
    groups = grouped(sure, lambda row: (row.method, row.laplacian))
    return (
        ", ".join(
            f"{method} at p = {' and '.join(f'{row.keep_prob:g}' for row in mine)} ({laplacian})"
            for (method, laplacian), mine in groups.items()
        )
        or False
    )


def shown_gap(gap: Gap | None) -> str:
    """A difference in points with its interval and its corrected p-value."""
    return f"{plus_minus(points(gap.difference), gap.low, gap.high)} (p {p_value(gap.p_value)})" if gap else NOTHING


COLUMNS: Cells[Accuracy] = {
    "method": lambda row: row.method,
    "dataset": lambda row: title(row.dataset),
    "Laplacian": lambda row: row.laplacian,
    "p": lambda row: f"{row.keep_prob:g}",
    "kept share": lambda row: f"{row.kept_share:.3f}",
    "accuracy (%)": lambda row: accuracy(row.accuracy),
    "to DropEdge, same p (points)": lambda row: shown_gap(row.against.same_p),
    "to DropEdge, same budget (points)": lambda row: shown_gap(row.against.same_budget),
}


def tables(rows: Sequence[Accuracy]) -> list[Table]:
    """Accuracy and differences, a line for each method and p."""
    return [table_of("accuracy against p, 95 % intervals, p-values corrected", rows, COLUMNS)]
