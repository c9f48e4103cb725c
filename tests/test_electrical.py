import dense
import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
import torch
from graphs import ZOO, complete, cycle, edge_lists, of, path, relabel, union
from hypothesis import given, settings

from tadropedge import (
    ConvergenceError,
    Graph,
    NotEnoughMemoryError,
    TadropedgeError,
    effective_resistance,
    electrical,
    memory,
)
from tadropedge.bridges import bridges
from tadropedge.electrical import ConjugateGradients, laplacian_solver


@settings(deadline=None)
@given(edge_lists())
def test_bridges_are_networkx_bridges(case):
    arcs, n = case
    graph = Graph.from_edge_index(arcs, n)
    network = nx.Graph(graph.pairs.T.tolist())
    expected = {tuple(sorted(edge)) for edge in nx.bridges(network)}
    assert {tuple(edge) for edge in graph.pairs[:, bridges(graph)].T.tolist()} == expected


@pytest.mark.parametrize("name", [name for name, graph in ZOO.items() if graph.weight is None])
def test_sum_is_nodes_minus_components_and_bridges_are_one(name):
    graph = ZOO[name]
    ours = effective_resistance(graph)
    assert float(ours.sum()) == pytest.approx(graph.num_nodes - graph.components.count)
    cut = bridges(graph)
    assert ours[cut].tolist() == [1.0] * int(cut.sum())
    assert bool((ours[~cut] < 1).all())


def test_closed_forms():
    assert effective_resistance(path(7)).tolist() == [1.0] * 6
    assert effective_resistance(cycle(8)).numpy() == pytest.approx(7 / 8)
    assert effective_resistance(complete(9)).numpy() == pytest.approx(2 / 9)
    parallel = Graph.from_edge_index([[0, 1, 0], [1, 2, 2]], edge_weight=[1.0, 2.0, 4.0])
    # 1 and 2 in series are 2/3, beside 4: the edge of weight 4 sees 1 / (4 + 2/3)
    assert float(effective_resistance(parallel)[1]) == pytest.approx(1 / (4 + 2 / 3))


@pytest.fixture(scope="module")
def large():
    """A random graph of 800 nodes, above the size that a sketch still inverts, with a few bridges."""
    graph = of(nx.gnm_random_graph(800, 2400, seed=1))
    return union(graph, path(4))


@pytest.mark.parametrize("factorised", [True, False])
def test_sketch_has_the_stated_error(large, monkeypatch, factorised):
    if not factorised:
        monkeypatch.setattr(electrical, "NARROW", -1)
    exact = effective_resistance(large, method="exact")
    cut = bridges(large)
    for error in (0.2, 0.1):
        ours = effective_resistance(large, method="sketch", relative_error=error, seed=4)
        relative = ((ours - exact) / exact)[~cut]
        assert float(relative.square().mean().sqrt()) <= 1.05 * error
        assert abs(float(relative.mean())) <= error / 5
        assert ours[cut].tolist() == [1.0] * int(cut.sum())
        assert float(ours.sum()) == pytest.approx(large.num_nodes - large.components.count)
        assert float(ours.max()) <= 1


def test_sketch_is_a_pure_function_of_its_seed(large):
    once = effective_resistance(large, method="sketch", relative_error=0.3, seed=1)
    assert torch.equal(once, effective_resistance(large, method="sketch", relative_error=0.3, seed=1))
    assert not torch.equal(once, effective_resistance(large, method="sketch", relative_error=0.3, seed=2))


def test_medium_parts_are_exact_by_default(large):
    assert torch.equal(effective_resistance(large), effective_resistance(large, method="exact"))
    reference = dense.effective_resistance(large)
    assert effective_resistance(large).numpy() == pytest.approx(reference, abs=1e-10)


def test_relabelling(large):
    other, place = relabel(large, torch.from_numpy(np.random.default_rng(0).permutation(large.num_nodes)))
    assert effective_resistance(other)[place].numpy() == pytest.approx(effective_resistance(large).numpy(), abs=1e-10)


def test_laplacian_solvers_against_the_pseudo_inverse(monkeypatch):
    L = sp.csr_matrix(dense.laplacian(dense.adjacency(ZOO["weighted"])))
    b = np.random.default_rng(0).standard_normal((L.shape[0], 5))
    expected = np.linalg.pinv(L.toarray()) @ b
    assert laplacian_solver(L)(b) == pytest.approx(expected, abs=1e-10)
    monkeypatch.setattr(electrical, "NARROW", -1)
    assert laplacian_solver(L)(b) == pytest.approx(expected, abs=1e-6)


def test_conjugate_gradients_with_several_levels():
    L = sp.csr_matrix(dense.laplacian(dense.adjacency(of(nx.grid_2d_graph(40, 50)))))
    b = np.random.default_rng(0).standard_normal((L.shape[0], 3))
    solver = ConjugateGradients(L)
    assert len(solver.precondition.levels) > 1
    x = solver(b)
    assert np.abs(L @ x - (b - b.mean(axis=0))).max() <= 1e-6
    with pytest.raises(ConvergenceError, match="did not reach a relative residual of 1e-08 in 2 steps"):
        ConjugateGradients(L, steps=2)(b)


def test_on_every_device(large, device):
    ours = effective_resistance(large.to(device), method="sketch", relative_error=0.3)
    assert ours.device.type == device.type
    reference = effective_resistance(large, method="sketch", relative_error=0.3)
    assert ours.cpu().numpy() == pytest.approx(reference.numpy(), rel=1e-6)


@pytest.mark.parametrize("name", ["cora", "citeseer", "pubmed"])
def test_citation_graphs(citation, name):
    graph = citation(name)
    ours = effective_resistance(graph, relative_error=0.3)
    assert float(ours.sum()) == pytest.approx(graph.num_nodes - graph.components.count)
    assert bool((ours[bridges(graph)] == 1).all())


@pytest.mark.parametrize(("nodes", "wide", "method"), [(6, 1e8, "auto"), (6, 1e17, "auto"), (300, 1e6, "sketch")])
def test_weights_beyond_float64_are_refused(nodes, wide, method):
    """Two heavy cliques, two feather-light links: the resistance of a link is lost in rounding."""
    cliques = union(complete(nodes), complete(nodes))
    links = torch.tensor([[0, 1], [nodes, nodes + 1]])
    weight = torch.cat((torch.full((cliques.num_edges,), wide), torch.full((2,), 1 / wide)))
    graph = Graph.from_edge_index(torch.cat((cliques.pairs, links), dim=1), edge_weight=weight)
    with pytest.raises(ConvergenceError, match="span too many orders of magnitude: scale or clip them"):
        effective_resistance(graph, method=method)


BAD = {
    "not a graph": (lambda: effective_resistance([1, 2]), "expected a tadropedge.Graph, got list"),
    "no edges": (lambda: effective_resistance(Graph.from_edge_index([[], []], 2)), "2 nodes and no edges"),
    "method": (
        lambda: effective_resistance(path(3), method="jl"),
        "unknown method 'jl'; choose from auto, exact, sketch",
    ),
    "error": (lambda: effective_resistance(path(3), relative_error=0), "relative_error must be between 0 and 1, got 0"),
    "seed": (lambda: effective_resistance(path(3), seed=-1), "seed must be a whole number of at least 0, got -1"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input(name):
    call, message = BAD[name]
    with pytest.raises(TadropedgeError, match=message):
        call()


def test_too_large_for_an_exact_answer(large, monkeypatch):
    monkeypatch.setattr(memory, "free_bytes", lambda device: 10_000)
    for method, message in (
        ("exact", "an exact answer for .*; use method='sketch'"),
        ("sketch", "a sketch of .* edges"),
    ):
        with pytest.raises(NotEnoughMemoryError, match=message):
            effective_resistance(large, method=method)


def test_a_sketch_in_pieces_is_as_good(large, monkeypatch):
    monkeypatch.setattr(electrical, "AT_ONCE", 1_000)  # edges at a time
    exact = effective_resistance(large, method="exact")
    ours = effective_resistance(large, method="sketch", relative_error=0.1)
    assert float(ours.sum()) == pytest.approx(float(exact.sum()))
    assert float((ours / exact - 1).square().mean().sqrt()) == pytest.approx(0.1, rel=0.3)
