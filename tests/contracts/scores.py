"""What every edge score must do."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from graphs import ZOO, clusters, complete, cycle, path, relabel, two_cliques, union, weighted
from torch_geometric.data import Data

from tadropedge import SCORES, Graph, TadropedgeError, edge_scores
from tadropedge.pyg import AddScore
from tadropedge.scores.solve import settings_for


@pytest.mark.filterwarnings("ignore::tadropedge.RepeatedEigenvalueWarning")
class ScoreContract:
    """Subclass it with ``score``, a name or ``staticmethod(function)``, and the settings to try it with.

    ``weighted``: whether the edge weights of a graph matter; ``features``: whether the score takes node features;
    ``shifted``: whether the scores of the whole graph are moved so that the smallest is 0, the only way in which one
    component may then see another.
    """

    score = "aggregate"
    variants = ({},)
    weighted = True
    features = False
    shifted = False
    tolerance = 1e-12

    def pytest_generate_tests(self, metafunc):
        if "graph" in metafunc.fixturenames:
            metafunc.parametrize("graph", ZOO.values(), ids=ZOO)
        if "settings" in metafunc.fixturenames:
            words = ["-".join(map(str, settings.values())) or "plain" for settings in self.variants]
            metafunc.parametrize("settings", self.variants, ids=words)

    def given(self, graph, settings):
        """The settings, with features that depend only on the place of a node."""
        if not self.features:
            return settings
        generator = torch.Generator().manual_seed(0)
        return {"features": torch.randn(graph.num_nodes, 3, generator=generator), **settings}

    def scores(self, graph, settings, **more):
        return edge_scores(graph, self.score, **self.given(graph, settings), **more)

    def test_one_finite_number_per_edge(self, graph, settings):
        scores = self.scores(graph, settings)
        assert (scores.shape, scores.dtype, scores.device) == ((graph.num_edges,), torch.float64, graph.device)
        assert bool((scores >= 0).all() and scores.isfinite().all())

    def test_on_every_device(self, device, settings):
        graph = ZOO["karate"]
        given = {name: _moved(value, device) for name, value in self.given(graph, settings).items()}
        there = edge_scores(graph.to(device), self.score, **given)
        assert there.device.type == device.type
        assert there.cpu().numpy() == pytest.approx(self.scores(graph, settings).numpy(), abs=self.tolerance)

    @pytest.mark.parametrize("seed", range(3))
    def test_names_of_nodes_do_not_matter(self, graph, settings, seed):
        order = torch.from_numpy(np.random.default_rng(seed).permutation(graph.num_nodes))
        other, place = relabel(graph, order)
        given = self.given(graph, settings)
        if self.features:
            moved = torch.empty_like(given["features"])
            moved[order] = given["features"]
            given = given | {"features": moved}
        theirs = edge_scores(other, self.score, **given)[place]
        assert theirs.numpy() == pytest.approx(self.scores(graph, settings).numpy(), abs=self.tolerance)

    def test_order_direction_and_duplicates_do_not_matter(self, graph, settings):
        arcs = torch.cat((graph.pairs.flip(0), graph.pairs[:, ::2]), dim=1)
        weight = None if graph.weight is None else torch.cat((graph.weight, graph.weight[::2]))
        order = torch.randperm(arcs.shape[1], generator=torch.Generator().manual_seed(1))
        other = Graph.from_edge_index(arcs[:, order], graph.num_nodes, None if weight is None else weight[order])
        assert torch.equal(self.scores(other, settings), self.scores(graph, settings))

    def test_the_same_bits_each_time_from_the_cache_too(self, graph, settings, tmp_path):
        first = self.scores(graph, settings)
        for _ in range(2):
            assert torch.equal(self.scores(graph, settings), first)
            assert torch.equal(self.scores(graph, settings, cache_dir=tmp_path), first)

    def test_edge_weights(self, settings):
        plain = clusters([8, 8, 8], 0.7, 0.05)
        ones = Graph.from_edge_index(plain.pairs, plain.num_nodes, torch.ones(plain.num_edges))
        expected = self.scores(plain, settings).numpy()
        assert self.scores(ones, settings).numpy() == pytest.approx(expected, abs=self.tolerance)
        changed = np.abs(self.scores(weighted(plain), settings).numpy() - expected).max()
        assert (changed > 1e-3) == self.weighted

    def test_components_do_not_influence_each_other(self, settings):
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
        assert together.numpy() == pytest.approx(expected.numpy(), abs=self.tolerance)

    def test_by_name_by_function_and_as_a_transform(self, settings, monkeypatch):
        graph = ZOO["karate"]
        expected = self.scores(graph, settings)
        function = SCORES[self.score] if isinstance(self.score, str) else self.score
        monkeypatch.setitem(SCORES, "another-name", function)
        given = self.given(graph, settings)
        for score in (function, "another-name"):
            assert torch.equal(edge_scores(graph, score, **given), expected)
            data = Data(edge_index=graph.pairs.flip(0), x=given.get("features"), num_nodes=graph.num_nodes)
            assert torch.equal(AddScore(score, **settings)(data).edge_score, expected)
        assert torch.equal(function(graph, **given).double(), expected)

    def test_a_score_picks_its_settings_from_an_offer(self, settings):
        given = self.given(ZOO["karate"], settings)
        assert settings_for(self.score, given | {"moon": "full"}) == given

    def test_bad_input(self, settings):
        for wrong, message in (
            ("cora", "expected a tadropedge.Graph, got str 'cora'; build one with"),
            (Graph.from_edge_index([[], []], 5), "5 nodes and no edges"),
        ):
            with pytest.raises(TadropedgeError, match=message):
                edge_scores(wrong, self.score, **settings)
        with pytest.raises(TadropedgeError, match=r"the score '.*' has no setting 'moon'"):
            self.scores(ZOO["karate"], settings | {"moon": "full"})
        with pytest.raises(TadropedgeError, match="device must be 'cpu' or 'cuda', got 'tpu'"):
            self.scores(ZOO["karate"], settings, device="tpu")


class DenseScoreContract(ScoreContract):
    """For a score with a definition in dense linear algebra: ``reference(graph, **settings)``."""

    def test_the_dense_definition(self, graph, settings):
        given = self.given(graph, settings)
        assert self.scores(graph, settings).numpy() == pytest.approx(self.reference(graph, **given), abs=1e-12)


def _moved(value, device):
    return value.to(device) if isinstance(value, torch.Tensor) else value
