"""Twins, nodes with the same neighbours: found, merged, solved for in closed form; and the order of large systems."""

from itertools import combinations

import dense
import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
import torch
from contracts.solvers import COMMUNITIES
from graphs import of

import tadropedge as tde
from tadropedge import RepeatedEigenvalueWarning, aggregate_resistance, effective_resistance, electrical
from tadropedge.electrical import laplacian_solver
from tadropedge.spectrum import twins as module
from tadropedge.spectrum.multigrid import RowMaximum
from tadropedge.spectrum.twins import System, Twins

KINDS = pytest.mark.parametrize("kind", ["combinatorial", "normalized"])
quiet = pytest.mark.filterwarnings("ignore::tadropedge.RepeatedEigenvalueWarning")


def laplacian(graph, kind="combinatorial"):
    return sp.csr_matrix(dense.laplacian(graph.adjacency().toarray(), kind))


@pytest.fixture(scope="module")
def films():
    """100 films with five actors who play nowhere else and four of 120 who do: cliques with twins."""
    random = np.random.default_rng(4)
    casts = [np.append(random.choice(120, 4, replace=False), 120 + 5 * film + np.arange(5)) for film in range(100)]
    arcs = np.concatenate([np.stack(np.meshgrid(cast, cast)).reshape(2, -1) for cast in casts], axis=1)
    names = np.unique(arcs, return_inverse=True)[1].reshape(arcs.shape)
    graph = tde.Graph.from_edge_index(names)
    assert graph.components.count == 1
    return graph


@KINDS
@pytest.mark.parametrize("seed", range(5))
def test_twins_are_all_pairs_of_equal_rows(seed, kind, monkeypatch):
    """Against every pair of rows, on weighted graphs whose nodes were copied, with and without edges between copies."""
    monkeypatch.setattr(module, "AT_ONCE", 7)
    random = np.random.default_rng(seed)
    small = np.triu(random.integers(1, 3, (9, 9)) * (random.random((9, 9)) < 0.5))
    small[0] = 1  # connected
    copied = random.permutation(np.repeat(np.arange(9), random.integers(1, 4, 9)))
    A = np.maximum(small, small.T)[copied][:, copied].astype(float)
    np.fill_diagonal(A, 0)
    L = dense.laplacian(A, kind)
    twins = Twins.of(sp.csr_matrix(L))
    for u, v in combinations(range(len(L)), 2):
        others = ~np.isin(np.arange(len(L)), (u, v))
        alike = (L[u, others] == L[v, others]).all() and L[u, u] == L[v, v]
        assert (twins.place[u] == twins.place[v]) == alike
    spread, small = twins.spread(), twins.quotient(sp.csr_matrix(L)).toarray()
    assert small == pytest.approx(spread.T @ L @ spread)
    assert twins.between(np.linalg.eigvalsh(small)) == pytest.approx(np.linalg.eigvalsh(L), abs=1e-12)


@quiet
@KINDS
@pytest.mark.parametrize("q", [4, 60, 500])
def test_cliques_with_members_of_no_other_clique(films, kind, q):
    """Twins are neighbours here; with many modes their differences are among them, and their edges have ω = 2."""
    assert (Twins.of(laplacian(films, kind)).copies >= 5).sum() == 100
    ours = aggregate_resistance(films, q, laplacian=kind).numpy()
    assert ours == pytest.approx(dense.aggregate_resistance(films, q, kind), abs=1e-8)
    assert (ours == 2).any() == (q == 500)


def test_everything_is_a_twin():
    """The complete graph is one node; the 700 twins of a bipartite one have their differences among the modes."""
    assert Twins.of(laplacian(of(nx.complete_graph(600)))).copies.tolist() == [600]
    with pytest.warns(RepeatedEigenvalueWarning):
        assert (aggregate_resistance(of(nx.complete_graph(600)), 2) == 2).all()
    with pytest.warns(RepeatedEigenvalueWarning):
        weights = aggregate_resistance(of(nx.complete_bipartite_graph(3, 700)), 2).numpy()
    assert weights == pytest.approx(np.full(2100, 1 - 1 / 700), abs=1e-9)
    resistance = effective_resistance(of(nx.complete_graph(600)), method="sketch", relative_error=0.3).numpy()
    assert resistance.sum() == pytest.approx(599)


@pytest.mark.parametrize("narrow", [-1, 10**9])
def test_solves_with_twins_against_the_pseudo_inverse(films, narrow, monkeypatch):
    monkeypatch.setattr(electrical, "NARROW", narrow)
    b = np.random.default_rng(0).standard_normal((films.num_nodes, 11))  # more than one slice of columns
    expected = np.linalg.pinv(laplacian(films).toarray()) @ b
    assert laplacian_solver(laplacian(films))(b) == pytest.approx(expected, abs=1e-6)


@KINDS
@pytest.mark.parametrize("solver", ["davidson", "shift-invert", "lanczos", "short-lanczos"])
def test_the_order_of_large_systems_changes_no_weight(solver, kind, monkeypatch):
    if (solver, kind) == ("short-lanczos", "combinatorial"):
        pytest.skip("the low eigenvalues are too close for it")
    monkeypatch.setattr(module, "WORTH_ORDER", 1)
    ours = aggregate_resistance(COMMUNITIES, 3, laplacian=kind, solver=solver).numpy()
    assert ours == pytest.approx(dense.aggregate_resistance(COMMUNITIES, 3, kind), abs=1e-8)


def test_a_system_in_breadth_first_order(films, monkeypatch):
    """Every node but the first has a neighbour before it, and L is the same in the new order."""
    monkeypatch.setattr(module, "WORTH_ORDER", 1)
    L = laplacian(films)
    system = System.merged(L, np.full(films.num_nodes, films.num_nodes**-0.5))
    assert (system.L.indices[system.L.indptr[1:-1]] < np.arange(1, system.L.shape[0])).all()
    spread = system.twins.spread()
    assert system.L.toarray() == pytest.approx((spread.T @ L @ spread).toarray())
    assert np.abs(system.L @ system.null).max() <= 1e-12


def test_largest_of_every_row(device):
    """Both ways of taking it, on integers and floats below zero too."""
    row = torch.tensor([0, 0, 1, 2, 2, 2])
    for values in (torch.tensor([-3, -5, 4, 0, 7, 7]), torch.tensor([-0.5, -1.0, 2.0, 1.0, 3.0, -3.0])):
        expected = [values[row == place].max() for place in range(3)]
        assert RowMaximum(row.to(device), 3)(values.to(device)).tolist() == expected
