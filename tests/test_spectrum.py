import numpy as np
import pytest
import torch
from dense import laplacian
from graphs import ZOO, cycle, star, union

from tadropedge import ConvergenceError, Graph
from tadropedge.blocks import blocks
from tadropedge.spectrum import SOLVERS, cluster_counts, cluster_subspaces, explain, gap_window, ladder
from tadropedge.spectrum.certified import Basis, Inverse, LanczosRun
from tadropedge.spectrum.clusters import Clusters
from tadropedge.spectrum.ladder import execute
from tadropedge.spectrum.solvers import dense as dense_solver


def null_vector(n):
    return np.full(n, n**-0.5)


@pytest.mark.parametrize("kind", ["combinatorial", "normalized"])
@pytest.mark.parametrize("name", ZOO)
def test_blocks_hold_every_component_once(name, kind):
    graph = ZOO[name]
    whole = laplacian(graph.adjacency().toarray(), kind)
    seen_edges, seen_nodes = [], []
    for block in blocks(graph):
        dense = block.dense_laplacian(kind)
        for member in range(block.count):
            nodes = block.nodes[member]
            assert np.allclose(dense[member], whole[np.ix_(nodes, nodes)])
            assert np.linalg.eigvalsh(dense[member])[-1] <= block.norms(kind)[member] + 1e-12
        if block.count == 1:
            assert np.allclose(block.sparse_laplacian(kind).toarray(), dense[0])
        ends = np.stack((block.nodes[block.member, block.low], block.nodes[block.member, block.high]))
        assert ends.tolist() == graph.pairs.numpy()[:, block.edges].tolist()
        seen_edges += block.edges.tolist()
        seen_nodes += block.nodes.ravel().tolist()
    assert sorted(seen_edges) == list(range(graph.num_edges))
    assert len(set(seen_nodes)) == len(seen_nodes)


def test_many_small_components_are_few_blocks():
    graph = union(*(cycle(3 + place % 4) for place in range(60)))
    found = list(blocks(graph))
    assert [block.size for block in found] == [3, 4, 5, 6]
    assert [block.count for block in found] == [15] * 4


def test_closed_forms_of_the_spectrum():
    (path,) = cluster_subspaces(ZOO["path"], Clusters(q=3))
    assert path.values[0] == pytest.approx(2 - 2 * np.cos(np.pi * np.arange(9) / 9))
    (ring,) = cluster_subspaces(ZOO["cycle"], Clusters(q=3))
    assert np.sort(ring.values[0]) == pytest.approx(np.sort(2 - 2 * np.cos(2 * np.pi * np.arange(10) / 10)))
    (clique,) = cluster_subspaces(ZOO["complete"], Clusters(q=1), laplacian="normalized")
    assert clique.values[0] == pytest.approx([0] + [6 / 5] * 5)


def test_the_chance_to_miss_bounds_what_the_start_holds_of_an_eigenvector():
    """⟨x, u⟩² Σ p_j(θ)² ≤ 1, where x is the first vector of the run; and it falls with every step."""
    L = laplacian(ZOO["path"].adjacency().toarray(), "combinatorial")
    n, inverse = len(L), torch.from_numpy(np.linalg.pinv(L))
    values, vectors = np.linalg.eigh(L)
    null = torch.from_numpy(null_vector(n))
    run = LanczosRun(Basis(null, null.new_empty(n, 0)), Inverse(L, lambda b: inverse @ b), seed=3)
    start, chances = run.new.numpy(), []
    for _ in range(4):
        run.step()
        chances.append(run.chance(1 / values[1]))
        assert chances[-1] >= np.sqrt(2 / np.pi * n) * abs(start @ vectors[:, 1])
    assert chances == sorted(chances, reverse=True)
    assert run.chance(run.values[0]) == 1


@pytest.mark.parametrize(
    ("alpha", "spectrum", "count"),
    [
        (3, [0, 0.1, 0.2, 5, 5.1, 5.2], 3),  # the gap right above three
        (3, [0, 0.1, 5, 5.1, 5.2, 5.3], 2),  # a larger gap below it
        (3, [0, 0.1, 0.2, 0.3, 9, 9.1], 4),  # a larger gap above it
        (3, [0, 9, 9.1, 9.4, 9.6, 9.7], 3),  # the gap above the constant vector does not count
        (4, [0, 1, 2, 3, 4, 5], 4),  # equal gaps: the nearest to α
        (6, [0, 1, 2, 3, 4, 5], 5),  # never above n − 1
        (1, [0, 1, 2, 3, 4, 5], 1),
    ],
)
def test_eigengap(alpha, spectrum, count):
    values = np.array([spectrum], dtype=float)
    counts, widened = cluster_counts(values, 6, np.array([10.0]), Clusters(desired_clusters=alpha))
    assert counts.tolist() == [count]
    assert not widened.any()


def test_window_as_documented():
    assert [gap_window(alpha) for alpha in (1, 2, 3, 4, 7)] == [(1, 1), (2, 3), (2, 4), (2, 6), (4, 10)]


def test_repeated_eigenvalue_takes_the_whole_space_or_asks_for_more():
    values = np.array([[0, 1, 1, 1, 4.0]])
    assert cluster_counts(values, 5, np.array([8.0]), Clusters(q=2))[0].tolist() == [4]
    assert cluster_counts(values[:, :3], 5, np.array([8.0]), Clusters(q=2))[0].tolist() == [0]
    assert cluster_counts(values, 5, np.array([8.0]), Clusters(q=5))[0].tolist() == [5]


def broken(*_):
    raise RuntimeError("no luck")


def sloppy(L, null, k, aim):
    values, vectors = dense_solver(L, null, k)
    return values, np.linalg.qr(vectors + 1e-4 * np.random.default_rng(0).standard_normal(vectors.shape))[0]


def poisoned(L, null, k, aim):
    return np.full(k, np.nan), np.full((L.shape[0], k), np.nan)


@pytest.mark.parametrize("bad", [broken, sloppy, poisoned])
def test_a_failed_solver_falls_through_to_the_next(monkeypatch, bad):
    monkeypatch.setitem(ladder.SOLVERS, "shift-invert", bad)
    (step,) = explain(cycle(600), q=3)
    assert step.rungs[:2] == ("shift-invert", "davidson")
    assert execute(step).solver == "davidson"


def test_when_all_fail_the_error_says_what_was_tried_and_what_to_do(monkeypatch):
    for name in SOLVERS:
        monkeypatch.setitem(ladder.SOLVERS, name, sloppy if name == "lanczos" else broken)
    with pytest.raises(ConvergenceError) as caught:
        list(cluster_subspaces(cycle(600), Clusters(q=3)))
    message = str(caught.value)
    assert "600 nodes and 600 edges" in message
    assert "shift-invert: no luck" in message
    assert "lanczos: residual" in message
    assert "choose another q" in message


def test_a_hopeless_multiplicity_is_named(monkeypatch):
    monkeypatch.setattr(ladder, "MOST_PAIRS", 16)
    with pytest.raises(ConvergenceError, match=r"repeated too often|repeated more than"):
        list(cluster_subspaces(_spider(legs=400), Clusters(q=3), solver="shift-invert"))


def _spider(legs: int) -> Graph:
    """Legs of two edges at one node: one eigenvalue legs − 1 times, and no two nodes with the same neighbours."""
    knees = np.arange(1, legs + 1)
    return Graph.from_edge_index(np.stack((np.append(0 * knees, knees), np.append(knees, knees + legs))))


def test_dense_ends_the_ladder_for_a_star():
    (modes,) = cluster_subspaces(star(600), Clusters(q=3))
    assert modes.counts.tolist() == [600]
    assert modes.widened.tolist() == [True]
