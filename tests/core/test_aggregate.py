"""Aggregate resistance: identities, closed forms, eigenspaces, the eigengap, modes of one's own."""

import warnings

import dense
import numpy as np
import pytest
import torch
from scipy.stats import spearmanr

from tadropedge import ConvergenceError, Graph, RepeatedEigenvalueWarning, TadropedgeError, edge_scores
from tadropedge.errors import TooSmallError
from tadropedge.scores.aggregate import aggregate
from tadropedge.scores.solve import merge_ties, solve
from tadropedge.testing.graphs import (
    ZOO,
    clusters,
    complete,
    cycle,
    join,
    path,
    relabel,
    spider,
    star,
    two_cliques,
    union,
)

quiet = pytest.mark.filterwarnings("ignore::tadropedge.RepeatedEigenvalueWarning")


@pytest.mark.parametrize("name", ["path", "karate", "clusters", "weighted"])
def test_the_scores_sum_to_the_lowest_eigenvalues(name):
    """Σ w_m ω_m = Σ λ_ℓ over the q lowest, combinatorial, one component."""
    graph = ZOO[name]
    values = np.linalg.eigvalsh(dense.laplacian(dense.adjacency(graph)))
    weight = 1.0 if graph.weight is None else graph.weight
    for q in (1, 2, 4):
        assert float((weight * aggregate(graph, q)).sum()) == pytest.approx(values[:q].sum())


def test_all_modes_are_the_identity_and_one_mode_is_nothing():
    assert aggregate(ZOO["karate"], 34).tolist() == [2.0] * 78
    assert aggregate(union(path(4), complete(4)), 4).tolist() == [2.0] * 9
    assert aggregate(ZOO["karate"], 1).tolist() == [0.0] * 78


def test_small_components_get_the_lowest_score_seen():
    graph = union(ZOO["clusters"], path(2), complete(3))
    scores = aggregate(graph, 4)
    inside = graph.pairs[1] < ZOO["clusters"].num_nodes
    assert float(scores[inside].min()) == scores[~inside].unique().item()
    assert torch.equal(scores[inside], aggregate(ZOO["clusters"], 4))


def test_the_bridge_between_clusters_is_the_critical_edge():
    graph = two_cliques(8)
    scores = aggregate(graph, 2)
    assert graph.pairs[:, scores.argmax()].tolist() == [7, 8]
    assert float(scores.max()) > 20 * float(scores.sort().values[-2])


@quiet
@pytest.mark.parametrize("solver", ["auto", "shift-invert"])
def test_relabelling_a_large_component_with_repeated_eigenvalues(solver):
    graph = spider(5, 120)
    permutation = torch.from_numpy(np.random.default_rng(3).permutation(graph.num_nodes))
    other, place = relabel(graph, permutation)
    ours = aggregate(graph, 3, solver=solver)
    assert aggregate(other, 3, solver=solver)[place].numpy() == pytest.approx(ours.numpy(), abs=1e-12)


def test_a_repeated_eigenvalue_uses_its_whole_space_and_warns_once_a_call():
    graph = union(star(5), star(5), cycle(7))
    with pytest.warns(RepeatedEigenvalueWarning, match="eigenvalue in 3 of 3") as caught:
        scores = edge_scores(graph, q=2)
    assert len(caught) == 1
    assert len(scores[:5].unique()) == 1  # all edges of a star are alike
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        aggregate(path(9), 2)


@quiet
def test_rounding_makes_no_ranks():
    """Edges that a symmetry maps on each other have equal scores to the last bit."""
    assert len(aggregate(cycle(40), 3).unique()) == 1
    assert len(aggregate(two_cliques(9), 2).unique()) == 3  # inside a clique, at its gate, the bridge
    assert len(aggregate(star(700), 2).unique()) == 1  # straight to the dense solver


def test_a_long_path_keeps_its_scores():
    """Eigenvalues near 1e-9 and scores near 1e-13 are still above the floor: u_ℓ is a cosine."""
    n = 20_000
    scores = aggregate(path(n), 2).numpy()
    angle = np.pi / n
    expected = 2 / n * (np.cos(angle * (np.arange(n - 1) + 1.5)) - np.cos(angle * (np.arange(n - 1) + 0.5))) ** 2
    assert scores == pytest.approx(expected, rel=1e-4, abs=1e-18)


def test_near_neighbours_in_a_long_chain_are_no_ties():
    values = 1 + 5e-10 * np.arange(20_000)
    assert np.array_equal(merge_ties(values), values)
    assert np.array_equal(merge_ties(values[:10]), values[:10])
    close = np.array([1.0, 1 + 5e-10, 2.0, 0.0, 0.0])
    assert merge_ties(close).tolist() == [1.0, 1.0, 2.0, 0.0, 0.0]


def test_the_eigengap_finds_the_cliques():
    """Cliques in a ring: the gap says how many, whether about as many were desired or nothing was."""
    ring = join(union(*[complete(7)] * 3), [[0, 8, 15], [7, 14, 1]])
    for alpha in (2, 3, 4):
        assert torch.equal(aggregate(ring, desired_clusters=alpha), aggregate(ring, 3))
    six = [7 * n for n in range(6)]
    ring = join(union(*[complete(7)] * 6), [six, [node + 8 for node in six[:-1]] + [1]])
    assert solve(ring, "aggregate", {}).chosen == 6
    assert torch.equal(aggregate(ring), aggregate(ring, 6))


def test_the_eigengap_of_a_large_component():
    ring = join(union(*[complete(180)] * 3), [[0, 181, 361], [180, 360, 1]])
    assert torch.allclose(aggregate(ring, desired_clusters=3), aggregate(ring, 3), rtol=1e-9, atol=1e-9)
    assert solve(ring, "aggregate", {"desired_clusters": 4}).chosen == 3


def test_twins_that_are_neighbours_and_apart_in_a_mode():
    """Two nodes beside a dense crowd, joined to each other and to one of it: their difference is the third mode."""
    graph = join(union(clusters([600], 0.1, 0.0), complete(2)), [[0, 0], [600, 601]])
    for q in (2, 3):
        assert aggregate(graph, q).numpy() == pytest.approx(dense.aggregate_resistance(graph, q), abs=1e-8)
    assert aggregate(graph, 3)[(graph.pairs[0] == 600)].tolist() == [2.0]


def test_the_eigenvalues_are_those_of_the_first_of_the_largest_components():
    first, other = solve(path(600), "aggregate", {"q": 2}), path(600)
    both = solve(union(other, two_cliques(300), path(7)), "aggregate", {"q": 2})
    assert both.eigenvalues.tolist() == pytest.approx(first.eigenvalues.tolist(), abs=1e-10)


def test_many_small_components():
    """Components of 3 to 10 nodes in one call equal each of them alone."""
    scores = aggregate(union(*(path(3 + place % 8) for place in range(3000))), 3)
    start = 0
    for size in range(3, 11):
        alone = aggregate(path(size), 3)
        assert scores[start : start + size - 1].numpy() == pytest.approx(alone.numpy(), abs=1e-14)
        start += size - 1


# Modes of one's own.


@pytest.mark.parametrize("kind", ["combinatorial", "normalized"])
@pytest.mark.parametrize("name", ["karate", "clusters", "weighted", "grid"])
def test_own_modes_give_the_same_scores(name, kind):
    graph = ZOO[name]
    vectors = np.linalg.eigh(dense.laplacian(dense.adjacency(graph), kind))[1]
    expected = pytest.approx(aggregate(graph, 3, laplacian=kind).numpy(), abs=1e-10)
    for modes in (vectors[:, :3], torch.from_numpy(vectors[:, 1:3].copy())):  # with or without the null vector
        found = solve(graph, "aggregate", {"modes": modes, "laplacian": kind, "tolerance": 1e-6})
        assert found.values.numpy() == expected
        assert found.solvers == {"given": 1}
    assert aggregate(graph, 3, modes=vectors[:, :8], laplacian=kind).numpy() == expected


def test_own_modes_are_of_their_own_nodes_even_with_a_cache(tmp_path):
    """Two graphs of the same shape but other node numbers, with one set of modes: nothing is taken from the cache."""
    graph = two_cliques(5)
    vectors = np.linalg.eigh(dense.laplacian(dense.adjacency(graph)))[1][:, :2]
    first = edge_scores(graph, modes=vectors, cache_dir=tmp_path)
    assert not list(tmp_path.iterdir())
    assert first.numpy() == pytest.approx(aggregate(graph, 2).numpy(), abs=1e-12)


def test_own_modes_that_are_no_eigenvectors_are_refused():
    graph = ZOO["karate"]
    with pytest.raises(TadropedgeError, match="residual"):
        aggregate(graph, modes=torch.randn(34, 3, generator=torch.Generator().manual_seed(0)))
    with pytest.raises(TadropedgeError, match=r"shape \[34, k\]"):
        aggregate(graph, modes=torch.ones(33, 2))


# Real graphs.


@quiet
def test_cora_against_dense(citation):
    ours = aggregate(citation("cora"), 7, laplacian="normalized").numpy()
    reference = dense.aggregate_resistance(citation("cora"), 7, "normalized")
    assert np.abs(ours - reference).max() <= 1e-8
    assert spearmanr(ours, reference).statistic >= 0.999


@quiet
def test_quantiles_of_the_largest_component_as_measured_before(citation):
    """98 % quantiles, combinatorial and normalised."""
    expected = {"cora": (2.5e-4, 2.3e-2), "citeseer": (1.4e-4, 1.6e-2), "pubmed": (4e-8, 1.1e-3)}
    for (name, values), q in zip(expected.items(), (7, 6, 3), strict=True):
        graph = citation(name)
        labels = graph.components.labels
        inside = (labels == graph.components.sizes.argmax())[graph.pairs[0]]
        part = Graph.from_edge_index(graph.pairs[:, inside].unique(return_inverse=True)[1])
        for laplacian, value in zip(("combinatorial", "normalized"), values, strict=True):
            assert float(aggregate(part, q, laplacian=laplacian).quantile(0.98)) == pytest.approx(value, rel=0.15)


# Bad input.

BAD = {
    "q zero": (lambda: aggregate(path(4), 0), "q must be a whole number of at least 1, got 0"),
    "q fraction": (lambda: aggregate(path(4), 2.5), "q must be a whole number of at least 1, got 2.5"),
    "both": (lambda: aggregate(path(4), 2, desired_clusters=2), "give either q or desired_clusters, got q=2"),
    "laplacian": (lambda: aggregate(path(4), 2, laplacian="random"), "unknown laplacian 'random'; choose from comb"),
    "solver": (lambda: aggregate(path(4), 2, solver="davidsen"), r"unknown solver.* \(did you mean 'davidson'\?\)"),
    "tolerance": (lambda: aggregate(path(4), 2, tolerance=0), "tolerance must be a number .*, got 0"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input(name):
    call, message = BAD[name]
    with pytest.raises(TadropedgeError, match=message):
        call()


def test_a_graph_without_a_component_of_q_nodes_can_be_told_apart():
    with pytest.raises(TooSmallError, match=r"^q=5 .* has 4 nodes"):
        aggregate(path(4), 5)
    with pytest.raises(TooSmallError, match="desired_clusters=9 is larger than"):
        aggregate(path(4), desired_clusters=9)
    assert not issubclass(ConvergenceError, TooSmallError)
