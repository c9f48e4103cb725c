"""Figure 2b–d: accuracy of each strategy against p, beside DropEdge at the same p and at the same budget."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from tadropedge.paper.figures.fixed import draw_accuracy
from tadropedge.paper.fixed import Fixed, FixedSetting, Trained, against
from tadropedge.paper.item import Bench, Cells, Item, Table, Verdict, table_of
from tadropedge.paper.judge import (
    BUDGETS,
    Against,
    Gap,
    Summary,
    accuracies,
    accuracy,
    judged_by_laplacian,
    summary,
    told,
)
from tadropedge.paper.recipe import Recipe
from tadropedge.paper.rows import OPTIONAL, WITHOUT_NAME, Row, grouped
from tadropedge.publish.wording import NOTHING, p_value, plus_minus, points


@dataclass(frozen=True, kw_only=True)
class Accuracy(FixedSetting, Row):
    """One method at one p: its accuracy and, for a strategy, that of DropEdge and the differences to it."""

    accuracy: Annotated[Summary, WITHOUT_NAME]
    against: Annotated[Against, WITHOUT_NAME]
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
            against=found.get(one.setting, Against()),
            dropedge_same_budget=summary(accuracies(one.same_budget)) if one.same_budget else None,
        )
        for one in group
    ]


def judge(rows: Sequence[Accuracy], recipe: Recipe) -> list[Verdict]:
    """Whether TADropEdge is above DropEdge in almost all scenarios."""
    share, verdicts = recipe["almost_all"], []
    for budget, words in BUDGETS.items():
        found = {}
        for laplacian, mine in grouped(rows, lambda row: row.laplacian).items():
            gaps = [gap for row in mine if (gap := row.against.at(budget)) is not None]
            above = sum((gap.difference or 0) > 0 for gap in gaps)
            holds = above >= share * len(gaps) and sum(gap.sign for gap in gaps) > 0
            found[laplacian] = (holds, f"mean above in {above} of {len(gaps)} scenarios, {told(gaps)}")
        verdicts.append(judged_by_laplacian(recipe, "above", found, words=words))
    return verdicts


def tables(rows: Sequence[Accuracy]) -> list[Table]:
    """Accuracy and differences, a line for each method and p."""
    columns: Cells[Accuracy] = {
        "method": lambda row: row.method,
        "dataset": lambda row: row.dataset,
        "Laplacian": lambda row: row.laplacian,
        "p": lambda row: f"{row.keep_prob:g}",
        "kept share": lambda row: f"{row.kept_share:.3f}",
        "accuracy (%)": lambda row: accuracy(row.accuracy),
        "to DropEdge, same p (points)": lambda row: _gap(row.against.same_p),
        "to DropEdge, same budget (points)": lambda row: _gap(row.against.same_budget),
    }
    return [table_of("accuracy against p, 95 % intervals", rows, columns)]


def _gap(gap: Gap | None) -> str:
    return f"{plus_minus(points(gap.difference), gap.low, gap.high)} (p {p_value(gap.p_value)})" if gap else NOTHING
