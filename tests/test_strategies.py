import pytest
import torch
from contracts.rules import GAMMA, WEIGHTS, RuleContract
from graphs import ZOO, star
from hypothesis import given
from hypothesis import strategies as st

from tadropedge import STRATEGIES, Graph, TadropedgeError, aggregate_resistance, auto_gamma, keep_probabilities


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


def capped(weights, ratio):
    """min(1, c · weight) with c by bisection, for a budget that the edges of positive weight can meet."""
    low, high = 0.0, 1e30
    for _ in range(300):
        c = (low + high) / 2
        low, high = (c, high) if float((c * weights).clamp_max(1).mean()) < ratio else (low, c)
    return (high * weights).clamp_max(1)


class TestProportional(RuleContract):
    strategy = "proportional"
    any_budget = True

    def score(self, weight, share):
        return float(capped(WEIGHTS, 0.5)[WEIGHTS.tolist().index(weight)])

    def inverse_score(self, weight, share):
        return float(capped(WEIGHTS.max() - WEIGHTS, 0.5)[WEIGHTS.tolist().index(weight)])

    @given(st.lists(st.floats(1e-6, 1e6), min_size=1, max_size=30), st.floats(0, 1))
    def test_the_budget_is_shared_in_proportion(self, weights, ratio):
        weights = torch.tensor(weights, dtype=torch.float64)
        prob = keep_probabilities(weights, keep_ratio=ratio, strategy="proportional")
        assert prob.tolist() == pytest.approx(capped(weights, ratio).tolist(), abs=1e-8)

    def test_edges_of_weight_zero_share_what_is_left(self):
        weights = torch.tensor([0.0, 3.0, 0.0, 1.0, 0.0])
        for ratio, zeros in ((0.2, 0.0), (0.4, 0.0), (0.7, 0.5), (1.0, 1.0)):
            prob = keep_probabilities(weights, keep_ratio=ratio, strategy="proportional")
            assert prob[weights == 0].tolist() == pytest.approx([zeros] * 3)
            assert float(prob.mean()) == pytest.approx(ratio)
        nothing = keep_probabilities(torch.zeros(4), keep_ratio=0.3, strategy="proportional")
        assert nothing.tolist() == pytest.approx([0.3] * 4)
        equal = keep_probabilities(torch.ones(4), keep_ratio=0.3, strategy="proportional", inverse=True)
        assert equal.tolist() == pytest.approx([0.3] * 4)

    def test_scores_of_any_range(self):
        for weights in ([1e-300, 1e300, 1.0], [1e-310, 2e-310], [0.0, 1e-320]):
            prob = keep_probabilities(
                torch.tensor(weights, dtype=torch.float64), keep_ratio=0.5, strategy=self.strategy
            )
            assert float(prob.mean()) == pytest.approx(0.5)


def test_every_rule_has_its_contract():
    """DropSens looks at a graph instead of scores and is tested below."""
    assert {contract.strategy for contract in RuleContract.__subclasses__()} >= set(STRATEGIES) - {"dropsens"}


@pytest.mark.parametrize("sensitivity", [0.3, 0.8, 0.95])
def test_dropsens_leaves_the_asked_sensitivity(sensitivity):
    """The x of the paper's equation, and the expected weight of a neighbour by summing over all numbers of others."""
    from math import comb

    from tadropedge.sensitivity import drop_rates

    degrees = torch.tensor([1, 2, 3, 7, 30])
    for d, x in zip(degrees.tolist(), drop_rates(degrees, sensitivity).tolist(), strict=True):
        assert d * (1 - sensitivity) * (1 - x) - x + x ** (d + 1) == pytest.approx(0, abs=1e-12)
        felt = sum(comb(d - 1, k) * (1 - x) ** (k + 1) * x ** (d - 1 - k) / (k + 2) for k in range(d))
        assert felt == pytest.approx(sensitivity / (d + 1), rel=1e-9)


def test_dropsens_is_symmetrised_capped_and_meets_a_budget(device):
    graph = star(5).to(device)
    free = keep_probabilities(graph, strategy="dropsens", keep_prob=0.0, sensitivity=0.5)
    hub = 1 - 0.5 - 2 * (float(free[0]) - 0.5) + 0.0  # the leaf's own arc is dropped with 1 − c = 0.5
    assert (free.device.type, free.dtype, len(free)) == (device.type, torch.float64, graph.num_edges)
    assert 5 * 0.5 * (1 - hub) - hub + hub**6 == pytest.approx(0, abs=1e-9)
    capped = keep_probabilities(graph, strategy="dropsens", keep_prob=0.7, sensitivity=0.5)
    assert capped.tolist() == pytest.approx([0.7] * 5)
    karate = ZOO["karate"].to(device)
    least = float(keep_probabilities(karate, strategy="dropsens", keep_prob=0.0).mean())
    for ratio in (least, (least + 1) / 2, 1.0):
        prob = keep_probabilities(karate, strategy="dropsens", keep_ratio=ratio)
        assert float(prob.mean()) == pytest.approx(ratio)
    rows = keep_probabilities(karate, strategy="dropsens", keep_prob=[0.2, 0.9])
    assert torch.equal(rows[1], keep_probabilities(karate, strategy="dropsens", keep_prob=0.9))
    ends = (keep_probabilities(karate, strategy="dropsens", keep_prob=0.0, sensitivity=c) for c in (0.0, 1.0))
    assert [one.unique().tolist() for one in ends] == [[0.0], [1.0]]


@pytest.mark.parametrize(
    ("weights", "given_", "message"),
    [
        (WEIGHTS, {}, "weights must be the Graph itself for the strategy 'dropsens', which looks at degrees, got"),
        (ZOO["karate"], {"inverse": True}, "the strategy 'dropsens' has no inverse"),
        (ZOO["karate"], {"sensitivity": 2}, "sensitivity must lie in"),
        (ZOO["karate"], {"keep_prob": 3}, "keep_prob must lie in"),
        (ZOO["karate"], {"keep_prob": None, "keep_ratio": 0.01}, "keep_ratio=0.01 cannot be reached with dropsens at"),
        (Graph.from_edge_index([[], []], 3), {}, "the graph has no edges"),
        (ZOO["karate"], {"strategy": "cdf"}, "weights must be real numbers, got Graph"),
    ],
)
def test_bad_input_of_dropsens(weights, given_, message):
    with pytest.raises(TadropedgeError, match=message):
        keep_probabilities(weights, **{"strategy": "dropsens", "keep_prob": 0.5, **given_})


def test_your_own_rule_can_meet_a_budget_by_itself():
    def same(weights, keep_ratio):
        return keep_ratio.expand(*keep_ratio.shape[:-1], len(weights))

    assert keep_probabilities(WEIGHTS, keep_ratio=0.25, strategy=same).tolist() == [0.25] * 6
    two = keep_probabilities(WEIGHTS, keep_ratio=[0.25, 0.5], strategy=same, inverse=True).mean(dim=1)
    assert two.tolist() == [0.25, 0.5]
    assert keep_probabilities(WEIGHTS, keep_prob=0.25, strategy=same).tolist() == [0.625] * 6


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
        r"unknown strategy 'cfd'; choose from uniform, cutoff, division, cdf, .* \(did you mean 'cdf'\?\)",
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
