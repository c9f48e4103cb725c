"""What every option of ``tadropedge.OPTIONS`` must do: a draw in, a changed one out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from tadropedge import OPTIONS, Dropping, Graph
from tadropedge.sampling.plan import Plan
from tadropedge.testing.graphs import ZOO


class OptionContract:
    """Subclass it with the ``option``, a name or a function.

    For instance::

        class TestExact(OptionContract):
            option = "exact"

    ``keeps_budget``: the expected number of kept edges is Σ p. ``keeps_zero``: edges of p = 0 may be kept.
    """

    option: str | Callable[..., Any]
    keeps_budget = True
    keeps_zero = False

    def plan(self, monkeypatch: pytest.MonkeyPatch, graph: Graph, prob: torch.Tensor) -> Plan:
        """A plan with probabilities of one's own."""
        if not isinstance(self.option, str):
            monkeypatch.setitem(OPTIONS, "mine", self.option)
        name = self.option if isinstance(self.option, str) else "mine"
        return Dropping.parse(f"dropedge:{name}").plan(graph, prob=prob)

    def uneven(self, graph: Graph, least: float = 0.5) -> torch.Tensor:
        """Probabilities that a spanning forest can afford."""
        generator = torch.Generator().manual_seed(graph.num_edges)
        size = graph.num_nodes - graph.components.count
        least = max(least, size / graph.num_edges)
        return least + (1 - least) * torch.rand(graph.num_edges, generator=generator, dtype=torch.float64)

    @pytest.mark.parametrize("name", ZOO)
    def test_it_is_a_pure_function_of_seed_and_epoch_alone_and_in_a_batch(
        self, name: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        plan, seeds = self.plan(monkeypatch, ZOO[name], self.uneven(ZOO[name])), [5, 0, -9]
        state, together = torch.get_rng_state(), plan.sample(torch.tensor(seeds), 4)
        assert [torch.equal(row, plan.sample(seed, 4)) for row, seed in zip(together, seeds, strict=True)] == [True] * 3
        assert torch.equal(state, torch.get_rng_state())

    @pytest.mark.parametrize("name", ["karate", "parts"])
    def test_the_budget(self, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
        prob = self.uneven(ZOO[name])
        counts = self.plan(monkeypatch, ZOO[name], prob).sample(torch.arange(4000), 2).sum(dim=1).double()
        if self.keeps_budget:
            error = max(float(counts.std()), 1e-9) / 4000**0.5
            assert abs(float(counts.mean()) - float(prob.sum())) < 4.5 * error + 0.5 * (float(counts.std()) == 0)

    def test_certain_edges_are_kept_and_impossible_ones_are_not(self, monkeypatch: pytest.MonkeyPatch) -> None:
        graph = ZOO["complete"]
        everything = self.plan(monkeypatch, graph, torch.ones(15)).sample(torch.arange(50))
        assert everything.all()
        if not self.keeps_zero:
            prob = (
                torch.tensor([1.0] * 10 + [1e-3] * 5) if self.option == "unbiased" else torch.tensor([1.0, 0] * 7 + [1])
            )
            masks = self.plan(monkeypatch, graph, prob).sample(torch.arange(50))
            assert not masks[:, prob == 0].any()
