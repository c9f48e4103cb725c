import json
from pathlib import Path

import false_alarms
import numpy as np
import pytest
from scipy import stats

from tadropedge.comparison import nulls
from tadropedge.comparison.collapse import collapsed, largest_rate
from tadropedge.comparison.evidence import SIZES, usual_skewness
from tadropedge.comparison.paired import (
    ALPHA,
    EXACT,
    deciding_p_values,
    paired_p_values,
    sign_flip_p_values,
    skewed_p_values,
    skewness,
    without_skew,
)
from tadropedge.comparison.power import detectable, fewest_replicates, power, replicates_for_half

NAN = float("nan")
MEASURED = Path(__file__).parents[1] / "results" / "benchmarks" / "false-alarms.json"


def against_nothing(test, gaps):
    return test(np.asarray(gaps, dtype=float), np.zeros(np.shape(gaps)))


def scipy_flips(gaps):
    """All patterns of signs, by scipy."""
    found = stats.permutation_test(
        (gaps,), np.sum, permutation_type="samples", alternative="two-sided", n_resamples=np.inf
    )
    return found.pvalue


# Sign flips.


@pytest.mark.parametrize("seeds", [2, 5, 6, 11])
def test_sign_flips_are_those_of_scipy(seeds):
    gaps = np.random.default_rng(seeds).normal(0.01, 0.02, (4, seeds))
    ours = against_nothing(sign_flip_p_values, gaps)
    assert ours.tolist() == pytest.approx([scipy_flips(row) for row in gaps], rel=1e-12)


def test_ties_and_zeros_are_counted_as_scipy_counts_them():
    gaps = np.random.default_rng(0).integers(-2, 4, (20, 8)) / 16  # exact: scipy compares sums bit for bit
    ours = against_nothing(sign_flip_p_values, gaps)
    assert ours.tolist() == pytest.approx([scipy_flips(row) for row in gaps], rel=1e-12)
    values = np.array([0.85, 0.8, 0.9, 0.75])  # the same gaps with other roundings
    assert against_nothing(sign_flip_p_values, [0.1] * 4) == sign_flip_p_values(values + 0.1, values) == 2**-3


def test_a_pair_that_failed_is_as_if_it_were_not_there():
    gaps = np.random.default_rng(1).normal(0.01, 0.02, 9)
    for test in (sign_flip_p_values, skewed_p_values, paired_p_values, deciding_p_values):
        whole = against_nothing(test, gaps)
        assert against_nothing(test, [*gaps[:4], NAN, *gaps[4:], NAN]) == pytest.approx(whole, rel=1e-12)
        assert np.isnan(against_nothing(test, [0.1, NAN, NAN]))


def test_random_patterns_come_close_to_all_of_them():
    gaps = np.random.default_rng(2).normal(0.006, 0.01, (5, EXACT))
    exact = against_nothing(sign_flip_p_values, gaps)
    drawn = against_nothing(sign_flip_p_values, np.c_[gaps, np.zeros(5)])  # one more, which changes nothing
    assert np.abs(exact - drawn).max() < 4 * np.sqrt(0.25 / 2**15)
    assert against_nothing(sign_flip_p_values, np.full((1, 40), 0.1)).tolist() == [2**-15]


def test_sign_flips_and_the_t_test_agree_on_many_normal_replicates():
    gaps = np.random.default_rng(3).normal(0.002, 0.01, (20, 100))
    flips, t_tests = (against_nothing(test, gaps) for test in (sign_flip_p_values, paired_p_values))
    assert np.abs(flips - t_tests).max() < 0.02


# Skewness.


def test_skewness_is_that_of_scipy():
    numbers = np.random.default_rng(4).exponential(size=(6, 12))
    assert skewness(numbers).tolist() == pytest.approx(stats.skew(numbers, axis=1, bias=False).tolist(), rel=1e-9)
    assert skewness(np.array([[0.1, 0.3, NAN], [0.2, 0.2, 0.2]])).tolist() == [0.0, 0.0]


def test_the_correction_never_helps_and_grows_with_t():
    t = np.linspace(0, 60, 400)
    for skew in (-3.0, -0.5, 0.0, 0.5, 3.0):
        made = without_skew(t, np.full(400, skew), np.full(400, 10))
        assert (np.diff(made) >= -1e-12).all()
        assert (made <= t + 1e-12).all() if skew < 3 else np.allclose(made, t)


def test_the_largest_p_value_decides():
    gaps = np.random.default_rng(5).normal(0.01, 0.01, (30, 12))
    three = [against_nothing(test, gaps) for test in (paired_p_values, sign_flip_p_values, skewed_p_values)]
    assert against_nothing(deciding_p_values, gaps).tolist() == np.max(three, axis=0).tolist()


@pytest.mark.parametrize("seeds", SIZES)
def test_normal_replicates_are_called_skewed_in_one_per_cent_of_runs(seeds):
    numbers = np.random.default_rng(seeds).standard_normal((20_000, seeds))
    rate = (np.abs(skewness(numbers)) > usual_skewness(seeds)).mean()
    assert rate <= 0.01 + 3 * np.sqrt(0.01 / 20_000)
    assert rate > 0.006 or seeds < 5  # three or four numbers cannot look skewed


# Collapses.


@pytest.mark.parametrize(("replicates", "rate"), [(10, 0.26), (20, 0.14)])
def test_clean_replicates_leave_a_rate_open(replicates, rate):
    assert largest_rate(0, replicates) == pytest.approx(1 - 0.05 ** (1 / replicates), rel=1e-12)
    assert round(largest_rate(0, replicates), 2) == rate


@pytest.mark.parametrize("seen", [0, 1, 4, 9, 10])
def test_the_rate_is_the_limit_of_clopper_and_pearson(seen):
    limit = stats.binomtest(seen, 10, alternative="less").proportion_ci(0.95, "exact").high
    assert largest_rate(seen, 10) == pytest.approx(limit, rel=1e-9)


def test_a_collapse_is_far_below_the_others_and_more_than_a_point():
    assert collapsed(np.array([0.8, 0.81, 0.79, 0.8, 0.3, NAN])).tolist() == [False] * 4 + [True, False]
    assert not collapsed(np.array([0.8, 0.8001, 0.7999, 0.8, 0.7905])).any()  # far, but less than a point
    assert not collapsed(np.array([0.0] * 6 + [0.05, -0.05, 0.05, -0.05])).any()  # ties: one node of twenty
    assert collapsed(np.array([0.0] * 9 + [-0.2])).sum() == 1
    assert not collapsed(np.array([NAN, NAN])).any()


@pytest.mark.parametrize("seeds", [6, 10, 20, 50])
def test_normal_replicates_hardly_ever_look_collapsed(seeds):
    runs = np.random.default_rng(seeds).standard_normal((4000, seeds))
    assert np.mean([collapsed(run).any() for run in runs]) < 0.015


# Power.


@pytest.mark.parametrize(("seeds", "methods"), [(8, 1), (10, 4), (20, 4)])
def test_four_of_five_runs_find_what_is_called_detectable(seeds, methods):
    gaps = np.random.default_rng(seeds).standard_normal((2000, seeds)) + detectable(seeds, methods)
    found = (against_nothing(deciding_p_values, gaps / 100) <= ALPHA / methods).mean()
    assert found == pytest.approx(0.8, abs=0.035)


def test_half_of_a_difference_takes_about_four_times_the_seeds():
    assert replicates_for_half(100, 1) == pytest.approx(400, rel=0.1)
    assert power(detectable(20, 4) / 2, replicates_for_half(20, 4), 4) >= 0.8


@pytest.mark.parametrize("methods", [1, 2, 4, 5, 8, 12])
def test_fewer_seeds_than_the_fewest_find_nothing(methods):
    least = fewest_replicates(methods)
    assert 2.0 ** (1 - least) <= ALPHA / methods < 2.0 ** (2 - least)
    assert detectable(least - 1, methods) is replicates_for_half(least - 1, methods) is None
    assert detectable(least, methods) > 1


# The rates that reports print.


def test_reports_print_what_was_measured():
    measured = json.loads(MEASURED.read_text(encoding="utf-8"))
    assert json.loads(nulls.MEASURED.read_text(encoding="utf-8")) == false_alarms.printed(measured["nulls"])
    (row,) = (one for one in measured["nulls"] if (one["null"], one["seeds"], one["methods"]) == ("exponential", 20, 4))
    assert nulls.false_alarms(25, 5)["exponential"] == row["false_alarms"]


def test_five_per_cent_is_held_where_it_is_said_to_be_held():
    rows = json.loads(MEASURED.read_text(encoding="utf-8"))["nulls"]
    assert {row["null"] for row in rows} == set(nulls.NULLS)
    assert max(row["false_alarms"] - 3 * row["error"] for row in rows if row["held"]) <= ALPHA
    beyond = {row["null"] for row in rows if row["false_alarms"] - 3 * row["error"] > ALPHA}
    assert beyond == {name for name, null in nulls.NULLS.items() if not null.held}


def test_the_t_test_alone_would_not_hold_it():
    """Why there are three tests: exponential differences of 10 replicates and 4 methods."""
    gaps = nulls.NULLS["exponential"].draw(np.random.default_rng(6), (2000, 4, 10))
    alone = (against_nothing(paired_p_values, gaps / 100) <= ALPHA / 4).any(axis=-1)
    assert alone.mean() > 0.15
    assert nulls.raised(gaps).mean() < ALPHA


@pytest.mark.parametrize("name", nulls.NULLS)
def test_every_null_has_a_mean_of_zero(name):
    gaps = nulls.NULLS[name].draw(np.random.default_rng(7), (40_000, 1, 5))
    assert np.nanmean(gaps) == pytest.approx(0, abs=5 * np.nanstd(gaps) / np.sqrt(200_000))
