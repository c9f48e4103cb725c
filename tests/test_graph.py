import dataclasses

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
import torch
from graphs import ZOO, edge_lists, weighted
from hypothesis import given
from torch_geometric.data import Data, HeteroData

from tadropedge import Graph, TadropedgeError


@given(edge_lists())
def test_simple_sorted_and_the_way_back(case):
    arcs, n = case
    graph = Graph.from_edge_index(arcs, n)
    expected = sorted({(min(i, j), max(i, j)) for i, j in arcs.T.tolist() if i != j})
    assert graph.pairs.T.tolist() == [list(pair) for pair in expected]
    assert graph.num_nodes == n
    for arc, pair in zip(arcs.T.tolist(), graph.arc_pair.tolist(), strict=True):
        assert pair == -1 if arc[0] == arc[1] else graph.pairs[:, pair].tolist() == sorted(arc)


@given(edge_lists())
def test_components_are_networkx_components(case):
    arcs, n = case
    graph = Graph.from_edge_index(arcs, n)
    reference = nx.Graph()
    reference.add_nodes_from(range(n))
    reference.add_edges_from(arcs.T.tolist())
    expected = sorted(nx.connected_components(reference), key=min)
    components = graph.components
    assert components.count == len(expected)
    assert components.sizes.tolist() == [len(part) for part in expected]
    for label, part in enumerate(expected):
        assert set(torch.nonzero(components.labels == label).flatten().tolist()) == part
    assert components.num_isolated == sum(len(part) == 1 for part in expected)
    assert components.largest == max(len(part) for part in expected)


@pytest.mark.parametrize("name", ZOO)
def test_every_input_gives_the_same_graph(name, tmp_path):
    graph = ZOO[name]
    both = torch.cat((graph.pairs, graph.pairs.flip(0)), dim=1)
    weight = None if graph.weight is None else graph.weight.repeat(2)
    data = Data(edge_index=both, num_nodes=graph.num_nodes, edge_weight=weight)
    network = nx.Graph()
    network.add_nodes_from(range(graph.num_nodes))
    for place, (i, j) in enumerate(graph.pairs.T.tolist()):
        network.add_edge(i, j, weight=1.0 if graph.weight is None else float(graph.weight[place]))
    arrays = {"edge_index": both.numpy(), "num_nodes": np.array(graph.num_nodes)}
    if weight is not None:
        arrays["edge_weight"] = weight.numpy()
    np.savez(tmp_path / "graph.npz", **arrays)
    sp.save_npz(tmp_path / "matrix.npz", graph.adjacency())
    others = [
        Graph.from_edge_index(both, graph.num_nodes, weight),
        Graph.from_data(data),
        Graph.from_scipy(graph.adjacency()),
        Graph.from_scipy(sp.triu(graph.adjacency())),
        Graph.from_scipy(sp.coo_array(graph.adjacency())),
        Graph.from_networkx(network),
        Graph.from_networkx(network.to_directed()),
        Graph.from_file(tmp_path / "graph.npz"),
        Graph.from_file(tmp_path / "matrix.npz"),
    ]
    for other in others:
        assert other.fingerprint == graph.fingerprint
        assert torch.equal(other.pairs, graph.pairs)


def test_an_edge_listed_twice_is_the_same_edge():
    once = Graph.from_edge_index([[0, 1], [1, 2]], edge_weight=[2.0, 3.0])
    twice = Graph.from_edge_index([[0, 1, 2, 1, 0], [1, 0, 1, 2, 0]], edge_weight=[2.0, 2.0, 3.0, 3.0, 9.0])
    assert twice.fingerprint == once.fingerprint
    assert Graph.from_edge_index([[0, 1], [1, 0]], edge_weight=[1.0, 3.0]).weight.tolist() == [2.0]


def test_weights_of_one_are_no_weights():
    assert Graph.from_edge_index([[0], [1]], edge_weight=[1.0]).weight is None
    assert Graph.from_edge_index([[0], [1]], edge_weight=torch.tensor([[5.0]])).weight.tolist() == [5.0]


def test_scipy_sums_duplicates_and_drops_stored_zeros():
    matrix = sp.coo_matrix(([1.0, 2.0, 0.0], ([0, 0, 1], [1, 1, 2])), shape=(3, 3))
    graph = Graph.from_scipy(matrix)
    assert graph.pairs.tolist() == [[0], [1]]
    assert graph.weight.tolist() == [3.0]
    assert matrix.nnz == 3  # the input is left alone


def test_networkx_numbers_nodes_in_iteration_order():
    network = nx.MultiDiGraph([("c", "a"), ("a", "c"), ("a", "b"), ("b", "b")])
    graph = Graph.from_networkx(network)
    assert graph.node_ids == ("c", "a", "b")
    assert graph.node_index == {"c": 0, "a": 1, "b": 2}
    assert graph.pairs.tolist() == [[0, 1], [1, 2]]
    assert graph.arc_pair.tolist() == [0, 0, 1, -1]
    assert Graph.from_networkx(network, weight=None).fingerprint == graph.fingerprint


def test_data_weight_attribute_can_be_chosen_or_ignored():
    data = Data(edge_index=torch.tensor([[0, 1], [1, 0]]), edge_weight=torch.tensor([2.0, 2.0]), num_nodes=2)
    data.strength = torch.tensor([7.0, 7.0])
    assert Graph.from_data(data).weight.tolist() == [2.0]
    assert Graph.from_data(data, weight="strength").weight.tolist() == [7.0]
    assert Graph.from_data(data, weight=None).weight is None


def test_per_arc_values_line_up():
    graph = Graph.from_edge_index([[2, 0, 1, 1, 0], [1, 1, 1, 2, 1]])
    assert graph.to_arcs(torch.tensor([10.0, 20.0]), loops=-1.0).tolist() == [20.0, 10.0, -1.0, 20.0, 10.0]
    masks = torch.tensor([[True, False], [False, True]])
    assert graph.to_arcs(masks, loops=True).tolist() == [
        [False, True, True, False, True],
        [True, False, True, True, False],
    ]


def test_frozen_and_moved(device):
    graph = weighted(ZOO["karate"])
    with pytest.raises(dataclasses.FrozenInstanceError):
        graph.num_nodes = 3
    moved = graph.to(device)
    assert moved.pairs.device.type == device.type
    assert moved.components.labels.device.type == device.type
    assert moved.fingerprint == graph.fingerprint
    assert repr(graph) == "Graph(num_nodes=34, num_edges=78, weighted)"


def test_fingerprint_tells_graphs_apart():
    prints = {graph.fingerprint for graph in ZOO.values()}
    assert len(prints) == len(ZOO)
    assert weighted(ZOO["karate"]).fingerprint != ZOO["karate"].fingerprint


def test_pattern_is_sorted_csr_with_the_diagonal():
    graph = ZOO["parts"]
    pattern = graph.pattern
    dense = torch.zeros(graph.num_nodes, graph.num_nodes)
    dense[pattern.row, pattern.col.long()] = 1
    assert torch.equal(dense, torch.from_numpy(graph.adjacency().toarray()).float() + torch.eye(graph.num_nodes))
    key = pattern.row * graph.num_nodes + pattern.col
    assert bool((key.diff() > 0).all())
    assert torch.equal(pattern.row[pattern.places.turned[1]], pattern.col.long())
    assert pattern.num_entries == 2 * graph.num_edges + graph.num_nodes


def test_numpy_views_of_any_order_are_arcs():
    arcs = np.array([[0, 1, 2], [1, 2, 3]])
    frozen = arcs.copy()
    frozen.flags.writeable = False
    for view in (arcs[:, ::-1], arcs[::-1], arcs.astype(">i8"), frozen, arcs.tolist()):
        assert Graph.from_edge_index(view).pairs.tolist() == arcs.tolist()


def test_equal_weights_have_an_exact_mean():
    thrice = Graph.from_edge_index([[0, 1, 0], [1, 0, 1]], edge_weight=[0.1, 0.1, 0.1])
    assert thrice.fingerprint == Graph.from_edge_index([[0], [1]], edge_weight=[0.1]).fingerprint
    assert Graph.from_edge_index([[0, 1], [1, 0]], edge_weight=[1.7e308, 1.6e308]).weight.isfinite().all()


BAD = {
    "too many nodes": (
        lambda: Graph.from_edge_index([[2**62], [2**62 + 1]]),
        "up to 3037000499 nodes, got num_nodes=46116",
    ),
    "num_nodes word": (lambda: Graph.from_edge_index([[0], [1]], "4"), "num_nodes must be a whole number, got '4'"),
    "num_nodes half": (lambda: Graph.from_edge_index([[0], [1]], 2.5), "num_nodes must be a whole number, got 2.5"),
    "complex weights": (lambda: Graph.from_edge_index([[0], [1]], None, [1j]), "edge_weight must be real numbers"),
    "unsorted pairs": (lambda: Graph(torch.tensor([[5], [0]]), 3), "pairs must be sorted, with"),
    "array for a tensor": (lambda: ZOO["path"].to_arcs(np.ones(8)), "values must be a tensor, got ndarray"),
    "not an edge_index": (lambda: Graph.from_edge_index("cora"), "got str 'cora'"),
    "not numbers": (lambda: Graph.from_edge_index([["a"], ["b"]]), "edge_index must be real numbers"),
    "wrong shape": (lambda: Graph.from_edge_index(torch.zeros(3, 4, dtype=torch.long)), r"got shape \[3, 4\]"),
    "floats": (lambda: Graph.from_edge_index(torch.rand(2, 3)), "whole numbers, got dtype torch.float32"),
    "negative id": (lambda: Graph.from_edge_index([[0, -4], [1, 1]]), "negative node id -4"),
    "id out of range": (lambda: Graph.from_edge_index([[0, 9], [1, 1]], 5), "node id 9, but num_nodes=5: .* 0 to 4"),
    "empty graph": (lambda: Graph.from_edge_index(torch.empty(2, 0, dtype=torch.long)), "empty graph: num_nodes is 0"),
    "no nodes": (lambda: Graph.from_networkx(nx.Graph()), "empty graph"),
    "NaN weight": (lambda: Graph.from_edge_index([[0], [1]], None, [float("nan")]), "positive and finite, got nan"),
    "negative weight": (lambda: Graph.from_edge_index([[0, 1], [1, 2]], None, [1, -2]), r"got -2.0 at position 1"),
    "zero weight": (lambda: Graph.from_edge_index([[0], [1]], None, [0.0]), "got 0.0 at position 0"),
    "weights that are words": (
        lambda: Graph.from_edge_index([[0], [1]], None, ["x"]),
        "edge_weight must be real numbers",
    ),
    "too many weights": (lambda: Graph.from_edge_index([[0], [1]], None, [1, 2]), r"shape \[2\], but .* 1 arcs"),
    "not a Data": (lambda: Graph.from_data({"x": 1}), "homogeneous torch_geometric Data"),
    "hetero": (lambda: Graph.from_data(HeteroData()), "homogeneous torch_geometric Data"),
    "not sparse": (lambda: Graph.from_scipy(np.eye(3)), "expected a SciPy sparse matrix, got ndarray"),
    "not square": (lambda: Graph.from_scipy(sp.csr_matrix((2, 3))), r"must be square, got shape \(2, 3\)"),
    "complex": (lambda: Graph.from_scipy(sp.csr_matrix(np.eye(2) * 1j)), "must be real, got a matrix of complex128"),
    "not networkx": (lambda: Graph.from_networkx([1, 2]), r"expected a NetworkX graph, got list \[1, 2\]"),
    "values of wrong length": (
        lambda: ZOO["path"].to_arcs(torch.ones(3)),
        r"8 entries .* one for each edge of the graph, got shape \[3\]",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input(name):
    call, message = BAD[name]
    with pytest.raises(TadropedgeError, match=message):
        call()


def test_wrong_device():
    if not torch.cuda.is_available():
        pytest.skip("no CUDA device")
    with pytest.raises(TadropedgeError, match="edge_weight is on cpu, but edge_index is on cuda:0"):
        Graph.from_edge_index(torch.tensor([[0], [1]], device="cuda"), edge_weight=torch.ones(1))


def test_wrong_device_without_a_gpu():
    meta = torch.empty(8, device="meta")
    with pytest.raises(TadropedgeError, match=r"values must be a dense tensor .* on meta"):
        ZOO["path"].to_arcs(meta)
