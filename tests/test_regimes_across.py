"""What holds in the mean over datasets."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from scipy import stats

from tadropedge.comparison.card import data_card
from tadropedge.comparison.paired import false_discovery_rates
from tadropedge.data import load_karate
from tadropedge.errors import TadropedgeError
from tadropedge.regimes.across import across, foremost, means_table, methods_table
from tadropedge.regimes.results import MapCell, MapRow, MapTest, RegimeMap

HOW = {"backbone": "gcn", "layers": 2, "hidden": 8, "epochs": 9, "trials": 2, "choose_splits": 1, "seeds": 12}
CARD = data_card(load_karate())
NOISE = ("noise", 1.0)


def a_difference(gap):
    return MapTest(reference="original", difference=gap, low=gap - 0.1, high=gap + 0.1, p_value=1.0, corrected=1.0)


def made(gaps, kind="noise", value=1.0, reference="dropedge"):
    """A map of one condition: ``gaps[method]`` are differences to not dropping, one per dataset."""
    count = len(next(iter(gaps.values())))
    cells = [MapCell(dataset=f"set{i}", kind=kind, value=value, data=CARD, **HOW) for i in range(count)]
    rows = [
        MapRow(
            dataset=f"set{i}", kind=kind, value=value, method=method, state="judged", mean=0.5,
            tests={"none": a_difference(each[i]), reference: a_difference(each[i] / 2)},
        )
        for method, each in gaps.items()
        for i in range(count)
    ]  # fmt: skip
    return RegimeMap(cells, rows)


GAPS = {
    "cdf": [0.01, 0.03, 0.02, 0.04, 0.025, 0.01, 0.03, 0.02],
    "auto": [0.0, 0.01, -0.01, 0.02, 0.0, -0.02, 0.01, 0.0],
    "mlp": [0.1] * 8,
}


def test_mean_interval_and_p_value_are_those_of_the_datasets():
    test = across(made(GAPS))[NOISE, "cdf", "none"]
    gaps = np.array(GAPS["cdf"])
    low, high = stats.t.interval(0.95, len(gaps) - 1, gaps.mean(), stats.sem(gaps))
    assert (test.mean, test.low, test.high, test.datasets) == pytest.approx((gaps.mean(), low, high, 8))
    sums = [abs(np.dot(signs, gaps)) for signs in product((-1, 1), repeat=8)]
    assert test.p_value == np.mean(np.array(sums) >= gaps.sum() - 1e-12) == 2 / 2**8


def test_all_tests_of_the_map_are_one_family():
    tests = across(made(GAPS))
    assert len(tests) == 6
    rates = false_discovery_rates([test.p_value for test in tests.values()])
    assert [test.corrected for test in tests.values()] == pytest.approx(rates)
    assert tests[NOISE, "cdf", "none"].outcome == "better"
    assert tests[NOISE, "auto", "none"].outcome == "undecided"


def test_few_datasets_have_no_test():
    few = made({"cdf": [0.01] * 5})
    assert across(few) == {}
    assert means_table(few, {}).rows == []
    assert foremost({}, NOISE) is None


def test_a_network_without_edges_is_never_foremost_but_in_the_table():
    found = made(GAPS)
    tests = across(found)
    assert foremost(tests, NOISE).method == "cdf"
    assert [row[0] for row in methods_table(found, tests, NOISE).rows] == ["cdf", "auto", "mlp"]


def test_the_table_names_the_largest_mean_and_auto():
    found = made(GAPS)
    (row,) = means_table(found, across(found)).rows
    assert row[:3] == ("100 % random edges added", "8", "cdf")
    assert row[3].startswith("+2.31 ± ")
    assert [cell[-1] == "▲" for cell in row[3:]] == [True, True, False, False]


def test_where_the_budget_is_given_dropedge_keeps_to_it():
    found = made(GAPS, kind="budget", value=0.1, reference="budget")
    assert across(found)[("budget", 0.1), "cdf", "dropedge"].mean == pytest.approx(np.mean(GAPS["cdf"]) / 2)


def test_false_discovery_rates_are_those_of_scipy():
    values = np.random.default_rng(0).random(200) ** 3
    assert false_discovery_rates(values) == pytest.approx(stats.false_discovery_control(values))
    with pytest.raises(TadropedgeError, match=r"p_values must lie in \[0, 1\]"):
        false_discovery_rates([0.5, 1.5])
