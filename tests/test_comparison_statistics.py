import numpy as np
import pytest
from comparisons import honest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from tadropedge import TadropedgeError
from tadropedge.comparison.statistics import (
    ALPHA,
    holm,
    honest_rows,
    mean_interval,
    paired_difference,
    paired_p_values,
    sentence,
    verdict,
)

NAN = float("nan")
METHODS = ("cutoff", "division", "cdf", "effective-cdf", "inverse-cdf")


def simulated(random, worlds, seeds, spread=0.01, nodes=1000):
    """Accuracies of equal methods, [worlds, methods, 2, seeds]: a split's luck, own luck, whole numbers of nodes."""
    split = 0.8 + 0.02 * random.standard_normal((worlds, 1, 1, seeds))
    own = spread * random.standard_normal((worlds, len(METHODS), 2, seeds))
    return np.clip(np.round((split + own) * nodes) / nodes, 0, 1)


def rows_of(world):
    """The rows of one simulated world: each method and its own reference."""
    return honest_rows(
        {method: world[place, 0] for place, method in enumerate(METHODS)},
        {method: world[place, 1] for place, method in enumerate(METHODS)},
    )


# Closed forms.


@pytest.mark.parametrize("seeds", [2, 3, 20, 200])
def test_mean_and_interval_are_those_of_scipy(seeds):
    values = np.random.default_rng(seeds).uniform(0.7, 0.9, seeds)
    ours = mean_interval(values)
    low, high = stats.t.interval(0.95, seeds - 1, loc=values.mean(), scale=stats.sem(values))
    assert (ours.mean, ours.low, ours.high) == pytest.approx((values.mean(), low, high), rel=1e-12)
    assert ours.count == seeds


@pytest.mark.parametrize("seeds", [2, 3, 20, 200])
def test_the_paired_test_is_that_of_scipy(seeds):
    random = np.random.default_rng(seeds)
    values, reference = random.uniform(0.7, 0.9, (2, seeds))
    ours, theirs = paired_difference(values, reference), stats.ttest_rel(values, reference)
    low, high = theirs.confidence_interval(0.95)
    assert (ours.mean, ours.low, ours.high) == pytest.approx(((values - reference).mean(), low, high), rel=1e-9)
    assert ours.p_value == pytest.approx(theirs.pvalue, rel=1e-9)


def test_the_interval_of_two_numbers_by_hand():
    """With one degree of freedom t(0.975) = tan(0.475 π) and s / √2 is half the distance."""
    ours = mean_interval([0.5, 0.7])
    assert (ours.mean, ours.high - ours.mean) == pytest.approx((0.6, 0.1 * np.tan(0.475 * np.pi)), rel=1e-12)


def test_identical_arrays_differ_by_exactly_nothing():
    values = np.random.default_rng(0).random(20)
    ours = paired_difference(values, values)
    assert (ours.mean, ours.low, ours.high, ours.p_value) == (0.0, 0.0, 0.0, 1.0)
    rounded = paired_difference(values, values.astype(np.float32))
    assert (rounded.mean, rounded.p_value) == (0.0, 1.0)


@pytest.mark.parametrize(("seeds", "p_value"), [(2, 0.5), (5, 0.0625), (20, 2.0**-19)])
def test_equal_differences_are_judged_by_their_signs(seeds, p_value):
    reference = np.linspace(0.25, 0.75, seeds)
    ours = paired_difference(reference + 0.125, reference)
    assert (ours.low, ours.mean, ours.high) == pytest.approx((0.125, 0.125, 0.125), rel=1e-15)
    assert ours.p_value == p_value


def test_swapping_the_sides_turns_the_sign():
    values, reference = np.random.default_rng(3).random((2, 12))
    there, back = paired_difference(values, reference), paired_difference(reference, values)
    assert (there.mean, there.low, there.high) == (-back.mean, -back.high, -back.low)
    assert there.p_value == back.p_value


def test_holm_as_in_the_textbook():
    assert holm([0.01, 0.04, 0.03, 0.005]).tolist() == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.2]).tolist() == [0.2]
    assert holm([]).tolist() == []
    assert holm([0.9, 0.8]).tolist() == [1.0, 1.0]


@given(st.lists(st.floats(0, 1), min_size=1, max_size=8), st.randoms(use_true_random=False))
def test_holm_lies_between_nothing_and_bonferroni_and_has_no_order(values, shuffle):
    corrected = holm(values)
    assert bool((corrected >= np.array(values)).all())
    assert bool((corrected <= np.minimum(len(values) * np.array(values), 1)).all())
    order = list(range(len(values)))
    shuffle.shuffle(order)
    assert holm([values[place] for place in order]).tolist() == corrected[order].tolist()


# Measured on simulated data.


def alarms(worlds):
    """For each world, whether any of its methods is declared better or worse."""
    return (holm(paired_p_values(worlds[:, :, 0], worlds[:, :, 1])) <= ALPHA).any(axis=-1)


def test_many_tests_at_once_are_the_tests_of_the_rows():
    worlds = simulated(np.random.default_rng(10), worlds=60, seeds=4, nodes=50)
    worlds[:30, 2, 0, 1] = NAN
    worlds[5:10, 1, 1, :3] = NAN
    raw = paired_p_values(worlds[:, :, 0], worlds[:, :, 1])
    assert bool(np.isnan(raw[5:10, 1]).all())
    worlds, raw = np.delete(worlds, range(5, 10), axis=0), np.delete(raw, range(5, 10), axis=0)
    expected = [[row.p_value for row in rows_of(world).values()] for world in worlds]
    assert holm(raw).tolist() == expected
    outcomes = [any(row.outcome != "undecided" for row in rows_of(world).values()) for world in worlds]
    assert alarms(worlds).tolist() == outcomes


def test_the_interval_covers_the_truth_as_often_as_it_says():
    covered = []
    for values in np.random.default_rng(11).normal(0.8, 0.03, (5000, 10)):
        interval = mean_interval(values)
        covered.append(interval.low <= 0.8 <= interval.high)
    assert np.mean(covered) == pytest.approx(0.95, abs=4 * np.sqrt(0.95 * 0.05 / len(covered)))


def test_the_interval_of_a_difference_covers_the_truth_as_often_as_it_says():
    worlds = simulated(np.random.default_rng(12), worlds=1000, seeds=10, nodes=10**6).reshape(-1, 2, 10)
    covered = []
    for values, reference in worlds:
        difference = paired_difference(values + 0.01, reference)
        covered.append(difference.low <= 0.01 <= difference.high)
    assert np.mean(covered) == pytest.approx(0.95, abs=4 * np.sqrt(0.95 * 0.05 / len(worlds)))


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize(("seeds", "nodes"), [(20, 1000), (5, 1000), (20, 40), (3, 20), (2, 20)])
def test_equal_methods_raise_a_false_alarm_in_at_most_five_per_cent_of_comparisons(seeds, nodes, shared):
    """Also with few seeds, with so few nodes that ties abound, and with one reference shared by all methods."""
    worlds = simulated(np.random.default_rng(13), worlds=10_000, seeds=seeds, nodes=nodes)
    if shared:
        worlds[:, :, 1] = worlds[:, :1, 1]
    assert alarms(worlds).mean() <= ALPHA + 3 * np.sqrt(ALPHA * (1 - ALPHA) / len(worlds))


def test_the_alarm_is_not_silent_either():
    """Independent methods and fine accuracies: Holm's rate is 1 − (1 − α / 5)^5, nearly all of the 5 %."""
    worlds = simulated(np.random.default_rng(14), worlds=20_000, seeds=20, nodes=10**6)
    rate = 1 - (1 - ALPHA / 5) ** 5
    assert alarms(worlds).mean() == pytest.approx(rate, abs=3 * np.sqrt(rate * (1 - rate) / len(worlds)))


def test_the_uncorrected_rate_would_be_four_times_as_high():
    """What the correction is for: 1 − 0.95^5 of comparisons of five equal methods would name a winner or loser."""
    worlds = simulated(np.random.default_rng(15), worlds=10_000, seeds=20, nodes=10**6)
    uncorrected = (paired_p_values(worlds[:, :, 0], worlds[:, :, 1]) <= ALPHA).any(axis=-1)
    assert uncorrected.mean() == pytest.approx(1 - 0.95**5, abs=0.015)


def test_a_real_difference_is_found_and_the_equal_methods_stay_unnamed():
    """One method is 1.5 points better and one worse, each trial's own luck is 1 point: 20 pairs nearly always tell."""
    worlds = simulated(np.random.default_rng(16), worlds=200, seeds=20)
    worlds[:, 0, 0] += 0.015
    worlds[:, 1, 0] -= 0.015
    outcomes = np.array([[row.outcome for row in rows_of(world).values()] for world in worlds])
    assert np.mean(outcomes[:, 0] == "better") > 0.93
    assert np.mean(outcomes[:, 1] == "worse") > 0.93
    assert np.mean(outcomes[:, 2:] != "undecided") < ALPHA


def test_pairing_finds_what_the_means_alone_would_hide():
    random = np.random.default_rng(17)
    split = random.normal(0.8, 0.05, 20)
    ours = honest_rows({"cdf": split + 0.004 + random.normal(0, 0.002, 20)}, {"cdf": split})["cdf"]
    assert ours.outcome == "better"
    assert ours.low < split.mean() < ours.high


# Rows and sentences.


def test_rows_do_not_depend_on_the_order_of_methods():
    world = simulated(np.random.default_rng(18), worlds=1, seeds=8)[0]
    world[2, 0] += 0.02
    rows = rows_of(world)
    for order in (METHODS[::-1], sorted(METHODS)):
        accuracy = {method: world[METHODS.index(method), 0] for method in order}
        reference = {method: world[METHODS.index(method), 1] for method in METHODS}
        again = honest_rows(accuracy, reference)
        assert list(again) == list(order)
        assert again == rows
        assert verdict(again) == verdict(rows)


def test_a_failed_trial_takes_its_pair_with_it_and_is_counted():
    random = np.random.default_rng(19)
    ours, theirs = random.uniform(0.7, 0.9, (2, 10))
    holes, other = ours.copy(), theirs.copy()
    holes[2], other[5], other[2] = NAN, NAN, NAN
    complete = np.delete(np.arange(10), [2, 5])
    row = honest_rows({"cdf": holes}, {"cdf": other})["cdf"]
    expected = honest_rows({"cdf": ours[complete]}, {"cdf": theirs[complete]})["cdf"]
    assert (row.seeds, row.failed) == (8, 2)
    assert row.mean == expected.mean
    assert (row.difference, row.p_value) == (expected.difference, expected.p_value)


def test_a_method_that_fails_everywhere_leaves_the_others_alone():
    fine, reference = np.random.default_rng(20).uniform(0.7, 0.9, (2, 6))
    rows = honest_rows({"cdf": fine, "cutoff": [0.5] + [NAN] * 5}, {"cdf": reference, "cutoff": reference})
    assert rows["cdf"] == honest_rows({"cdf": fine}, {"cdf": reference})["cdf"]
    assert rows["cutoff"] == honest(seeds=1, verdict="cutoff failed in 5 of 6 replicates", failed=5)
    assert verdict(rows).endswith("; cutoff failed too often to be judged")


def test_methods_without_a_reference_have_a_mean_and_no_verdict():
    row = honest_rows({"original": [0.5, 0.75]}, {})["original"]
    assert (row.mean, row.seeds, row.outcome, row.verdict, row.p_value) == (0.625, 2, None, None, None)
    assert verdict({"original": row}) == "no method was compared with DropEdge"


def compared(difference, half, p_value):
    ends = {"difference_low": difference - half, "difference_high": difference + half}
    return honest(0.8, 0.79, 0.81, difference=difference, **ends, p_value=p_value)


BETTER, WORSE, EQUAL = compared(0.0012, 0.0008, 0.01), compared(-0.003, 0.001, 0.001), compared(-0.00001, 0.0009, 0.9)
ORIGINAL = honest(0.8, 0.79, 0.81)


@pytest.mark.parametrize(
    ("rows", "text"),
    [
        (
            {"original": ORIGINAL, "cdf": EQUAL, "cutoff": BETTER},
            "cutoff is better than DropEdge by 0.12 ± 0.08 points; cdf cannot be told apart",
        ),
        (
            {"a": WORSE, "b": BETTER, "c": compared(0.01, 0.001, 0.0)},
            "c is better than DropEdge by 1.00 ± 0.10 points; b is better by 0.12 ± 0.08 points; "
            "a is worse by 0.30 ± 0.10 points",
        ),
        ({"a": WORSE, "b": EQUAL}, "a is worse than DropEdge by 0.30 ± 0.10 points; b cannot be told apart"),
        ({"b": EQUAL, "a": EQUAL}, "a and b cannot be told apart from DropEdge"),
        ({"b": EQUAL, "a": EQUAL, "c": EQUAL}, "a, b and c cannot be told apart from DropEdge"),
        ({"{}": EQUAL}, "{} cannot be told apart from DropEdge"),
        ({}, "no method was compared with DropEdge"),
    ],
)
def test_one_sentence_for_all(rows, text):
    assert verdict(rows) == text


def test_one_sentence_for_each():
    assert sentence("cutoff", BETTER) == "cutoff is better than DropEdge by 0.12 ± 0.08 points"
    assert sentence("cdf", WORSE) == "cdf is worse than DropEdge by 0.30 ± 0.10 points"
    assert sentence("cdf", EQUAL) == "cdf cannot be told apart from DropEdge (0.00 ± 0.09 points)"
    tiny = compared(0.00002, 0.00001, 0.01)
    assert sentence("cdf", tiny) == "cdf is better than DropEdge by 0.002 ± 0.001 points"


# Bad input.


@pytest.mark.parametrize(
    ("accuracy", "reference", "message"),
    [
        ({"cdf": [0.8]}, {}, r"an interval needs at least 2 replicates \(seeds\), got 1"),
        ({"cdf": []}, {}, r"an interval needs at least 2 replicates \(seeds\), got 0"),
        ({"cdf": [80.0, 81.0]}, {}, r"accuracies of cdf must be shares in \[0, 1\], got 80"),
        ({"cdf": [0.5, float("inf")]}, {}, "cdf must be finite, or NaN for a failed trial, got inf"),
        ({"cdf": [[0.5, 0.6]]}, {}, r"cdf must be a vector of numbers, got shape \[1, 2\]"),
        ({"cdf": ["x", 0.5]}, {}, r"accuracy of cdf must be real numbers, got list \['x', 0.5\]"),
        ({"cdf": [0.5, 0.6]}, {"cdf": [-0.1, 0.6]}, r"the reference of cdf must be shares in \[0, 1\], got -0.1"),
        ({"cdf": [0.5, 0.6]}, {"cfd": [0.5, 0.6]}, "a reference is given for 'cfd', but accuracies only for cdf"),
        ({"a": [0.5, 0.6], "b": [0.5] * 3}, {"b": [0.5] * 3}, "same replicates, got a 2, b 3; references b 3"),
    ],
)
def test_bad_accuracies_are_named(accuracy, reference, message):
    with pytest.raises(TadropedgeError, match=message):
        honest_rows(accuracy, reference)


def test_bad_arguments_of_the_small_functions_are_named():
    with pytest.raises(TadropedgeError, match="at least 2 finished replicates, got 1"):
        mean_interval([0.5, NAN])
    with pytest.raises(TadropedgeError, match="are paired, got 2 and 3 replicates"):
        paired_difference([0.5, 0.5], [0.5, 0.5, 0.5])
    with pytest.raises(TadropedgeError, match=r"p_values must lie in \[0, 1\], got \[0.5, 1.5\]"):
        holm([0.5, 1.5])
