"""Arrays and sparse matrices from outside: what is right comes through unchanged, what is wrong is refused."""

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from tadropedge import Graph, TadropedgeError, memory
from tadropedge.arrays import checked_csr, checked_matrix, checked_parts, structure_fault, whole_numbers
from tadropedge.data.files import own_splits
from tadropedge.errors import MOST_WORDS, NotEnoughMemoryError

FORMATS = ("csr", "csc", "coo", "bsr", "dia", "lil", "dok")


def example(kind, container="matrix"):
    dense = np.arange(36.0).reshape(6, 6) % 5
    dense[0] = dense[:, 0] = 0
    return getattr(sp, f"{kind}_{container}")(dense)


@pytest.mark.parametrize("container", ["matrix", "array"])
@pytest.mark.parametrize("kind", FORMATS)
def test_every_format_comes_through(kind, container):
    matrix = example(kind, container)
    assert np.array_equal(checked_matrix(matrix, "A").toarray(), matrix.toarray())
    assert checked_matrix(sp.coo_matrix((3, 3)).asformat(kind), "A").nnz == 0


def test_repeated_entries_are_summed_in_a_type_that_holds_the_sum():
    twice = (np.array([200, 100], dtype=np.uint8), (np.array([0, 0]), np.array([1, 1])))
    assert Graph.from_scipy(sp.coo_matrix(twice, shape=(2, 2))).weight.tolist() == [300]
    parts = (np.array([200, 100], dtype=np.uint8), np.array([1, 1]), np.array([0, 2, 2]))
    assert checked_csr(*parts, (2, 2), "x").toarray().tolist() == [[0, 300], [0, 0]]


@pytest.mark.parametrize(
    ("kind", "part", "value"),
    [("csr", "indices", [2**28]), ("csr", "indices", [-1]), ("csr", "indptr", [0, 99, 1, 1]), ("csc", "indices", [9]),
     ("csr", "indptr", [1, 1, 1, 1]), ("csr", "indptr", [0, 3 * 2**61, -3 * 2**61, 1]), ("csr", "indptr", [0, 1]),
     ("csr", "indices", [0.5]), ("csr", "data", ["a"]), ("csr", "indices", [2**63]),
     ("csc", "indptr", [0, 99, 1, 1]), ("coo", "row", [3]), ("coo", "col", [-1]), ("coo", "row", [0, 1]),
     ("bsr", "indices", [3]), ("bsr", "indptr", [0, 7, 1, 1]), ("dia", "offsets", [1, 1]), ("dia", "offsets", [0.5])],
)  # fmt: skip
def test_parts_that_point_outside_are_refused(kind, part, value):
    matrix = sp.coo_matrix(([1.0], ([0], [1])), shape=(3, 3)).asformat(kind)
    dtype = np.uint64 if value == [2**63] else None
    setattr(matrix, part, np.array(value, dtype=dtype))
    with pytest.raises(TadropedgeError, match=f"matrix: not a {kind.upper()} matrix of shape \\(3, 3\\)"):
        Graph.from_scipy(matrix)


def test_lists_and_dictionaries_that_point_outside_are_refused():
    lists, table = sp.lil_matrix((3, 3)), sp.dok_matrix((3, 3))
    lists[0, 1] = table[0, 1] = 1.0
    lists.rows[0] = [10**8]
    table._dict[(10**8, 0)] = 1.0
    for matrix in (lists, table):
        with pytest.raises(TadropedgeError, match="an index is 100000000, expected 0 to 2"):
            Graph.from_scipy(matrix)
    lists.rows[0] = [1, 2]
    with pytest.raises(TadropedgeError, match="rows and values differ in length"):
        Graph.from_scipy(lists)


@pytest.mark.parametrize("shape", [(3.7, 3.2), (-1, 3), (3,), "ab", None, (2**40, 2**40)])
def test_shapes_that_are_none(shape):
    with pytest.raises(TadropedgeError, match="x: not a COO matrix of shape"):
        checked_parts("coo", (np.ones(1), np.zeros(1, int), np.zeros(1, int)), shape, "x")


def test_more_nodes_than_memory_holds(monkeypatch):
    monkeypatch.setattr(memory, "free_bytes", lambda device="cpu": 10**10)
    huge = sp.coo_matrix(([1.0], ([0], [1])), shape=(3 * 10**9, 3 * 10**9))
    with pytest.raises(NotEnoughMemoryError, match="a graph of 3000000000 nodes needs about"):
        Graph.from_scipy(huge)
    with pytest.raises(NotEnoughMemoryError, match=r"of memory, .* are free"):
        Graph.from_edge_index([[0], [1]], num_nodes=3 * 10**9)


def test_one_check_serves_numpy_and_torch():
    for make in (np.array, torch.tensor):
        assert structure_fault(make([0, 1, 2]), make([0, 2]), 2, (2, 3)) is None
        assert structure_fault(make([0, 1, 2]), make([0, 3]), 2, (2, 3)) == "an index is 3, expected 0 to 2"
        assert structure_fault(make([0, 2, 1]), make([0, 2]), 2, (2, 3)) == "indptr must increase from 0 to 2"


def test_masked_arrays_are_refused_unless_nothing_is_masked():
    masked = np.ma.array([[0, 1], [1, 2]], mask=[[False, True], [False, False]])
    for call in (
        lambda: Graph.from_edge_index(masked),
        lambda: Graph.from_edge_index([[0, 1], [1, 2]], edge_weight=masked[0]),
        lambda: whole_numbers(masked, "y"),
        lambda: own_splits({"train": masked[0], "val": [1], "test": [2]}, 3),
    ):
        with pytest.raises(TadropedgeError, match="masked entries"):
            call()
    assert Graph.from_edge_index(np.ma.array([[0, 1], [1, 2]], mask=False)).num_edges == 2


def test_large_unsigned_numbers_do_not_become_negative():
    with pytest.raises(TadropedgeError, match=r"y must hold whole numbers below 2\^63, got 18446744073709551615"):
        whole_numbers(np.array([2**64 - 1], dtype=np.uint64), "y")


def test_an_error_is_one_line_that_can_be_printed():
    error = TadropedgeError("no such file: '" + "a\n\ud800\0" * 10_000 + "'")
    assert str(error).isprintable()
    assert len(str(error)) <= MOST_WORDS
    assert str(NotEnoughMemoryError("a\rb")) == "a\\rb"
