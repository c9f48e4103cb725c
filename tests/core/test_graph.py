"""The graph and its constructors."""

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch_geometric.data import Data

from tadropedge import Graph, TadropedgeError, graph
from tadropedge.testing.graphs import ZOO

ARCS = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=40)


@given(ARCS, st.data())
def test_a_graph_is_the_set_of_its_edges(arcs, data):
    """Pairs in order, listed once; the weight of an edge is the mean of its arcs; components as NetworkX has them."""
    edge_index = torch.tensor(arcs, dtype=torch.int64).reshape(-1, 2).T
    weight = data.draw(st.none() | st.lists(st.floats(0.1, 9), min_size=len(arcs), max_size=len(arcs)))
    found = Graph.from_edge_index(edge_index, 10, weight)
    listed = [tuple(sorted(arc)) for arc in arcs]
    pairs = sorted({pair for pair in listed if pair[0] < pair[1]})
    assert [*map(tuple, found.pairs.T.tolist())] == pairs
    assert found.arc_pair.tolist() == [pairs.index(pair) if pair in pairs else -1 for pair in listed]
    if not weight or not pairs:
        assert found.weight is None
    else:
        means = [np.mean([w for w, other in zip(weight, listed, strict=True) if other == pair]) for pair in pairs]
        assert found.weight.tolist() == pytest.approx(means)
    known = nx.Graph(pairs)
    known.add_nodes_from(range(10))
    parts = sorted(map(sorted, nx.connected_components(known)))
    labels = found.components.labels
    assert [(labels == label).nonzero()[:, 0].tolist() for label in range(found.components.count)] == parts


@given(ARCS)
def test_lists_too_long_to_be_looked_at_at_once_are_the_same_graph(arcs):
    edge_index = torch.tensor(arcs, dtype=torch.int64).reshape(-1, 2).T
    expected = Graph.from_edge_index(edge_index, 10)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(graph, "PIECE", 3)
        found = Graph.from_edge_index(edge_index, 10)
    assert torch.equal(found.pairs, expected.pairs)
    assert torch.equal(found.arc_pair, expected.arc_pair)


def test_the_mean_of_equal_weights_is_that_weight_to_the_last_bit():
    listed_often = Graph.from_edge_index([[0, 1] * 3, [1, 0] * 3], 2, [0.1] * 6)
    assert listed_often.weight.tolist() == [0.1]  # six sixths of it are less


def test_all_inputs_are_one_graph():
    """Listed twice, as a matrix, as NetworkX and as a Data: the same nodes, pairs, weights and fingerprint."""
    arcs = torch.tensor([[0, 1, 2, 0, 2, 3], [1, 0, 0, 2, 2, 1]])
    weight = torch.tensor([1.0, 3.0, 5.0, 5.0, 9.0, 0.0])
    graph = Graph.from_edge_index(arcs, 5, weight)
    assert graph.pairs.tolist() == [[0, 0, 1], [1, 2, 3]]
    assert graph.weight.tolist() == [2.0, 5.0, 0.0]
    nxg = nx.Graph()
    nxg.add_nodes_from(range(5))
    nxg.add_weighted_edges_from([(0, 1, 2.0), (0, 2, 5.0), (3, 1, 0.0)])
    for other in (
        Graph.from_data(Data(edge_index=arcs, edge_weight=weight, num_nodes=5)),
        Graph.from_networkx(nxg),
        Graph.from_edge_index(arcs.numpy().astype(np.int32), 5, weight.tolist()),
    ):
        assert other.fingerprint == graph.fingerprint
    assert Graph.from_data(Data(edge_index=arcs, edge_weight=weight, num_nodes=5), weight=None).weight is None
    assert Graph.from_edge_index(arcs, 5).fingerprint != graph.fingerprint


@pytest.mark.parametrize("layout", ["csr", "csc", "coo", "lil", "dok", "bsr", "dia"])
def test_matrices_of_every_layout(layout):
    graph = ZOO["weighted"]
    matrix = graph.adjacency()
    found = Graph.from_scipy(matrix.asformat(layout))
    assert torch.equal(found.pairs, graph.pairs)
    assert torch.allclose(found.weight, graph.weight)
    assert (matrix != graph.adjacency()).nnz == 0  # not changed


def test_stored_zeros_of_a_matrix_are_no_edges_and_repeated_entries_are_summed():
    matrix = sp.coo_matrix(([1.0, 2.0, 0.0], ([0, 0, 1], [1, 1, 2])), (3, 3))
    graph = Graph.from_scipy(matrix)
    assert graph.pairs.tolist() == [[0], [1]]
    assert graph.weight.tolist() == [3.0]


def test_malformed_matrices_are_refused_before_compiled_code_reads_them():
    for indices, indptr in (([0, 7], [0, 1, 2]), ([0, 1], [0, 9, 2]), ([0, 1], [0, 2, 1]), ([-1, 1], [0, 1, 2])):
        matrix = sp.csr_matrix((2, 2))
        matrix.data, matrix.indices, matrix.indptr = np.ones(2), np.array(indices), np.array(indptr)
        with pytest.raises(TadropedgeError, match="malformed"):
            Graph.from_scipy(matrix)


def test_names_of_nodes_are_kept():
    graph = Graph.from_networkx(nx.Graph([("b", "a"), ("a", "c")]))
    assert graph.node_ids == ("b", "a", "c")
    assert graph.pairs.tolist() == [[0, 1], [1, 2]]


def test_from_arcs_to_pairs_and_back():
    graph = ZOO["listed-twice"]
    values = torch.arange(graph.num_edges).double()
    spread = graph.to_arcs(values, loops=-1.0)
    assert bool((spread[graph.arc_pair < 0] == -1).all())
    assert torch.equal(graph.to_pairs(spread), values)
    assert torch.equal(graph.to_arcs(torch.stack((values, values)))[1], graph.to_arcs(values))
    assert graph.to_arcs(values > 3, loops=True).dtype == torch.bool
    if graph.num_edges != len(graph.arc_pair):
        assert torch.equal(graph.to_pairs(values), values)
    with pytest.raises(TadropedgeError, match="trust"):
        graph.to_pairs([1.0], "trust")


@pytest.mark.parametrize(
    ("arcs", "nodes", "weight", "words"),
    [
        ([[0, 1]], None, None, r"\[2, A\]"),
        ([[0.5], [1]], None, None, "whole numbers"),
        ("edges", None, None, "edge_index"),
        ([[0], [-1]], None, None, "negative node id"),
        ([[0], [5]], 3, None, "num_nodes=3"),
        ([[], []], None, None, "empty"),
        ([[0], [1]], 0, None, "num_nodes"),
        ([[0], [1]], 10**10, None, "num_nodes"),
        ([[0], [1]], 2, [1.0, 2.0], "1 arcs"),
        ([[0], [1]], 2, [-1.0], "-1.* at position 0; .*abs"),
        ([[0], [1]], 2, [float("nan")], "finite"),
        ([[0], [1]], 2, [float("inf")], "finite"),
        ([[0], [1]], 2, ["a"], "edge_weight"),
    ],
)
def test_bad_input_is_one_line(arcs, nodes, weight, words):
    with pytest.raises(TadropedgeError, match=words) as caught:
        Graph.from_edge_index(arcs, nodes, weight)
    assert "\n" not in str(caught.value)


def test_what_is_no_graph():
    with pytest.raises(TadropedgeError, match="SciPy"):
        Graph.from_scipy(np.eye(2))
    with pytest.raises(TadropedgeError, match="square"):
        Graph.from_scipy(sp.csr_matrix((2, 3)))
    with pytest.raises(TadropedgeError, match="real"):
        Graph.from_scipy(sp.csr_matrix(np.eye(2) * 1j))
    with pytest.raises(TadropedgeError, match="NetworkX"):
        Graph.from_networkx([1])
    with pytest.raises(TadropedgeError, match="edge_index"):
        Graph.from_data(object())
