"""Table 1 judged: which printed numbers are reached, and whether TADropEdge improves accuracy in all cases."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any

from tadropedge.comparison.results import PaperProtocol
from tadropedge.comparison.statistics import Honest
from tadropedge.paper.item import Table, Verdict
from tadropedge.paper.judge import judged_by_laplacian
from tadropedge.paper.recipe import Recipe
from tadropedge.paper.rows import WITHOUT_NAME, Row, grouped, title
from tadropedge.paper.trainings import Fresh
from tadropedge.publish.wording import NOTHING, p_value, percent, plus_minus, points
from tadropedge.search.protocol import adaptive


@dataclass(frozen=True, kw_only=True)
class Result(Row):
    """One method in one cell under both protocols, beside the printed number."""

    dataset: str
    backbone: str
    layers: int
    method: str
    laplacian: str | None  # of methods that look at the topology
    printed: float | None
    paper_protocol: PaperProtocol
    short: float | None  # by how much the best trial is below the printed number
    honest: Honest
    fresh: Annotated[Fresh, WITHOUT_NAME]
    settings: dict[str, Any]

    @property
    def network(self) -> str:
        """Backbone and depth."""
        return f"{self.backbone}-{self.layers}"

    @property
    def name(self) -> str:
        """The row in words."""
        laplacian = f", {self.laplacian}" if self.laplacian else ""
        return f"{title(self.dataset)} {self.network} {self.method}{laplacian}"


def judge(rows: Sequence[Result], recipe: Recipe) -> list[Verdict]:
    """One verdict per dataset on its printed numbers, then the claim under both protocols."""
    there = grouped(rows, lambda row: row.dataset)
    # Methods that look at the topology have a row for each Laplacian.
    each = sum(len(recipe["laplacians"]) if adaptive(method) else 1 for method in recipe["methods"])
    whole = {name: len(there.get(name, [])) == len(cells) * each for name, cells in recipe["cells"].items()}
    # A claim on all cells is judged when all are there.
    reached = [_reached(mine, name, recipe) for name, mine in there.items() if whole[name]]
    if not rows or not all(whole.values()):
        return reached
    once = _distinct(rows)
    return [*reached, _better_at_best(once, recipe), _better_honestly(once, recipe)]


def _distinct(rows: Sequence[Result]) -> list[Result]:
    """The rows without IncepGCN of 3 layers where JKNet of 3 layers, the same function, has the same results."""

    def content(row: Result) -> tuple[Any, ...]:
        return (row.dataset, row.method, row.laplacian, row.paper_protocol, row.honest)

    known = [content(row) for row in rows if row.network == "jknet-3"]
    return [row for row in rows if row.network != "incepgcn-3" or content(row) not in known]


def _reached(rows: Sequence[Result], dataset: str, recipe: Recipe) -> Verdict:
    """Whether all printed numbers are reached with one of the two Laplacians."""
    tolerance = recipe["tolerance"]
    known = [(row.short, row) for row in rows if row.short is not None]
    found = {}
    for laplacian in recipe["laplacians"]:
        mine = [(short, row) for short, row in known if row.laplacian in (None, laplacian)]
        low = sum(short > tolerance for short, _ in mine)
        most, worst = max(mine, key=lambda pair: pair[0], default=(0.0, None))
        least = f", the lowest {100 * most:.1f} points short ({worst.name})" if worst is not None and most > 0 else ""
        found[laplacian] = (low == 0, f"{len(mine) - low} of {len(mine)} cells{least}")
    cases = grouped(known, lambda pair: (pair[1].network, pair[1].method)).values()
    good = sum(min(short for short, _ in case) <= tolerance for case in cases)
    verdict = judged_by_laplacian(
        f"{title(dataset)}: every cell reaches the printed accuracy minus {tolerance:g} "
        f"(best test accuracy of {recipe['trials']} trials)",
        found,
    )
    better = f"the better of the two in each cell: {good} of {len(cases)}"
    return replace(verdict, reason=f"{verdict.reason}; {better}")


def _better_at_best(rows: Sequence[Result], recipe: Recipe) -> Verdict:
    """The claim as the paper tests it: the best of the trials against DropEdge's best."""
    base = {(row.dataset, row.network): row.paper_protocol.best_test for row in rows if row.method == "dropedge"}
    found = {}
    for laplacian in recipe["laplacians"]:
        groups = grouped((row for row in rows if row.laplacian == laplacian), lambda row: row.method)
        wins = {
            method: [row.paper_protocol.best_test > base.get((row.dataset, row.network), 1.0) for row in mine]
            for method, mine in groups.items()
        }
        said = ", ".join(f"{method} in {sum(above)} of {len(above)}" for method, above in wins.items())
        found[laplacian] = (bool(wins) and all(map(all, wins.values())), said)
    verdict = judged_by_laplacian(
        "TADropEdge improves accuracy consistently in all cases (paper protocol: its best trial above DropEdge's)",
        found,
    )
    return replace(verdict, reason=f"above DropEdge: {verdict.reason}")


def _better_honestly(rows: Sequence[Result], recipe: Recipe) -> Verdict:
    """The claim under fresh seeds and splits, against DropEdge at the same budget."""
    found = {}
    for laplacian in recipe["laplacians"]:
        mine = [row.honest.outcome for row in rows if row.laplacian == laplacian]
        better, worse, undecided = (mine.count(outcome) for outcome in ("better", "worse", "undecided"))
        failed = len(mine) - better - worse - undecided
        words = f"better in {better}, worse in {worse}, undecided in {undecided} of {len(mine)}"
        found[laplacian] = (0 < better == len(mine), words + (f", failed in {failed}" if failed else ""))
    ends = [(row.honest.difference_low, row.honest.difference_high) for row in rows]
    widths = [(high - low) / 2 for low, high in ends if low is not None and high is not None]
    precision = f"largest half-width {100 * max(widths):.2f} points" if widths else "no interval"
    verdict = judged_by_laplacian(
        "TADropEdge improves accuracy consistently in all cases (honest protocol: settings chosen on validation, "
        "fresh seeds and splits, DropEdge with the same expected number of kept edges)",
        found,
    )
    return replace(verdict, reason=f"{verdict.reason}; {precision} (wanted: {100 * recipe['half_width']:.2f})")


def notes(rows: Sequence[Result], recipe: Recipe) -> list[str]:
    """What a reader of the table has to know."""
    said = [
        "Original and DropEdge do not depend on the Laplacian and are run once.",
        "The paper does not say which Laplacian it used: a claim is reproduced where it holds with one of the two.",
        "Holm's correction is for the three strategies of one dataset, backbone, depth and Laplacian.",
        "JKNet and IncepGCN of 3 layers are the same function in the DropEdge code that the paper builds on: the gap "
        "between the two printed columns (up to 0.6 points) is noise of the search. They are trained and counted once.",
        "The paper does not print its search ranges. Ours were chosen by the TEST accuracy of a pilot on the same "
        "split, with the values of the released DropEdge scripts and every choice of self weights and batch norm: "
        "100 trials of cdf on two networks of Cora and of CiteSeer, 48 on one of PubMed. So the paper protocol "
        "has had more looks at the test set than its trials, and the honest protocol starts from ranges that had "
        "one.",
        "Cells get fresh seeds until every paired difference is known to the wanted half-width, or to the most that "
        "the recipe allows; what the differences are has no say in it.",
        *(
            f"Fresh splits of {title(dataset)} test on {count:,} nodes, which training gives up: most of "
            "the spread of a difference comes from the choice of the test nodes."
            for dataset, count in recipe["test_nodes"].items()
        ),
        "Where the number of classes falls inside a repeated eigenvalue of a component, its whole eigenspace is used.",
        "The best test accuracy of many trials is higher than what new data would show; it is here to stand beside the "
        "printed numbers.",
    ]
    for row in rows:
        if row.printed is not None and row.short is not None and row.short > recipe["tolerance"]:
            said.append(f"{row.name} falls short of {row.printed:.3f} by {row.short:.3f}.")
    return said


def tables(rows: Sequence[Result]) -> list[Table]:
    """Both protocols, dataset by dataset."""
    groups = grouped(rows, lambda row: row.dataset).items()
    return [made(mine, title(dataset)) for dataset, mine in groups for made in (_paper_table, _honest_table)]


def _paper_table(rows: Sequence[Result], name: str) -> Table:
    trials = max(row.paper_protocol.trials for row in rows)
    cells = [
        [
            *(row.network, row.method, row.laplacian or NOTHING),
            *(percent(row.printed, 1), percent(row.paper_protocol.best_test, 1)),
            NOTHING if not row.short else f"{100 * row.short:.1f}",
        ]
        for row in rows
    ]
    columns = ("network", "method", "Laplacian", "printed (%)", "measured (%)", "short (points)")
    return Table(f"{name}, paper protocol: best test accuracy of {trials} trials", columns, cells)


def _honest_table(rows: Sequence[Result], name: str) -> Table:
    cells = [
        [
            *(row.network, row.method, row.laplacian or NOTHING),
            *(accuracy(row.honest), difference(row.honest), p_value(row.honest.p_value), str(row.honest.seeds)),
        ]
        for row in rows
    ]
    columns = ("network", "method", "Laplacian", "accuracy (%)", "above DropEdge (points)", "p-value", "seeds")
    return Table(f"{name}, honest protocol: mean over fresh seeds and splits, 95 % intervals", columns, cells)


def accuracy(honest: Honest) -> str:
    """An honest mean in per cent, with its interval."""
    return plus_minus(percent(honest.mean), honest.low, honest.high)


def difference(honest: Honest) -> str:
    """A paired difference in points, with its interval."""
    return plus_minus(points(honest.difference), honest.difference_low, honest.difference_high)
