"""What every eigensolver must do."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import pytest
import scipy.sparse as sp

from tadropedge.graph import Graph
from tadropedge.spectrum import LAPLACIANS, SOLVERS, ModeRequest, Subspaces, execute, plan
from tadropedge.spectrum.blocks import Floats
from tadropedge.spectrum.target import Solver, Target
from tadropedge.testing.graphs import bipartite, clusters, cycle, grid, path, spider, star, union


def cube(dimensions: int) -> Graph:
    """The hypercube: nodes are joined that differ in one bit."""
    node, bit = np.arange(2**dimensions), 2 ** np.arange(dimensions)
    return Graph.from_edge_index(np.stack((np.repeat(node, dimensions), (node[:, None] ^ bit).ravel())))


def rooks(rows: int, columns: int) -> Graph:
    """Two squares of a board are joined where a rook moves from one to the other."""
    row, column = np.divmod(np.arange(rows * columns), columns)
    moves = (row[:, None] == row) | (column[:, None] == column)
    return Graph.from_edge_index(np.stack(np.nonzero(np.triu(moves, 1))))


EASY = {"cube": cube(9), "rooks": rooks(25, 24), "star": star(500)}  # few distinct eigenvalues, each repeated often
HARD = {  # low eigenvalues lie close; the lowest one of the spider is six-fold, those of the cycle are double
    "spider": spider(7, 90),
    "cycle": cycle(600),
    "clusters": clusters([300, 300], 0.03, 0.001),
    "crowd": clusters([500], 0.032, 0.0),
    "grid": grid(17, 20),
}
GOOD = Target(limits=lambda values, norm: np.full(len(values), 1e-11 * norm))


def laplacian_system(graph: Graph, laplacian: str) -> tuple[sp.csr_matrix, Floats]:
    """The Laplacian of a connected graph as CSR, and its unit null vector."""
    A = graph.adjacency()
    degrees = np.asarray(A.sum(axis=1)).ravel()
    L, null = sp.diags(degrees) - A, np.ones(len(degrees))
    if laplacian == "normalized":
        L, null = sp.diags(degrees**-0.5) @ L @ sp.diags(degrees**-0.5), np.sqrt(degrees)
    return sp.csr_matrix(L), null / np.linalg.norm(null)


def modes_of(graph: Graph, request: ModeRequest) -> list[Subspaces]:
    """The modes of all components, small ones first."""
    return [execute(step) for step in plan(request.parts(graph), request)]


class SolverContract:
    """Subclass it with ``solver``, a name or ``staticmethod(function)``, and ``graphs`` if it may give up on some."""

    solver: str | Solver = "dense"
    graphs: ClassVar[dict[str, Graph]] = EASY | HARD

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        """Every test is run on all graphs that it takes, for both Laplacians."""
        if "graph" in metafunc.fixturenames:
            metafunc.parametrize("graph", self.graphs.values(), ids=list(self.graphs))
        if "laplacian" in metafunc.fixturenames:
            metafunc.parametrize("laplacian", LAPLACIANS)

    @pytest.fixture
    def name(self, monkeypatch: pytest.MonkeyPatch) -> str:
        """The name of the solver; a function is registered for the test alone."""
        if isinstance(self.solver, str):
            return self.solver
        monkeypatch.setitem(SOLVERS, "own", self.solver)
        return "own"

    @pytest.mark.parametrize("k", [2, 14])
    def test_every_copy_of_the_lowest_pairs(self, name: str, graph: Graph, laplacian: str, k: int) -> None:
        """Values, vectors and the null vector of a dense solution, copies of repeated eigenvalues included."""
        L, null = laplacian_system(graph, laplacian)
        values, vectors = SOLVERS[name](L, null, k, GOOD)
        assert values.shape == (k,)
        assert vectors.shape == (graph.num_nodes, k)
        assert vectors.dtype == np.float64
        assert values == pytest.approx(np.linalg.eigvalsh(L.toarray())[:k], abs=1e-9)
        assert np.linalg.norm(L @ vectors - vectors * values) < 1e-8
        assert np.abs(vectors.T @ vectors - np.eye(k)).max() < 1e-9
        assert abs(vectors[:, 0] @ null) == pytest.approx(1, abs=1e-9)

    def test_names_of_nodes_do_not_matter_and_bits_are_the_same_each_time(
        self, name: str, graph: Graph, laplacian: str
    ) -> None:
        """Nodes in another order have the same eigenvalues; the same call has the same answer."""
        L, null = laplacian_system(graph, laplacian)
        expected = np.linalg.eigvalsh(L.toarray())[:4]
        order = np.random.default_rng(0).permutation(graph.num_nodes)
        L, null = L[order][:, order].tocsr(), null[order]
        values, vectors = SOLVERS[name](L, null, 4, GOOD)
        assert values == pytest.approx(expected, abs=1e-9)
        again = SOLVERS[name](L, null, 4, GOOD)
        assert np.array_equal(values, again[0])
        assert np.array_equal(vectors, again[1])

    def test_the_whole_subspace(self, name: str, graph: Graph, laplacian: str) -> None:
        """Through the plan, which asks for more pairs where q falls inside a repeated eigenvalue."""
        (ours,) = modes_of(graph, ModeRequest(q=3, laplacian=laplacian, solver=name))
        values, vectors = np.linalg.eigh(laplacian_system(graph, laplacian)[0].toarray())
        count = int(ours.counts[0])
        assert count == len(values) or values[count] - values[count - 1] > 1e-7
        assert count == 3 or values[3] - values[2] < 1e-9
        assert ours.values[0, :count] == pytest.approx(values[:count], abs=1e-9)
        V, W, order = ours.vectors[0], vectors[:, :count], ours.block.nodes[0]
        apart = V @ V.T - (W @ W.T)[np.ix_(order, order)]
        if ours.local.any():  # differences of twins have no vectors, but their share of P_ii
            apart = np.diag(apart) + ours.local[0]
        assert np.abs(apart).max() < 1e-8
        assert ours.error[0] < 1e-5

    def test_many_tiny_components(self, name: str) -> None:
        """They need no solver of their own."""
        graph = union(*(path(3 + place % 3) for place in range(60)), bipartite(2, 3))
        ours, dense = (modes_of(graph, ModeRequest(q=2, solver=solver)) for solver in (name, "dense"))
        for one, other in zip(ours, dense, strict=True):
            assert np.array_equal(one.vectors, other.vectors)
