"""What every rule of ``STRATEGIES`` must do: scores in, probabilities of keeping an edge out."""

from __future__ import annotations

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tadropedge import STRATEGIES, TadropedgeError, keep_probabilities

WEIGHTS = torch.tensor([0.3, 0.0, 0.1, 0.1, 2.0, 0.5], dtype=torch.float64)
P, GAMMA = 0.6, 0.3
LISTS = st.lists(st.floats(0, 1e6), min_size=1, max_size=30)
inherited = settings(suppress_health_check=[HealthCheck.differing_executors])

BAD_WEIGHTS = {
    "nothing": (None, "weights must be real numbers, got NoneType None"),
    "complex": (torch.ones(2) * 1j, "weights must be a dense tensor of real numbers"),
    "empty": (torch.empty(0), "weights are empty: the graph has no edges"),
    "matrix": (torch.ones(2, 2), r"one number for each edge, got shape \[2, 2\]"),
    "nan": (torch.tensor([1.0, float("nan")]), "finite and at least 0, got nan"),
    "negative": (torch.tensor([1.0, -2.0]), "finite and at least 0, got -2"),
}
BAD_SETTINGS = {
    "keep_prob high": ({"keep_prob": 1.2}, r"keep_prob must lie in \[0, 1\], got 1.2"),
    "keep_prob low": ({"keep_prob": -0.1}, r"got -0.1"),
    "keep_prob nan": ({"keep_prob": float("nan")}, r"keep_prob must lie in \[0, 1\], got nan"),
    "keep_prob word": ({"keep_prob": "most"}, "keep_prob must be real numbers, got str"),
    "keep_prob shape": ({"keep_prob": torch.ones(2, 2)}, r"a number or a vector, got shape \[2, 2\]"),
    "keep_ratio": ({"keep_ratio": 7}, r"keep_ratio must lie in \[0, 1\], got 7"),
    "both": ({"keep_prob": 0.5, "keep_ratio": 0.5}, "give either keep_prob or keep_ratio, got keep_prob=0.5 and"),
    "neither": ({}, "give either keep_prob or keep_ratio, got keep_prob=None"),
}
BAD_GAMMA = {
    "word": ("big", "unknown gamma 'big'; choose from auto"),
    "negative": (-1, "gamma must be finite and at least 0, got -1"),
}


class RuleContract:
    """Subclass it with the name of the rule and its formula for one edge, as printed in the paper.

    ``wants_gamma``: whether there is a threshold; ``has_inverse``: whether critical edges can be dropped first;
    ``any_budget``: whether every ``keep_ratio`` can be met, and is by probabilities that may lie below p.
    """

    strategy: str
    wants_gamma = False
    has_inverse = True
    any_budget = False

    def score(self, weight: float, share: float) -> float:
        """The score of an edge of this ``weight``, where ``share`` of all edges have no larger one; γ is ``GAMMA``."""
        raise NotImplementedError

    def inverse_score(self, weight: float, share: float) -> float:
        return 1 - self.score(weight, share)

    def prob(self, weights=WEIGHTS, **given):
        return keep_probabilities(weights, **{"strategy": self.strategy, "gamma": GAMMA, **given})

    @property
    def turns(self):
        return (False, True) if self.has_inverse else (False,)

    def test_exactly_as_printed(self, device):
        shares = [float((weight >= WEIGHTS).double().mean()) for weight in WEIGHTS]
        for inverse in self.turns:
            ours = self.prob(WEIGHTS.to(device), keep_prob=P, inverse=inverse)
            printed = self.inverse_score if inverse else self.score
            expected = [P + (1 - P) * printed(w, f) for w, f in zip(WEIGHTS.tolist(), shares, strict=True)]
            assert (ours.dtype, ours.device.type) == (torch.float64, device.type)
            assert ours.tolist() == pytest.approx(expected, abs=1e-15)

    def test_one_keeps_everything_and_zero_keeps_the_scores(self):
        for inverse in self.turns:
            assert torch.equal(self.prob(keep_prob=1.0, inverse=inverse), torch.ones(6, dtype=torch.float64))
            scores = self.prob(keep_prob=0.0, inverse=inverse)
            assert torch.allclose(self.prob(keep_prob=P, inverse=inverse), P + (1 - P) * scores)

    @inherited
    @given(LISTS, st.floats(0, 1), st.floats(1e-9, 1e3))
    def test_probabilities_lie_between_p_and_one_and_grow_with_the_weight(self, weights, p, gamma):
        tensor = torch.tensor(weights, dtype=torch.float64)
        order = tensor.argsort()
        for inverse in self.turns:
            prob = self.prob(tensor, keep_prob=p, gamma=gamma, inverse=inverse)
            assert bool(((prob >= p - 1e-12) & (prob <= 1 + 1e-12)).all())
            steps = prob[order].diff()
            assert bool(((-steps if inverse else steps) >= -1e-12).all())

    @inherited
    @given(LISTS, st.floats(0, 1))
    def test_keep_ratio_is_met_or_the_reachable_range_is_named(self, weights, ratio):
        tensor = torch.tensor(weights, dtype=torch.float64)
        for inverse in self.turns:
            given = {"gamma": "auto", "inverse": inverse}
            least = float(self.prob(tensor, keep_prob=0.0, **given).mean())
            if self.any_budget:
                prob = self.prob(tensor, keep_ratio=ratio, **given)
                assert float(prob.mean()) == pytest.approx(ratio, abs=1e-9)
            elif ratio > least - 1e-12:  # the end of the range itself, up to rounding
                prob = self.prob(tensor, keep_ratio=ratio, **given)
                assert float(prob.mean()) == pytest.approx(ratio if least < 1 else 1.0, abs=1e-9)
            else:
                with pytest.raises(TadropedgeError, match=r"cannot be reached with .* between .* \(at p = 0\) and 1"):
                    self.prob(tensor, keep_ratio=ratio, **given)

    def test_vectors_of_settings_give_one_row_each(self):
        p, gamma, ratio = [0.2, 0.5, 0.9], [0.1, 0.3, 1.0], [0.9, 0.95, 1.0]
        rows = self.prob(keep_prob=p, gamma=gamma)
        assert rows.shape == (3, 6)
        for row, one, each in zip(rows, p, gamma, strict=True):
            assert torch.equal(row, self.prob(keep_prob=one, gamma=each))
        assert self.prob(keep_prob=p).shape == (3, 6)
        assert self.prob(keep_ratio=ratio).mean(dim=1).tolist() == pytest.approx(ratio)
        if self.wants_gamma:
            assert self.prob(keep_prob=P, gamma=gamma).shape == (3, 6)
            assert not torch.equal(*self.prob(keep_prob=P, gamma=[0.1, 1.0]))
            for name in ("keep_prob", "keep_ratio"):
                with pytest.raises(TadropedgeError, match=r"3 values of keep_.*, but 2 of gamma"):
                    self.prob(**{name: ratio}, gamma=gamma[:2])

    def test_the_order_of_the_edges_does_not_matter(self):
        order = torch.tensor([4, 2, 0, 5, 1, 3])
        for inverse in self.turns:
            shuffled = self.prob(WEIGHTS[order], keep_prob=P, inverse=inverse)
            assert torch.equal(shuffled, self.prob(keep_prob=P, inverse=inverse)[order])

    def test_nothing_is_random_and_nothing_is_changed(self):
        weights, state = WEIGHTS.clone(), torch.get_rng_state()
        assert torch.equal(self.prob(weights, keep_prob=P), self.prob(weights, keep_prob=P))
        assert torch.equal(weights, WEIGHTS)
        assert torch.equal(state, torch.get_rng_state())

    def test_its_function_is_the_same_as_its_name(self, monkeypatch):
        expected = self.prob(keep_prob=P)
        assert torch.equal(self.prob(keep_prob=P, strategy=STRATEGIES[self.strategy]), expected)
        monkeypatch.setitem(STRATEGIES, "another-name", STRATEGIES[self.strategy])
        assert torch.equal(self.prob(keep_prob=P, strategy="another-name"), expected)

    def test_bad_input_is_one_clear_line(self):
        for weights, message in BAD_WEIGHTS.values():
            with pytest.raises(TadropedgeError, match=message):
                self.prob(weights, keep_prob=0.5)
        for given_, message in BAD_SETTINGS.values():
            with pytest.raises(TadropedgeError, match=message):
                self.prob(**given_)
        for gamma, message in BAD_GAMMA.values() if self.wants_gamma else ():
            with pytest.raises(TadropedgeError, match=message):
                self.prob(keep_prob=0.5, gamma=gamma)
        if not self.has_inverse:
            with pytest.raises(TadropedgeError, match="has no inverse"):
                self.prob(keep_prob=0.5, inverse=True)
