import pytest
import torch
from contracts.rules import GAMMA, WEIGHTS, RuleContract

from tadropedge import STRATEGIES, TadropedgeError, aggregate_resistance, auto_gamma, keep_probabilities


class TestUniform(RuleContract):
    strategy = "uniform"
    has_inverse = False

    def score(self, weight, share):
        return 0.0


class TestCutoff(RuleContract):
    strategy = "cutoff"
    wants_gamma = True

    def score(self, weight, share):
        return 0.0 if weight < GAMMA else 1.0

    def inverse_score(self, weight, share):
        return 0.0 if weight > GAMMA else 1.0


class TestDivision(RuleContract):
    strategy = "division"
    wants_gamma = True

    def score(self, weight, share):
        return 1 - GAMMA / (GAMMA + weight)


class TestCdf(RuleContract):
    strategy = "cdf"

    def score(self, weight, share):
        return share


def test_every_rule_has_its_contract():
    assert {contract.strategy for contract in RuleContract.__subclasses__()} >= set(STRATEGIES)


def test_at_the_threshold_cutoff_and_its_inverse_both_keep():
    at = torch.tensor([GAMMA], dtype=torch.float64)
    for inverse in (False, True):
        assert keep_probabilities(at, keep_prob=0.2, strategy="cutoff", gamma=GAMMA, inverse=inverse).tolist() == [1.0]


def test_keep_ratio_error_names_the_range():
    with pytest.raises(TadropedgeError) as caught:
        keep_probabilities(torch.arange(4.0), keep_ratio=0.3, strategy="cdf")
    assert str(caught.value) == (
        "keep_ratio=0.3 cannot be reached with cdf: the expected kept share lies between 0.625 (at p = 0) and 1"
    )


def test_cdf_keeps_its_budget_at_the_same_p():
    """At the same p CDF keeps p + (1 − p) (M + 1) / 2 M of the edges and uniform dropping p."""
    prob = keep_probabilities(torch.arange(1000.0), keep_prob=0.6, strategy="cdf")
    assert float(prob.mean()) == pytest.approx(0.6 + 0.4 * 1001 / 2000)


def test_your_own_strategy_is_one_function(monkeypatch):
    def top_half(weights):
        return (weights >= weights.median()).double()

    def soft(weights, gamma):
        return torch.tanh(weights / gamma)

    assert keep_probabilities(WEIGHTS, keep_prob=0.5, strategy=top_half).tolist() == [1, 0.5, 1, 1, 1, 1]
    ours = keep_probabilities(WEIGHTS, keep_prob=0.5, strategy=soft, gamma=2.0, inverse=True)
    assert torch.allclose(ours, 1 - 0.5 * torch.tanh(WEIGHTS / 2))
    monkeypatch.setitem(STRATEGIES, "soft", soft)
    assert torch.equal(keep_probabilities(WEIGHTS, keep_prob=0.5, strategy="soft", gamma=2.0, inverse=True), ours)


def test_auto_gamma_is_the_knee_and_nothing_is_critical_where_all_are_equal():
    floor, rise = torch.linspace(0, 1e-3, 980), torch.linspace(0.1, 1.0, 20)
    assert auto_gamma(torch.cat((floor, rise))) == pytest.approx(0.1)
    tied = torch.tensor([0.0] * 90 + [5.0] * 10)  # a floor of equal weights is not part of the rise
    assert auto_gamma(tied) == 5.0
    assert float(keep_probabilities(tied, keep_prob=0.5, strategy="cutoff").mean()) == pytest.approx(0.55)
    equal = torch.full((5,), 0.4)
    assert auto_gamma(equal) > 0.4
    assert keep_probabilities(equal, keep_prob=0.5, strategy="cutoff").tolist() == [0.5] * 5


@pytest.mark.parametrize(("name", "q", "published"), [("cora", 7, 1e-2), ("citeseer", 6, 1e-2), ("pubmed", 3, 1e-3)])
@pytest.mark.filterwarnings("ignore::tadropedge.RepeatedEigenvalueWarning")
def test_auto_gamma_is_within_a_factor_of_ten_of_the_paper(citation, name, q, published):
    gamma = auto_gamma(aggregate_resistance(citation(name), q, laplacian="normalized"))
    assert published / 10 <= gamma <= published * 10


def test_the_lower_end_of_a_ratio_is_reachable():
    for edges in range(1, 400):
        prob = keep_probabilities(torch.arange(float(edges)), keep_ratio=(edges + 1) / (2 * edges), strategy="cdf")
        assert float(prob.mean()) == pytest.approx((edges + 1) / (2 * edges))


def test_scores_of_any_kind():
    assert keep_probabilities(WEIGHTS, keep_prob=0.5, strategy=lambda w: w > 0.2).tolist() == [1, 0.5, 0.5, 0.5, 1, 1]
    assert keep_probabilities(WEIGHTS, keep_prob=0.5, strategy=torch.sigmoid).shape == (6,)
    assert keep_probabilities([0.0, 1.0], keep_prob=0.5).tolist() == [0.75, 1.0]


BAD = {
    "strategy": (
        {"keep_prob": 0.5, "strategy": "cfd"},
        r"unknown strategy 'cfd'; choose from uniform, cutoff, division, cdf \(did you mean 'cdf'\?\)",
    ),
    "gamma zero": ({"keep_prob": 0.5, "strategy": "division", "gamma": 0}, "division needs a positive gamma, got 0"),
    "own length": ({"keep_prob": 0.5, "strategy": lambda w: w[:2] * 0}, r"one score for each of 6 edges, .* \[2\]"),
    "own type": ({"keep_prob": 0.5, "strategy": lambda w: 0.5}, "one score for each of 6 edges, got float"),
    "own range": (
        {"keep_prob": 0.5, "strategy": lambda w: w},
        r"the score of the strategy .* must lie in \[0, 1\], got 2",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_settings(name):
    settings, message = BAD[name]
    with pytest.raises(TadropedgeError, match=message):
        keep_probabilities(WEIGHTS, **settings)
