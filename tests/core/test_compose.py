"""Scores made of scores: the contract of scores, dense references, settings, names, and where they may be used."""

import pickle

import dense
import numpy as np
import pytest
import torch
from scipy.stats import rankdata
from torch_geometric.data import Data

import tadropedge as tde
from tadropedge.pyg import DropEdge
from tadropedge.testing.graphs import clusters
from tadropedge.testing.scores import DenseScoreContract

GRAPH = clusters([12, 12], 0.5, 0.1)
X = torch.randn(24, 5, generator=torch.Generator().manual_seed(0))


def ranks(scores):
    return (rankdata(np.round(scores, 9)) - 0.5) / max(1, len(scores))


class TestRank(DenseScoreContract):
    score = staticmethod(tde.rank("jaccard"))
    weighted = False

    def reference(self, graph):
        return ranks(dense.jaccard(graph))

    @pytest.mark.skip(reason="a rank is that among all edges")
    def test_components_do_not_influence_each_other(self):
        pass


class TestBlend(TestRank):
    score = staticmethod(tde.blend("jaccard", tde.rank("common-neighbours"), 0.3))

    def reference(self, graph):
        return 0.3 * dense.jaccard(graph) + 0.7 * ranks(dense.common_neighbours(graph))


def test_a_score_made_of_scores_takes_the_settings_of_all():
    both = tde.blend("cosine", tde.rank("aggregate"))
    found = tde.edge_scores(GRAPH, both, features=X, q=2)
    wanted = dense.cosine(GRAPH, X) / 2 + ranks(dense.aggregate_resistance(GRAPH, 2)) / 2
    assert found.numpy() == pytest.approx(wanted, abs=1e-8)
    with pytest.raises(tde.TadropedgeError, match="requires features"):
        tde.edge_scores(GRAPH, both)
    with pytest.raises(tde.TadropedgeError, match="p"):
        tde.edge_scores(GRAPH, both, features=X, p=2)


def test_it_is_a_score_wherever_there_is_one(monkeypatch):
    both = tde.blend(tde.rank("degree"), "cosine")
    dropping = tde.Dropping(score=both, rule="proportional", keep_ratio=0.5)
    assert str(dropping) == "blend(rank(degree), cosine, 0.5)-proportional@0.5"
    data = Data(X, torch.cat((GRAPH.pairs, GRAPH.pairs.flip(0)), 1))
    assert DropEdge(dropping, seed=1)(data).num_edges < data.num_edges
    again = pickle.loads(pickle.dumps(both))
    assert torch.equal(again(GRAPH, features=X), both(GRAPH, features=X))
    assert again == both != tde.blend(tde.rank("degree"), "cosine", 0.4)
    monkeypatch.setitem(tde.SCORES, "both", both)
    named = tde.Dropping.parse("both-proportional@0.5").plan(GRAPH, features=X)
    assert torch.equal(named.prob, dropping.plan(GRAPH, features=X).prob)


def test_what_is_no_score_is_refused():
    with pytest.raises(tde.TadropedgeError, match="degre"):
        tde.rank("degre")
    with pytest.raises(tde.TadropedgeError, match="share"):
        tde.blend("degree", "jaccard", 1.5)
