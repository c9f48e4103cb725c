"""Every eigensolver keeps its contract."""

from __future__ import annotations

import numpy as np
import pytest
from dense import laplacian
from solver_contract import EASY, HARD, SolverContract, laplacian_system

from tadropedge import ConvergenceError, Graph, RepeatedEigenvalueWarning, edge_scores
from tadropedge.spectrum import SOLVERS, laplacian_solver
from tadropedge.spectrum.solvers import davidson, dense
from tadropedge.spectrum.target import Target
from tadropedge.spectrum.twins import Twins
from tadropedge.testing.graphs import ZOO, clusters, grid, spider, star, union, weighted


class TestDense(SolverContract):
    solver = "dense"


class TestShiftInvert(SolverContract):
    solver = "shift-invert"


class TestDavidson(SolverContract):
    solver = "davidson"


class TestShortLanczos(SolverContract):
    solver = "short-lanczos"
    graphs = EASY


class TestOwn(SolverContract):
    """A user's function, not registered."""

    solver = staticmethod(lambda L, null, k, target: dense(L, null, k))
    graphs = {name: (EASY | HARD)[name] for name in ("star", "grid")}


def test_every_solver_is_tested():
    assert {contract.solver for contract in SolverContract.__subclasses__()} >= set(SOLVERS)


@pytest.mark.parametrize(
    ("spoiled", "words"),
    [
        (lambda values, vectors: (values, vectors[:, [0, 1, 1, *range(3, vectors.shape[1])]]), "orthogonal|residual"),
        (lambda values, vectors: (values[[0, 1, 1, 1]], vectors[:, [0, 1, 1, 1]]), "not orthogonal"),
        (lambda values, vectors: (values, vectors + 1e-3), "residual"),
        (lambda values, vectors: (values * np.nan, vectors), "NaN"),
    ],
)
def test_a_poor_answer_of_ones_own_solver_is_refused(spoiled, words, monkeypatch):
    monkeypatch.setitem(SOLVERS, "poor", lambda L, null, k, target: spoiled(*dense(L, null, k)))
    with pytest.raises(ConvergenceError, match=words):
        edge_scores(grid(20, 31), q=3, solver="poor")


def test_products_alone_are_given_up_where_low_eigenvalues_lie_close():
    L, null = laplacian_system(grid(40, 60), "normalized")
    with pytest.raises(RuntimeError, match="after 60 steps"):
        SOLVERS["short-lanczos"](L, null, 4)


def test_davidson_gives_up_where_rounding_has_won():
    unreachable = Target(limits=lambda values, norm: np.full(len(values), 1e-30 * norm))
    with pytest.raises(RuntimeError, match="stalled"):
        davidson(*laplacian_system(grid(9, 10), "combinatorial"), 4, unreachable)


def test_differences_of_twins_that_are_as_large_as_the_last_eigenvalue_are_among_the_lowest():
    """A node with two leaves and a path of four nodes: 1 is an eigenvalue of the leaves, and of all but them."""
    twins = Twins(np.array([0, 1, 1, 2]), np.array([1, 2, 1]), np.array([3.0, 1.0, 2.0]))
    assert twins.between(np.array([0.0, 1.0])).tolist() == [0.0, 1.0, 1.0]
    tree = Graph.from_edge_index([[0, 0, 0, 3, 4, 5], [1, 2, 3, 4, 5, 6]])
    with pytest.warns(RepeatedEigenvalueWarning):
        found = edge_scores(tree, q=3, solver="shift-invert")
    assert found.numpy() == pytest.approx(edge_scores(tree, q=4, solver="dense").numpy())


def test_progress_inside_one_component():
    shares = []
    davidson(*laplacian_system(grid(30, 30), "combinatorial"), 4, Target(report=shares.append))
    assert len(shares) > 5
    assert shares[0] <= 0.1
    assert 0.8 <= shares[-1] <= 1


LINEAR = {
    "zoo": union(*ZOO.values()),  # many small ones, twins among them
    "long": spider(5, 150),  # factorised, since it is thin
    "crowd": weighted(clusters([400, 300], 0.05, 0.01)),  # by conjugate gradients
    "twins": union(star(700), clusters([600], 0.05, 0.0)),
}


@pytest.mark.parametrize("name", LINEAR)
def test_linear_equations_are_those_of_the_pseudoinverse(name):
    """Whatever b is, one vector or several: means of components and isolated nodes count for nothing."""
    graph = LINEAR[name]
    L = laplacian(graph.adjacency().toarray())
    b = np.random.default_rng(0).standard_normal((graph.num_nodes, 11)) + 3
    solve, expected = laplacian_solver(graph), np.linalg.pinv(L, rcond=1e-10, hermitian=True) @ b
    assert np.abs(solve(b) - expected).max() < 1e-6 * np.abs(expected).max()
    assert np.abs(solve(b[:, 0]) - expected[:, 0]).max() < 1e-6 * np.abs(expected).max()


@pytest.mark.parametrize("k", [2, 3, 6])  # one wanted vector leaves blocks of one row, a case of its own on a GPU
def test_davidson_finds_the_lowest_modes_on_every_device(device, k):
    L, null = laplacian_system(grid(20, 31), "combinatorial")
    values, vectors = davidson(L, null, k, Target(device=device))
    assert values == pytest.approx(np.linalg.eigvalsh(laplacian(grid(20, 31).adjacency().toarray()))[:k], abs=1e-8)
    assert np.abs(L @ vectors - vectors * values).max() <= 1e-6
