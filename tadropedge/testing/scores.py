"""What every edge score must do: a contract that the tests of your own score inherit in three lines."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import pytest
import torch
from torch import Tensor

from tadropedge.graph import Graph
from tadropedge.registry import SCORES
from tadropedge.scores.solve import edge_scores
from tadropedge.testing.graphs import ZOO, clusters, complete, cycle, path, relabel, two_cliques, union, weighted

DEVICES = ["cpu", "cuda"] if torch.cuda.is_available() else ["cpu"]

Settings = Mapping[str, Any]


@pytest.mark.filterwarnings("ignore::tadropedge.RepeatedEigenvalueWarning")
class ScoreContract:
    """Subclass it with ``score``, a name or ``staticmethod(function)``, and the settings to try it with.

    * ``variants``: settings that are tried, each with all tests;
    * ``weighted``: whether the edge weights of a graph matter;
    * ``features``: whether the score takes node features;
    * ``shifted``: whether the scores of the whole graph are moved so that the smallest is 0, the only way in which one
      component may then see another;
    * ``tolerance``: how far scores may differ that are equal in exact arithmetic.
    """

    score: str | Callable[..., Tensor] = "aggregate"
    variants: ClassVar[tuple[Settings, ...]] = ({},)
    weighted = True
    features = False
    shifted = False
    tolerance = 1e-12

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        """Every test that takes a graph is run on the whole zoo, with all settings."""
        if "graph" in metafunc.fixturenames:
            metafunc.parametrize("graph", ZOO.values(), ids=list(ZOO))
        if "settings" in metafunc.fixturenames:
            words = ["-".join(map(str, settings.values())) or "plain" for settings in self.variants]
            metafunc.parametrize("settings", self.variants, ids=words)

    def given(self, graph: Graph, settings: Settings) -> dict[str, Any]:
        """The settings, with features that depend only on the place of a node."""
        if not self.features:
            return dict(settings)
        generator = torch.Generator().manual_seed(0)
        return {"features": torch.randn(graph.num_nodes, 3, generator=generator), **settings}

    def scores(self, graph: Graph, settings: Settings, **more: Any) -> Tensor:
        """The scores under test."""
        return edge_scores(graph, self.score, **self.given(graph, settings), **more)

    def close(self, scores: Tensor, expected: Tensor | npt.NDArray[np.float64]) -> None:
        """Assert that scores are equal but for rounding."""
        assert scores.cpu().numpy() == pytest.approx(np.asarray(expected), abs=self.tolerance)

    def test_one_finite_number_per_edge(self, graph: Graph, settings: Settings) -> None:
        """float64 ``[M]``, at least 0."""
        scores = self.scores(graph, settings)
        assert (scores.shape, scores.dtype, scores.device) == ((graph.num_edges,), torch.float64, graph.device)
        assert bool((scores >= 0).all() and scores.isfinite().all())

    @pytest.mark.parametrize("device", DEVICES)
    def test_on_every_device(self, device: str, settings: Settings) -> None:
        """The scores lie where the graph lies."""
        graph = ZOO["karate"]
        given = self.given(graph, settings)
        if self.features:
            given["features"] = given["features"].to(device)
        there = edge_scores(graph.to(device), self.score, **given)
        assert there.device.type == device
        self.close(there, self.scores(graph, settings))

    def test_names_of_nodes_do_not_matter(self, graph: Graph, settings: Settings) -> None:
        """Nodes with other numbers, the same scores."""
        order = torch.from_numpy(np.random.default_rng(0).permutation(graph.num_nodes))
        other, place = relabel(graph, order)
        given = self.given(graph, settings)
        if self.features:
            moved = torch.empty_like(given["features"])
            moved[order] = given["features"]
            given["features"] = moved
        self.close(edge_scores(other, self.score, **given)[place], self.scores(graph, settings))

    def test_order_direction_and_duplicates_do_not_matter(self, graph: Graph, settings: Settings) -> None:
        """The same bits for every list of the same edges."""
        arcs = torch.cat((graph.pairs.flip(0), graph.pairs[:, ::2]), dim=1)
        weight = None if graph.weight is None else torch.cat((graph.weight, graph.weight[::2]))
        order = torch.randperm(arcs.shape[1], generator=torch.Generator().manual_seed(1))
        other = Graph.from_edge_index(arcs[:, order], graph.num_nodes, None if weight is None else weight[order])
        assert torch.equal(self.scores(other, settings), self.scores(graph, settings))

    def test_the_same_bits_each_time_from_the_cache_too(self, graph: Graph, settings: Settings, tmp_path: Path) -> None:
        """Nothing is random."""
        first = self.scores(graph, settings)
        for _ in range(2):
            assert torch.equal(self.scores(graph, settings), first)
            assert torch.equal(self.scores(graph, settings, cache_dir=tmp_path), first)

    def test_edge_weights(self, settings: Settings) -> None:
        """Weights of one are none; others matter where the score says so; zeros break nothing."""
        plain = clusters([8, 8, 8], 0.7, 0.05)
        expected = self.scores(plain, settings)
        ones = Graph.from_edge_index(plain.pairs, plain.num_nodes, torch.ones(plain.num_edges))
        self.close(self.scores(ones, settings), expected)
        changed = float((self.scores(weighted(plain), settings) - expected).abs().max())
        assert (changed > 1e-3) == self.weighted
        some = self.scores(weighted(plain, zeros=0.3), settings)
        assert bool((some >= 0).all() and some.isfinite().all())

    def test_components_do_not_influence_each_other(self, settings: Settings) -> None:
        """Graphs beside each other are scored as if each were alone."""
        alone = [two_cliques(5), cycle(9), path(6), complete(5), path(6)]
        given = dict(settings)
        if self.features:
            given["features"] = torch.cat([self.given(graph, settings)["features"] for graph in alone])
        together = edge_scores(union(*alone), self.score, **given)
        expected = torch.cat([self.scores(graph, settings) for graph in alone])
        if self.shifted:
            moved = (together - expected).split([graph.num_edges for graph in alone])
            expected = expected + torch.cat([by.mean().expand(len(by)) for by in moved])
            assert together.min() == 0
        self.close(together, expected)

    def test_by_name_and_by_function(self, settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
        """A function, a name that it is registered by, and a plain call of it are one."""
        graph = ZOO["karate"]
        expected, given = self.scores(graph, settings), self.given(graph, settings)
        function = SCORES[self.score] if isinstance(self.score, str) else self.score
        monkeypatch.setitem(SCORES, "another-name", function)
        for score in (function, "another-name"):
            assert torch.equal(edge_scores(graph, score, **given), expected)
        assert torch.equal(function(graph, **given).double(), expected)


class DenseScoreContract(ScoreContract):
    """For a score with a definition in dense linear algebra: ``reference(graph, **settings)``, ``[M]``."""

    reference: Callable[..., npt.NDArray[np.float64]]

    def test_the_dense_definition(self, graph: Graph, settings: Settings) -> None:
        """The score is what its definition says, on every graph of the zoo."""
        self.close(self.scores(graph, settings), self.reference(graph, **self.given(graph, settings)))
