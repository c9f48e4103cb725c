import networkx as nx
import numpy as np
import scipy.sparse as sp
import torch
from torch_geometric.datasets import KarateClub

from tadropedge import Graph
from tadropedge.data.synthetic import load_clusters, load_karate


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
