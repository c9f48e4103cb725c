"""Figure 2b–d: accuracy of each strategy against p, beside DropEdge at the same p and at the same budget."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from tadropedge.paper.figures.fixed import draw_accuracy
from tadropedge.paper.fixed import Fixed, Trained
from tadropedge.paper.item import Bench, Item, Table, Verdict
from tadropedge.paper.judge import BUDGETS, Against, Summary, accuracies, judged_by_laplacian, summary, told
from tadropedge.paper.recipe import Recipe
from tadropedge.paper.rows import OPTIONAL, WITHOUT_NAME, Row, grouped
from tadropedge.publish.wording import NOTHING, p_value, percent, plus_minus, points


@dataclass(frozen=True, kw_only=True)
class Accuracy(Row):
    """One method at one p: its accuracy and, for a strategy, that of DropEdge and the differences to it."""

    dataset: str
    laplacian: str
    method: str
    keep_prob: float
    kept_share: float
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
    notes = ["Every seed is a fresh start and split, shared by all methods."]
    return Item(rows, judge(rows, recipe), draw_accuracy(rows), notes, run=work.run(settings(recipe)))


def settings(recipe: Recipe) -> str:
    """How much is trained, in words."""
    seeds = recipe["seeds"]
    counts = seeds if isinstance(seeds, int) else ", ".join(f"{name} {count}" for name, count in seeds.items())
    return f"fresh seeds and splits: {counts}; {recipe['epochs']} epochs, fixed settings"


def rows_of(group: Sequence[Trained]) -> list[Accuracy]:
    """A row for each method and p of one dataset and Laplacian; their differences are corrected together."""
    found = Against.of({
        (one.method, one.keep_prob): (accuracies(one.runs), accuracies(one.same_p), accuracies(one.same_budget))
        for one in group
        if one.same_budget
    })  # fmt: skip
    return [
        Accuracy(
            dataset=one.dataset,
            laplacian=one.laplacian,
            method=one.method,
            keep_prob=one.keep_prob,
            kept_share=one.kept_share,
            accuracy=summary(accuracies(one.runs)),
            against=found.get((one.method, one.keep_prob), Against()),
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
        claim = f"TADropEdge outperforms DropEdge {words} in almost all scenarios ({share:.0%} of p and strategy)"
        verdicts.append(judged_by_laplacian(claim, found))
    return verdicts


def tables(rows: Sequence[Accuracy]) -> list[Table]:
    """Accuracy and differences, a line for each method and p."""
    cells = []
    for row in rows:
        mean = plus_minus(percent(row.accuracy.mean), row.accuracy.low, row.accuracy.high)
        line = [row.method, row.dataset, row.laplacian, f"{row.keep_prob:g}", f"{row.kept_share:.3f}", mean]
        for gap in (row.against.same_p, row.against.same_budget):
            if gap is None:
                line.append(NOTHING)
            else:
                line.append(f"{plus_minus(points(gap.difference), gap.low, gap.high)} (p {p_value(gap.p_value)})")
        cells.append(line)
    columns = (
        *("method", "dataset", "Laplacian", "p", "kept share", "accuracy (%)"),
        *("to DropEdge, same p (points)", "to DropEdge, same budget (points)"),
    )
    return [Table("accuracy against p, 95 % intervals", columns, cells)]
