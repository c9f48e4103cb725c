"""What every eigensolver must do: ``(L, null, k, aim) -> (values [k], vectors [n, k])`` of one component."""

from __future__ import annotations

import dense
import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
import torch
from graphs import clusters, cycle, of, path, spider, star, union
from scipy.stats import spearmanr

from tadropedge import Graph, aggregate_resistance
from tadropedge.spectrum import SOLVERS, cluster_subspaces
from tadropedge.spectrum.aim import Aim
from tadropedge.spectrum.clusters import Clusters


def with_leaves(graph, hubs, leaves):
    """The graph with a bunch of leaves on each of some hubs."""
    arcs = [(hub, graph.num_nodes + place * leaves + leaf) for place, hub in enumerate(hubs) for leaf in range(leaves)]
    return Graph.from_edge_index(torch.cat((graph.pairs, torch.tensor(arcs).T), dim=1))


def system(graph, laplacian):
    """The Laplacian as CSR and its unit null vector."""
    A = graph.adjacency()
    null = np.sqrt(np.asarray(A.sum(1)).ravel()) if laplacian == "normalized" else np.ones(graph.num_nodes)
    return sp.csr_matrix(dense.laplacian(A.toarray(), laplacian)), null / np.linalg.norm(null)


COMMUNITIES = with_leaves(clusters([350, 350, 350], 0.02, 0.001), [0, 400, 800], 5)
EASY = {  # few distinct eigenvalues, each repeated often
    "cube": of(nx.hypercube_graph(9)),
    "rooks": of(nx.line_graph(nx.complete_bipartite_graph(25, 24))),
    "star": star(500),
}
HARD = {  # low eigenvalues lie close; the lowest one of the spider is six-fold, those of the cycle are double
    "spider": spider(7, 90),
    "cycle": cycle(600),
    "clusters": clusters([300, 300], 0.03, 0.001),
    "crowd": of(nx.gnm_random_graph(500, 4000, seed=0)),
    "grid": of(nx.grid_2d_graph(17, 20)),
}


GOOD = Aim(limits=lambda values, norm: np.full(len(values), 1e-11 * norm))


class SolverContract:
    """Subclass it with the ``name`` of a solver, and with ``graphs`` if it may give up on some of these."""

    name = "dense"
    graphs = EASY | HARD

    def pytest_generate_tests(self, metafunc):
        if "graph" in metafunc.fixturenames:
            metafunc.parametrize("graph", self.graphs.values(), ids=self.graphs)
        if "laplacian" in metafunc.fixturenames:
            metafunc.parametrize("laplacian", ["combinatorial", "normalized"])

    @pytest.mark.parametrize("k", [2, 14])
    def test_every_copy_of_the_lowest_pairs(self, graph, laplacian, k):
        L, null = system(graph, laplacian)
        values, vectors = SOLVERS[self.name](L, null, k, GOOD)
        assert (values.shape, vectors.shape, vectors.dtype) == ((k,), (graph.num_nodes, k), np.float64)
        assert values == pytest.approx(np.linalg.eigvalsh(L.toarray())[:k], abs=1e-9)
        assert np.linalg.norm(L @ vectors - vectors * values) < 1e-8
        assert np.abs(vectors.T @ vectors - np.eye(k)).max() < 1e-9
        assert abs(vectors[:, 0] @ null) == pytest.approx(1, abs=1e-9)

    def test_names_of_nodes_do_not_matter_and_bits_are_the_same_each_time(self, graph, laplacian):
        k = 4
        L, null = system(graph, laplacian)
        expected = np.linalg.eigvalsh(L.toarray())[:k]
        order = np.random.default_rng(0).permutation(graph.num_nodes)
        L, null = L[order][:, order].tocsr(), null[order]
        values, vectors = SOLVERS[self.name](L, null, k, GOOD)
        assert values == pytest.approx(expected, abs=1e-9)
        again = SOLVERS[self.name](L, null, k, GOOD)
        assert np.array_equal(values, again[0])
        assert np.array_equal(vectors, again[1])

    def test_the_whole_dense_subspace(self, graph, laplacian, q=3):
        """Through the ladder, which asks for more pairs where q falls inside a repeated eigenvalue."""
        (ours,) = cluster_subspaces(graph, Clusters(q=q), laplacian, self.name)
        values, vectors = np.linalg.eigh(system(graph, laplacian)[0].toarray())
        count = int(ours.counts[0])
        assert count == len(values) or values[count] - values[count - 1] > 1e-7
        assert count == q or values[q] - values[q - 1] < 1e-9
        assert ours.values[0, :count] == pytest.approx(values[:count], abs=1e-9)
        V, W, order = ours.vectors[0], vectors[:, :count], ours.block.nodes[0]
        apart = V @ V.T - (W @ W.T)[np.ix_(order, order)]
        if ours.local.any():  # differences of twins have no vectors, but their share of P_ii
            apart = np.diag(apart) + ours.local[0]
        assert np.abs(apart).max() < 1e-8
        assert ours.error[0] < 1e-5

    def test_scores_are_ranked_as_by_a_dense_solution(self, laplacian):
        ours = aggregate_resistance(COMMUNITIES, 3, laplacian=laplacian, solver=self.name).numpy()
        reference = dense.aggregate_resistance(COMMUNITIES, 3, laplacian)
        assert np.abs(ours - reference).max() <= 1e-8
        assert spearmanr(ours, reference).statistic >= 0.999

    def test_many_tiny_components(self):
        graph = union(*(path(3 + place % 3) for place in range(600)))
        assert torch.equal(aggregate_resistance(graph, 2, solver=self.name), aggregate_resistance(graph, 2))
