"""Every format reads what others write: the shipped contract, and what is special about a format."""

import sys
import warnings

import networkx as nx
import numpy as np
import pandas as pd
import pytest
import scipy.io
import scipy.sparse as sp
import torch
from torch_geometric.data import Data

from tadropedge import Graph, TadropedgeError
from tadropedge.files import FORMATS, FileContents, Format, read_file
from tadropedge.testing.formats import FormatContract


def edges(graph):
    weight = torch.ones(graph.num_edges) if graph.weight is None else graph.weight
    return [(low, high, value) for (low, high), value in zip(graph.pairs.T.tolist(), weight.tolist(), strict=True)]


class TestCsv(FormatContract):
    format = "edges"
    isolated = False

    def write(self, path, graph):
        path.write_text("\n".join(f"{low},{high},{weight!r}" for low, high, weight in edges(graph)))


class TestEdgeIndexInNpz(FormatContract):
    format = "npz"

    def write(self, path, graph):
        weight = {} if graph.weight is None else {"edge_weight": graph.weight.numpy()}
        np.savez(path, edge_index=graph.pairs.numpy(), num_nodes=graph.num_nodes, **weight)


class TestMatrixInNpz(FormatContract):
    format = "npz"

    def write(self, path, graph):
        sp.save_npz(path, graph.adjacency())


class TestPartsInNpz(FormatContract):
    format = "npz"

    def write(self, path, graph):
        matrix = graph.adjacency()
        parts = {"data": matrix.data, "indices": matrix.indices, "indptr": matrix.indptr, "shape": matrix.shape}
        np.savez(path, **{f"adj_{name}": part for name, part in parts.items()})


class TestData(FormatContract):
    format = "pt"

    def write(self, path, graph):
        weight = {} if graph.weight is None else {"edge_weight": graph.weight}
        torch.save(Data(edge_index=graph.pairs, num_nodes=graph.num_nodes, **weight), path)


@pytest.mark.filterwarnings("ignore:Sparse")  # torch speaks of itself once a process
class TestAdjT(FormatContract):
    format = "pt"

    def write(self, path, graph):
        both = torch.cat((graph.pairs, graph.pairs.flip(0)), dim=1)
        weight = torch.ones(graph.num_edges).double() if graph.weight is None else graph.weight
        size = (graph.num_nodes, graph.num_nodes)
        torch.save({"adj_t": torch.sparse_coo_tensor(both, weight.repeat(2), size).to_sparse_csr()}, path)


class TestMatrixMarket(FormatContract):
    format = "mtx"

    def write(self, path, graph):
        scipy.io.mmwrite(path, graph.adjacency(), symmetry="symmetric")


class TestGraphml(FormatContract):
    format = "graphml"

    def write(self, path, graph):
        made = nx.Graph()
        made.add_nodes_from(range(graph.num_nodes))
        made.add_weighted_edges_from(edges(graph))
        nx.write_graphml(made, path)


class TestParquet(FormatContract):
    format = "parquet"
    isolated = False

    def write(self, path, graph):
        pd.DataFrame(edges(graph), columns=["source", "target", "weight"]).to_parquet(path)


def read_triples(path, options):
    """A format of one's own, in five lines: ``low-high:weight`` on each line."""
    triples = [line.replace("-", ":", 1).split(":") for line in path.read_text().split()]
    if any(len(each) != 3 for each in triples):
        raise ValueError("a line that is no edge")
    arcs = np.array([each[:2] for each in triples]).astype(np.int64).T
    if options.column is not None:
        raise TadropedgeError(f"no column {options.column}")
    weight = np.array([float(each[2]) for each in triples]) if options.weighted else None
    return FileContents(file=path.name, arcs=arcs, weight=weight, read=f"{arcs.shape[1]} edges")


class TestOwn(FormatContract):
    format = Format(name="a list of triples", suffixes=(".triples",), reader=read_triples, text=False)
    isolated = False

    def write(self, path, graph):
        path.write_text("\n".join(f"{low}-{high}:{weight!r}" for low, high, weight in edges(graph)))


def test_every_format_has_a_contract():
    suites = (each for each in globals().values() if isinstance(each, type) and issubclass(each, FormatContract))
    assert {each.format for each in suites if each is not FormatContract} >= set(FORMATS)


# -- npz -----------------------------------------------------------------------------------------------

SCORE = {(0, 2): 20.0, (0, 1): 10.0, (1, 2): 30.0, (1, 0): 11.0, (2, 0): 21.0, (2, 1): 31.0}


def scored(contents):
    """The column by arc: what each arc was given, wherever it stands."""
    return {tuple(arc): value for arc, value in zip(contents.arcs.T.tolist(), contents.column.tolist(), strict=True)}


@pytest.mark.parametrize("kind", ["csr", "csc", "coo"])
@pytest.mark.parametrize("weighs", [False, True])
def test_numbers_beside_a_matrix_follow_its_entries(kind, weighs, tmp_path):
    rows, columns = np.array(list(SCORE)).T  # in an order that no layout has
    matrix = sp.coo_matrix((np.arange(1.0, 7), (rows, columns)), shape=(3, 3))
    values = np.array(list(SCORE.values()))
    if kind != "coo":
        matrix = matrix.asformat(kind)
        stored = matrix.tocoo()
        values = np.array([SCORE[arc] for arc in zip(stored.row.tolist(), stored.col.tolist(), strict=True)])
    sp.save_npz(tmp_path / "m.npz", matrix)
    with np.load(tmp_path / "m.npz") as parts:
        arrays = {**parts, "score": values, **({"edge_weight": values} if weighs else {})}
    np.savez(tmp_path / "m.npz", **arrays)
    contents = read_file(tmp_path / "m.npz", column="score")
    assert scored(contents) == SCORE
    weight = dict(zip(map(tuple, contents.arcs.T.tolist()), contents.weight.tolist(), strict=True))
    assert weight == (SCORE if weighs else {arc: 1.0 + place for place, arc in enumerate(SCORE)})


def test_numbers_beside_an_unsorted_csr_matrix_follow_its_entries(tmp_path):
    parts = {"data": [1.0, 1, 1, 1, 1, 1], "indices": [2, 1, 2, 0, 1, 0], "indptr": [0, 2, 4, 6], "shape": [3, 3]}
    np.savez(
        tmp_path / "m.npz",
        score=[20.0, 10, 30, 11, 31, 21],
        **{f"adj_{name}": np.array(part) for name, part in parts.items()},
    )
    assert scored(read_file(tmp_path / "m.npz", column="score")) == SCORE


def test_stored_zeros_are_no_edges_and_repeated_entries_are_one(tmp_path):
    matrix = sp.coo_matrix(([1.0, 0.0, 2.0, 3.0], ([1, 0, 0, 1], [0, 1, 2, 0])), shape=(3, 3))
    sp.save_npz(tmp_path / "m.npz", matrix)
    with np.load(tmp_path / "m.npz") as parts:
        arrays = {**parts, "score": np.array([10.0, 20, 30, 14])}
    np.savez(tmp_path / "m.npz", **arrays)
    assert scored(read_file(tmp_path / "m.npz", column="score")) == {(0, 2): 30, (1, 0): 12}
    np.savez(tmp_path / "m.npz", **{**arrays, "score": np.array([10.0, np.nan, 30, 14])})
    with pytest.raises(TadropedgeError, match="score must be finite"):
        read_file(tmp_path / "m.npz", column="score")


@pytest.mark.parametrize("other", ["labels", "attr", "y", "target", "node_labels"])
def test_weights_stay_whatever_lies_beside_them(other, tmp_path):
    arrays = {"edge_index": np.array([[0, 1], [1, 2]]), "edge_weight": np.array([2.0, 3.0])}
    arrays["trust"] = np.array([1.0, 2.0])
    np.savez(tmp_path / "e.npz", **arrays, **{other: np.eye(3)[:, 0] if other != "attr" else np.eye(3)})
    contents = read_file(tmp_path / "e.npz")
    assert contents.weight.tolist() == [2.0, 3.0]
    assert contents.read == "2 edges from edge_index, weights from edge_weight; left out: 'trust'"


@pytest.mark.parametrize(
    "names", [("x", "y"), ("attr", "labels"), ("node_features", "node_labels"), ("features", "target")]
)
def test_features_and_labels_of_everybodys_names(names, tmp_path):
    np.savez(tmp_path / "e.npz", edges=np.array([[0, 1], [1, 2]]), **{names[0]: np.eye(3), names[1]: [0, 1, 0]})
    contents = read_file(tmp_path / "e.npz")
    assert contents.features.shape == (3, 3)
    assert contents.labels.tolist() == [0, 1, 0]
    assert contents.num_nodes == 3 or names[0] == "x"
    assert read_file(tmp_path / "e.npz", nodes=False).features is None


def test_files_of_pyg_have_binary_features_and_no_weights(tmp_path):
    csr = {"data": [2.0, 1.0], "indices": [1, 0], "indptr": [0, 1, 2], "shape": [2, 2]}
    arrays = {f"{name}_{part}": np.array(each) for name in ("adj", "attr") for part, each in csr.items()}
    np.savez(tmp_path / "amazon.npz", **arrays, labels=np.array([0, 1]))
    contents = read_file(tmp_path / "amazon.npz")
    assert contents.weight is None
    assert contents.features.toarray().tolist() == [[0, 1], [1, 0]]


ARCS = np.array([[0, 1], [1, 2]])
BAD_ARRAYS = {
    "nothing": ({"a": ARCS}, "edge_index"),
    "two graphs": ({"edge_index": ARCS, "edges": ARCS}, "two graphs"),
    "fractions": ({"edge_index": ARCS + 0.5}, "whole numbers"),
    "shape": ({"edge_index": ARCS[0]}, r"\[2, A\]"),
    "negative": ({"edge_index": -ARCS}, "negative"),
    "beyond": ({"edge_index": ARCS, "num_nodes": 2}, "num_nodes=2"),
    "weights": ({"edge_index": ARCS, "edge_weight": [1.0]}, "edge_weight"),
    "NaN": ({"edge_index": ARCS, "edge_weight": [1.0, np.nan]}, "finite"),
    "complex": ({"edge_index": ARCS, "edge_weight": [1.0, 1j]}, "edge_weight"),
    "classes": ({"edge_index": ARCS, "y": [0.5, 1, 2]}, "whole numbers"),
    "one-hot": ({"edge_index": ARCS, "y": np.eye(3)}, "one class"),
    "names": ({"edge_index": ARCS, "num_nodes": 3, "node_ids": ["a"]}, "node_ids"),
    "objects": ({"edge_index": ARCS, "y": np.array([{}, {}, {}])}, "unpickled"),
    "columns of CSR": (
        {f"adj_{name}": np.array(part) for name, part in zip(
            ("data", "indices", "indptr", "shape"), ([1.0], [10**6], [0, 1, 1], [2, 2]), strict=True
        )},
        "npz",
    ),
    "rows of CSR": (
        {f"adj_{name}": np.array(part) for name, part in zip(
            ("data", "indices", "indptr", "shape"), ([1.0], [1], [0, 10**9, 1], [2, 2]), strict=True
        )},
        "npz",
    ),
    "COO": ({"format": b"coo", "row": [0, -7], "col": [1, 10**9], "data": [1.0, 1.0], "shape": [2, 2]}, "npz"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD_ARRAYS)
def test_bad_arrays(name, tmp_path):
    arrays, words = BAD_ARRAYS[name]
    np.savez(tmp_path / "e.npz", **{key: np.asarray(each) for key, each in arrays.items()})
    with pytest.raises(TadropedgeError, match=words) as caught:
        read_file(tmp_path / "e.npz").to_graph()
    assert "e.npz" in str(caught.value)


# -- pt ------------------------------------------------------------------------------------------------


class Runs:
    """An object that makes a file when it is unpickled."""

    def __reduce__(self):
        return open, ("ran.txt", "w")


@pytest.mark.parametrize("wrapped", [lambda bad: bad, lambda bad: {"edge_index": bad}, lambda bad: Data(x=bad)])
def test_nothing_that_a_file_holds_is_run(wrapped, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    torch.save(wrapped(Runs()), tmp_path / "e.pt")
    np.savez(tmp_path / "e.npz", edge_index=np.array([Runs()]))
    (tmp_path / "plain.npz").write_bytes((tmp_path / "e.pt").read_bytes())
    for name in ("e.pt", "e.npz", "plain.npz"):
        with pytest.raises(TadropedgeError, match=name.replace(".", r"\.")):
            read_file(name)
    assert not (tmp_path / "ran.txt").exists()


def nested():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return torch.nested.nested_tensor([torch.ones(2), torch.ones(3)])


T = torch.tensor(ARCS)
BAD_DATA = {
    "nested": {"edge_index": T, "x": nested()},
    "nested weight": {"edge_index": T, "edge_weight": nested()},
    "nested edge_index": {"edge_index": nested()},
    "complex": {"edge_index": T, "edge_weight": torch.ones(2, dtype=torch.complex64)},
    "meta": {"edge_index": torch.empty(2, 2, device="meta")},
    "fractions": {"edge_index": T.double()},
    "list": {"edge_index": [[0, 1], [1, 2]]},
    "weights": {"edge_index": T, "edge_weight": torch.ones(3)},
    "dense": {"adj_t": torch.eye(3)},
    "oblong": {"adj_t": torch.ones(2, 3).to_sparse()},
    "nothing": {"x": torch.eye(3)},
    "a tensor": T,
    "two graphs": ({"edge_index": T}, {"edge_index": torch.tensor([0, 1, 2])}),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", BAD_DATA)
def test_bad_data(name, tmp_path):
    torch.save(BAD_DATA[name], tmp_path / "e.pt")
    with pytest.raises(TadropedgeError, match=r"e\.pt") as caught:
        read_file(tmp_path / "e.pt")
    assert len(str(caught.value).splitlines()) == 1


@pytest.mark.filterwarnings("ignore")
def test_malformed_sparse_tensors_are_refused(tmp_path):
    parts = torch.tensor([0, 9, 1]), torch.tensor([50]), torch.ones(1)
    torch.save({"adj_t": torch.sparse_csr_tensor(*parts, size=(2, 2), check_invariants=False)}, tmp_path / "e.pt")
    with pytest.raises(TadropedgeError, match=r"e\.pt"):
        read_file(tmp_path / "e.pt")


def test_a_data_with_everything(tmp_path):
    safe = torch.serialization.get_safe_globals()
    masks = {f"{part}_mask": torch.tensor([place == node for node in range(3)]) for place, part in enumerate("abc")}
    masks = dict(zip(("train_mask", "val_mask", "test_mask"), masks.values(), strict=True))
    data = Data(torch.eye(3), T, y=torch.tensor([[0], [1], [0]]), score=torch.tensor([5.0, 6.0]), name="mine", **masks)
    for saved in (data, data.to_dict(), (data.to_dict(), {"x": torch.tensor([0, 3])}, Data)):
        torch.save(saved, tmp_path / "d.pt")
        contents = read_file(tmp_path / "d.pt", column="score")
        assert contents.column.tolist() == [5, 6]
        assert contents.labels.tolist() == [0, 1, 0]
        assert contents.features.tolist() == np.eye(3).tolist()
        assert contents.splits["val"].tolist() == [False, True, False]
        assert contents.read == "2 edges from edge_index, column score"
    assert read_file(tmp_path / "d.pt", columns={"weight": "score"}).weight.tolist() == [5, 6]
    assert read_file(tmp_path / "d.pt").read == "2 edges from edge_index; left out: 'score'"
    assert set(torch.serialization.get_safe_globals()) == set(safe)  # PyG needs some of them to load its own files


@pytest.mark.filterwarnings("ignore:Sparse")
def test_numbers_beside_adj_t_have_no_order(tmp_path):
    torch.save({"adj_t": torch.eye(3).to_sparse(), "score": torch.ones(3)}, tmp_path / "e.pt")
    with pytest.raises(TadropedgeError, match="score"):
        read_file(tmp_path / "e.pt", column="score")


# -- Matrix Market, GraphML, Parquet -------------------------------------------------------------------

MTX = "%%MatrixMarket matrix coordinate {}\n% made by hand\n3 3 2\n{}"
BAD_TEXTS = {
    "complex.mtx": (MTX.format("complex general", "2 1 1 0\n3 2 1 0\n"), "complex"),
    "skew.mtx": (MTX.format("real skew-symmetric", "2 1 1\n3 2 1\n"), "skew"),
    "outside.mtx": (MTX.format("real general", "2 1 1\n4 2 1\n"), "mtx"),
    "words.mtx": (MTX.format("real general", "2 1 one\n3 2 1\n"), "one"),
    "huge.mtx": (MTX.format("real general", f"2 1 {2**2000}\n3 2 1\n"), "finite"),
    "much.mtx": ("%%MatrixMarket matrix coordinate real general\n3 3 99999999999999\n1 2 1\n", "99999999999999 lines"),
    "oblong.mtx": ("%%MatrixMarket matrix coordinate real general\n2 3 1\n1 2 1\n", "square"),
    "dense.mtx": ("%%MatrixMarket matrix array real general\n1 1\n1\n", "array"),
    "broken.graphml": ("<graphml><graph>", "graphml"),
    "none.graphml": ("<graphml></graphml>", "graph"),
    "page.graphml": ("<html><body/></html>", "graph"),
    "bomb.graphml": ('<!DOCTYPE g [<!ENTITY a "ha">]><graphml><graph>&a;</graph></graphml>', "graphml"),
    "two.graphml": ("<graphml><graph/><graph/></graphml>", "one graph"),
    "text.parquet": ("source,target\n1,2\n", "Parquet"),
    "e.net": ("*Vertices 2", "suffix"),
}


@pytest.mark.parametrize("name", BAD_TEXTS)
def test_bad_texts(name, tmp_path):
    (tmp_path / name).write_text(BAD_TEXTS[name][0])
    with pytest.raises(TadropedgeError, match=BAD_TEXTS[name][1]):
        Graph.from_file(tmp_path / name)


def test_a_pattern_has_no_weights(tmp_path):
    (tmp_path / "e.mtx").write_text(MTX.format("pattern symmetric", "2 1\n3 2\n"))
    contents = read_file(tmp_path / "e.mtx")
    assert contents.weight is None
    assert contents.read.endswith("a symmetric matrix")


def test_graphml_names_and_attributes(tmp_path):
    graph = nx.Graph([("ann", "bob", {"km": 2.5, "kind": "road"}), ("bob", "eve", {"km": 4, "kind": "road"})])
    nx.write_graphml(graph, tmp_path / "g.graphml")
    contents = read_file(tmp_path / "g.graphml", columns={"weight": "km"})
    assert contents.node_ids == ("ann", "bob", "eve")
    assert contents.weight.tolist() == [2.5, 4]
    assert read_file(tmp_path / "g.graphml").weight is None
    assert read_file(tmp_path / "g.graphml").read == "2 edges from GraphML; left out: 'km', 'kind'"
    with pytest.raises(TadropedgeError, match="road"):
        read_file(tmp_path / "g.graphml", column="kind")


def test_text_is_read_without_the_libraries_of_other_formats(tmp_path, monkeypatch):
    for name in ("pandas", "pyarrow", "pyarrow.parquet", "networkx"):
        monkeypatch.setitem(sys.modules, name, None)
    (tmp_path / "e.csv").write_text("source;target;weight\na;b;0,5\n")
    assert Graph.from_file(tmp_path / "e.csv").weight.tolist() == [0.5]
    for name, library in (("e.parquet", "pandas"), ("e.graphml", "networkx")):
        (tmp_path / name).write_text("")
        with pytest.raises(TadropedgeError, match=f"read by {library}, .* pip install"):
            Graph.from_file(tmp_path / name)


def test_columns_of_parquet(tmp_path):
    table = pd.DataFrame({"when": ["mon", "tue"], "a": ["x", "y"], "b": ["y", "z"], "w": [0.5, 2.0]})
    table.to_parquet(tmp_path / "t.parquet")
    contents = read_file(tmp_path / "t.parquet", columns={"source": "a", "target": "b", "weight": "w"})
    assert contents.node_ids == ("x", "y", "z")
    assert contents.weight.tolist() == [0.5, 2]
    assert contents.read.endswith("left out: 'when'")
    with pytest.raises(TadropedgeError, match="source"):
        read_file(tmp_path / "t.parquet")


def test_an_index_of_parquet_is_a_column_like_others(tmp_path):
    table = pd.DataFrame({"source": [1, 2], "target": [2, 3], "weight": [0.5, 2.0]})
    table.set_index(["source", "target"]).to_parquet(tmp_path / "t.parquet")
    contents = read_file(tmp_path / "t.parquet")
    assert contents.node_ids == (1, 2, 3)
    assert contents.weight.tolist() == [0.5, 2]


@pytest.mark.parametrize("ends", [[0.5, 1.5], [1, None], [True, False], [b"a", b"b"], pd.to_datetime(["2020", "2021"])])
def test_ids_of_parquet_are_integers_or_texts(ends, tmp_path):
    pd.DataFrame({"source": ends, "target": ends}).to_parquet(tmp_path / "t.parquet")
    with pytest.raises(TadropedgeError, match="source"):
        read_file(tmp_path / "t.parquet")
