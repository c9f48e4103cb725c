"""The diagnostics against dense definitions, closed forms, and the inequalities they must satisfy."""

import math

import dense
import graphs
import numpy as np
import pytest
import torch
from networks import make_network

from tadropedge import diagnostics, sample_edges, shift_operator
from tadropedge.errors import TadropedgeError
from tadropedge.nn.filters import filter_taps

NORMALIZATIONS = ["gcn", "gcn-residual", "first-order", "adjacency", "spectral", "laplacian"]


def operators(graph, normalization, draws=3, keep_prob=0.6):
    keep = torch.cat((torch.ones(1, graph.num_edges, dtype=torch.bool), sample_edges(prob(graph, keep_prob, draws))))
    S = shift_operator(graph, keep, normalization=normalization, dtype=torch.float64).to_dense()
    return S[0], S[1:]


def prob(graph, value, draws):
    return torch.full((draws, graph.num_edges), value, dtype=torch.float64) - torch.arange(draws)[:, None] * 0.1


# -- relative error --------------------------------------------------------------------------------------


@pytest.mark.parametrize("normalization", NORMALIZATIONS)
@pytest.mark.parametrize("name", ["cycle", "cliques", "star", "path"])
def test_relative_error_is_the_minimum_norm_solution_of_the_kronecker_system(name, normalization):
    S, others = operators(graphs.ZOO[name], normalization)
    found = diagnostics.ErrorModel(S).of(others)
    for place, other in enumerate(others):
        E = dense.relative_error(S.numpy(), other.numpy())
        scale = max(1.0, np.linalg.norm(E, 2))
        np.testing.assert_allclose(found.matrix[place], E, atol=1e-7 * scale)
        np.testing.assert_allclose(found.norm[place], np.linalg.norm(E, 2), atol=1e-7 * scale)
        rest = np.linalg.norm((S - other).numpy() - E @ S.numpy() - S.numpy() @ E)
        np.testing.assert_allclose(found.residual[place], rest, atol=1e-7 * scale)
        np.testing.assert_allclose(found.change[place], np.linalg.norm((S - other).numpy()))
        alone = diagnostics.relative_error(S, other)
        torch.testing.assert_close(alone.matrix, found.matrix[place])


@pytest.mark.parametrize("name", graphs.ZOO)
def test_a_positive_definite_operator_has_one_error_for_every_subgraph(name):
    S, others = operators(graphs.ZOO[name], "gcn-residual")
    model = diagnostics.ErrorModel(S)
    found = model.of(others)
    assert model.unique
    assert bool((found.residual == 0).all())
    torch.testing.assert_close(found.matrix @ S + S @ found.matrix, S - others)
    # ‖S − S'‖_F ≥ (smallest sum) ‖E‖_F, and the spectral norm is the smaller one.
    assert bool((found.norm <= found.change / model.smallest_sum * (1 + 1e-9)).all())


def test_laplacians_are_singular_in_the_constant_vector_alone_which_costs_nothing():
    S, others = operators(graphs.ZOO["karate"], "laplacian")
    model = diagnostics.ErrorModel(S)
    assert not model.unique
    assert int((~model.solvable).sum()) == 1
    assert bool((model.of(others).residual < 1e-10 * model.of(others).change).all())


def test_some_subgraphs_of_an_adjacency_have_no_relative_error():
    """The cycle of four: eigenvalues 2, 0, 0, −2. Without one edge, part of the change lies where sums are zero."""
    S, _ = operators(graphs.cycle(4), "adjacency")
    path = S.clone()
    path[0, 1] = path[1, 0] = 0
    found = diagnostics.relative_error(S, path)
    assert float(found.residual) == pytest.approx(math.sqrt(0.5))
    assert float(found.change) == pytest.approx(math.sqrt(2))


def test_no_change_has_no_error_and_scaling_has_a_constant_one():
    S, _ = operators(graphs.ZOO["karate"], "gcn")
    model = diagnostics.ErrorModel(S)
    assert float(model.of(S).norm) == 0
    torch.testing.assert_close(model.of(0.4 * S).norm, torch.tensor(0.3, dtype=torch.float64))  # E = 0.3 I


def test_relative_error_takes_shift_operators_and_names_what_is_wrong():
    graph = graphs.ZOO["karate"]
    keep = sample_edges(torch.full((graph.num_edges,), 0.5), seed=[0, 1])
    S, others = shift_operator(graph), shift_operator(graph, keep)
    assert diagnostics.relative_error(S, others).norm.shape == (2,)
    with pytest.raises(TadropedgeError, match="shift must be symmetric and finite"):
        diagnostics.relative_error(shift_operator(graph, normalization="random-walk"), others)
    with pytest.raises(TadropedgeError, match="other has 3 nodes, but shift has 34"):
        diagnostics.relative_error(S, torch.eye(3))
    with pytest.raises(TadropedgeError, match=r"shift must be one matrix \[N, N\], got shape \[2, 34, 34\]"):
        diagnostics.relative_error(others, S)
    with pytest.raises(TadropedgeError, match="other must be square matrices"):
        diagnostics.relative_error(S, torch.ones(34))
    with pytest.raises(TadropedgeError, match="singular must be between 0 and 1, got 2"):
        diagnostics.ErrorModel(S, singular=2)


def test_misalignment_is_zero_for_functions_of_the_operator_and_at_most_eight():
    S, others = operators(graphs.ZOO["clusters"], "gcn")
    values, vectors = torch.linalg.eigh(S)
    aligned = vectors @ torch.diag(torch.arange(len(S), dtype=S.dtype)) @ vectors.T
    assert float(diagnostics.misalignment(aligned, vectors)) < 1e-5
    E = diagnostics.ErrorModel(S).of(others).matrix
    delta = diagnostics.misalignment(E, vectors)
    own = np.linalg.eigh(E[0].numpy())[1]
    own = own * np.where((own * vectors.numpy()).sum(0) < 0, -1, 1)
    np.testing.assert_allclose(delta[0], (np.linalg.norm(own - vectors.numpy(), 2) + 1) ** 2 - 1, rtol=1e-6)
    assert bool((delta <= 8).all())
    assert len(values) == len(S)


# -- filters ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("taps", "low", "high", "slope", "size"),
    [
        ([2.0], -1, 1, 0.0, 2.0),  # a constant does not change
        ([0.0, 0.5], -1, 1, 0.5, 0.5),  # h = λ/2
        ([0.0, 0.0, 1.0], -2, 1, 8.0, 4.0),  # h = λ²: |2 λ²|
        ([0.0, 1.0, -1.0], 0, 0.9, 0.72, 0.25),  # |λ − 2 λ²| at 0.9, λ (1 − λ) at 1/2
        ([0.0, 1.0, -1.0], 0, 0.4, 0.125, 0.24),  # |λ − 2 λ²| at its stationary point 1/4
        ([0.0, 3.0, 0.0, -4.0], -1, 1, 9.0, 1.0),  # −T_3: 3 λ − 12 λ³ at the ends; Chebyshev is bounded by one
        ([1.0, 0.0, 0.0, 0.0], 0, 3, 0.0, 1.0),  # leading zeros
        ([0.0, 1.0, -1.0, 1e-310], 0, 0.4, 0.125, 0.24),  # a leading coefficient that is none
        ([0.0, 1e-310], 0, 1, 1e-310, 1e-310),
        ([1.0, 2.0, 3.0], 0.5, 0.5, 2.5, 2.75),  # one point
    ],
)
def test_constants_of_filters_with_closed_forms(taps, low, high, slope, size):
    assert float(diagnostics.lipschitz(taps, low, high)) == pytest.approx(slope, abs=1e-12)
    assert float(diagnostics.response_bound(taps, low, high)) == pytest.approx(size, abs=1e-12)


def test_constants_of_random_filters_are_those_of_a_fine_grid():
    taps = torch.randn(4, 3, 6, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    grid = np.linspace(-1.2, 0.9, 20001)
    h = np.moveaxis(np.polynomial.polynomial.polyval(grid, np.moveaxis(taps.numpy(), -1, 0)), -1, 0)
    slope = np.gradient(h, grid, axis=0, edge_order=2) * grid[:, None, None]
    np.testing.assert_allclose(diagnostics.response_bound(taps, -1.2, 0.9), np.abs(h).max(0), rtol=1e-6)
    np.testing.assert_allclose(diagnostics.lipschitz(taps, -1.2, 0.9), np.abs(slope).max(0), rtol=1e-4)


def test_the_definition_asks_for_more_than_the_bound_on_the_derivative():
    taps = torch.randn(7, 6, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    points = torch.linspace(-1, 1, 101, dtype=torch.float64)
    h = torch.stack([(taps * x ** torch.arange(6)).sum(-1) for x in points])
    gap = (points[:, None] - points).abs()[..., None]
    quotient = (h[:, None] - h).abs() * (points[:, None] + points).abs()[..., None] / (2 * gap).clamp_min(1e-300)
    by_pairs = torch.where(gap > 0, quotient, 0.0).amax(dim=(0, 1))
    found = diagnostics.divided_lipschitz(taps, points)
    at_points = torch.stack([diagnostics.lipschitz(taps, float(x), float(x)) for x in points]).amax(0)
    torch.testing.assert_close(found, torch.maximum(by_pairs, at_points), rtol=1e-9, atol=1e-12)
    assert bool((found >= at_points - 1e-12).all())
    # The series of ln λ about 2 has |λ h'| near 1 on all of [1.2, 2.8]; pairs far apart ask for more.
    near = np.polynomial.Polynomial([math.log(2), *((-1) ** (k + 1) / (k * 2**k) for k in range(1, 12))], domain=[1, 3])
    log = near.convert(domain=[-1, 1]).coef
    spread = torch.linspace(1.2, 2.8, 50, dtype=torch.float64)
    assert float(diagnostics.lipschitz(log, 1.2, 2.8)) < 1.01
    ends = abs(math.log(2.8 / 1.2)) * 4.0 / (2 * 1.6)
    assert float(diagnostics.divided_lipschitz(log, spread)) == pytest.approx(ends, rel=1e-3)
    assert ends > 1.05


def test_the_divided_constant_bounds_the_first_order_change_of_a_filter():
    """‖dH‖_F ≤ 2 C ‖E‖_F, for a small change of S that is no scaling."""
    S, (other, *_) = operators(graphs.ZOO["karate"], "gcn-residual")
    step = 1e-6
    E = diagnostics.relative_error(S, S + step * (other - S)).matrix
    taps = torch.tensor([0.3, -0.2, 0.5, 0.1], dtype=torch.float64)

    def filtered(matrix):
        return sum(tap * torch.linalg.matrix_power(matrix, k) for k, tap in enumerate(taps))

    moved = torch.linalg.matrix_norm(filtered(S + step * (other - S)) - filtered(S))
    C = diagnostics.divided_lipschitz(taps, torch.linalg.eigvalsh(S))
    assert float(moved) <= float(2 * C * torch.linalg.matrix_norm(E)) * (1 + 1e-4)
    assert float(moved) >= 0.05 * float(2 * C * torch.linalg.matrix_norm(E))  # and is of its size


def test_the_constant_of_the_theorem():
    assert diagnostics.theorem_constant(0.5, [4, 3], 16, delta=2.0, C_sigma=2.0) == 1.0 * 9 * 2 * 4 * 12


def test_filters_name_what_is_wrong():
    with pytest.raises(TadropedgeError, match="low <= high, got low=1 and high=0"):
        diagnostics.lipschitz([1.0], 1, 0)
    with pytest.raises(TadropedgeError, match="taps must be finite numbers"):
        diagnostics.response_bound([1.0, math.nan], 0, 1)
    with pytest.raises(TadropedgeError, match="taps must be real numbers"):
        diagnostics.lipschitz("abc", 0, 1)


def test_taps_of_a_network_are_its_polynomials():
    """Σ_k b_k S^k x with the taps, beside the network's own features (its read-out made the identity)."""
    S, _ = operators(graphs.path(5), "gcn")
    network = make_network("gcnn", 1, features=2, hidden=4, classes=20, graph=graphs.path(5), trials=1, order=3)
    parameters = network.initial([0], torch.device("cpu"))
    parameters["filter0.bias"].zero_()
    parameters["readout.weight"], parameters["readout.bias"] = torch.eye(20)[None], torch.zeros(1, 20)
    x = torch.randn(1, 5, 2, generator=torch.Generator().manual_seed(0))
    (taps,) = filter_taps(parameters, layers=1, order=3)
    powers = torch.stack([torch.linalg.matrix_power(S.float(), k) @ x[0] for k in range(4)])
    by_hand = torch.einsum("kng,fgk->nf", powers, taps[0]).relu()
    torch.testing.assert_close(network.logits(parameters, x, [S.float()[None]]).view(5, 4), by_hand)


# -- partitions ------------------------------------------------------------------------------------------


def random_basis(n, q, seed):
    return torch.linalg.qr(torch.randn(n, q, generator=torch.Generator().manual_seed(seed), dtype=torch.float64))[0]


def test_subspace_distance_is_the_sum_over_the_other_eigenvectors():
    for q in (1, 3, 6):
        first, second = random_basis(9, q, 1), random_basis(9, q, 2)
        distance = diagnostics.subspace_distance(first, second)
        np.testing.assert_allclose(distance, dense.subspace_distance(first.numpy(), second.numpy()))
        np.testing.assert_allclose(distance**2, q - torch.linalg.matrix_norm(first.T @ second) ** 2)


def test_subspace_distance_is_a_metric_that_sees_spans_alone():
    a, b, c = (random_basis(12, 4, seed) for seed in range(3))
    d = diagnostics.subspace_distance
    torch.testing.assert_close(d(a, b), d(b, a))
    assert float(d(a, c)) <= float(d(a, b) + d(b, c))
    torch.testing.assert_close(d(a @ random_basis(4, 4, 5), b @ random_basis(4, 4, 6)), d(a, b))
    assert float(d(a, a @ random_basis(4, 4, 7))) < 1e-14
    assert float(d(a, b)) <= 2


def test_small_distances_are_not_lost_to_rounding():
    """√(q − ‖UᵀU'‖²) would give 0 here."""
    angle = 1e-10
    first = torch.eye(4, dtype=torch.float64)[:, :2]
    turned = first.clone()
    turned[0, 0], turned[2, 0] = math.cos(angle), math.sin(angle)
    assert float(diagnostics.subspace_distance(first, turned)) == pytest.approx(angle)


def test_two_cliques_joined_by_an_edge_have_a_closed_alpha():
    """λ_2 of two cliques of n nodes with one edge between them is n, so α = √(2 · 2) / (√n n)."""
    n = 7
    graph = graphs.two_cliques(n)
    clusters = torch.arange(2 * n) // n
    fit = diagnostics.alpha_realizable(graph, clusters)
    torch.testing.assert_close(fit.mean_degree, torch.tensor(n**-0.5, dtype=torch.float64))
    torch.testing.assert_close(fit.alpha, torch.tensor(2 / n**1.5, dtype=torch.float64))
    assert fit.largest_distance == math.sqrt(2)


def test_relative_subgraph_degree_counts_the_edges_that_leave():
    graph = graphs.ZOO["weighted"]
    clusters = (torch.arange(graph.num_nodes) >= 10).long()
    A = dense.adjacency(graph)
    leaving = A[:10, 10:].sum()
    expected = [leaving / math.sqrt(10), leaving / math.sqrt(12)]
    np.testing.assert_allclose(diagnostics.relative_subgraph_degree(graph, clusters), expected)
    none = torch.zeros(2, graph.num_edges, dtype=torch.bool)
    assert diagnostics.relative_subgraph_degree(graph, clusters, none).tolist() == [[0, 0], [0, 0]]


@pytest.mark.parametrize("seed", range(5))
def test_proposition_one_holds_and_dropping_inside_clusters_only_raises_alpha(seed):
    graph = graphs.clusters([12, 12, 12], 0.6, 0.03, seed=seed)
    clusters = torch.arange(36) // 12
    low, high = clusters[graph.pairs]
    inside = torch.where(low == high, 0.6, 1.0).double()
    keep = sample_edges(inside, seed=range(20))
    before, after = diagnostics.alpha_realizable(graph, clusters), diagnostics.alpha_realizable(graph, clusters, keep)
    distance = diagnostics.subspace_distance(before.modes, after.modes)
    assert bool((distance <= before.bound(after)).all())
    assert bool((after.alpha >= before.alpha - 1e-9).all())
    assert bool((distance <= before.largest_distance + 1e-9).all())
    # What the proof rests on: the low modes lie within α of the indicators of the clusters.
    indicators = torch.nn.functional.one_hot(clusters).double() / math.sqrt(12)
    assert float(diagnostics.subspace_distance(indicators, before.modes)) <= float(before.alpha)


def test_more_components_than_clusters_are_realizable_by_no_alpha():
    graph = graphs.union(graphs.complete(4), graphs.complete(4), graphs.complete(4))
    clusters = (torch.arange(12) >= 4).long()
    assert diagnostics.alpha_realizable(graph, clusters).alpha == math.inf


def test_partitions_name_what_is_wrong():
    graph = graphs.ZOO["karate"]
    with pytest.raises(TadropedgeError, match="cluster 1 has no nodes"):
        diagnostics.alpha_realizable(graph, torch.where(torch.arange(34) > 3, 2, 0))
    with pytest.raises(TadropedgeError, match="clusters must be int64 numbers from 0"):
        diagnostics.relative_subgraph_degree(graph, torch.zeros(34))
    with pytest.raises(TadropedgeError, match="clusters must have 34 entries"):
        diagnostics.relative_subgraph_degree(graph, torch.zeros(3, dtype=torch.int64))
    with pytest.raises(TadropedgeError, match="34 clusters of 34 nodes leave no eigenvalue"):
        diagnostics.alpha_realizable(graph, torch.arange(34))
    with pytest.raises(TadropedgeError, match="q=35 is larger than the number of nodes, 34"):
        diagnostics.low_modes(graph, 35)
    with pytest.raises(TadropedgeError, match="columns of second must be orthonormal"):
        diagnostics.subspace_distance(torch.eye(4)[:, :2], torch.ones(4, 2))
    with pytest.raises(TadropedgeError, match="same dimension"):
        diagnostics.subspace_distance(torch.eye(4)[:, :2], torch.eye(4)[:, :3])
    with pytest.raises(TadropedgeError, match=r"first must be a basis \[\.\.\., N, q\]"):
        diagnostics.subspace_distance(torch.ones(3), torch.eye(3))


# -- variance --------------------------------------------------------------------------------------------


def two_hops(shift):
    x = torch.randn(34, 5, generator=torch.Generator().manual_seed(0))
    return (shift @ (shift @ x).relu())[..., :3]


def test_output_variance_is_the_variance_of_the_outputs_in_any_batch():
    graph = graphs.ZOO["karate"]
    keep_prob = torch.full((graph.num_edges,), 0.6)
    found = diagnostics.output_variance(two_hops, graph, keep_prob, samples=25, seed=3)
    keep = torch.stack([sample_edges(keep_prob, seed=3, epoch=epoch) for epoch in range(25)])
    outputs = two_hops(shift_operator(graph, keep)).double()
    assert found.value == pytest.approx(float(outputs.var(dim=0).sum() / 3), rel=1e-6)
    assert found.terms.shape == (24,)
    whole = two_hops(shift_operator(graph)).double()
    torch.testing.assert_close(found.deviations, (outputs - whole).square().sum(dim=(1, 2)) / 3)
    for batch in (1, 7, 25):
        again = diagnostics.output_variance(two_hops, graph, keep_prob, samples=25, seed=3, batch=batch)
        assert again.value == pytest.approx(found.value, rel=1e-6)


@pytest.mark.parametrize("normalization", NORMALIZATIONS)
def test_the_variance_of_an_unbiased_layer_has_a_closed_form(normalization):
    """Of S_t x: Σ_ij S_ij² x_j² (1 − p_ij) / p_ij, as each entry is S_ij / p_ij or 0; its mean is S x."""
    graph = graphs.ZOO["karate"]
    keep_prob = torch.linspace(0.3, 1.0, graph.num_edges)
    x = torch.randn(34, 1, generator=torch.Generator().manual_seed(0))
    found = diagnostics.output_variance(
        lambda S: S @ x, graph, keep_prob, samples=3000, normalization=normalization, unbiased=True, batch=100
    )
    p = torch.ones(34, 34, dtype=torch.float64)
    p[tuple(graph.pairs)] = p[tuple(graph.pairs.flip(0))] = keep_prob.double()
    S = dense.shift(torch.tensor(dense.adjacency(graph)), normalization)
    expected = float((S**2 * (1 - p) / p * x[:, 0].double() ** 2).sum())
    assert abs(found.value - expected) < 5 * found.standard_error
    assert float(found.deviations.mean()) == pytest.approx(expected, abs=5 * found.standard_error)
    if normalization == "adjacency":
        return  # nothing is renormalised
    biased = diagnostics.output_variance(lambda S: S @ x, graph, keep_prob, normalization=normalization)
    assert biased.value != pytest.approx(expected, rel=0.01)


def test_the_standard_error_is_that_of_repeated_measurements():
    graph = graphs.ZOO["karate"]
    keep_prob = torch.full((graph.num_edges,), 0.6)
    runs = [diagnostics.output_variance(two_hops, graph, keep_prob, samples=30, seed=seed) for seed in range(60)]
    spread = np.std([run.value for run in runs])
    assert 0.7 < spread / np.mean([run.standard_error for run in runs]) < 1.4


def test_nothing_varies_where_everything_is_kept():
    graph = graphs.ZOO["karate"]
    assert diagnostics.output_variance(two_hops, graph, torch.ones(graph.num_edges), samples=5).value == 0


def test_a_network_of_the_wrong_shape_is_named():
    graph = graphs.ZOO["karate"]
    with pytest.raises(TadropedgeError, match=r"must return outputs \[1, 34, F\] for 1 subgraphs, got shape \[1\]"):
        diagnostics.output_variance(
            lambda shift: torch.zeros(shift.values.shape[0]), graph, torch.ones(graph.num_edges), samples=6, batch=4
        )
