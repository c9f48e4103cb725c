"""What every rule of ``tadropedge.RULES`` must do: scores in, probabilities of keeping an edge out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from tadropedge import RULES, TadropedgeError, keep_probabilities
from tadropedge.rules import NO_INVERSE, meets_budget

SCORES = torch.tensor([0.3, 0.0, 0.1, 0.1, 1.0, 0.5], dtype=torch.float64)
P, RATIO = 0.6, 0.75


class RuleContract:
    """Subclass it with the ``rule``, a name or a function, its ``settings`` and its ``formula`` for one edge.

    For instance::

        class TestCdf(RuleContract):
            rule = "cdf"

            def formula(self, score, share):
                return share
    """

    rule: str | Callable[..., Tensor]
    settings: dict[str, Any] = {}

    def formula(self, score: float, share: float) -> float:
        """The s of an edge of this ``score``, where ``share`` of all edges have no larger one.

        Of a rule that takes ``keep_ratio``: the probability, where that is ``RATIO``.
        """
        raise NotImplementedError

    def inverse_formula(self, score: float, share: float) -> float:
        """The same of the inverse."""
        return 1 - self.formula(score, share)

    def prob(self, scores: Any = SCORES, **given: Any) -> Tensor:
        """Its probabilities; without a budget those of ``P``, or of ``RATIO`` where the rule has no p."""
        if not {"keep_prob", "keep_ratio"} & set(given):
            given |= self.budget
        return keep_probabilities(scores, rule=self.rule, **{**self.settings, **given})

    @property
    def budget(self) -> dict[str, Any]:
        """``P``, or ``RATIO`` where the rule has no p."""
        return {"keep_ratio": RATIO} if meets_budget(self.rule) else {"keep_prob": P}

    @property
    def turns(self) -> tuple[bool, ...]:
        """With and without ``inverse``."""
        return (False,) if self.rule in NO_INVERSE else (False, True)

    def test_exactly_as_printed(self) -> None:
        shares = [float((score >= SCORES).double().mean()) for score in SCORES]
        for inverse in self.turns:
            printed = self.inverse_formula if inverse else self.formula
            values = [printed(score, share) for score, share in zip(SCORES.tolist(), shares, strict=True)]
            wanted = values if meets_budget(self.rule) else [P + (1 - P) * s for s in values]
            prob = self.prob(inverse=inverse)
            assert prob.dtype == torch.float64
            assert prob.tolist() == pytest.approx(wanted, abs=1e-12)

    def test_probabilities_grow_with_the_score(self) -> None:
        order = SCORES.argsort()
        for inverse in self.turns:
            prob = self.prob(inverse=inverse)
            steps = prob[order].diff() * (-1 if inverse else 1)
            assert bool((steps >= -1e-12).all())
            assert 0 <= float(prob.min()) <= float(prob.max()) <= 1

    def test_a_budget_is_met_or_the_reachable_range_is_named(self) -> None:
        for inverse in self.turns:
            for ratio in (0.0, 0.2, 0.4, 0.6, 0.8, 0.95, 1.0):
                try:
                    prob = self.prob(keep_ratio=ratio, inverse=inverse)
                except TadropedgeError as caught:
                    refused = str(caught)
                else:
                    assert float(prob.mean()) == pytest.approx(ratio, abs=1e-9)
                    continue
                assert f"keep_ratio={ratio:g} cannot be reached" in refused

    def test_the_order_of_the_edges_does_not_matter(self) -> None:
        order = torch.tensor([4, 2, 0, 5, 1, 3])
        for inverse in self.turns:
            assert torch.equal(self.prob(SCORES[order], inverse=inverse), self.prob(inverse=inverse)[order])

    def test_nothing_is_random_and_nothing_is_changed(self) -> None:
        scores, state = SCORES.clone(), torch.get_rng_state()
        assert torch.equal(self.prob(scores), self.prob(scores))
        assert torch.equal(scores, SCORES)
        assert torch.equal(state, torch.get_rng_state())

    def test_it_is_usable_by_a_name_everywhere(self, monkeypatch: pytest.MonkeyPatch) -> None:
        from tadropedge import Dropping
        from tadropedge.testing.graphs import karate

        function = RULES[self.rule] if isinstance(self.rule, str) else self.rule
        monkeypatch.setitem(RULES, "another-name", function)
        assert torch.equal(keep_probabilities(SCORES, rule="another-name", **self.budget, **self.settings), self.prob())
        dropping = Dropping.parse("jaccard-another-name", **self.budget, **self.settings)
        assert dropping.plan(karate()).prob.shape == (78,)
        assert str(dropping).startswith("jaccard-another-name")
