import gzip
import pickle

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from torch_geometric.data import Data, HeteroData
from torch_geometric.loader import ClusterData

import tadropedge.data as tda
from tadropedge import TadropedgeError
from tadropedge.data import DATASETS, Given, OfSizes, PerClass, load_dataset, load_file
from tadropedge.data.features import csr_tensor
from tadropedge.data.tables import read_node_table, read_table
from tadropedge.shift import hush_beta_warning
from tadropedge.training.laboratory import Laboratory

# A ring of twelve nodes in three classes, the last node without a label.
N = 12
ARCS = np.stack((np.arange(N), (np.arange(N) + 1) % N))
X = np.arange(N * 4, dtype=np.float64).reshape(N, 4) % 5 - 1
Y = np.array([*(np.arange(N - 1) % 3), -1])
SPLIT = {"train": np.array([0, 1, 2]), "val": np.array([3, 4]), "test": np.array([5, 6, 10])}


def csr_parts(prefix, matrix):
    matrix = sp.csr_matrix(matrix)
    parts = {"data": matrix.data, "indices": matrix.indices, "indptr": matrix.indptr, "shape": matrix.shape}
    return {f"{prefix}_{name}": np.asarray(part) for name, part in parts.items()}


def adjacency(values=None):
    matrix = sp.coo_matrix((np.ones(N) if values is None else values, tuple(ARCS)), shape=(N, N))
    return matrix + matrix.T


@pytest.fixture
def npz(tmp_path):
    def write(**arrays):
        file = tmp_path / "mine.npz"
        np.savez(file, **{name: array for name, array in arrays.items() if array is not None})
        return file

    return write


# -- plain arrays -------------------------------------------------------------------------------------


def test_plain_arrays(npz):
    dataset = load_file(npz(edge_index=ARCS, x=X, y=Y, **SPLIT))
    assert (dataset.name, dataset.graph.num_nodes, dataset.graph.num_edges, dataset.num_classes) == ("mine", N, N, 3)
    assert dataset.features.dtype == torch.float32
    assert dataset.features.tolist() == X.tolist()
    assert dataset.labels.tolist() == Y.tolist()
    assert [part.tolist() for _, part in dataset.split.parts()] == [part.tolist() for part in SPLIT.values()]
    normal = load_file(npz(edge_index=ARCS, x=X, y=Y, **SPLIT), normalize=True).features
    assert torch.equal(normal, tda.row_normalized(dataset.features))


def test_sparse_features_stay_sparse(npz):
    dataset = load_file(npz(edge_index=ARCS, y=Y, **csr_parts("x", X), **SPLIT))
    assert dataset.features.layout is torch.sparse_csr
    assert dataset.features.to_dense().tolist() == X.tolist()


def test_three_ways_to_write_the_same_graph(npz):
    weight = np.linspace(0.1, 0.9, N)
    scipy_parts = {name.removeprefix("_"): part for name, part in csr_parts("", adjacency(weight)).items()}
    graphs = [
        load_file(npz(edge_index=ARCS, edge_weight=weight, x=X, y=Y, **SPLIT)).graph,
        load_file(npz(**csr_parts("adj", adjacency(weight)), x=X, y=Y, **SPLIT)).graph,
        load_file(npz(format=np.array(b"csr"), **scipy_parts, x=X, y=Y, **SPLIT)).graph,
    ]
    assert len({graph.fingerprint for graph in graphs}) == 1
    assert graphs[0].weight is not None


def test_nodes_that_no_edge_names_are_kept(npz):
    assert load_file(npz(edge_index=ARCS[:, :4], x=X, y=Y, **SPLIT)).graph.num_nodes == N


def test_masks(npz):
    masks = {name: np.isin(np.arange(N), part) for name, part in SPLIT.items()}
    dataset = load_file(npz(edge_index=ARCS, x=X, y=Y, **masks))
    assert [part.tolist() for _, part in dataset.split.parts()] == [part.tolist() for part in SPLIT.values()]


def test_a_single_split_is_drawn_again_as_it_shows(npz):
    balanced = load_file(npz(edge_index=ARCS, x=X, y=Y, **SPLIT), seed=2)
    assert balanced.way == PerClass(1, 2, 3, seed=2)
    uneven = {**SPLIT, "train": np.append(SPLIT["train"], 8)}
    assert load_file(npz(edge_index=ARCS, x=X, y=Y, **uneven)).way == OfSizes(4, 2, 3)
    assert load_file(npz(edge_index=ARCS, x=X, y=Y), per_class=2, seed=4).way == PerClass(2, 1, 4, seed=4)


TURNED = {"train": np.array([3, 4, 5]), "val": np.array([6, 7]), "test": np.array([8, 9, 0])}  # a second split
BOTH = {name: np.stack((part, TURNED[name]), axis=1) for name, part in SPLIT.items()}
MASKS = {name: np.stack([np.isin(np.arange(N), column) for column in part.T], axis=1) for name, part in BOTH.items()}
SEVERAL = {
    "index columns [n, K]": BOTH,
    "masks [N, K]": MASKS,
    "masks [K, N]": {name: mask.T for name, mask in MASKS.items()},
}


@pytest.mark.parametrize("parts", SEVERAL.values(), ids=SEVERAL)
def test_a_file_with_several_splits(npz, saved, parts):
    loaded = [load_file(npz(edge_index=ARCS, x=X, y=Y, **parts))]
    if parts is not BOTH:
        tensors = {f"{name}_mask": torch.from_numpy(np.ascontiguousarray(mask)) for name, mask in parts.items()}
        loaded.append(load_file(saved(data(**tensors))))
    for dataset in loaded:
        assert isinstance(dataset.way, Given)
        for split, expected in zip(dataset.way.splits, (SPLIT, TURNED), strict=True):
            assert [sorted(part.tolist()) for _, part in split.parts()] == [sorted(part) for part in expected.values()]
        assert dataset.split is dataset.way.splits[0]
        assert Laboratory(dataset, choose_splits=1).split(6) is dataset.way.splits[1]
    random = load_file(npz(edge_index=ARCS, x=X, y=Y, **parts), split="random", per_class=1)
    assert isinstance(random.way, PerClass)


def test_a_part_of_one_axis_is_shared_by_all_splits(npz):
    parts = {"train": BOTH["train"], "val": [9], "test": np.isin(np.arange(N), [10])}
    splits = load_file(npz(edge_index=ARCS, x=X, y=np.arange(N) % 3, **parts)).way.splits
    assert [split.sizes for split in splits] == [(3, 1, 1)] * 2
    one = {name: part[:, :1] for name, part in MASKS.items()}  # K = 1 is a single split
    assert load_file(npz(edge_index=ARCS, x=X, y=Y, **one)).way == PerClass(1, 2, 3)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"val": np.zeros((N, 3), bool)}, r"must be of the same number of splits, got train of 2, val of 3, test of 2"),
        ({"val": np.ones((N, 0), bool)}, r"val is a mask of shape \[12, 0\]: expected \[12\], or \[12, K\] for K"),
        ({"val": np.ones((N, 2, 2), bool)}, r"val is a mask of shape \[12, 2, 2\]: expected \[12\], or \[12, K\]"),
        ({"val": np.ones((5, 2), bool)}, r"val is a mask of shape \[5, 2\]: expected \[12\], or \[12, K\]"),
        ({"val": np.ones((2, 2, 2), int)}, r"split.val must be a list of indices .*of shape \[2, 2, 2\]"),
        ({"val": np.ones((2, 0), int)}, r"split.val must be a list of indices .*of shape \[2, 0\]"),
        ({"val": np.array([[3, -1], [4, 7]])}, "split.val must hold indices of at least 0, got -1"),
        ({"val": np.array([[3, 99], [4, 7]])}, "of 2 splits, number 1: split.val holds the node 99, but there are 12"),
        (
            {"val": np.stack((MASKS["val"][:, 0], np.zeros(N, bool)), 1)},
            "split.val must be a list of indices .*not empt",
        ),
        ({"val": np.stack((SPLIT["val"], TURNED["test"][:2]), 1)}, "of 2 splits, number 1: the node . is in split.val"),
        ({"val": np.ones((N, 2))}, "val must be node indices or a mask, got torch.float64"),
    ],
)
def test_several_splits_that_are_refused(npz, changes, message):
    with pytest.raises(TadropedgeError, match=rf"mine\.npz.*{message}") as caught:
        load_file(npz(edge_index=ARCS, x=X, y=Y, **{**MASKS, **changes}))
    assert "\n" not in str(caught.value)


def test_a_file_without_a_split_gets_a_random_one(npz):
    file = npz(edge_index=ARCS, x=X, y=Y)
    one, same, other = (load_file(file, per_class=2, seed=seed) for seed in (0, 0, 1))
    assert one.split.sizes == (6, 1, 4)
    assert torch.bincount(one.labels[one.split.train]).tolist() == [2, 2, 2]
    assert torch.equal(one.split.train, same.split.train)
    assert not torch.equal(one.split.train, other.split.train)
    with pytest.raises(TadropedgeError, match=r"mine\.npz: the file has no split"):
        load_file(file, split="file")
    with pytest.raises(
        TadropedgeError, match=r"mine\.npz: class 2 has 3 labelled nodes, which is less than per_class=20"
    ):
        load_file(file)
    both = npz(edge_index=ARCS, x=X, y=Y, **SPLIT)
    assert load_file(both, split="file").split.sizes == (3, 2, 3)
    assert load_file(both, split="random", per_class=2).split.sizes == (6, 1, 4)
    with pytest.raises(TadropedgeError, match="unknown split 'full'; choose from file, random"):
        load_file(both, split="full")


def test_a_split_does_not_follow_labels_that_were_made_with_the_same_seed(npz):
    labels, arcs = np.zeros(1000, dtype=np.int64), np.stack((np.arange(999), np.arange(1, 1000)))
    labels[np.random.default_rng(0).permutation(1000)[:200]] = 1  # as Minesweeper was made
    file = npz(edge_index=arcs, x=np.ones((1000, 1)), y=labels)
    for data in (load_file(file, per_class=5), load_dataset(file, split_sizes=(100, 200, 300))):
        shares = [float(data.labels[part].double().mean()) for part in (data.split.val, data.split.test)]
        assert shares == pytest.approx([0.2, 0.2], abs=0.1)


NAN = X.copy()
NAN[7, 2] = np.nan


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"x": None}, "expected features: an array 'x' or the CSR parts.*found edge_index, test, train, val, y"),
        ({"y": None}, "expected labels: an array 'y', found edge_index"),
        ({"edge_index": None}, "expected an array 'edge_index' or a matrix saved by scipy"),
        ({"y": Y.astype(float)}, "y must hold whole numbers, got float64"),
        ({"y": Y[:-2]}, r"labels must be int64 of shape \[12\].*got torch.int64 of shape \[10\]"),
        ({"y": Y[:, None]}, r"labels must be int64 of shape \[12\].*got torch.int64 of shape \[12, 1\]"),
        ({"y": np.full(N, -1)}, "num_classes must be a whole number of at least 2, got 0"),
        ({"x": X[:-1], "num_nodes": N}, r"features have shape \[11, 4\]: expected \[N, F\] with N = 12 nodes"),
        ({"x": X[:-1]}, "edge_index holds the node id 11, but num_nodes=11"),
        ({"x": X[:, 0]}, r"features have shape \[12\]"),
        ({"x": NAN}, r"features must be finite, got nan at position \[7, 2\]"),
        ({"x": X * 1e300}, r"features must be finite, got -?inf"),
        ({"x": None, **csr_parts("x", NAN)}, r"features must be finite, got nan at position \[7, 2\]"),
        ({"x": None, **csr_parts("x", X), "x_shape": [12, 2]}, r"x: not a CSR matrix of shape \(12, 2\)"),
        ({"x": X.astype(str)}, "x must hold real numbers, got <U"),
        ({"train": np.array([0, 2, 9])}, "class 1 has no training node"),
        ({"train": np.array([0, 1, 11])}, "split.train holds the node 11, which has no label"),
        ({"test": np.array([4])}, "the node 4 is in split.val and in split.test"),
        ({"test": np.array([12])}, "split.test holds the node 12, but there are 12"),
        ({"test": None}, "the split is not whole: there is no test"),
        ({"test": np.array([5.0])}, "test must be node indices or a mask, got torch.float64"),
        ({"test": np.array(["a"])}, "test must be node indices or a mask, got ndarray"),
        ({"val": np.ones(5, dtype=bool)}, r"val is a mask of shape \[5\]: expected \[12\]"),
        ({"y": Y * 10**9}, "a label is 2000000000, but there are only 12 labels: number the classes from 0"),
        ({"y": np.where(Y < 0, 2**64 - 1, Y).astype(np.uint64)}, r"y must hold whole numbers below 2\^63"),
        ({"num_nodes": np.array(12.7)}, "num_nodes must hold whole numbers, got float64"),
        (
            {"x": None, **csr_parts("x", X), "x_indices": csr_parts("x", X)["x_indices"] + 0.5},
            "indices must hold whole",
        ),
        ({"x": None, **csr_parts("x", X), "x_shape": np.array([12.7, 4.2])}, "a shape is two whole numbers"),
        ({"x": np.array([{}, {}])}, "x holds Python objects, which are not unpickled"),
    ],
)
def test_arrays_that_are_refused(npz, changes, message):
    with pytest.raises(TadropedgeError, match=rf"(?s)mine\.npz.*{message}"):
        load_file(npz(**{"edge_index": ARCS, "x": X, "y": Y, **SPLIT, **changes}))


def test_no_arrays_at_all(tmp_path):
    file = tmp_path / "mine.npz"
    for content in (b"", b"garbage", pickle.dumps([1])):
        file.write_bytes(content)
        with pytest.raises(TadropedgeError, match=r"mine\.npz: not an \.npz file of plain arrays"):
            load_file(file)
    with pytest.raises(TadropedgeError, match=r"no such file: '.*other\.npz'"):
        load_file(tmp_path / "other.npz")


def test_a_real_file(large_graphs):
    dataset = load_dataset(large_graphs / "amazon_photo.npz", seed=1)
    assert (dataset.graph.num_nodes, dataset.graph.num_edges) == (7650, 119081)
    assert (dataset.num_features, dataset.num_classes) == (745, 8)
    assert dataset.features.layout is torch.sparse_csr
    assert dataset.split.sizes == (160, 500, 1000)


# -- an edge list and a table -------------------------------------------------------------------------

EDGES = "ann,bob\nbob,cy\n"
NODES = "name,age,height,team\nbob,3,1.5,red\nann,4,-2,blue\ncy,5e0,0,red\ndi,6,1,blue\n"


@pytest.fixture
def texts(tmp_path):
    def write(edges=EDGES, nodes=NODES, name="nodes.csv"):
        (tmp_path / "edges.csv").write_text(edges)
        content = nodes.encode() if isinstance(nodes, str) else nodes
        (tmp_path / name).write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
        return tmp_path / "edges.csv", tmp_path / name

    return write


def table(files, **options):
    return load_file(files[0], nodes=files[1], per_class=1, **options)


def test_an_edge_list_and_a_table(texts):
    dataset = table(texts())
    assert dataset.graph.node_ids == ("bob", "ann", "cy", "di")  # the order of the table
    assert dataset.graph.pairs.tolist() == [[0, 0], [1, 2]]  # di is isolated
    assert dataset.features.tolist() == [[3, 1.5], [4, -2], [5, 0], [6, 1]]
    assert dataset.class_names == ("blue", "red")
    assert dataset.labels.tolist() == [1, 0, 1, 0]
    assert dataset.split.sizes == (2, 1, 1)
    assert dataset.name == "edges"


@pytest.mark.parametrize(
    ("name", "nodes"),
    [
        ("nodes.csv", NODES.partition("\n")[2]),
        ("nodes.csv.gz", NODES),
        ("nodes.tsv", NODES.replace(",", "\t")),
        ("nodes.txt", "# a comment\n\n" + NODES.replace(",", "  ")),
        ("nodes.csv", "\ufeff" + NODES.replace("\n", "\r\n")),
        ("nodes.csv", NODES.replace("bob", '"bob"')),
    ],
)
def test_the_same_table_in_other_clothes(texts, name, nodes):
    files = texts(name=name, nodes=nodes)
    assert read_node_table(files[1]).ids == ("bob", "ann", "cy", "di")
    assert table(files).features.tolist() == [[3, 1.5], [4, -2], [5, 0], [6, 1]]


def test_integer_ids_classes_and_missing_labels(texts):
    nodes = "10,1,2\n7,2,10\n8,3,2\n9,4,10\n11,5,10\n12,6,\n13,7,-1\n"
    dataset = table(texts(edges="7 8 0.5\n10 9 2\n".replace(" ", ","), nodes=nodes))
    assert dataset.graph.node_ids == (10, 7, 8, 9, 11, 12, 13)
    assert dataset.graph.weight.tolist() == [2.0, 0.5]
    assert dataset.class_names == ("2", "10")  # as numbers, not as words
    assert dataset.labels.tolist() == [0, 1, 0, 1, 1, -1, -1]
    mixed = table(texts(edges="1,2\n", nodes="1,0.5,a\n2,1,b\nx,2,a\ny,2,b\n"))
    assert mixed.graph.node_ids == ("1", "2", "x", "y")


def test_whether_there_is_a_header(texts):
    odd = "1,2,a\n2,3,b\n3,4,a\n4,5,b\n"
    assert len(read_node_table(texts(nodes=odd)[1]).ids) == 4
    assert len(read_node_table(texts(nodes=odd)[1], header=True).ids) == 3
    with pytest.raises(TadropedgeError, match=r"nodes\.csv:1: feature 1 is 'age', expected a number"):
        table(texts(), header=False)


@pytest.mark.parametrize(
    ("nodes", "message"),
    [
        ("a,1,x\nb,2\n", r"nodes\.csv:2: expected 3 columns, got 2"),
        ("a,1\n", r"nodes\.csv:1: expected at least 3 columns \(id, features, label\), got 2"),
        ("a,1,x\n\nb,2,3,y\n", r"nodes\.csv:3: expected 3 columns, got 4"),
        ("a,1,x\nb,two,y\n", r"nodes\.csv:2: feature 1 is 'two', expected a number"),
        ("a,1,2,x\nb,1,,y\n", r"nodes\.csv:2: feature 2 is '', expected a number"),
        ("a,1,x\nb,nan,y\n", r"nodes\.csv:2: feature 1 is 'nan', expected a finite number"),
        ("a,1,x\nb,1e300,y\n", r"nodes\.csv:2: feature 1 is '1e300', expected a finite number"),
        ("a,1,x\nb,1,y\na,2,x\n", r"nodes\.csv:3: node 'a' was given on line 1 already"),
        ("a,1,x\n,1,y\n", r"nodes\.csv:2: empty node id"),
        ("id,age,team\n", r"nodes\.csv: no nodes in the file"),
        ("", r"nodes\.csv: no nodes in the file"),
        ("ann,1,\nbob,2,\ncy,3,\n", r"nodes\.csv: no node has a label in the last column"),
        ("ann,1,x\nbob,2,y\ndi,3,x\n", r"edges\.csv names the node 'cy', which nodes\.csv does not list"),
        ("ann,1,x\nbob,2,y\ncy,3,\n", r"edges\.csv: a split of .* needs 4 labelled ones, but there are 2"),
        ("ann,1,x\nbob,2,x\ncy,3,x\n", r"edges\.csv: num_classes must be a whole number of at least 2, got 1"),
        (b"\xff\xfe,1,x\n", r"nodes\.csv: not a UTF-8 text file"),
    ],
)
def test_tables_that_are_refused(texts, nodes, message):
    with pytest.raises(TadropedgeError, match=message):
        table(texts(nodes=nodes))


def test_an_edge_list_alone(texts):
    with pytest.raises(TadropedgeError, match=r"edges\.csv: an edge list needs a table of features and labels"):
        load_file(texts()[0])


# -- a saved Data -------------------------------------------------------------------------------------


def data(**changes):
    masks = {f"{name}_mask": torch.from_numpy(np.isin(np.arange(N), part)) for name, part in SPLIT.items()}
    fields = {"edge_index": torch.from_numpy(ARCS), "x": torch.from_numpy(X), "y": torch.from_numpy(Y), **masks}
    return Data(**{name: value for name, value in {**fields, **changes}.items() if value is not None})


@pytest.fixture
def saved(tmp_path):
    def write(content):
        torch.save(content, tmp_path / "mine.pt")
        return tmp_path / "mine.pt"

    return write


def test_a_saved_data(saved):
    before = torch.serialization.get_safe_globals()
    dataset = load_file(saved(data()))
    assert dataset.features.tolist() == X.tolist()
    assert dataset.labels.tolist() == Y.tolist()
    assert dataset.split.sizes == (3, 2, 3)
    assert set(torch.serialization.get_safe_globals()) == set(before)
    weighted = load_file(saved(data(edge_weight=torch.linspace(1, 2, N), y=torch.from_numpy(Y)[:, None])))
    assert weighted.graph.weight is not None
    bare = data(train_mask=None, val_mask=None, test_mask=None)
    assert load_file(saved(bare), per_class=2).split.sizes == (6, 1, 4)


@pytest.mark.parametrize("sparse", [torch.Tensor.to_sparse, torch.Tensor.to_sparse_csr])
def test_a_saved_data_with_sparse_features(saved, sparse):
    hush_beta_warning()
    features = load_file(saved(data(x=sparse(torch.from_numpy(X))))).features
    assert features.layout is torch.sparse_csr
    assert features.to_dense().tolist() == X.tolist()


class Hostile:
    def __reduce__(self):
        return print, ("this must never run",)


class HostileCluster:
    """Asks for a class that PyTorch Geometric admits and whose constructor reads another file."""

    def __reduce__(self):
        return ClusterData, (data(), 2)


@pytest.mark.parametrize("hostile", [Hostile(), HostileCluster(), {"x": Hostile()}, HeteroData()])
def test_a_hostile_file_is_refused(saved, capsys, hostile):
    with pytest.raises(TadropedgeError, match=r"mine\.pt: not a saved torch_geometric Data .*Unsupported") as caught:
        load_file(saved(hostile))
    assert "\n" not in str(caught.value)
    assert capsys.readouterr().out == ""


def forged_csr():
    x = csr_tensor(sp.csr_matrix(X))
    x.col_indices()[0] = 9
    return x


def forged_coo():
    x = torch.from_numpy(X).to_sparse()
    x._indices()[1, 0] = 9
    return x


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"x": torch.ones(3)}, "expected a saved torch_geometric Data, got dict"),
        (data(x=None), "expected a Data with tensors edge_index, x and y, found no x"),
        (data(y=None), ".*found no y"),
        (data(y=torch.ones(N)), "y must hold whole numbers, got float32"),
        (data(x=torch.ones(N)), r"x must be dense, COO or CSR of shape \[N, F\], got torch.strided of shape \[12\]"),
        (data(x=torch.from_numpy(NAN)), r"features must be finite, got nan at position \[7, 2\]"),
        (data(test_mask=None), "the split is not whole: there is no test_mask"),
        (data(val_mask=torch.ones(9, 10).bool()), r"val_mask is a mask of shape \[9, 10\]: expected \[12\], or"),
        (data(x=torch.eye(N)[:8]), "edge_index holds the node id 11, but num_nodes=8"),
        (data(x=forged_csr()), r"x: not a CSR matrix of shape \(12, 4\)"),
        (data(x=forged_coo()), r"x: not a COO matrix of shape \(12, 4\)"),
    ],
)
def test_contents_that_are_refused(saved, content, message):
    with pytest.raises(TadropedgeError, match=rf"mine\.pt: {message}"):
        load_file(saved(content))


@pytest.mark.parametrize("content", [b"", b"garbage", pickle.dumps([1, 2])])
def test_a_damaged_file(tmp_path, content):
    (tmp_path / "mine.pt").write_bytes(content)
    with pytest.raises(TadropedgeError, match=r"mine\.pt: "):
        load_file(tmp_path / "mine.pt")


# -- by name ------------------------------------------------------------------------------------------


def test_the_names():
    made = ["source-localization", "karate", "clusters", "noisy-clusters", "grid", "roads"]
    assert list(DATASETS) == ["cora", "citeseer", "pubmed", *made]
    assert load_dataset("source-localization", seed=3, noise=0.5, nodes=20).graph.num_nodes == 20
    assert load_dataset("clusters", clusters=3).num_classes == 3


def test_by_name_and_by_path(npz, tmp_path, monkeypatch):
    file = npz(edge_index=ARCS, x=X, y=Y, **SPLIT)
    for name in (file, str(file)):
        assert load_dataset(name, root="unused").split.sizes == (3, 2, 3)
    for options in ({"split": "random"}, {}):  # who asks for labels per class gets no other split
        assert load_dataset(file, per_class=2, **options).split.sizes == (6, 1, 4)
    with pytest.raises(TadropedgeError, match="per_class belongs to split='random', got per_class and split='file'"):
        load_dataset(file, per_class=2, split="file")
    monkeypatch.chdir(tmp_path)
    assert load_dataset("mine.npz").name == "mine"
    (tmp_path / "edges").write_text("a b\n")
    with pytest.raises(TadropedgeError, match="edges: an edge list needs a table"):
        load_dataset("edges")


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("kora", {}, r"unknown dataset 'kora'; choose from cora, citeseer, .* \(did you mean 'cora'\?\)"),
        ("cora.npz", {}, r"no such file: 'cora\.npz'"),
        ("clusters", {"cluster": 3}, r"unknown option of clusters 'cluster'.*did you mean 'clusters'"),
        ("cora", {"noise": 1}, "unknown option of cora 'noise'; choose from root, split, per_class, seed, normalize"),
    ],
)
def test_names_and_options_that_are_refused(name, options, message):
    with pytest.raises(TadropedgeError, match=message):
        load_dataset(name, **options)


def test_an_expanded_tensor_is_refused_before_it_is_made(tmp_path):
    file = tmp_path / "mine.pt"
    torch.save(data(x=torch.ones(1).expand(10**6, 10**6)), file)
    assert file.stat().st_size < 10_000
    with pytest.raises(TadropedgeError, match=r"x of shape .* needs about .* of memory"):
        load_file(file)


def test_ids_of_a_table_are_compared_as_they_stand(tmp_path):
    (tmp_path / "edges.csv").write_text("7,8\n007,8\n")
    (tmp_path / "nodes.csv").write_text("7,1,a\n8,2,b\n007,3,a\nann,4,b\n")
    graph, table, _ = read_table(tmp_path / "edges.csv", tmp_path / "nodes.csv", None)
    assert (table.ids, graph.pairs.tolist()) == (("7", "8", "007", "ann"), [[0, 1], [1, 2]])
    (tmp_path / "nodes.csv").write_text("7,1,a\n8,2,b\n007,3,a\n")
    with pytest.raises(TadropedgeError, match="a node is given twice"):
        read_table(tmp_path / "edges.csv", tmp_path / "nodes.csv", None)
