"""Data with edges added at random or features hidden: nothing else changes, and a seed decides."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
import torch
from dense import adjacency

from tadropedge import Graph, TadropedgeError
from tadropedge.data import Conditions, conditioned, load_clusters, load_dataset, load_karate
from tadropedge.data.conditions import hidden_nodes, random_pairs, with_random_edges
from tadropedge.training.laboratory import data_fingerprints

KARATE = load_karate()


def test_the_pairs_that_a_seed_draws_never_change():
    assert random_pairs(KARATE.graph, 6, 0).tolist() == [[9, 21, 17, 0, 10, 1], [28, 27, 22, 9, 13, 29]]
    assert random_pairs(KARATE.graph, 4, 7).tolist() == [[4, 21, 4, 15], [32, 27, 23, 30]]


def test_random_edges_are_uniform_over_the_pairs_that_have_none():
    graph, seen = Graph.from_edge_index([[0, 1, 2], [1, 2, 3]], num_nodes=4), np.zeros((4, 4))
    for seed in range(3000):
        low, high = with_random_edges(graph, 1 / 3, seed).pairs.numpy()
        seen[low, high] += 1
    assert seen[0, 1] == seen[1, 2] == seen[2, 3] == 3000
    for pair in ((0, 2), (0, 3), (1, 3)):
        assert seen[pair] == pytest.approx(1000, abs=5 * (3000 * 2 / 9) ** 0.5)  # five deviations


@pytest.mark.parametrize("share", [0.25, 1.0, 2.5])
def test_edges_are_added_where_there_were_none(share, device):
    data = load_clusters(clusters=3, nodes=12).to(device)
    made = conditioned(data, Conditions(add_edges=share, seed=4))
    before, after = (adjacency(one.graph.to("cpu")) > 0 for one in (data, made))
    assert bool((after | ~before).all())  # all that were there are
    assert made.graph.num_edges == data.graph.num_edges + round(share * data.graph.num_edges)
    assert made.device == data.device
    assert made.name == f"clusters+{100 * share:g}%edges"
    assert made.features is data.features
    assert made.split is data.split
    again = conditioned(data, Conditions(add_edges=share, seed=4))
    other = conditioned(data, Conditions(add_edges=share, seed=5))
    assert made.graph.fingerprint == again.graph.fingerprint != other.graph.fingerprint


def test_added_edges_have_the_mean_weight_and_names_stay():
    named = Graph.from_edge_index([[0, 1, 2, 3, 4], [1, 2, 3, 4, 5]], edge_weight=[1.0, 2.0, 3.0, 4.0, 5.0])
    named = Graph(named.pairs, 6, named.weight, node_ids=tuple("abcdef"))
    made = with_random_edges(named, 0.4)
    assert made.node_ids == named.node_ids
    assert sorted(made.weight.tolist()) == [1.0, 2.0, 3.0, 3.0, 3.0, 4.0, 5.0]


@pytest.mark.parametrize("layout", [torch.strided, torch.sparse_csr])
@pytest.mark.parametrize("share", [0.2, 0.5, 0.999])
def test_rows_are_hidden_and_nothing_else(share, layout, device):
    data = load_clusters(clusters=3, nodes=12)
    features = data.features if layout is torch.strided else data.features.to_sparse_csr()
    data = replace(data, features=features)
    made = conditioned(data.to(device), Conditions(hide_features=share, seed=2))
    assert made.features.layout is layout
    zero = (made.features.to_dense() == 0).all(dim=1).cpu()
    assert zero.nonzero()[:, 0].tolist() == hidden_nodes(36, share, 2).tolist()
    assert int(zero.sum()) == min(35, round(share * 36))
    assert torch.equal(made.features.to_dense().cpu()[~zero], features.to_dense()[~zero])
    assert made.graph.fingerprint == data.graph.fingerprint


def test_hidden_nodes_are_nested_and_not_those_of_a_split():
    orders = [set(hidden_nodes(100, share, 3).tolist()) for share in (0.1, 0.5, 0.8, 1.0)]
    assert [len(order) for order in orders] == [10, 50, 80, 100]
    assert all(one < two for one, two in pairwise(orders))
    drawn = np.random.default_rng(3).permutation(100)[:50]  # as a split of this seed would draw them
    assert 10 < len(orders[1] & set(drawn.tolist())) < 40


def test_where_all_are_hidden_every_node_has_a_feature_of_its_own():
    data = load_clusters(clusters=3, nodes=12)
    made = conditioned(data, Conditions(hide_features=1.0))
    assert made.features.layout is torch.sparse_csr
    assert torch.equal(made.features.to_dense(), torch.eye(36))
    assert (made.name, made.num_features) == ("clusters+100%hidden", 36)


def test_without_conditions_the_data_is_the_same_object():
    assert conditioned(KARATE, Conditions(seed=9)) is KARATE
    both = conditioned(KARATE, Conditions(add_edges=0.5, hide_features=0.5))
    before, after = data_fingerprints(KARATE), data_fingerprints(both)
    assert {name for name in before if before[name] != after[name]} == {"graph", "features"}


def test_a_condition_that_cannot_be_met_is_refused(tmp_path):
    (tmp_path / "trust.csv").write_text("a,b,trust\n1,2,1\n2,3,1\n3,4,1\n4,1,1\n")
    (tmp_path / "nodes.csv").write_text("1,0.5,a\n2,0.5,b\n3,0.1,a\n4,0.2,b\n")
    column = load_dataset(tmp_path / "trust.csv", nodes=tmp_path / "nodes.csv", per_class=1, score_column="trust")
    signals = load_dataset("source-localization", nodes=10, communities=2, sizes=(6, 4, 4), times=2)
    for data, asked, message in (
        (column, {"add_edges": 0.5}, "add_edges=0.5 cannot be used with a score_column"),
        (
            signals,
            {"hide_features": 0.5},
            "hide_features=0.5 is for node-level data",
        ),
        (KARATE, {"add_edges": 99}, "add_edges=99: 34 nodes have no room for 7722 more edges, got 78 already"),
    ):
        with pytest.raises(TadropedgeError, match=message):
            conditioned(data, Conditions(**asked))
    assert torch.equal(conditioned(column, Conditions(hide_features=0.5)).score_column, column.score_column)
    for asked, message in (
        ({"add_edges": -1}, r"add_edges must lie in \[0, 1e\+06\], got -1"),
        ({"hide_features": 1.5}, r"hide_features must lie in \[0, 1\], got 1.5"),
        ({"seed": -1}, "seed must be a whole number"),
    ):
        with pytest.raises(TadropedgeError, match=message):
            Conditions(**asked)
