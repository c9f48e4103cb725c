"""Rules against their formulas."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tadropedge import RULES as NAMES
from tadropedge import EqualScoresWarning, TadropedgeError, auto_gamma, keep_probabilities
from tadropedge.testing.rules import RATIO, SCORES, RuleContract

GAMMA = 0.3
LISTS = st.lists(st.floats(0, 1e6), min_size=1, max_size=30)


class TestUniform(RuleContract):
    rule = "uniform"

    def formula(self, score, share):
        return 0.0


class TestCutoff(RuleContract):
    rule = "cutoff"
    settings = {"gamma": GAMMA}

    def formula(self, score, share):
        return 0.0 if score < GAMMA else 1.0

    def inverse_formula(self, score, share):
        return 0.0 if score > GAMMA else 1.0


class TestDivision(RuleContract):
    rule = "division"
    settings = {"gamma": GAMMA}

    def formula(self, score, share):
        return 1 - GAMMA / (GAMMA + score)


class TestCdf(RuleContract):
    rule = "cdf"

    def formula(self, score, share):
        return share


def capped(scores, ratio):
    """min(1, c · score) with c by bisection, for a budget that the edges of positive score can meet."""
    low, high = 0.0, 1e30
    for _ in range(300):
        c = (low + high) / 2
        low, high = (c, high) if float((c * scores).clamp_max(1).mean()) < ratio else (low, c)
    return (high * scores).clamp_max(1)


class TestProportional(RuleContract):
    rule = "proportional"

    def formula(self, score, share):
        return float(capped(SCORES, RATIO)[SCORES.tolist().index(score)])

    def inverse_formula(self, score, share):
        return float(capped(SCORES.max() - SCORES, RATIO)[SCORES.tolist().index(score)])


class TestFloor(RuleContract):
    rule = "floor"

    def formula(self, score, share):
        low, high = 0.0, 1.0
        for _ in range(100):
            p = (low + high) / 2
            low, high = (p, high) if float(SCORES.clamp_min(p).mean()) < RATIO else (low, p)
        return max(high, score)


class TestOwn(RuleContract):
    rule = staticmethod(lambda scores, power=1.0: (scores / scores.max()) ** power)
    settings = {"power": 2.0}

    def formula(self, score, share):
        return score**2


def test_every_rule_has_its_contract():
    assert {contract.rule for contract in RuleContract.__subclasses__()} >= set(NAMES)


@given(LISTS, st.floats(0, 1), st.floats(1e-9, 1e3), st.booleans())
@pytest.mark.filterwarnings("ignore::tadropedge.EqualScoresWarning")
def test_the_formulas_of_the_paper_for_any_scores(scores, p, gamma, inverse):
    """p + (1 − p) P_m, where P_m is its cutoff, division or CDF; ties share the larger place of a CDF."""
    raised = {
        "cutoff": [score >= gamma for score in scores],
        "division": [1 - gamma / (gamma + score) for score in scores],
        "cdf": [sum(other <= score for other in scores) / len(scores) for score in scores],
    }
    if inverse:
        raised = {rule: [1 - share for share in shares] for rule, shares in raised.items()}
        raised["cutoff"] = [score <= gamma for score in scores]
    for rule, shares in raised.items():
        settings = {} if rule == "cdf" else {"gamma": gamma}
        found = keep_probabilities(scores, rule=rule, keep_prob=p, inverse=inverse, **settings)
        assert found.tolist() == pytest.approx([p + (1 - p) * share for share in shares], abs=1e-12)


@given(st.lists(st.floats(1e-6, 1e6), min_size=2, max_size=30, unique=True), st.floats(0, 1))
def test_proportional_shares_any_budget_in_proportion(scores, ratio):
    scores = torch.tensor(scores, dtype=torch.float64)
    prob = keep_probabilities(scores, keep_ratio=ratio, rule="proportional")
    assert prob.tolist() == pytest.approx(capped(scores, ratio).tolist(), abs=1e-8)


def test_edges_of_score_zero_share_what_is_left():
    scores = torch.tensor([0.0, 3.0, 0.0, 1.0, 0.0])
    for ratio, zeros in ((0.2, 0.0), (0.4, 0.0), (0.7, 0.5), (1.0, 1.0)):
        prob = keep_probabilities(scores, keep_ratio=ratio, rule="proportional")
        assert prob[scores == 0].tolist() == pytest.approx([zeros] * 3)
        assert float(prob.mean()) == pytest.approx(ratio)


@given(st.lists(st.floats(0, 1), min_size=2, max_size=30, unique=True), st.floats(0, 1))
def test_floor_meets_its_budget_and_raises_no_more_than_it_must(scores, share):
    scores = torch.tensor(scores, dtype=torch.float64)
    ratio = float(scores.mean()) + (1 - float(scores.mean())) * share
    prob = keep_probabilities(scores, keep_ratio=min(ratio, 1.0), rule="floor")
    assert float(prob.mean()) == pytest.approx(ratio, abs=1e-9)
    raised = prob > scores + 1e-12
    assert not raised.any() or float(prob[raised].max() - prob[raised].min()) < 1e-9


def test_at_the_threshold_cutoff_and_its_inverse_both_keep():
    at = torch.tensor([GAMMA], dtype=torch.float64)
    for inverse in (False, True):
        assert keep_probabilities(at, keep_prob=0.2, rule="cutoff", gamma=GAMMA, inverse=inverse).tolist() == [1.0]


def test_cdf_keeps_its_budget_at_the_same_p():
    """At the same p CDF keeps p + (1 − p) (M + 1) / 2 M of the edges and uniform dropping p."""
    prob = keep_probabilities(torch.arange(1000.0), keep_prob=0.6, rule="cdf")
    assert float(prob.mean()) == pytest.approx(0.6 + 0.4 * 1001 / 2000)


def test_the_lower_end_of_a_ratio_is_reachable():
    for edges in range(2, 400):
        prob = keep_probabilities(torch.arange(float(edges)), keep_ratio=(edges + 1) / (2 * edges), rule="cdf")
        assert float(prob.mean()) == pytest.approx((edges + 1) / (2 * edges))


def test_auto_gamma_is_the_knee_and_nothing_is_critical_where_all_are_equal():
    floor, rise = torch.linspace(0, 1e-3, 980), torch.linspace(0.1, 1.0, 20)
    assert auto_gamma(torch.cat((floor, rise))) == pytest.approx(0.1)
    tied = torch.tensor([0.0] * 90 + [5.0] * 10)  # a floor of equal scores is not part of the rise
    assert auto_gamma(tied) == 5.0
    assert float(keep_probabilities(tied, keep_prob=0.5, rule="cutoff").mean()) == pytest.approx(0.55)
    equal = torch.full((5,), 0.4)
    with pytest.warns(EqualScoresWarning):
        assert keep_probabilities(equal, keep_prob=0.5, rule="cutoff").tolist() == [0.5] * 5


def test_a_rule_of_ones_own_can_meet_a_budget_by_itself():
    def same(scores, keep_ratio):
        return torch.full_like(scores, keep_ratio)

    assert keep_probabilities(SCORES, keep_ratio=0.25, rule=same).tolist() == [0.25] * 6
    assert keep_probabilities(SCORES, keep_ratio=0.25, rule=same, inverse=True).tolist() == [0.25] * 6


@pytest.mark.parametrize(
    ("given_", "words"),
    [
        ({"scores": torch.empty(0)}, "scores"),
        ({"scores": torch.tensor([1.0, -2.0])}, "at least 0, got -2"),
        ({"scores": torch.tensor([1.0, float("nan")])}, "finite"),
        ({"scores": "abc"}, "scores must be real numbers"),
        ({"rule": "cfd"}, "did you mean 'cdf'"),
        ({"keep_prob": 1.2}, "keep_prob must be"),
        ({"keep_prob": None}, "either keep_prob or keep_ratio"),
        ({"keep_ratio": 0.5}, "either keep_prob or keep_ratio"),
        ({"rule": "proportional"}, "give keep_ratio"),
        ({"rule": "floor"}, "give keep_ratio"),
        ({"rule": "division", "gamma": 0}, "positive gamma"),
        ({"rule": "cutoff", "gamma": "big"}, "unknown gamma"),
        ({"rule": "cutoff", "gamma": -1}, "gamma must be"),
        ({"gamma": 1}, "'cdf' has no setting 'gamma'"),
        ({"rule": "uniform", "inverse": True}, "no inverse"),
        ({"rule": "floor", "keep_prob": None, "keep_ratio": 0.5, "scores": torch.tensor([0.5, 2.0])}, "within"),
        ({"rule": "cdf", "keep_prob": None, "keep_ratio": 0.3}, "cannot be reached with cdf: .* 0.611111"),
        ({"rule": lambda scores: scores[:2]}, "each of 6 edges"),
        ({"rule": lambda scores: 0.5}, "each of 6 edges, got float"),
        ({"rule": lambda scores: scores * 9}, "must lie in"),
        ({"rule": lambda scores: 1 / 0}, "raised ZeroDivisionError"),
    ],
)
def test_bad_input_is_one_line(given_, words):
    with pytest.raises(TadropedgeError, match=words) as caught:
        keep_probabilities(**{"scores": SCORES, "keep_prob": 0.5, **given_})
    assert "\n" not in str(caught.value)
