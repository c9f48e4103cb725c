"""Graphs of 10^8 edges, on small ones: work in pieces, arrays mapped from files, and how much memory an edge takes."""

import os
import subprocess
import sys
import zipfile

import dense
import numpy as np
import pytest
import torch
from graphs import clusters, complete, cycle, star, two_cliques, union, weighted

import tadropedge as tde
from tadropedge import Graph, TadropedgeError, aggregate_resistance, auto_gamma, blocks, graph, triangles
from tadropedge.files import npz
from tadropedge.score_report.part import Part
from tadropedge.score_report.summary import most_critical
from tadropedge.scores import aggregate, solve
from tadropedge.spectrum import certified

MIXED = union(clusters([40, 30], 0.3, 0.02), cycle(9), star(5), complete(4))
quiet = pytest.mark.filterwarnings("ignore::tadropedge.RepeatedEigenvalueWarning")


@pytest.fixture(params=[1, 3, 1 << 22])
def piece(request, monkeypatch):
    """So many edges at a time."""
    for module in (graph, blocks, solve, aggregate, tde.strategies, tde.score_report.part):
        monkeypatch.setattr(module, "PIECE", request.param)


def plain_pairs(arcs):
    """Pairs and the pair of each arc, by Python's own sets."""
    ends = [tuple(sorted(arc)) for arc in arcs.T.tolist()]
    pairs = sorted({end for end in ends if end[0] != end[1]})
    return [list(pair) for pair in pairs], [pairs.index(end) if end in pairs else -1 for end in ends]


@pytest.mark.usefixtures("piece")
@pytest.mark.parametrize("dtype", [np.int16, np.int32, np.int64, np.dtype(">i4")])
@pytest.mark.parametrize("layout", [lambda arcs: arcs, np.asfortranarray, lambda arcs: arcs[:, ::-1]])
def test_pairs_and_arcs_are_those_of_a_plain_reference(dtype, layout):
    arcs = np.random.default_rng(0).integers(0, 7, size=(2, 60)).astype(dtype)
    before = arcs.copy()
    found = Graph.from_edge_index(layout(arcs), 9)
    pairs, places = plain_pairs(layout(arcs))
    assert (found.pairs.T.tolist(), found.arc_pair.tolist()) == (pairs, places)
    assert (found.pairs.dtype, found.arc_pair.dtype) == (torch.int64, torch.int64)
    assert np.array_equal(arcs, before)


def test_a_graph_does_not_share_memory_with_the_array_it_was_made_of():
    arcs = np.array([[0, 1], [1, 2]])
    made = Graph.from_edge_index(arcs)
    arcs[:] = 0
    assert made.pairs.tolist() == [[0, 1], [1, 2]]


@pytest.mark.usefixtures("piece")
@pytest.mark.parametrize("pairs", [[[0, 0, 2], [1, 2, 1]], [[0, 0, 0], [2, 1, 3]], [[0, 0, 1], [1, 1, 2]]])
def test_pairs_out_of_order_are_found_in_every_piece(pairs):
    with pytest.raises(TadropedgeError, match="must be sorted"):
        Graph(torch.tensor(pairs), 4)


@pytest.mark.usefixtures("piece")
@pytest.mark.parametrize("kind", ["combinatorial", "normalized"])
@pytest.mark.parametrize("made", [MIXED, weighted(MIXED), two_cliques(6)])
def test_the_sparse_laplacian_is_the_dense_one_with_columns_in_order(made, kind):
    adjacency = dense.adjacency(made)
    for block in blocks.blocks(made):
        one = block.one(0)
        L, inside = one.sparse_laplacian(kind), np.ix_(one.nodes[0], one.nodes[0])
        np.testing.assert_allclose(L.toarray(), dense.laplacian(adjacency[inside], kind), rtol=0, atol=1e-14)
        assert L.nnz == 2 * len(one.edges) + one.size
        assert all((np.diff(L.indices[a:b]) > 0).all() for a, b in zip(L.indptr[:-1], L.indptr[1:], strict=True))


def test_the_sparse_laplacian_of_edges_in_any_order():
    *_, block = blocks.blocks(weighted(complete(7)))
    turned = blocks.Block(
        nodes=block.nodes, edges=block.edges[::-1], member=block.member, low=block.high[::-1], high=block.low[::-1],
        weight=block.weight[::-1],
    )  # fmt: skip
    expected = block.sparse_laplacian("combinatorial").toarray()
    np.testing.assert_allclose(turned.sparse_laplacian("combinatorial").toarray(), expected, rtol=1e-14)


@quiet
@pytest.mark.usefixtures("piece")
def test_aggregate_resistance_in_pieces_is_the_dense_one():
    expected = dense.aggregate_resistance(MIXED, 3)
    np.testing.assert_allclose(aggregate_resistance(MIXED, 3).numpy(), expected, rtol=1e-7, atol=1e-10)


@pytest.mark.usefixtures("piece")
def test_near_ties_become_equal_across_pieces():
    scores = np.array([3.0, 1.0, 1 + 5e-10, np.nan, 2.0, 3 * (1 + 8e-10), 1 + 9e-10, 1.0])
    assert solve.settled(scores).tolist() == [3.0, 1.0, 1.0, 1.0, 2.0, 3.0, 1.0, 1.0]
    assert np.isnan(scores[3])
    chain = 1 + 9e-10 * np.arange(20)  # too long to be one value
    assert np.array_equal(solve.settled(chain[::-1]), chain[::-1])
    assert solve.settled(np.full(3, np.nan)).tolist() == [0.0, 0.0, 0.0]


@pytest.mark.usefixtures("piece")
def test_the_knee_is_that_of_the_formula():
    weights = torch.from_numpy(np.random.default_rng(1).pareto(1.5, size=50))
    ascending = np.sort(weights.numpy())
    rise = (ascending - ascending[0]) / (ascending[-1] - ascending[0])
    assert auto_gamma(weights) == ascending[np.argmax(np.arange(1, 51) / 50 - rise) + 1]


@pytest.mark.parametrize("most", [1, 4, 1 << 23])
def test_triangles_in_chunks_are_those_of_the_squared_matrix(monkeypatch, most):
    monkeypatch.setattr(triangles, "MOST", most)
    for made in (MIXED, complete(9), two_cliques(6), star(4)):
        assert triangles.by_rows(made).tolist() == dense.triangles(made).tolist()


@quiet
@pytest.mark.parametrize("many", [1, 1 << 20])
@pytest.mark.parametrize("made", [cycle(30), complete(12), clusters([60, 50, 40], 0.3, 0.01), two_cliques(20)])
def test_short_lanczos_finds_every_copy_with_little_memory(monkeypatch, made, many):
    monkeypatch.setattr(certified, "MANY_NODES", many)
    for q in (2, 3):
        found = aggregate_resistance(made, q, laplacian="normalized", solver="short-lanczos").numpy()
        np.testing.assert_allclose(found, dense.aggregate_resistance(made, q, "normalized"), rtol=1e-6, atol=1e-8)


def test_a_part_is_the_induced_subgraph(monkeypatch):
    monkeypatch.setattr(tde.score_report.part, "PIECE", 2)
    made = union(cycle(3), complete(5), Graph.from_edge_index(np.zeros((2, 0), dtype=int), 2))
    spoken = Part.chosen(made).of(solve.solve(made, "degree", {}))
    assert spoken.graph.node_ids == (3, 4, 5, 6, 7)
    assert spoken.graph.pairs.tolist() == complete(5).pairs.tolist()
    assert spoken.graph.components.sizes.tolist() == [5]
    assert spoken.values.tolist() == [0.5] * 10
    assert [edge["source"] for edge in most_critical(spoken, 5)] == [3, 3, 3, 3, 4]  # the first of equal ones


@pytest.fixture
def saved(tmp_path, monkeypatch):
    monkeypatch.setattr(npz, "MAPPED", 0)
    edges = np.random.default_rng(2).integers(0, 50, size=(200, 2))

    def save(edges=edges, packed=False):
        (np.savez_compressed if packed else np.savez)(tmp_path / "graph.npz", edges=edges, num_nodes=np.array(60))
        return tmp_path / "graph.npz"

    return edges, save


@pytest.mark.parametrize("dtype", [np.uint8, np.int32, np.int64, np.dtype(">i8")])
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("packed", [False, True])
def test_arrays_of_a_file_are_mapped_where_they_are_stored_as_they_are(saved, dtype, order, packed):
    edges, save = saved
    path = save(np.asarray(edges, dtype=dtype, order=order), packed)
    arrays, names = npz.read_arrays(path, {"edges", "num_nodes"})
    assert names == ["edges", "num_nodes"]
    assert np.array_equal(arrays["edges"], edges)
    assert isinstance(arrays["edges"], np.memmap) == (not packed)
    content = path.read_bytes()
    arrays["edges"][:] = 0
    assert path.read_bytes() == content
    made, expected = Graph.from_file(path), Graph.from_edge_index(edges.T, 60)
    assert torch.equal(made.pairs, expected.pairs)
    assert torch.equal(made.arc_pair, expected.arc_pair)


def test_a_damaged_array_is_not_mapped(saved):
    _, save = saved
    path = save()
    with zipfile.ZipFile(path) as archive:
        place = archive.getinfo("edges.npy").header_offset + 400
    content = bytearray(path.read_bytes())
    content[place] ^= 1
    path.write_bytes(content)
    with pytest.raises(TadropedgeError, match=r"graph\.npz: not an \.npz file of plain arrays \(Bad CRC-32"):
        Graph.from_file(path)


MEASURED = """
import resource, sys
import scipy.sparse.csgraph, torch
import tadropedge as tde
def peak(): return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
tde.edge_scores(tde.Graph.from_edge_index([[0, 1, 2], [1, 2, 0]]), sys.argv[2])
before = peak()
graph = tde.Graph.from_file(sys.argv[1])
tde.edge_scores(graph, sys.argv[2])
print((peak() - before) / graph.num_edges)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="counts memory as Linux does")
@pytest.mark.parametrize(("score", "most"), [("degree", 100), ("jaccard", 180)])
def test_an_edge_takes_few_bytes_from_the_file_to_its_score(tmp_path, score, most):
    """Pairs and arcs take 24 of them, and a score 8."""
    random, path = np.random.default_rng(0), tmp_path / "graph.npz"
    np.savez(path, edges=random.integers(0, 200_000, size=(2_000_000, 2), dtype=np.int32))
    # Without this, what is freed may stay with the process, more or less of it.
    environment = {**os.environ, "MALLOC_MMAP_THRESHOLD_": str(2**20), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-c", MEASURED, str(path), score]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    assert float(done.stdout) < most
