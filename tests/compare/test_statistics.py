import math

import numpy as np
import pytest
from scipy import stats

from tadropedge import TadropedgeError
from tadropedge.lab import decide
from tadropedge.lab.statistics import interval, needed


def around(mean, half, count=20):
    """Differences whose simultaneous interval is mean ± half."""
    shape = np.resize([1.0, -1.0], count)
    scale = half / (stats.t.ppf(0.975, count - 1) * stats.sem(shape))
    return list(mean + scale * (shape - shape.mean()))


def verdict(differences, **settings):
    zero = [0.0] * len(differences)
    return decide({"a": differences, "b": zero}, [("a", "b")], **settings)["a", "b"]


@pytest.mark.parametrize(
    ("mean", "half", "word"),
    [
        (0.020, 0.015, "better"),
        (0.004, 0.003, "better"),  # within the margin, and above 0
        (-0.020, 0.015, "worse"),
        (0.001, 0.008, "same"),
        (-0.001, 0.0089, "same"),
        (0.003, 0.008, "undecided"),  # up to 0.011
        (0.010, 0.015, "undecided"),
        (0.000, 0.030, "undecided"),
    ],
)
def test_the_interval_decides(mean, half, word):
    found = verdict(around(mean, half))
    assert found.word == word
    assert (found.difference, found.low, found.high) == pytest.approx((mean, mean - half, mean + half))
    assert (found.needed is None) == (word != "undecided")


def test_intervals_are_those_of_scipy():
    rng = np.random.default_rng(0)
    one, other = rng.normal(0.8, 0.02, 12), rng.normal(0.79, 0.02, 12)
    found = decide({"a": one, "b": other, "c": other}, [("a", "b"), ("a", "c"), ("c", "b")])
    paired = stats.ttest_rel(one, other).confidence_interval(1 - 0.05 / 3)
    assert (found["a", "b"].low, found["a", "b"].high) == pytest.approx(tuple(paired))
    low, high = stats.t.interval(0.95, 11, one.mean(), stats.sem(one))
    assert [float(value) for value in interval(one)] == pytest.approx([one.mean(), low, high])


def test_more_claims_make_wider_intervals_and_controls_have_those_of_their_claim():
    scores = {"a": around(0.01, 0.009), "b": [0.0] * 20, "c": [0.0] * 20}
    one = decide(scores, [("a", "b")])["a", "b"]
    two = decide(scores, [("a", "b"), ("a", "c")])["a", "b"]
    assert (one.word, two.word) == ("better", "undecided")
    assert decide(scores, [("a", "b")], claims=2)["a", "b"] == two


@pytest.mark.parametrize("mean", [-0.02, -0.004, 0.0, 0.003, 0.006, 0.02])
def test_as_many_replicates_as_needed_decide_whatever_they_show(mean):
    more = verdict(around(0.003, 0.02)).needed
    spread = float(np.std(around(0.003, 0.02), ddof=1))
    assert needed(spread, 0.01) == more
    widths = [2 * stats.t.ppf(0.975, n - 1) * spread / math.sqrt(n) for n in (more - 1, more)]
    assert widths[1] <= 0.01 < widths[0]
    assert verdict(around(mean, widths[1] / 2, count=more)).word != "undecided"


def test_a_few_replicates_that_are_equal_or_failed_decide_nothing():
    assert verdict([*around(0.02, 0.01, count=10), math.nan]) == verdict(around(0.02, 0.01, count=10))
    assert verdict([0.0625, 0.0625]).word == "undecided"
    assert verdict([0.0, 0.0]).word == "undecided"
    assert verdict([0.0625] * 5).word == "better"
    assert verdict([0.0] * 20).word == "same"
    assert verdict([0.3]).word == "undecided"
    assert verdict([]).replicates == 0


@pytest.mark.parametrize("heavy", [False, True])
def test_the_error_of_a_family_is_held(heavy):
    rng = np.random.default_rng(0)
    shape = (3000, 6, 20)  # families, five candidates and their shared reference, replicates
    scores = rng.standard_t(3, shape) if heavy else rng.standard_normal(shape)
    _, low, high = interval(scores[:, 1:] - scores[:, :1], 0.05 / 5)
    missed = float(((low > 0) | (high < 0)).any(axis=1).mean())
    assert 0.02 < missed < 0.05


def test_what_cannot_be_decided_is_refused():
    for scores, margin, said in (
        ({"a": [1.0]}, 0.01, "'b'"),
        ({"a": [1.0], "b": [1.0, 2.0]}, 0.01, "each replicate"),
        ({"a": [1.0], "b": [1.0]}, -1, "margin"),
    ):
        with pytest.raises(TadropedgeError, match=said):
            decide(scores, [("a", "b")], margin)
