from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from hypothesis import given
from hypothesis import strategies as st

from tadropedge import Graph, TadropedgeError
from tadropedge.arrays import checked_csr
from tadropedge.data.dataset import Dataset, Split, random_split, shuffled_split
from tadropedge.data.features import csr_tensor, row_normalized, summed

# Six nodes in a row, two classes, the last node without a label.
LABELS = torch.tensor([0, 1, 0, 1, 0, -1])


def ids(*values):
    return torch.tensor(values, dtype=torch.int64)


def split(train=(0, 1), val=(2,), test=(3, 4)):
    return Split(ids(*train), ids(*val), ids(*test))


def dataset(**changes):
    graph = Graph.from_edge_index([[0, 1, 2, 3, 4], [1, 2, 3, 4, 5]])
    fields = {"graph": graph, "features": torch.ones(6, 3), "labels": LABELS, "split": split()}
    return Dataset(**{"name": "toy", "num_classes": 2, "level": "node", **fields, **changes})


def signals(**changes):
    """Four signals with two features on the same graph."""
    fields = {"features": torch.ones(4, 6, 2), "labels": ids(0, 1, 1, 0), "split": split((0, 1), (2,), (3,))}
    return dataset(**{"level": "graph", **fields, **changes})


# -- what a dataset says ------------------------------------------------------------------------------


def test_what_it_says():
    node, graph = dataset(), signals()
    assert (node.num_features, node.backbone, node.gamma, node.split.sizes) == (3, "gcn", None, (2, 1, 2))
    assert (graph.num_features, graph.backbone, graph.split.sizes) == (2, "gcnn", (2, 1, 1))
    assert repr(node.split) == "Split(train=2, val=1, test=2)"


@pytest.mark.parametrize("features", [torch.eye(6), csr_tensor(sp.identity(6, format="csr"))])
def test_to_a_device(device, features):
    moved = dataset(features=features).to(device)
    assert moved.device.type == moved.labels.device.type == moved.split.val.device.type == device.type
    assert moved.features.layout is features.layout
    assert torch.equal(moved.features.to_dense().cpu(), torch.eye(6))


# -- what it refuses ----------------------------------------------------------------------------------

NAN = torch.ones(6, 3)
NAN[4, 1] = torch.nan
SPARSE_NAN = sp.csr_matrix(([1.0, np.inf], ([0, 5], [0, 2])), shape=(6, 3))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"level": "nodes"}, "unknown level 'nodes'; choose from node, graph"),
        ({"features": torch.ones(5, 3)}, r"shape \[5, 3\]: expected \[N, F\] with N = 6 nodes"),
        ({"features": torch.ones(6)}, r"shape \[6\]: expected \[N, F\]"),
        ({"features": torch.ones(6, 0)}, r"shape \[6, 0\]: expected \[N, F\]"),
        ({"features": torch.ones(6, 3).double()}, r"must be dense or CSR float32, got torch.strided of torch.float64"),
        ({"features": torch.ones(6, 3).to_sparse()}, "must be dense or CSR float32, got torch.sparse_coo"),
        ({"features": NAN}, r"features must be finite, got nan at position \[4, 1\]"),
        ({"features": csr_tensor(SPARSE_NAN)}, r"features must be finite, got inf at position \[5, 2\]"),
        ({"labels": LABELS[:5]}, r"labels must be int64 of shape \[6\].*got torch.int64 of shape \[5\]"),
        ({"labels": LABELS.float()}, r"labels must be int64 of shape \[6\].*got torch.float32"),
        ({"labels": ids(0, 1, 0, 2, 0, 1)}, "labels run from 0 to 1, and -1 for no label, got 2 at position 3"),
        ({"labels": ids(0, 1, 0, 1, 0, -2)}, "got -2 at position 5"),
        ({"num_classes": 1}, "num_classes must be a whole number of at least 2, got 1"),
        ({"num_classes": 3}, "class 2 has no training node"),
        ({"class_names": ("a",)}, "expected 2 class_names, got 1"),
        ({"split": split(train=(0, 2), val=(1,))}, "class 1 has no training node: split.train must hold one of each"),
        ({"split": split(train=(0, 1, 6))}, "split.train holds the node 6, but there are 6: indices run from 0 to 5"),
        ({"split": split(test=(5,))}, "split.test holds the node 5, which has no label"),
        ({"split": split(test=(3, 1))}, "the node 1 is in split.train and in split.test: parts must be disjoint"),
        ({"split": split(test=(3, 3))}, "split.test holds 1 node indices more than once"),
    ],
)
def test_node_level_input_that_is_refused(changes, message):
    with pytest.raises(TadropedgeError, match=message):
        dataset(**changes)


@pytest.mark.parametrize(
    ("part", "message"),
    [
        (ids(2, -1), "split.val must hold indices of at least 0, got -1"),
        (ids(), r"split.val must be a list of indices \(int64, not empty\)"),
        (LABELS > 0, "split.val must hold whole numbers, got torch.bool"),
    ],
)
def test_a_split_refuses_when_it_is_made(part, message):
    with pytest.raises(TadropedgeError, match=message):
        Split(ids(0, 1), part, ids(3))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"features": torch.ones(4, 5, 2)}, r"shape \[4, 5, 2\]: expected \[S, N, F\] with N = 6"),
        ({"features": csr_tensor(sp.identity(6, format="csr"))}, "must be dense float32, got torch.sparse_csr"),
        ({"labels": LABELS}, r"shape \[4\], one for each of the 4 samples, got torch.int64 of shape \[6\]"),
        ({"split": split((0, 4), (2,), (3,))}, "split.train holds the sample 4, but there are 4"),
        ({"split": split((0, 3), (2,), (1,))}, "class 1 has no training sample"),
    ],
)
def test_graph_level_input_that_is_refused(changes, message):
    with pytest.raises(TadropedgeError, match=message):
        signals(**changes)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs two devices")
def test_nothing_is_moved_silently():
    with pytest.raises(TadropedgeError, match="labels is on cuda:0, but the graph is on cpu"):
        replace(dataset(), labels=LABELS.cuda())


# -- features -----------------------------------------------------------------------------------------

MATRIX = np.array([[1.0, 3.0, 0.0], [0.0, 0.0, 0.0], [0.0, -2.0, 2.0], [5.0, 0.0, 0.0]])


def test_row_normalisation():
    expected = torch.tensor([[0.25, 0.75, 0], [0, 0, 0], [0, -0.5, 0.5], [1, 0, 0]])
    dense, sparse = torch.from_numpy(MATRIX).float(), csr_tensor(sp.csr_matrix(MATRIX))
    assert torch.equal(row_normalized(dense), expected)
    normal = row_normalized(sparse)
    assert normal.layout is torch.sparse_csr
    assert torch.equal(normal.to_dense(), expected)
    assert torch.equal(row_normalized(normal).values(), normal.values())
    assert torch.equal(sparse.to_dense(), dense)  # the input is left alone


def test_a_row_of_stored_zeros_stays_zero():
    stored = sp.csr_matrix((np.array([0.0, 2.0]), np.array([0, 1]), np.array([0, 1, 2])), shape=(2, 2))
    assert row_normalized(csr_tensor(stored)).to_dense().tolist() == [[0, 0], [0, 1]]


@pytest.mark.parametrize(
    ("indices", "indptr", "shape"),
    [([0, 3], [0, 1, 2], (2, 3)), ([0, -1], [0, 1, 2], (2, 3)), ([0, 1], [0, 2, 1], (2, 3)), ([0, 1], [0, 1], (2, 3)),
     ([0, 1], [0, 1, 2], (2,)), ([0, 1], [0, 1, 3], (2, 3)), ([0, 1], [0, 1, 2], ("a", 3))],
)  # fmt: skip
def test_parts_that_are_no_matrix(indices, indptr, shape):
    with pytest.raises(TadropedgeError, match="x: not a CSR matrix of shape"):
        checked_csr(np.ones(2), np.array(indices), np.array(indptr), shape, "x")


def test_parts_in_any_order_are_sorted():
    matrix = summed(checked_csr(np.array([1.0, 2.0, 3.0]), np.array([2, 0, 2]), np.array([0, 3]), (1, 3), "x"))
    assert matrix.toarray().tolist() == [[2, 0, 4]]
    assert matrix.indices.tolist() == [0, 2]


# -- splits -------------------------------------------------------------------------------------------


@given(st.integers(0, 2**32), st.integers(1, 5))
def test_random_splits_hold_k_labels_a_class_and_never_a_node_twice(seed, k):
    labels = torch.arange(60) % 4 - 1
    drawn = random_split(labels, per_class=k, num_val=10, num_test=15, seed=seed)
    assert torch.bincount(labels[drawn.train]).tolist() == [k, k, k]
    everything = torch.cat((drawn.train, drawn.val, drawn.test))
    assert len(everything.unique()) == len(everything) == 3 * k + 25
    assert (labels[everything] >= 0).all()
    again = random_split(labels, per_class=k, num_val=10, num_test=15, seed=seed)
    assert all(torch.equal(a, b) for (_, a), (_, b) in zip(drawn.parts(), again.parts(), strict=True))


@given(st.integers(0, 2**32), st.integers(3, 10))
def test_shuffled_splits_train_every_class(seed, size):
    labels = torch.tensor([0] * 50 + [1] * 20 + [2] + [-1] * 5)
    drawn = shuffled_split(labels, (size, 20, 30), seed=seed)
    assert drawn.sizes == (size, 20, 30)
    assert labels[drawn.train].unique().tolist() == [0, 1, 2]
    everything = torch.cat((drawn.train, drawn.val, drawn.test))
    assert len(everything.unique()) == len(everything)
    assert (labels[everything] >= 0).all()


def test_shuffled_splits_are_uniform():
    # Two classes of 10, so a draw of 10 lacks one of them once in 92378 times: each node trains half of the time.
    labels = torch.arange(20) % 2
    counts = torch.zeros(20)
    for seed in range(2000):
        counts[shuffled_split(labels, (10, 5, 5), seed=seed).train] += 1
    assert (counts / 2000 - 0.5).abs().max() < 5 * 0.5 / 2000**0.5


def test_seeds_are_the_only_randomness():
    before = torch.get_rng_state()
    drawn = shuffled_split(LABELS, (2, 1, 1), seed=7)
    assert torch.equal(before, torch.get_rng_state())
    assert [part.tolist() for _, part in drawn.parts()] == [[1, 2], [0], [4]]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: random_split(LABELS, per_class=3), "class 1 has 2 labelled nodes, which is less than per_class=3"),
        (lambda: random_split(ids(0, 2, 2, 0), per_class=1), "class 1 has 0 labelled nodes"),
        (
            lambda: random_split(LABELS, per_class=1),
            r"2 \+ 500 \+ 1000 nodes needs 1502 labelled ones, but there are 5",
        ),
        (lambda: random_split(LABELS, per_class=0), "per_class must be a whole number of at least 1, got 0"),
        (lambda: random_split(LABELS, 1, 1, 1, seed=-1), "seed must be a whole number of at least 0, got -1"),
        (lambda: random_split(LABELS[:, None]), r"labels must be one class number for each node, got shape \[6, 1\]"),
        (lambda: random_split(ids(-1, -1)), "none of the 2 labels is a class"),
        (lambda: shuffled_split(LABELS, (1, 1, 1)), "1 training nodes cannot hold one of each of the 2 classes"),
        (lambda: shuffled_split(LABELS, (2, 0, 1)), "the size of split.val must be a whole number of at least 1"),
    ],
)
def test_splits_that_cannot_be(call, message):
    with pytest.raises(TadropedgeError, match=message):
        call()


def test_labels_are_refused_before_anything_is_made_by_their_size():
    labels = torch.tensor([0, 1, 2 * 10**9])
    with pytest.raises(TadropedgeError, match="a label is 2000000000, but there are only 3 labels"):
        random_split(labels, 1, 1, 1)
    made = dataset()
    with pytest.raises(TadropedgeError, match="num_classes is 2000000000, but there are only"):
        replace(made, num_classes=2 * 10**9)


def test_sparse_features_that_point_outside_are_refused():
    made = dataset()
    sparse = csr_tensor(sp.csr_matrix(np.eye(made.graph.num_nodes)))
    parts = (sparse.crow_indices(), sparse.col_indices() + 10**6, sparse.values())
    forged = torch.sparse_csr_tensor(*parts, sparse.shape, check_invariants=False)
    with pytest.raises(TadropedgeError, match=r"features are not a CSR matrix of shape .*: an index is 1000"):
        replace(made, features=forged)
