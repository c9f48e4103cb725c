"""Table 2's verdicts on rows that are made up, and the trials that its rows are given."""

import math
from collections import Counter
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.stats
from paper_rows import NOISE, SPLITS, contender, result

from tadropedge.paper.contest import Contest, compared, distinct, improvement, judge
from tadropedge.paper.item import NOT_REPRODUCED, PARTLY, REPRODUCED
from tadropedge.paper.items.table2 import Shelf, place
from tadropedge.paper.recipe import load_recipe

RECIPE = load_recipe("table2", "paper")
STRATEGIES, LAPLACIANS = ("cutoff", "division", "cdf"), ("combinatorial", "normalized")


def rows_of(dataset="cora", *, ours=0.03, original=0.02, dropedge=0.025, rival=0.0, **bests):
    """Three rows of one backbone and two competitors."""
    shifts = {
        "Original-GCN": original,
        "DropEdge-GCN": dropedge,
        "TADropEdge-GCN": ours,
        "FastGCN": rival,
        "PTDNet": -0.01,
    }
    return [
        contender(name, dataset=dataset, fresh=SPLITS + shift + place * NOISE, accuracy=bests.get(name, 0.9))
        for place, (name, shift) in enumerate(shifts.items())
    ]


def found(rows, words, measured=()):
    return [one for one in judge(rows, measured, RECIPE) if words in one.claim]


def test_strategies_and_laplacians_take_turns():
    places = [place(i, STRATEGIES, LAPLACIANS) for i in range(100)]
    counts = Counter(places)
    assert len(counts) == 6
    assert set(counts.values()) == {16, 17}
    assert places[:7] == [(method, laplacian) for laplacian in LAPLACIANS for method in STRATEGIES] + [places[0]]


def test_a_row_takes_as_many_of_the_recorded_trials_as_a_competitor_has():
    def trial(method, laplacian, i):
        return SimpleNamespace(index=i, trial=SimpleNamespace(method=method), laplacian=laplacian)

    tables = {
        laplacian: {method: [trial(method, laplacian, i) for i in range(20)] for method in methods}
        for laplacian, methods in zip(LAPLACIANS, (("original", "dropedge", *STRATEGIES), STRATEGIES), strict=True)
    }
    shelf = Shelf(cell=SimpleNamespace(layers=2), storage=None, searches={}, tables=tables)
    mine = shelf.drawn("TADropEdge", 8)
    assert [(one.index, one.trial.method, one.laplacian) for one in mine] == [
        (i, *place(i, STRATEGIES, LAPLACIANS)) for i in range(8)
    ]
    assert [shelf.contest(one) for one in mine] == [Contest(one.trial.method, 2, one.laplacian) for one in mine]
    original = shelf.drawn("Original", 8)
    assert [(one.index, one.trial.method) for one in original] == [(i, "original") for i in range(8)]
    assert shelf.contest(original[3]) == Contest("original", 2, None)


def test_a_tie_with_the_best_competitor_is_no_win():
    rows = rows_of(FastGCN=0.91, **{"TADropEdge-GCN": 0.91})
    [verdict] = found(rows, "exhibits the best performance")
    assert verdict.status == NOT_REPRODUCED
    assert verdict.measured == "GCN 0.00 points above the best competitor's best trial"
    more = [*rows, contender("TADropEdge-JKNet", accuracy=0.92)]
    [verdict] = found(more, "exhibits the best performance")
    assert (verdict.status, verdict.where) == (PARTLY, "JKNet")


def test_a_competitor_above_print_is_not_reproduced():
    [fast, ptd] = found(rows_of(FastGCN=0.96, PTDNet=0.91), "the printed accuracy")
    assert (fast.status, fast.reason, fast.measured) == (
        NOT_REPRODUCED,
        "Cora above print",
        "minus printed: Cora +6.00 points",
    )
    assert (ptd.status, ptd.reason) == (REPRODUCED, "Cora as printed")  # one point, and not more
    [low, _] = found(rows_of(FastGCN=0.88), "the printed accuracy")
    assert (low.status, low.reason) == (NOT_REPRODUCED, "Cora below print")


def test_all_comparisons_of_a_dataset_are_corrected_together():
    rows = rows_of()
    gaps = compared(rows)
    assert len(gaps) == 3 * 2 + 2  # three rows with two competitors; TADropEdge with Original and DropEdge
    raw = {
        (one.row, other.row): scipy.stats.ttest_rel(one.fresh.fresh_accuracies, other.fresh.fresh_accuracies).pvalue
        for one in rows
        for other in rows
        if one is not other
    }
    smallest = min(raw[pair] for pair in gaps)
    assert min(gap.p_value for gap in gaps.values()) == pytest.approx(8 * smallest, rel=1e-6)
    assert gaps["TADropEdge-GCN", "Original-GCN"].difference == pytest.approx(0.01 + 2 * NOISE.mean())


def test_every_kind_is_asked_whether_it_beats_the_competitors():
    verdicts = found(rows_of(original=0.0), "on fresh seeds and splits")
    assert [(one.claim.split()[2], one.status, one.own) for one in verdicts] == [
        ("TADropEdge", REPRODUCED, True), ("DropEdge", REPRODUCED, True), ("Original", NOT_REPRODUCED, True),
    ]  # fmt: skip
    assert "GCN (cdf, combinatorial): +" in verdicts[0].reason
    assert verdicts[0].reason.endswith("Holm's correction over 8 comparisons")
    assert verdicts[0].measured.endswith("(FastGCN)")
    over = found(rows_of(), "of its backbone")
    assert [(one.claim.split()[5], one.status) for one in over] == [("Original", REPRODUCED), ("DropEdge", REPRODUCED)]
    assert [one.status for one in found(rows_of(ours=0.02), "of its backbone")] == [NOT_REPRODUCED] * 2


def test_nothing_is_asked_before_all_rows_have_their_means():
    rows = rows_of()
    rows[2] = contender("TADropEdge-GCN")
    assert found(rows, "on fresh seeds and splits") == found(rows, "of its backbone") == []
    assert len(found(rows, "exhibits the best performance")) == 1  # needs no mean


def test_one_function_of_two_names_is_compared_once():
    rows = rows_of()
    twins = [
        contender(f"{kind}-{name}", fresh=SPLITS + shift, choice=Contest("cdf", 3, "normalized"))
        for name in ("JKNet", "IncepGCN")
        for kind, shift in (("Original", 0.0), ("DropEdge", 0.001), ("TADropEdge", 0.002))
    ]
    once = distinct([*rows, *twins])
    assert [row.row for row in once[3:6]] == ["Original-JKNet", "DropEdge-JKNet", "TADropEdge-JKNet"]
    assert len(once) == 3 + 3 + 2
    assert len(compared(once)) == 6 * 2 + 2 * 2


def test_improvements_are_compared_between_datasets():
    cora, citeseer, pubmed = (
        rows_of(name, ours=gain) for name, gain in (("cora", 0.03), ("citeseer", 0.01), ("pubmed", 0.01))
    )
    interval = improvement(cora)
    gain = 0.03 - NOISE  # place 2 minus place 3
    assert interval.mean == pytest.approx(gain.mean())
    [verdict] = found([*cora, *citeseer, *pubmed], "more significant")
    assert (verdict.status, verdict.where) == (PARTLY, "Cora")
    half = scipy.stats.t.ppf(0.975, 11) * NOISE.std(ddof=1) / math.sqrt(12)
    assert f"Cora +2.00 ± {100 * math.hypot(half, half):.2f} points" in verdict.reason
    assert found([*cora, *citeseer], "more significant") == []


def test_the_depth_of_the_best_accuracy_is_counted():
    def network(name, best, printed, **more):
        return result("cdf", laplacian="normalized", network=name, best=best, printed=printed, **more)

    rows = [
        network("gcn-2", 0.90, 0.88), network("gcn-3", 0.88, 0.89, fresh=SPLITS + 0.01),
        network("gcn-4", 0.90, 0.87), network("jknet-3", 0.88, 0.88), network("jknet-4", 0.89, 0.87),
    ]  # fmt: skip
    [verdict] = found([], "2 or 3 layers", rows)
    assert (verdict.status, verdict.printed, verdict.measured) == (NOT_REPRODUCED, "2 of 2 cases", "1 of 2 cases")
    assert "+0.50 ± 0.00 points" in verdict.reason  # 3 layers minus 4: 0.01 and 0
    rows[-1] = network("jknet-4", 0.88, 0.87)  # a tie is reached by the shallow one, too
    assert found([], "2 or 3 layers", rows)[0].status == REPRODUCED
    assert np.isclose(NOISE.mean(), 0, atol=1e-4)
