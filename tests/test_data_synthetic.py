import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
import torch
from torch_geometric.datasets import KarateClub

from tadropedge import Graph, edge_scores
from tadropedge.data.planar import along, gabriel_edges, load_grid, load_roads
from tadropedge.data.synthetic import load_clusters, load_karate, load_noisy_clusters


def test_karate_is_the_one_everybody_has():
    dataset = load_karate()
    network = nx.karate_club_graph()
    assert Graph.from_networkx(network, weight=None).fingerprint == dataset.graph.fingerprint
    theirs = KarateClub()[0]
    assert torch.equal(dataset.labels, theirs.y)
    assert torch.equal(dataset.features, theirs.x)


def test_two_members_of_each_community_train():
    one = load_karate()
    assert torch.bincount(one.labels[one.split.train]).tolist() == [2, 2, 2, 2]


def linear_accuracy(dataset, hops):
    """Ridge regression on features averaged over ``hops`` steps of the normalised graph with self-loops."""
    A = dataset.graph.adjacency() + sp.identity(dataset.graph.num_nodes)
    scale = sp.diags(np.asarray(A.sum(axis=1)).ravel() ** -0.5)
    x = dataset.features.double().numpy()
    for _ in range(hops):
        x = scale @ A @ scale @ x
    x = np.c_[x, np.ones(len(x))]
    y, train, test = dataset.labels.numpy(), dataset.split.train.numpy(), dataset.split.test.numpy()
    targets = np.eye(dataset.num_classes)[y]
    weights = np.linalg.solve(x[train].T @ x[train] + 0.1 * np.eye(x.shape[1]), x[train].T @ targets[train])
    return np.mean((x[test] @ weights).argmax(axis=1) == y[test])


def test_clusters_are_neither_trivial_nor_hopeless():
    datasets = [load_clusters(seed) for seed in range(10)]
    alone, together = (np.mean([linear_accuracy(data, hops) for data in datasets]) for hops in (0, 2))
    assert round(alone, 2) == 0.31  # the numbers in the docstring
    assert round(together, 2) == 0.81


def test_the_shape_of_clusters():
    dataset = load_clusters(0, clusters=3, nodes=10, features=4, inside=1.0, between=0.0, per_class=2)
    assert dataset.graph.num_edges == 3 * 45
    assert dataset.features.shape == (30, 4)
    assert dataset.split.sizes == (6, 8, 16)
    exact = load_clusters(0, noise=0.0).features
    assert exact.unique(dim=0).shape[0] == 4
    assert torch.allclose(exact.norm(dim=1), torch.ones(240))


def test_noisy_clusters_are_whole_clusters_and_as_many_random_edges_as_asked_for():
    plain, noisy = (load_noisy_clusters(3, 2, 12, clusters=3, inside=0.6, noise=noise) for noise in (0.0, 1.5))
    before, after = ({*map(tuple, data.graph.pairs.T.tolist())} for data in (plain, noisy))
    assert all(u // 12 == v // 12 for u, v in before)
    assert before < after
    assert len(after) == len(before) + round(1.5 * len(before))
    assert plain.labels.tolist() == [0] * 36 + [1] * 36


def test_features_of_noisy_clusters_are_blurred_signs_of_their_class():
    exact, blurred = (load_noisy_clusters(1, blur=blur, features=400).features for blur in (0.0, 3.0))
    assert exact.abs().unique().tolist() == [1.0]
    assert exact.unique(dim=0).shape[0] == 4
    noise = (blurred - exact).double()
    assert float(noise.std()) == pytest.approx(3.0, rel=0.02)  # 128,000 numbers
    assert abs(float(noise.mean())) < 0.05


def test_shared_neighbours_tell_random_edges_from_those_of_clusters():
    data = load_noisy_clusters(nodes=10)
    random = data.graph.pairs[0] // 10 != data.graph.pairs[1] // 10
    scores = edge_scores(data.graph, "jaccard")
    assert (scores[~random][:, None] > scores[random]).double().mean() > 0.97  # the area under the ROC curve


def test_a_grid_is_the_product_of_two_paths():
    ours = load_grid(side=12, classes=3, regions=6, per_class=5).graph
    theirs = nx.convert_node_labels_to_integers(nx.grid_2d_graph(12, 12), ordering="sorted")
    assert Graph.from_networkx(theirs).fingerprint == ours.fingerprint


def test_gabriel_edges_have_no_other_point_in_their_circle():
    place = np.random.default_rng(1).random((40, 2))
    low, high = np.triu_indices(40, 1)
    middle, radius = (place[low] + place[high]) / 2, np.linalg.norm(place[low] - place[high], axis=1) / 2
    gap = np.linalg.norm(middle[:, None] - place, axis=2)
    gap[np.arange(len(low)), low] = gap[np.arange(len(low)), high] = np.inf
    empty = gap.min(axis=1) > radius
    assert {*map(tuple, gabriel_edges(place).T.tolist())} == {
        *zip(low[empty].tolist(), high[empty].tolist(), strict=True)
    }


def test_roads_are_planar_connected_and_sparse():
    for seed in range(3):
        graph = load_roads(seed, 300, 3, regions=6).graph
        assert nx.check_planarity(nx.Graph(graph.pairs.T.tolist()))[0]
        assert graph.components.count == 1
        assert (graph.num_nodes, graph.num_edges) == (300, 120 * 3 // 2 + 180)
        assert int((torch.bincount(graph.pairs.ravel()) == 2).sum()) >= 180  # chains between junctions


def test_nodes_along_a_road_cut_it_into_equal_parts():
    pairs, place = along(np.array([[0], [1]]), np.array([[0.0, 0.0], [4.0, 0.0]]), 5)
    assert pairs.tolist() == [[0, 2, 3, 4], [2, 3, 4, 1]]
    assert place[2:].tolist() == [[1.0, 0.0], [2.0, 0.0], [3.0, 0.0]]


@pytest.mark.parametrize("load", [load_grid, load_roads])
def test_regions_need_the_graph(load):
    """A node alone says little, its neighbourhood far more; labels are those of regions of the plane."""
    datasets = [load(seed) for seed in range(3)]
    alone, together = (np.mean([linear_accuracy(data, hops) for data in datasets]) for hops in (0, 2))
    assert alone < 0.4
    assert 0.6 < together < 0.9
    for data in datasets:
        low, high = data.graph.pairs
        assert (data.labels[low] == data.labels[high]).double().mean() > 0.85
