"""What every use of ``tadropedge.USES`` must do: a draw in, kept pairs and factors of their weights out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from tadropedge import USES, Dropping
from tadropedge.sampling.plan import Plan
from tadropedge.testing.graphs import karate


class UseContract:
    """Subclass it with the ``use``, a name or a function.

    For instance::

        class TestPruned(UseContract):
            use = "pruned"
    """

    use: str | Callable[..., Any]

    def plan(self, monkeypatch: pytest.MonkeyPatch, ratio: float = 0.5) -> Plan:
        """The karate club by degree."""
        if not isinstance(self.use, str):
            monkeypatch.setitem(USES, "mine", self.use)
        name = self.use if isinstance(self.use, str) else "mine"
        return Dropping.parse(f"degree-proportional@{ratio}:{name}").plan(karate())

    def presence(self, taken: tuple[Tensor | None, Tensor | None], edges: int) -> Tensor:
        """What each edge weighs, 0 where it is dropped."""
        kept, factor = taken
        ones = torch.ones(edges, dtype=torch.float64)
        return (ones if kept is None else kept.double()) * (ones if factor is None else factor)

    def test_masks_are_masks_and_factors_are_numbers(self, monkeypatch: pytest.MonkeyPatch) -> None:
        plan = self.plan(monkeypatch)
        for training in (True, False):
            kept, factor = plan.draw(3, 1, training=training)
            assert kept is None or (kept.dtype == torch.bool and kept.shape == plan.prob.shape)
            assert factor is None or (factor.dtype == torch.float64 and factor.shape == plan.prob.shape)
            assert factor is None or bool((factor >= 0).all() and factor.isfinite().all())

    def test_evaluation_is_not_random(self, monkeypatch: pytest.MonkeyPatch) -> None:
        plan = self.plan(monkeypatch)
        seen = [self.presence(plan.draw(seed, epoch, training=False), 78) for seed in (0, 1) for epoch in (0, 7)]
        assert all(torch.equal(seen[0], other) for other in seen)

    def test_everything_is_kept_where_everything_is_certain(self, monkeypatch: pytest.MonkeyPatch) -> None:
        plan = self.plan(monkeypatch, ratio=1.0)
        for training in (True, False):
            assert torch.equal(self.presence(plan.draw(3, 1, training=training), 78), torch.ones(78).double())

    def test_it_is_a_pure_function_of_the_seed_alone_and_in_a_batch(self, monkeypatch: pytest.MonkeyPatch) -> None:
        plan, seeds, state = self.plan(monkeypatch), torch.tensor([5, 0, -9]), torch.get_rng_state()
        together = self.presence(plan.draw(seeds, 2), 78).expand(3, 78)
        for row, seed in zip(together, seeds.tolist(), strict=True):
            assert torch.equal(row, self.presence(plan.draw(seed, 2), 78))
        assert torch.equal(state, torch.get_rng_state())
