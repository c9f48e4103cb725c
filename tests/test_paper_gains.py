"""Table 1's effects and verdicts, counted by hand on rows that are made up."""

import math
from dataclasses import replace

import numpy as np
import pytest
import scipy.stats
from paper_rows import NOISE, SPLITS, result

from tadropedge.paper.cells import distinct, why_null
from tadropedge.paper.gains import best_interval, compared, corrected, effects, excludes, fresh_interval, printed_mean
from tadropedge.paper.item import NOT_REPRODUCED, PARTLY, REPRODUCED
from tadropedge.paper.judge import Gap
from tadropedge.paper.recipe import load_recipe
from tadropedge.paper.sentences import judge

STRATEGIES, LAPLACIANS = ("cutoff", "division", "cdf"), ("combinatorial", "normalized")


def half_width(values):
    return scipy.stats.t.ppf(0.975, len(values) - 1) * np.std(values, ddof=1) / len(values) ** 0.5


def cell(network="gcn-2", *, gain=0.0, bests=(0.88, 0.88, 0.88), baselines=(0.87, 0.88), printed=0.01, **more):
    """Five methods in one cell; strategies are above DropEdge by ``gain``, and in print by ``printed``."""
    rows = [
        result("original", network=network, best=baselines[0], printed=0.86, fresh=SPLITS - 0.01 + NOISE, **more),
        result("dropedge", network=network, best=baselines[1], printed=0.87, fresh=SPLITS, **more),
    ]
    for laplacian in LAPLACIANS:
        for method, best in zip(STRATEGIES, bests, strict=True):
            rows.append(
                result(
                    method, network=network, laplacian=laplacian, best=best, printed=0.87 + printed,
                    fresh=SPLITS + gain + NOISE, reference=SPLITS, **more,
                )
            )  # fmt: skip
    return rows


def recipe_of(**cells):
    recipe = load_recipe("table1", "paper")
    return replace(recipe, settings={**recipe.settings, "cells": cells})


def found(rows, words, **cells):
    """The one verdict whose claim holds these words."""
    (verdict,) = [one for one in judge(rows, recipe_of(**cells)) if words in one.claim]
    return verdict


def test_an_effect_is_taken_against_the_reference_that_is_named():
    rows = [
        result("original", fresh=SPLITS - 0.02, best=0.85, printed=0.84),
        result("dropedge", fresh=SPLITS[:10], best=0.88, printed=0.87),
        result("cdf", laplacian="normalized", fresh=SPLITS + 0.01, reference=SPLITS + 0.03, best=0.89, printed=0.9),
    ]
    budget, tuned, original = (effects(rows, name)[0] for name in ("budget", "dropedge", "original"))
    assert np.allclose(budget.fresh, -0.02)
    assert np.allclose(tuned.fresh, 0.01)
    assert np.allclose(original.fresh, 0.03)
    assert [len(one.fresh) for one in (budget, tuned, original)] == [12, 10, 12]  # as many as both have
    assert [(one.printed, one.best) for one in (budget, tuned, original)] == [(0.03, 0.01)] * 2 + [(0.06, 0.04)]
    assert effects(rows[2:], "dropedge") == []
    assert math.isnan(printed_mean(effects([replace(row, printed=None) for row in rows], "dropedge")))


def test_the_interval_over_networks_averages_the_strategies_of_each_first():
    rows = cell("gcn-2", bests=(0.89, 0.90, 0.91)) + cell("gcn-3", bests=(0.88, 0.88, 0.88))
    interval = best_interval(effects(rows, "dropedge"))
    assert interval.mean == pytest.approx(0.01)  # of 0.02 and 0
    assert interval.high - interval.mean == pytest.approx(half_width([0.02, 0.0]))
    assert best_interval(effects(cell(), "dropedge")) is None


def test_the_interval_over_replicates_adds_independent_datasets():
    one, other = SPLITS + 0.01 + NOISE, SPLITS - 0.02 + 2 * NOISE[::-1]
    rows = [
        result("dropedge"),
        result("cdf", laplacian="normalized", fresh=one),
        result("cutoff", laplacian="normalized", fresh=one),
        result("dropedge", dataset="pubmed"),
        result("cdf", laplacian="normalized", fresh=other, dataset="pubmed"),
    ]
    interval = fresh_interval(effects(rows, "dropedge"))
    assert interval.mean == pytest.approx(2 / 3 * (0.01 + NOISE.mean()) + 1 / 3 * (-0.02 + 2 * NOISE.mean()))
    wanted = math.hypot(2 / 3 * half_width(NOISE), 1 / 3 * half_width(2 * NOISE))
    assert (interval.high - interval.low) / 2 == pytest.approx(wanted)


def test_holm_is_over_the_strategies_of_a_network_or_over_all():
    rows = [result("dropedge", network=network) for network in ("gcn-2", "gcn-3")]
    spread = 0.004 * np.cos(3.0 * np.arange(12.0))
    shifts = {"gcn-2": (0.0022, 0.001, 0.003), "gcn-3": (0.0, 0.0005, 0.002)}
    for network, values in shifts.items():
        for method, shift in zip(STRATEGIES, values, strict=True):
            fresh = SPLITS + shift + spread
            rows.append(result(method, laplacian="normalized", network=network, fresh=fresh))
    raw = {
        (network, method): scipy.stats.ttest_1samp(shift + spread, 0).pvalue
        for network, values in shifts.items()
        for method, shift in zip(STRATEGIES, values, strict=True)
    }

    def holm(p_values):
        ordered, worst, made = sorted(p_values, key=p_values.get), 0.0, {}
        for rank, key in enumerate(ordered):
            worst = max(worst, min(1.0, p_values[key] * (len(ordered) - rank)))
            made[key] = worst
        return made

    near = corrected(effects(rows, "dropedge"))
    far = corrected(effects(rows, "dropedge"), together=True)
    wanted = {
        key: p for network in shifts for key, p in holm({k: p for k, p in raw.items() if k[0] == network}).items()
    }
    assert {key[1:3]: gap.p_value for key, gap in near.items()} == pytest.approx(wanted, rel=1e-6)
    assert {key[1:3]: gap.p_value for key, gap in far.items()} == pytest.approx(holm(raw), rel=1e-6)


def test_a_tie_is_a_tie():
    rows = cell(bests=(0.89, 0.88, 0.87))
    verdict = found(rows, "consistently in all cases", cora=["gcn-2"])
    counts = "above in 1, tied in 1, below in 1 of 3"
    assert verdict.reason == f"best of 100 trials against DropEdge's: {counts} (combinatorial); {counts} (normalized)"
    assert verdict.status == NOT_REPRODUCED
    assert verdict.printed == "+1.00 points on average, above in 3, tied in 0, below in 0 of 3"
    assert compared([]) == "above in 0, tied in 0, below in 0 of 0"


def test_what_is_above_on_average_and_not_everywhere_holds_partly():
    cells = [
        cell("gcn-2", bests=(0.90,) * 3),
        cell("gcn-3", bests=(0.9002,) * 3),
        cell("gcn-4", bests=(0.90, 0.90, 0.88)),
    ]
    names = ["gcn-2", "gcn-3", "gcn-4"]
    verdict = found([row for rows in cells for row in rows], "consistently in all cases", cora=names)
    assert verdict.status == PARTLY
    assert verdict.where.startswith("on average; above in 8, tied in 1, below in 0 of 9")
    everywhere = [row for network in names for row in cell(network, bests=(0.9,) * 3)]
    assert found(everywhere, "consistently in all cases", cora=names).status == REPRODUCED


def test_a_printed_accuracy_is_missed_on_either_side():
    rows = cell(bests=(0.886, 0.884, 0.875), baselines=(0.88, 0.87))  # printed: 0.88, 0.86 and 0.87
    verdict = found(rows, "the printed accuracies", cora=["gcn-2"])
    assert (verdict.status, verdict.where) == (PARTLY, "dropedge, division, cdf")  # cutoff and original are above
    assert "original above in 1, within in 0, below in 0 of 1" in verdict.reason
    assert "cutoff (normalized) above in 1" in verdict.reason
    assert "original +2.00, dropedge 0.00, cutoff (combinatorial) +0.60" in verdict.measured


def test_the_gap_to_low_baselines_is_told():
    names = ["gcn-2", "gcn-3"]
    rows = [row for network in names for row in cell(network, bests=(0.88, 0.881, 0.88), baselines=(0.878, 0.88))]
    verdict = found(rows, "as large as printed", cora=names)
    assert verdict.status == NOT_REPRODUCED
    assert verdict.printed == "+1.00 points over DropEdge, +2.00 points over Original"
    assert verdict.measured.startswith("over DropEdge +0.03 ± 0.00 points (combinatorial)")
    assert "over DropEdge by +0.97 points (+1.00 from DropEdge and −0.03 from TADropEdge)" in verdict.reason


def test_exclusions_are_counted_with_and_without_null_cells():
    rows = cell(gain=0.001)  # the printed gain is 0.01
    rows[2] = replace(rows[2], null="keeps 30.03 % where DropEdge keeps 30.00 %")  # cutoff, combinatorial
    rows[7] = result("cdf", laplacian="normalized", printed=0.88, fresh=SPLITS + 0.0099 + NOISE, reference=SPLITS)
    verdict = found(rows, "Is the printed gain over DropEdge", cora=["gcn-2"])
    assert verdict.own
    assert "excluded in 3 of 3, without 1 null cell in 2 of 2 (combinatorial)" in verdict.reason
    assert "excluded in 2 of 3, without 0 null cells in 2 of 3 (normalized)" in verdict.reason
    assert verdict.reason.endswith("not excluded: Cora gcn-2 cdf (normalized)")
    assert excludes(Gap(difference=0.1, low=0.0, high=0.2), 0.21)
    assert not excludes(Gap(difference=0.1, low=0.0, high=0.2), 0.2)
    assert not excludes(Gap(), 1.0)


def test_own_questions_are_decided_after_holm_and_say_the_expected_false_alarms():
    rows = cell(gain=0.01)
    verdict = found(rows, "Is TADropEdge above DropEdge, tuned", cora=["gcn-2"])
    assert (verdict.own, verdict.status) == (True, REPRODUCED)
    assert (
        "surely above in 3, surely below in 0, undecided in 0 of 3; corrected over all 6: surely above in 3"
        in verdict.reason
    )
    assert "2 such families are tested, so about 0.1 of them" in verdict.reason
    assert "2 do, with 6 rejections" in verdict.reason
    assert found(cell(gain=-0.01), "Is TADropEdge above DropEdge, tuned", cora=["gcn-2"]).status == NOT_REPRODUCED
    assert found(cell(gain=-0.005), "Is TADropEdge above Original, tuned", cora=["gcn-2"]).status == REPRODUCED


def test_dropedge_is_compared_with_original_by_both_protocols():
    names = ["gcn-2", "gcn-3"]
    rows = [row for network in names for row in cell(network, baselines=(0.88, 0.88))]
    at_best, fresh = (found(rows, words, cora=names) for words in ("DropEdge is above Original", "Is DropEdge above"))
    assert "above in 0, tied in 2, below in 0 of 2" in at_best.reason
    assert (at_best.status, at_best.own) == (NOT_REPRODUCED, False)
    assert (fresh.status, fresh.own, fresh.printed) == (REPRODUCED, True, "+1.00 points")


def test_the_gain_of_shallow_networks_is_compared_with_that_of_deep_ones():
    rows = cell("gcn-2", bests=(0.90,) * 3, gain=0.01) + cell("gcn-3") + cell("gcn-4", bests=(0.885,) * 3)
    rows += cell("jknet-3", bests=(0.89,) * 3) + cell("jknet-4", bests=(0.875,) * 3)
    networks = ["gcn-2", "gcn-3", "gcn-4", "jknet-3", "jknet-4"]
    at_best = found(rows, "more remarkable", cora=networks)
    # GCN 0.020 − 0.005, JKNet 0.010 − (−0.005): the same in both, so the interval has no width.
    assert at_best.measured == "+1.50 ± 0.00 points (combinatorial); +1.50 ± 0.00 points (normalized)"
    assert at_best.status == REPRODUCED
    fresh = found(rows, "larger in shallow networks", cora=networks)
    assert fresh.measured.startswith("+0.50 ± 0.00 points (combinatorial)")  # GCN 0.01, JKNet 0


def test_the_cases_that_a_strategy_wins_are_counted_with_ties():
    names = ["gcn-2", "gcn-3"]
    rows = cell("gcn-2", bests=(0.88, 0.89, 0.89)) + cell("gcn-3", bests=(0.88, 0.87, 0.89))
    verdict = found(rows, "outperforms the other two", cora=names)
    assert verdict.measured == "cutoff 0, division 1, cdf 2 (combinatorial); cutoff 0, division 1, cdf 2 (normalized)"
    assert (verdict.status, verdict.printed) == (REPRODUCED, "cutoff 2, division 2, cdf 2")


def test_one_cell_says_nothing_about_all():
    recipe = load_recipe("table1", "paper")
    assert judge(cell(), recipe) == []
    assert judge(cell()[:-1], recipe_of(cora=["gcn-2"])) == []
    assert judge([], recipe_of(cora=["gcn-2"])) == []


def test_two_names_of_one_function_count_once():
    rows = cell("jknet-3") + cell("incepgcn-3")
    assert distinct(rows) == rows[:8]
    other = [replace(row, paper_protocol=replace(row.paper_protocol, best_test=0.5)) for row in rows[8:]]
    assert distinct([*rows[:8], *other]) == [*rows[:8], *other]


@pytest.mark.parametrize(
    ("share", "p", "null"),
    [(0.3003, 0.3, True), (0.3011, 0.3, False), (0.95, 0.9, False), (0.9501, 0.9, True), (None, 0.99, False)],
)
def test_settings_that_are_dropedge_in_all_but_name_are_null(share, p, null):
    settings = {"keep_prob": p} if share is None else {"keep_prob": p, "kept_share": share}
    assert (why_null(settings, load_recipe("table1", "paper")) is not None) == null
