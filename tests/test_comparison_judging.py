"""One family of tests: methods times references, corrected together, with the luck of choosing settings."""

import numpy as np
import pytest

from tadropedge.comparison.judging import KINDS, judged_together
from tadropedge.comparison.paired import deciding_p_values, half_width
from tadropedge.comparison.selection import Selection, between

RANDOM = np.random.default_rng(5)
BASE = RANDOM.normal(0.8, 0.02, 20)
SCORES = {
    "original": BASE,
    "dropedge": BASE + RANDOM.normal(0.004, 0.003, 20),
    "cdf": BASE + RANDOM.normal(0.005, 0.003, 20),
    "dropedge at 80 %": BASE + RANDOM.normal(0.005, 0.004, 20),
}
AGAINST = {
    "dropedge": {"none": "original"},
    "cdf": {"none": "original", "dropedge": "dropedge", "budget": "dropedge at 80 %"},
}
TESTS = [(method, kind, name) for method, kinds in AGAINST.items() for kind, name in kinds.items()]


def test_holm_s_rule_runs_over_methods_and_references_together():
    """By hand: the k-th smallest of four p-values times 4 − k, never falling."""
    raw = {(method, kind): float(deciding_p_values(SCORES[method], SCORES[name])) for method, kind, name in TESTS}
    found = judged_together(SCORES, AGAINST)
    corrected = 0.0
    for place, (method, kind) in enumerate(sorted(raw, key=raw.get)):
        corrected = min(max(corrected, (4 - place) * raw[method, kind]), 1.0)
        assert found[method][kind].p_value == pytest.approx(corrected, rel=1e-12)
        assert found[method][kind].evidence.fewest_seeds == 8  # of four tests
    assert [found[method][kind].outcome for method, kind, _ in TESTS] == ["better", "better", "undecided", "undecided"]


def test_each_test_has_both_sides_over_the_replicates_that_both_finished():
    scores = {name: values.copy() for name, values in SCORES.items()}
    scores["dropedge"][3] = scores["cdf"][7] = np.nan
    found = judged_together(scores, AGAINST)["cdf"]
    both = np.delete(np.arange(20), [3, 7])
    test = found["dropedge"]
    assert (test.seeds, test.failed, test.reference) == (18, 2, "dropedge")
    assert test.mean == pytest.approx(scores["cdf"][both].mean())
    assert test.reference_mean == pytest.approx(scores["dropedge"][both].mean())
    assert test.difference == pytest.approx(test.mean - test.reference_mean)
    assert found["none"].seeds == 19


def test_the_luck_of_the_choice_widens_intervals_and_raises_p_values():
    shifts = {name: np.full(8, size) for name, size in zip(SCORES, (0.003, 0.001, 0.002, 0.004), strict=True)}
    selected = {name: Selection(shifts=one, noise=0.001) for name, one in shifts.items()}
    plain, lucky = judged_together(SCORES, AGAINST), judged_together(SCORES, AGAINST, selected)
    for method, kind, name in TESTS:
        one, two = plain[method][kind], lucky[method][kind]
        assert two.p_value >= one.p_value
        assert two.choice_error == pytest.approx(np.sqrt((shifts[method][0] ** 2 + shifts[name][0] ** 2) / 2))
        half = half_width(SCORES[method] - SCORES[name], between(selected[method], selected[name]))
        assert (two.difference_high - two.difference_low) / 2 == pytest.approx(half, rel=1e-9)
        assert half > (one.difference_high - one.difference_low) / 2
        assert two.evidence.detectable > one.evidence.detectable


def test_a_stricter_level_decides_less():
    (p,) = {judged_together(SCORES, AGAINST)["cdf"]["none"].p_value}
    assert judged_together(SCORES, AGAINST, level=p)["cdf"]["none"].outcome == "better"
    strict = judged_together(SCORES, AGAINST, level=0.999 * p)["cdf"]["none"]
    assert strict.outcome == "undecided"
    assert strict.verdict.startswith("cdf cannot be told apart from not dropping (")


def test_a_verdict_names_what_it_is_against():
    for kind, test in judged_together(SCORES, AGAINST)["cdf"].items():
        assert f" {KINDS[kind]} " in test.verdict


def test_a_reference_that_failed_leaves_no_verdict():
    scores = SCORES | {"dropedge at 80 %": np.full(20, np.nan)}
    test = judged_together(scores, AGAINST)["cdf"]["budget"]
    assert (test.outcome, test.p_value, test.reference_mean, test.failed) == ("failed", None, None, 20)
