import warnings

import dense
import numpy as np
import pytest
import torch
from graphs import ZOO, complete, cycle, path, relabel, spider, star, two_cliques, union, weighted
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import spearmanr

from tadropedge import Graph, RepeatedEigenvalueWarning, TadropedgeError, aggregate_resistance
from tadropedge.scores.solve import settled

quiet = pytest.mark.filterwarnings("ignore::tadropedge.RepeatedEigenvalueWarning")


@pytest.mark.parametrize("name", ["path", "karate", "clusters", "weighted"])
def test_the_weights_sum_to_the_lowest_eigenvalues(name):
    """Σ w_m ω_m = Σ λ_ℓ over the q lowest, combinatorial, one component."""
    graph = ZOO[name]
    assert graph.components.count == 1
    values = np.linalg.eigvalsh(dense.laplacian(dense.adjacency(graph)))
    weight = 1.0 if graph.weight is None else graph.weight
    for q in (1, 2, 4):
        assert float((weight * aggregate_resistance(graph, q)).sum()) == pytest.approx(values[:q].sum())


def test_a_component_of_exactly_q_nodes_has_weight_two():
    assert aggregate_resistance(ZOO["karate"], 34).tolist() == [2.0] * 78
    assert aggregate_resistance(union(path(4), complete(4)), 4).tolist() == [2.0] * 9


def test_one_mode_is_constant_so_its_weights_are_exact_zeros():
    assert aggregate_resistance(ZOO["karate"], 1).tolist() == [0.0] * 78


def test_small_components_get_the_lowest_weight_seen():
    graph = union(ZOO["clusters"], path(2), complete(3))
    weights = aggregate_resistance(graph, 4)
    inside = graph.pairs[1] < ZOO["clusters"].num_nodes
    assert float(weights[inside].min()) == weights[~inside].unique().item()
    assert torch.equal(weights[inside], aggregate_resistance(ZOO["clusters"], 4))


def test_the_bridge_between_clusters_is_the_critical_edge():
    graph = two_cliques(8)
    weights = aggregate_resistance(graph, 2)
    assert graph.pairs[:, weights.argmax()].tolist() == [7, 8]
    assert float(weights.max()) > 20 * float(weights.sort().values[-2])


@quiet
@settings(max_examples=40, deadline=None)
@given(st.sampled_from(sorted(ZOO)), st.integers(1, 6), st.randoms(use_true_random=False), st.booleans())
def test_relabelling_never_changes_a_weight(name, q, random, normalized):
    graph = ZOO[name]
    order = list(range(graph.num_nodes))
    random.shuffle(order)
    other, place = relabel(graph, torch.tensor(order))
    laplacian = "normalized" if normalized else "combinatorial"
    ours = aggregate_resistance(graph, q, laplacian=laplacian)
    theirs = aggregate_resistance(other, q, laplacian=laplacian)[place]
    assert theirs.numpy() == pytest.approx(ours.numpy(), abs=1e-12)


@quiet
@pytest.mark.parametrize("solver", ["auto", "shift-invert", "lanczos"])
def test_relabelling_a_large_component_with_repeated_eigenvalues(solver):
    graph = spider(5, 120)
    permutation = torch.from_numpy(np.random.default_rng(3).permutation(graph.num_nodes))
    other, place = relabel(graph, permutation)
    ours = aggregate_resistance(graph, 3, solver=solver)
    assert aggregate_resistance(other, 3, solver=solver)[place].numpy() == pytest.approx(ours.numpy(), abs=1e-12)


def test_a_repeated_eigenvalue_uses_its_whole_space_and_warns_once_a_call():
    graph = union(star(5), star(5), cycle(7))
    with pytest.warns(RepeatedEigenvalueWarning, match="q=2 falls inside a repeated eigenvalue in 3 of 3") as caught:
        weights = aggregate_resistance(graph, 2)
    assert len(caught) == 1
    assert len(weights[:5].unique()) == 1  # all edges of a star are alike
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        aggregate_resistance(path(9), 2)


def test_rounding_makes_no_ranks():
    """Edges that a symmetry maps on each other have equal weights to the last bit."""
    assert len(aggregate_resistance(cycle(40), 3).unique()) == 1
    weights = aggregate_resistance(two_cliques(9), 2)
    assert len(weights.unique()) == 3  # inside a clique, at its gate, the bridge


def test_a_long_path_keeps_its_weights():
    """Eigenvalues near 1e-9 and weights near 1e-13 are still above the floor: u_ℓ is a cosine."""
    n = 20_000
    weights = aggregate_resistance(path(n), 2).numpy()
    angle = np.pi / n
    expected = 2 / n * (np.cos(angle * (np.arange(n - 1) + 1.5)) - np.cos(angle * (np.arange(n - 1) + 0.5))) ** 2
    assert weights == pytest.approx(expected, rel=1e-4, abs=1e-18)


def test_near_neighbours_in_a_long_chain_are_no_ties():
    values = 1 + 5e-10 * np.arange(20_000)
    assert np.array_equal(settled(values), values)
    close = np.array([1.0, 1 + 5e-10, 2.0, 0.0, 0.0])
    assert settled(close).tolist() == [1.0, 1.0, 2.0, 0.0, 0.0]


@pytest.mark.filterwarnings("error::scipy.linalg.LinAlgWarning")
def test_a_large_eigenspace_goes_straight_to_the_dense_solver():
    with pytest.warns(RepeatedEigenvalueWarning):
        weights = aggregate_resistance(star(700), 2)
    assert len(weights.unique()) == 1


def test_desired_clusters_finds_the_three_cliques():
    """Three cliques in a ring: the gap says 3, whether 2, 3 or 4 were desired."""
    cliques = union(complete(7), complete(7), complete(7))
    links = torch.tensor([[0, 8, 15], [7, 14, 1]])
    graph = Graph.from_edge_index(torch.cat((cliques.pairs, links), dim=1))
    three = aggregate_resistance(graph, 3)
    for alpha in (2, 3, 4):
        assert torch.equal(aggregate_resistance(graph, desired_clusters=alpha), three)


@pytest.mark.parametrize("count", [3000])
def test_many_small_components(count):
    """Components of 3 to 10 nodes in one call equal each of them alone."""
    graph = union(*(path(3 + place % 8) for place in range(count)))
    weights = aggregate_resistance(graph, 3)
    start = 0
    for size in range(3, 11):
        alone = aggregate_resistance(path(size), 3)
        assert weights[start : start + size - 1].numpy() == pytest.approx(alone.numpy(), abs=1e-14)
        start += size - 1


def test_edge_weights_enter_the_laplacian():
    graph = Graph.from_edge_index(two_cliques(5).pairs, edge_weight=torch.ones(21) * 4)
    assert aggregate_resistance(graph, 2).numpy() == pytest.approx(aggregate_resistance(two_cliques(5), 2).numpy())
    uneven = weighted(two_cliques(5))
    assert not np.allclose(aggregate_resistance(uneven, 2), aggregate_resistance(two_cliques(5), 2))


@pytest.mark.parametrize("laplacian", ["combinatorial", "normalized"])
@pytest.mark.parametrize(("name", "q"), [("cora", 7), ("citeseer", 6)])
@quiet
def test_citation_graphs_against_dense(citation, name, q, laplacian):
    ours = aggregate_resistance(citation(name), q, laplacian=laplacian).numpy()
    reference = dense.aggregate_resistance(citation(name), q, laplacian)
    assert np.abs(ours - reference).max() <= 1e-8
    assert spearmanr(ours, reference).statistic >= 0.999


@pytest.mark.parametrize("laplacian", ["combinatorial", "normalized"])
def test_pubmed_two_solvers_agree(citation, laplacian):
    """The dense solution of PubMed takes minutes (benchmarks/accuracy.py); two unlike solvers do not."""
    ours = aggregate_resistance(citation("pubmed"), 3, laplacian=laplacian).numpy()
    other = aggregate_resistance(citation("pubmed"), 3, laplacian=laplacian, solver="shift-invert").numpy()
    assert np.abs(ours - other).max() <= 1e-8
    assert spearmanr(ours, other).statistic >= 0.999


def test_quantiles_of_the_largest_component_as_measured_before(citation):
    """98 % quantiles: 2.3e-2, 1.6e-2, 1.1e-3 normalised; 2.5e-4, 1.4e-4, 4e-8 combinatorial."""
    expected = {"cora": (2.5e-4, 2.3e-2), "citeseer": (1.4e-4, 1.6e-2), "pubmed": (4e-8, 1.1e-3)}
    for (name, values), q in zip(expected.items(), (7, 6, 3), strict=True):
        graph = citation(name)
        labels = graph.components.labels
        inside = (labels == graph.components.sizes.argmax())[graph.pairs[0]]
        part = Graph.from_edge_index(graph.pairs[:, inside].unique(return_inverse=True)[1])
        for laplacian, value in zip(("combinatorial", "normalized"), values, strict=True):
            weights = aggregate_resistance(part, q, laplacian=laplacian)
            assert float(weights.quantile(0.98)) == pytest.approx(value, rel=0.15)


BAD = {
    "not a graph": (lambda: aggregate_resistance("cora", 2), "expected a tadropedge.Graph, got str 'cora'; build one"),
    "no edges": (lambda: aggregate_resistance(Graph.from_edge_index([[], []], 5), 2), "5 nodes and no edges"),
    "q zero": (lambda: aggregate_resistance(path(4), 0), "q must be a whole number of at least 1, got 0"),
    "q negative": (lambda: aggregate_resistance(path(4), -3), "at least 1, got -3"),
    "q fraction": (lambda: aggregate_resistance(path(4), 2.5), "q must be a whole number of at least 1, got 2.5"),
    "q too large": (lambda: aggregate_resistance(path(4), 5), "q=5 is larger than every component; .* has 4 nodes"),
    "alpha too large": (lambda: aggregate_resistance(path(4), desired_clusters=9), "desired_clusters=9 is larger than"),
    "neither": (lambda: aggregate_resistance(path(4)), "give either q or desired_clusters, got q=None and"),
    "both": (
        lambda: aggregate_resistance(path(4), 2, desired_clusters=2),
        "give either q or desired_clusters, got q=2",
    ),
    "laplacian": (
        lambda: aggregate_resistance(path(4), 2, laplacian="random"),
        "unknown laplacian 'random'; choose from combinatorial, normalized",
    ),
    "solver": (
        lambda: aggregate_resistance(path(4), 2, solver="lanzcos"),
        r"unknown solver 'lanzcos'; choose from auto, dense, .* \(did you mean 'lanczos'\?\)",
    ),
    "tolerance": (lambda: aggregate_resistance(path(4), 2, tolerance=0), "tolerance must be a positive number, got 0"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input(name):
    call, message = BAD[name]
    with pytest.raises(TadropedgeError, match=message):
        call()
