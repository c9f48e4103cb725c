import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tadropedge import STRATEGIES, TadropedgeError, aggregate_resistance, auto_gamma, keep_probabilities

WEIGHTS = torch.tensor([0.3, 0.0, 0.1, 0.1, 2.0, 0.5], dtype=torch.float64)
P, GAMMA = 0.6, 0.3

# The formulas as printed, one edge at a time.
PRINTED = {
    ("uniform", False): lambda w, f: P,
    ("cutoff", False): lambda w, f: P if w < GAMMA else 1.0,
    ("cutoff", True): lambda w, f: P if w > GAMMA else 1.0,
    ("division", False): lambda w, f: 1 - (1 - P) * GAMMA / (GAMMA + w),
    ("division", True): lambda w, f: P + (1 - P) * GAMMA / (GAMMA + w),
    ("cdf", False): lambda w, f: P + (1 - P) * f,
    ("cdf", True): lambda w, f: 1 - (1 - P) * f,
}


@pytest.mark.parametrize(("strategy", "inverse"), PRINTED)
def test_exactly_as_printed(strategy, inverse, device):
    ours = keep_probabilities(WEIGHTS.to(device), keep_prob=P, strategy=strategy, gamma=GAMMA, inverse=inverse)
    ranks = [float((w >= WEIGHTS).double().mean()) for w in WEIGHTS]
    expected = [PRINTED[strategy, inverse](w, f) for w, f in zip(WEIGHTS.tolist(), ranks, strict=True)]
    assert ours.dtype == torch.float64
    assert ours.device.type == device.type
    assert ours.tolist() == pytest.approx(expected, abs=1e-15)


def test_at_the_threshold_cutoff_and_its_inverse_both_keep():
    at = torch.tensor([GAMMA], dtype=torch.float64)
    for inverse in (False, True):
        assert keep_probabilities(at, keep_prob=0.2, strategy="cutoff", gamma=GAMMA, inverse=inverse).tolist() == [1.0]


weights_lists = st.lists(st.floats(0, 1e6), min_size=1, max_size=30)


@given(weights_lists, st.floats(0, 1), st.sampled_from(sorted(STRATEGIES)), st.floats(1e-9, 1e3))
def test_probabilities_lie_between_p_and_one_and_grow_with_the_weight(weights, p, strategy, gamma):
    tensor = torch.tensor(weights, dtype=torch.float64)
    prob = keep_probabilities(tensor, keep_prob=p, strategy=strategy, gamma=gamma)
    assert bool(((prob >= p - 1e-12) & (prob <= 1 + 1e-12)).all())
    order = tensor.argsort()
    assert bool((prob[order].diff() >= -1e-12).all())
    if strategy != "uniform":
        inverse = keep_probabilities(tensor, keep_prob=p, strategy=strategy, gamma=gamma, inverse=True)
        assert bool((inverse[order].diff() <= 1e-12).all())


@given(weights_lists, st.floats(0, 1), st.sampled_from(sorted(STRATEGIES)), st.booleans())
def test_keep_ratio_is_met_or_the_reachable_range_is_named(weights, ratio, strategy, inverse):
    tensor = torch.tensor(weights, dtype=torch.float64)
    inverse = inverse and strategy != "uniform"
    least = float(keep_probabilities(tensor, keep_prob=0.0, strategy=strategy, inverse=inverse).mean())
    if ratio >= least:
        prob = keep_probabilities(tensor, keep_ratio=ratio, strategy=strategy, inverse=inverse)
        assert float(prob.mean()) == pytest.approx(ratio if least < 1 else 1.0, abs=1e-9)
    else:
        with pytest.raises(TadropedgeError, match=r"cannot be reached with .* between .* \(at p = 0\) and 1"):
            keep_probabilities(tensor, keep_ratio=ratio, strategy=strategy, inverse=inverse)


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


def test_vectors_of_settings_give_one_row_each():
    p, gamma = [0.2, 0.5, 0.9], [0.1, 0.3, 1.0]
    rows = keep_probabilities(WEIGHTS, keep_prob=p, strategy="division", gamma=gamma)
    for row, one_p, one_gamma in zip(rows, p, gamma, strict=True):
        assert torch.equal(row, keep_probabilities(WEIGHTS, keep_prob=one_p, strategy="division", gamma=one_gamma))
    ratios = keep_probabilities(WEIGHTS, keep_ratio=torch.tensor([0.7, 0.8]), strategy="cdf").mean(dim=1)
    assert ratios.tolist() == pytest.approx([0.7, 0.8])


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
    "lengths": (
        {"keep_prob": [0.1, 0.2, 0.3], "strategy": "division", "gamma": [0.1, 0.2]},
        "3 values of keep_prob or keep_ratio, but 2 of gamma",
    ),
    "ratio lengths": (
        {"keep_ratio": [0.9, 0.9, 0.9], "strategy": "division", "gamma": [0.1, 0.2]},
        "3 values of keep_ratio, but 2 of gamma",
    ),
    "keep_prob high": ({"keep_prob": 1.2}, r"keep_prob must lie in \[0, 1\], got 1.2"),
    "keep_prob low": ({"keep_prob": -0.1}, r"got -0.1"),
    "keep_prob nan": ({"keep_prob": float("nan")}, r"keep_prob must lie in \[0, 1\], got nan"),
    "keep_prob word": ({"keep_prob": "most"}, "keep_prob must be a number or a vector of numbers, got 'most'"),
    "keep_prob shape": ({"keep_prob": torch.ones(2, 2)}, r"a number or a vector, got shape \[2, 2\]"),
    "keep_ratio": ({"keep_ratio": 7}, r"keep_ratio must lie in \[0, 1\], got 7"),
    "both": ({"keep_prob": 0.5, "keep_ratio": 0.5}, "give either keep_prob or keep_ratio, got keep_prob=0.5 and"),
    "neither": ({}, "give either keep_prob or keep_ratio, got keep_prob=None"),
    "strategy": (
        {"keep_prob": 0.5, "strategy": "cfd"},
        r"unknown strategy 'cfd'; choose from uniform, cutoff, division, cdf \(did you mean 'cdf'\?\)",
    ),
    "gamma word": ({"keep_prob": 0.5, "strategy": "cutoff", "gamma": "big"}, "unknown gamma 'big'; choose from auto"),
    "gamma low": ({"keep_prob": 0.5, "strategy": "cutoff", "gamma": -1}, "gamma must be at least 0, got -1"),
    "gamma zero": ({"keep_prob": 0.5, "strategy": "division", "gamma": 0}, "division needs a positive gamma, got 0"),
    "inverse uniform": ({"keep_prob": 0.5, "strategy": "uniform", "inverse": True}, "has no inverse"),
    "own length": ({"keep_prob": 0.5, "strategy": lambda w: w[:2] * 0}, r"one score for each of 6 edges, got \[2\]"),
    "own type": ({"keep_prob": 0.5, "strategy": lambda w: 0.5}, "one score for each of 6 edges, got float"),
    "own range": ({"keep_prob": 0.5, "strategy": lambda w: w}, r"the score of a strategy must lie in \[0, 1\], got 2"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_settings(name):
    settings, message = BAD[name]
    with pytest.raises(TadropedgeError, match=message):
        keep_probabilities(WEIGHTS, **settings)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (None, "weights must be one number for each edge, got NoneType None"),
        (torch.ones(2) * 1j, "weights must be real numbers"),
        (torch.empty(0), "weights are empty: the graph has no edges"),
        (torch.ones(2, 2), r"one number for each edge, got shape \[2, 2\]"),
        (torch.tensor([1.0, float("nan")]), "finite and at least 0, got nan"),
        (torch.tensor([1.0, -2.0]), "finite and at least 0, got -2"),
    ],
)
def test_bad_weights(weights, message):
    with pytest.raises(TadropedgeError, match=message):
        keep_probabilities(weights, keep_prob=0.5)
