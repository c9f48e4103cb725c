"""The solvers for large components: multigrid, twins, the survey that picks a solver, memory, devices."""

from dataclasses import replace

import dense
import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
import torch
from contracts.solvers import COMMUNITIES, with_leaves
from graphs import clusters, of, path, star, union, weighted

import tadropedge as tde
from tadropedge import NotEnoughMemoryError, RepeatedEigenvalueWarning, TadropedgeError, aggregate_resistance, memory
from tadropedge.blocks import blocks
from tadropedge.scores import aggregate
from tadropedge.spectrum import SOLVERS, cluster_subspaces, explain
from tadropedge.spectrum.aim import Aim
from tadropedge.spectrum.clusters import Clusters
from tadropedge.spectrum.ladder import execute
from tadropedge.spectrum.multigrid import COARSEST, Multigrid, aggregates
from tadropedge.spectrum.plan import Survey, whiskers
from tadropedge.spectrum.twins import Twins

quiet = pytest.mark.filterwarnings("ignore::tadropedge.RepeatedEigenvalueWarning")


def laplacian(graph, kind="combinatorial"):
    return sp.csr_matrix(dense.laplacian(graph.adjacency().toarray(), kind))


@pytest.mark.parametrize("tolerance", [1e-3, 1e-6, 1e-10])
def test_tolerance_bounds_the_error_of_every_weight(tolerance):
    ours = aggregate_resistance(COMMUNITIES, 3, solver="davidson", tolerance=tolerance).numpy()
    assert np.abs(ours - dense.aggregate_resistance(COMMUNITIES, 3)).max() <= tolerance


@pytest.mark.parametrize("leaves", [100_000])
@pytest.mark.parametrize("kind", ["combinatorial", "normalized"])
def test_a_huge_star(leaves, kind):
    """P = I − u uᵀ with u the top eigenvector (combinatorial): ω = 1 − 1 / leaves, and so it is for all of them."""
    with pytest.warns(RepeatedEigenvalueWarning, match="q=2 falls inside a repeated eigenvalue in 1 of 1"):
        weights = aggregate_resistance(star(leaves), 2, laplacian=kind)
    null = np.array([leaves**0.5, 1.0]) / np.sqrt(2 * leaves)  # of the normalised Laplacian: hub, leaf
    expected = 1 - 1 / leaves + (0 if kind == "combinatorial" else (null[0] - null[1]) ** 2)
    assert weights.numpy() == pytest.approx(np.full(leaves, expected))


@quiet
@pytest.mark.parametrize("kind", ["combinatorial", "normalized"])
@pytest.mark.parametrize("q", [2, 5, 20])
def test_merged_twins_change_no_weight(kind, q):
    """Two kinds of leaves on some hubs, more modes than there are below their eigenvalue included."""
    graph = with_leaves(with_leaves(of(nx.gnm_random_graph(480, 2400, seed=2)), [0, 5], 30), [5, 9], 4)
    ours = aggregate_resistance(graph, q, laplacian=kind).numpy()
    assert ours == pytest.approx(dense.aggregate_resistance(graph, q, kind), abs=1e-9)


def test_twins_need_one_hub_and_one_weight():
    graph = tde.Graph.from_edge_index([[0, 0, 0, 0, 1], [1, 2, 3, 4, 5]], edge_weight=[1.0, 2.0, 2.0, 3.0, 2.0])
    twins = Twins.of(laplacian(graph))
    assert twins.merged == 1
    assert np.flatnonzero(twins.copies[twins.place] == 2).tolist() == [2, 3]
    spread, L = twins.spread(), laplacian(graph)
    values = np.linalg.eigvalsh((spread.T @ L @ spread).toarray())
    assert twins.between(values) == pytest.approx(np.linalg.eigvalsh(L.toarray()))


@pytest.mark.parametrize("kind", ["combinatorial", "normalized"])
@pytest.mark.parametrize("graph", [of(nx.grid_2d_graph(30, 40)), weighted(clusters([600, 600], 0.01, 0.001))])
def test_a_multigrid_cycle_is_close_to_the_pseudo_inverse(graph, kind):
    """As a preconditioner it is symmetric, and it leaves a small condition number."""
    *_, block = blocks(graph)
    L = block.sparse_laplacian(kind)
    null = np.sqrt(block.degrees()[0]) if kind == "normalized" else np.ones(block.size)
    cycle = Multigrid(L, null / np.linalg.norm(null))
    assert len(cycle.levels) > 1
    assert len(cycle.levels[-1].degree) <= COARSEST
    M = cycle(torch.eye(block.size, dtype=torch.float64)).numpy()
    assert np.abs(M - M.T).max() <= 1e-4 * np.abs(M).max()
    spectrum = np.sort(np.linalg.eigvals(M @ L.toarray()).real)[1:]  # without the null vector
    assert spectrum[-1] / spectrum[0] < 30


def test_aggregates_are_connected_and_fewer():
    graph = of(nx.grid_2d_graph(20, 30))
    low, high = graph.pairs
    row, order = torch.sort(torch.cat((low, high)))
    col = torch.cat((high, low))[order]
    aggregate, count = aggregates(row, col, torch.ones(len(row), dtype=torch.float64), 600)
    assert count <= 200
    assert sorted(set(aggregate.tolist())) == list(range(count))
    network = nx.Graph(graph.pairs.T.tolist())
    for place in range(count):
        assert nx.is_connected(network.subgraph(torch.nonzero(aggregate == place).flatten().tolist()))


def test_the_survey_tells_roads_from_crowds():
    road = Survey.of(laplacian(of(nx.grid_2d_graph(15, 80))))
    crowd = Survey.of(laplacian(of(nx.gnm_random_graph(1200, 12000, seed=0))))
    assert road.separator <= 15
    assert crowd.separator >= 300
    tree, tail = laplacian(of(nx.random_labeled_tree(700, seed=0))), laplacian(of(nx.lollipop_graph(20, 30)))
    assert (Survey.of(tree).separator, whiskers(tree)) == (0, 700)
    assert whiskers(tail) == 30


def test_explain_says_what_is_there():
    graph = union(with_leaves(of(nx.grid_2d_graph(10, 60)), [3], 8), path(5), path(5))
    small, large = explain(graph, q=3)
    assert (small.nodes, small.edges, small.count, small.leaves, small.rungs) == (5, 4, 2, 2, ("dense",))
    assert (small.whiskers, small.twins, small.memory) == (0, 0, 2 * 3 * 8 * 5**2)
    assert (large.nodes, large.count, large.twins, large.leaves, large.whiskers) == (608, 1, 7, 8, 8)
    assert large.reason.startswith("7 twins are merged; about ")
    assert (large.memory > 0, large.device) == (True, "cpu")
    assert explain(graph, q=3, solver="lanczos")[-1].rungs == ("lanczos",)
    with pytest.raises(TadropedgeError, match="q=609 is larger than every component; the largest has 608 nodes"):
        explain(graph, q=609)


def test_explain_returns_the_steps_that_are_executed(monkeypatch, caplog):
    """The scores of a graph are those of its plan, and each step is solved by its first rung that did not fail."""
    graph = union(
        with_leaves(of(nx.grid_2d_graph(10, 60)), [3], 8), of(nx.gnm_random_graph(600, 3000, seed=1)), path(5)
    )
    executed = []
    monkeypatch.setattr(aggregate, "execute", lambda step, *more: executed.append(step) or execute(step, *more))
    with caplog.at_level("INFO", logger="tadropedge"):
        aggregate_resistance(graph, 3)
    steps = explain(graph, q=3)
    assert [(step.rungs, step.reason, step.memory) for step in steps] == [
        (step.rungs, step.reason, step.memory) for step in executed
    ]
    for step in steps:
        found = execute(step)
        assert found.block is step.block
        assert found.solver == step.rungs[0]
        if step.system is not None:
            assert f"{', '.join(step.rungs)}; {step.reason}" in caplog.text


def test_another_plan_is_another_execution():
    (step,) = explain(COMMUNITIES, q=3)
    assert len(step.rungs) > 1
    for rung in ("lanczos", "davidson", "dense"):
        found = execute(replace(step, rungs=(rung,)))
        assert found.solver == rung
        assert found.values[0, :3] == pytest.approx(execute(step).values[0, :3], abs=1e-9)
    batch, *_ = explain(path(30), q=3)
    assert execute(batch).counts.tolist() == [3]
    assert execute(replace(batch, wish=replace(batch.wish, q=5))).counts.tolist() == [5]


def test_explain_knows_that_many_pairs_are_found_by_the_dense_solver(caplog):
    graph = of(nx.grid_2d_graph(10, 60))
    for solver in ("auto", "lanczos"):
        (part,) = explain(graph, q=70, solver=solver)
        assert part.rungs == ("dense",)
        assert part.reason == "71 of 600 pairs are wanted, which the dense solver finds best"
    with caplog.at_level("INFO", logger="tadropedge"):
        aggregate_resistance(graph, 70)
    assert "solved by dense" in caplog.text


def test_products_alone_come_first_where_a_random_walk_mixes_fast(caplog):
    crowd = of(nx.random_regular_graph(8, 6000, seed=0))
    assert explain(crowd, q=3, laplacian="normalized")[0].rungs[0] == "short-lanczos"
    with caplog.at_level("INFO", logger="tadropedge"):
        ours = aggregate_resistance(crowd, 1, laplacian="normalized").numpy()
    assert "solved by short-lanczos" in caplog.text
    assert np.abs(ours).max() <= 1e-8  # one degree: the only mode is constant


def test_products_alone_are_given_up_where_low_eigenvalues_lie_close():
    L = laplacian(of(nx.grid_2d_graph(40, 60)), "normalized")
    null = np.sqrt(np.diff(L.indptr) - 1.0)
    with pytest.raises(RuntimeError, match="not in sight after 60 steps"):
        SOLVERS["short-lanczos"](L, null / np.linalg.norm(null), 4)


@pytest.mark.parametrize("laplacian", ["combinatorial", "normalized"])
def test_true_weights_of_a_very_long_path_are_no_zeros(laplacian, caplog):
    n = 200_000
    weights = aggregate_resistance(path(n), 2, laplacian=laplacian).numpy()[1:-1]  # inner nodes have one degree
    # The mode is cos(π (i + ½) / n), or cos(π i / (n − 1)) in the normalised Laplacian: steepest in the middle.
    turn = np.pi / n if laplacian == "combinatorial" else np.pi / (n - 1)
    assert weights.max() == pytest.approx(2 / n * (2 * np.sin(turn / 2)) ** 2, rel=1e-4, abs=0)
    assert (weights[n // 100 : -n // 100] > 0).all()
    assert "not by the tolerance" in caplog.text  # the gap is too narrow for a bound of 1e-8


def test_too_little_memory_is_said_before_the_work_begins(monkeypatch):
    monkeypatch.setattr(memory, "free_bytes", lambda device: 10_000)
    with pytest.raises(NotEnoughMemoryError, match=r"needs about .* of memory, 10.0 kB are free") as caught:
        aggregate_resistance(COMMUNITIES, 3)
    assert isinstance(caught.value, MemoryError)
    assert isinstance(caught.value, TadropedgeError)


def test_progress_inside_one_component():
    shares = []
    L, n = laplacian(of(nx.grid_2d_graph(30, 30))), 900
    SOLVERS["davidson"](L, np.full(n, n**-0.5), 4, Aim(report=shares.append))
    assert len(shares) > 5
    assert shares[0] <= 0.1
    assert 0.8 <= shares[-1] <= 1


def test_the_same_answer_on_every_device(device):
    (ours,) = cluster_subspaces(COMMUNITIES, Clusters(q=3), solver="davidson", device=device)
    (reference,) = cluster_subspaces(COMMUNITIES, Clusters(q=3), solver="shift-invert")
    P, Q = (modes.vectors[0] @ modes.vectors[0].T for modes in (ours, reference))
    assert np.abs(P - Q).max() <= 1e-8
    weights = aggregate_resistance(COMMUNITIES, 3, device=device)
    assert weights.device.type == "cpu"
    assert weights.numpy() == pytest.approx(aggregate_resistance(COMMUNITIES, 3).numpy(), abs=1e-8)


@pytest.mark.parametrize("k", [2, 3, 6])  # one wanted vector leaves blocks of one row, a case of its own on a GPU
def test_davidson_finds_the_lowest_modes_on_every_device(device, k):
    L = laplacian(of(nx.grid_2d_graph(20, 31)))
    n = L.shape[0]
    values, vectors = SOLVERS["davidson"](L, np.full(n, n**-0.5), k, Aim(device=device))
    assert values == pytest.approx(np.linalg.eigvalsh(L.toarray())[:k], abs=1e-8)
    assert np.abs(L @ vectors - vectors * values).max() <= 1e-6


def test_a_device_that_is_not_there():
    with pytest.raises(TadropedgeError, match="device must be 'cpu' or 'cuda', got 'tpu'"):
        aggregate_resistance(path(5), 2, device="tpu")
    if not torch.cuda.is_available():
        with pytest.raises(TadropedgeError, match="device 'cuda' was asked for, but torch sees no GPU"):
            aggregate_resistance(path(5), 2, device="cuda")


def weak_clusters(count, size, seed=0):
    """Clusters joined by edges whose weights span four orders of magnitude."""
    random, nodes = np.random.default_rng(seed), count * size
    start = np.repeat(np.arange(count), 4 * size) * size
    inside = start + random.integers(0, size, (2, len(start)))
    step = np.arange(nodes - 1)[(np.arange(nodes - 1) + 1) % size > 0]
    first = np.arange(count - 1) * size
    between = np.concatenate((random.integers(0, nodes, (2, 3 * count)), np.stack((first, first + size))), axis=1)
    pairs = np.concatenate((inside, np.stack((step, step + 1)), between), axis=1)
    strength = 10 ** random.uniform(-4, 0, between.shape[1])
    return tde.Graph.from_edge_index(pairs, nodes, np.concatenate((np.ones(pairs.shape[1] - len(strength)), strength)))


def test_weak_edges_between_clusters_are_no_obstacle():
    graph = weak_clusters(200, 20)
    ours, theirs = (aggregate_resistance(graph, 3, solver=solver) for solver in ("davidson", "shift-invert"))
    assert torch.allclose(ours, theirs, atol=2e-8)


@pytest.mark.parametrize("factor", [1e-42, 1e42])
def test_a_common_factor_of_the_weights_does_not_matter(factor):
    graph = weak_clusters(60, 20)
    scaled = tde.Graph.from_edge_index(graph.pairs, graph.num_nodes, graph.weight * factor)
    for solver in ("davidson", "shift-invert"):
        ours = aggregate_resistance(scaled, 3, solver=solver)
        assert torch.allclose(ours, aggregate_resistance(graph, 3, solver=solver), atol=2e-8)
