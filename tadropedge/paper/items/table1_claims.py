"""Table 1 judged: which printed numbers are reached, and whether TADropEdge improves accuracy in all cases."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tadropedge.comparison.statistics import ALPHA
from tadropedge.data.planetoid import NAMES
from tadropedge.paper.item import NOT_REPRODUCED, REPRODUCED, Table, Verdict
from tadropedge.paper.recipe import Recipe
from tadropedge.publish.wording import NOTHING, p_value, percent, plus_minus, points
from tadropedge.search.protocol import adaptive

Row = Mapping[str, Any]


def judge(rows: Sequence[Row], recipe: Recipe) -> list[Verdict]:
    """One verdict a dataset on its printed numbers, then the claim under both protocols."""
    there = {name: [row for row in rows if row["dataset"] == name] for name in recipe["cells"]}
    whole = {name: len(mine) == _rows_wanted(recipe, name) for name, mine in there.items()}
    # A claim on all cells is judged when all are there.
    reached = [_reached(mine, name, recipe) for name, mine in there.items() if mine and whole[name]]
    if not rows or not all(whole.values()):
        return reached
    once = _distinct(rows)
    return [*reached, _better_at_best(once, recipe), _better_honestly(once, recipe)]


def _rows_wanted(recipe: Recipe, dataset: str) -> int:
    """How many rows a dataset has in the end: methods that look at the topology have one for each Laplacian."""
    methods = [len(recipe["laplacians"]) if adaptive(method) else 1 for method in recipe["methods"]]
    return len(recipe["cells"][dataset]) * sum(methods)


def _distinct(rows: Sequence[Row]) -> list[Row]:
    """The rows without IncepGCN of 3 layers where JKNet of 3 layers, the same function, has the same results."""

    def content(row: Row) -> tuple[Any, ...]:
        return (row["dataset"], row["method"], row["laplacian"], row["paper_protocol"], row["honest"])

    known = [content(row) for row in rows if (row["backbone"], row["layers"]) == ("jknet", 3)]
    return [row for row in rows if (row["backbone"], row["layers"]) != ("incepgcn", 3) or content(row) not in known]


def _reached(rows: Sequence[Row], dataset: str, recipe: Recipe) -> Verdict:
    """Are all printed numbers reached with one of the two Laplacians? The paper does not say which it used."""
    tolerance, said, all_there = recipe["tolerance"], [], False
    for laplacian in recipe["laplacians"]:
        mine = [row for row in rows if row["laplacian"] in (None, laplacian) and row["printed"] is not None]
        low = [row for row in mine if row["short"] > tolerance]
        all_there = all_there or not low
        worst = max(mine, key=lambda row: row["short"], default=None)
        words = f"{laplacian} Laplacian: {len(mine) - len(low)} of {len(mine)} cells"
        if worst is not None and worst["short"] > 0:
            words += f", the lowest {100 * worst['short']:.1f} points short ({_name(worst)})"
        said.append(words)
    least: dict[Any, float] = {}
    for row in rows:
        if row["printed"] is not None:
            case = _key(row)[:4]
            least[case] = min(row["short"], least.get(case, 1.0))
    said.append(f"the better of the two in each cell: {sum(s <= tolerance for s in least.values())} of {len(least)}")
    return Verdict(
        f"{NAMES.get(dataset, dataset)}: every cell reaches the printed accuracy minus {tolerance:g} "
        f"(best test accuracy of {recipe['trials']} trials)",
        REPRODUCED if all_there else NOT_REPRODUCED,
        "; ".join(said),
    )


def _better_at_best(rows: Sequence[Row], recipe: Recipe) -> Verdict:
    """The claim as the paper tests it: the best of the trials against DropEdge's best."""
    best = {_key(row): row["paper_protocol"]["best_test"] for row in rows}
    said, everywhere = [], False
    for laplacian in recipe["laplacians"]:
        counts, wins, total = [], 0, 0
        for method in filter(adaptive, recipe["methods"]):
            mine = [row for row in rows if row["method"] == method and row["laplacian"] == laplacian]
            above = sum(best[_key(row)] > best.get((*_key(row)[:3], "dropedge", None), 1.0) for row in mine)
            counts.append(f"{method} in {above} of {len(mine)}")
            wins, total = wins + above, total + len(mine)
        everywhere = everywhere or (total > 0 and wins == total)
        said.append(f"{laplacian} Laplacian: {', '.join(counts)}")
    return Verdict(
        "TADropEdge improves accuracy consistently in all cases (paper protocol: its best trial above DropEdge's)",
        REPRODUCED if everywhere else NOT_REPRODUCED,
        "above DropEdge: " + "; ".join(said),
    )


def _better_honestly(rows: Sequence[Row], recipe: Recipe) -> Verdict:
    """The claim under fresh seeds and splits, against DropEdge at the same budget."""
    said, everywhere = [], False
    for laplacian in recipe["laplacians"]:
        mine = [row["honest"] for row in rows if row["laplacian"] == laplacian and adaptive(row["method"])]
        judged = [honest for honest in mine if honest["p_value"] is not None]
        sure = [honest for honest in judged if honest["p_value"] <= ALPHA]
        above = sum(honest["difference"] > 0 for honest in sure)
        everywhere = everywhere or (above == len(mine) and above > 0)
        said.append(
            f"{laplacian} Laplacian: better in {above}, worse in {len(sure) - above}, "
            f"undecided in {len(judged) - len(sure)} of {len(mine)}"
            + (f", failed in {len(mine) - len(judged)}" if len(judged) < len(mine) else "")
        )
    width = largest_half_width(rows)
    precision = f"largest half-width {100 * width:.2f} points" if width is not None else "no interval"
    return Verdict(
        "TADropEdge improves accuracy consistently in all cases (honest protocol: settings chosen on validation, "
        "fresh seeds and splits, DropEdge with the same expected number of kept edges)",
        REPRODUCED if everywhere else NOT_REPRODUCED,
        f"{'; '.join(said)}; {precision} (wanted: {100 * recipe['half_width']:.2f})",
    )


def largest_half_width(rows: Sequence[Row]) -> float | None:
    """Half the widest 95 % interval of a paired difference."""
    widths = [
        (row["honest"]["difference_high"] - row["honest"]["difference_low"]) / 2
        for row in rows
        if row["honest"]["difference"] is not None
    ]
    return max(widths, default=None)


def notes(rows: Sequence[Row], recipe: Recipe) -> list[str]:
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
            f"Fresh splits of {NAMES.get(dataset, dataset)} test on {count:,} nodes, which training gives up: most of "
            "the spread of a difference comes from the choice of the test nodes."
            for dataset, count in recipe["test_nodes"].items()
        ),
        "Where the number of classes falls inside a repeated eigenvalue of a component, its whole eigenspace is used.",
        "The best test accuracy of many trials is higher than what new data would show; it is here to stand beside the "
        "printed numbers.",
    ]
    short = [row for row in rows if (row["short"] or 0) > recipe["tolerance"]]
    for row in short:
        said.append(f"{_name(row)} falls short of {row['printed']:.3f} by {row['short']:.3f}.")
    return said


def tables(rows: Sequence[Row]) -> list[Table]:
    """Both protocols, dataset by dataset."""
    shown = []
    for dataset in dict.fromkeys(row["dataset"] for row in rows):
        mine = [row for row in rows if row["dataset"] == dataset]
        shown += [_paper_table(mine, NAMES.get(dataset, dataset)), _honest_table(mine, NAMES.get(dataset, dataset))]
    return shown


def _paper_table(rows: Sequence[Row], title: str) -> Table:
    trials = max(row["paper_protocol"]["trials"] for row in rows)
    cells = [
        [
            *(f"{row['backbone']}-{row['layers']}", row["method"], row["laplacian"] or NOTHING),
            *(percent(row["printed"], 1), percent(row["paper_protocol"]["best_test"], 1)),
            NOTHING if not row["short"] else f"{100 * row['short']:.1f}",
        ]
        for row in rows
    ]
    columns = ("network", "method", "Laplacian", "printed (%)", "measured (%)", "short (points)")
    return Table(f"{title}, paper protocol: best test accuracy of {trials} trials", columns, cells)


def _honest_table(rows: Sequence[Row], title: str) -> Table:
    cells = []
    for row in rows:
        honest = row["honest"]
        gap = plus_minus(points(honest["difference"]), honest["difference_low"], honest["difference_high"])
        mean = plus_minus(percent(honest["mean"]), honest["low"], honest["high"])
        network, laplacian = f"{row['backbone']}-{row['layers']}", row["laplacian"] or NOTHING
        cells.append([network, row["method"], laplacian, mean, gap, p_value(honest["p_value"]), str(honest["seeds"])])
    columns = ("network", "method", "Laplacian", "accuracy (%)", "above DropEdge (points)", "p-value", "seeds")
    return Table(f"{title}, honest protocol: mean over fresh seeds and splits, 95 % intervals", columns, cells)


def _key(row: Row) -> tuple[Any, ...]:
    return tuple(row[name] for name in ("dataset", "backbone", "layers", "method", "laplacian"))


def _name(row: Row) -> str:
    laplacian = f", {row['laplacian']}" if row["laplacian"] else ""
    return f"{NAMES.get(row['dataset'], row['dataset'])} {row['backbone']}-{row['layers']} {row['method']}{laplacian}"
