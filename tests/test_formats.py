"""Every format, written by the library it belongs to, read by every command: the same data in all."""

import gzip
import json
import sys

import networkx as nx
import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp
import torch
from conftest import data_root, need_data
from torch_geometric.data import Data, InMemoryDataset
from typer.testing import CliRunner

import tadropedge as tde
from tadropedge import Graph, TadropedgeError
from tadropedge.cli import app
from tadropedge.cli.options import LaboratoryOptions
from tadropedge.data import load_dataset, load_file
from tadropedge.files import format_of, read_file
from tadropedge.files.markup import check_xml

# A ring of 24 nodes with chords, in three classes; the last node is on the ring alone.
N = 24
LOW = np.concatenate((np.arange(N - 1), [0], np.arange(0, N - 6, 2)))
HIGH = np.concatenate((np.arange(1, N), [N - 1], np.arange(5, N - 1, 2)))
ARCS = np.stack((LOW, HIGH))
WEIGHT = 0.5 + np.arange(ARCS.shape[1]) / 4
X = (np.arange(N * 4).reshape(N, 4) * 7 % 5).astype(np.float64)
Y = np.arange(N) % 3
SPLIT = {"train": np.arange(9), "val": np.arange(9, 15), "test": np.arange(15, N)}
GRAPH = Graph.from_edge_index(ARCS, N)
WEIGHTED = Graph.from_edge_index(ARCS, N, WEIGHT)


def matrix(weighted=True):
    values = WEIGHT if weighted else np.ones(len(WEIGHT))
    half = sp.coo_matrix((values, tuple(ARCS)), shape=(N, N))
    return (half + half.T).tocsr()


def networkx_graph(weighted=True, nodes=True, names=True):
    called = [f"node {place}" if names else place for place in range(N)]
    graph = nx.Graph()
    for place, name in enumerate(called):
        part = next(each for each, members in SPLIT.items() if place in members)
        facts = {f"x{column}": float(X[place, column]) for column in range(4)}
        graph.add_node(name, **({**facts, "y": "abc"[Y[place]], "split": part} if nodes else {}))
    for low, high, weight in zip(*ARCS.tolist(), WEIGHT.tolist(), strict=True):
        graph.add_edge(called[low], called[high], **({"weight": weight, "trust": 2 * weight} if weighted else {}))
    return graph


def csr_parts(prefix, values):
    compressed = sp.csr_matrix(values)
    return {
        f"{prefix}_{part}": np.asarray(getattr(compressed, part)) for part in ("data", "indices", "indptr", "shape")
    }


def masks(ending="", axis=None):
    found = {f"{name}_mask{ending}": np.isin(np.arange(N), part) for name, part in SPLIT.items()}
    return found if axis is None else {name: np.stack((mask, mask), axis=axis) for name, mask in found.items()}


def data(**changes):
    tensors = {name: torch.from_numpy(mask) for name, mask in masks().items()}
    tensors |= {"x": torch.from_numpy(X).float(), "y": torch.from_numpy(Y), "edge_index": torch.from_numpy(ARCS)}
    return Data(**tensors | changes)


class Ring(InMemoryDataset):
    """PyG's own way to store a dataset of one graph."""

    @property
    def processed_file_names(self):
        return "data.pt"

    def process(self):
        self.save([data()], self.processed_paths[0])


def write_ogb(folder):
    tables = {"raw/edge": ARCS.T, "raw/num-node-list": [[N]], "raw/node-feat": X, "raw/node-label": Y[:, None]}
    names = {"train": "train", "val": "valid", "test": "test"}
    tables |= {f"split/time/{names[part]}": members[:, None] for part, members in SPLIT.items()}
    for name, table in tables.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        lines = "".join(",".join(map(str, row)) + "\n" for row in np.asarray(table).tolist())
        (folder / f"{name}.csv.gz").write_bytes(gzip.compress(lines.encode()))
    return folder


def saver(name, **arrays):
    def write(folder):
        np.savez(folder / name, **arrays)
        return folder / name

    return write


def text(name, content):
    def write(folder):
        coded = content.encode() if isinstance(content, str) else content
        (folder / name).write_bytes(gzip.compress(coded) if name.endswith(".gz") else coded)
        return folder / name

    return write


def by(write, name, *arguments, **options):
    def written(folder):
        write(*(folder / name if each is ... else each for each in arguments), **options)
        return folder / name

    return written


def processed(folder):
    Ring(folder / "ring")
    return folder / "ring" / "processed" / "data.pt"


def packed(write):
    def written(folder):
        path = write(folder)
        target = path.with_name(path.name + ".gz")
        target.write_bytes(gzip.compress(path.read_bytes()))
        return target

    return written


LINES = "".join(f"{low},{high},{w!r}\n" for low, high, w in zip(*ARCS.tolist(), WEIGHT.tolist(), strict=True))
BARE = Data(edge_index=torch.from_numpy(ARCS), edge_weight=torch.from_numpy(WEIGHT), num_nodes=N)
NO_NODES = '<graphml xmlns="http://graphml.graphdrawing.org/xmlns"><graph edgedefault="directed"/></graphml>'
TWO = "graph [ node [ id 0 ] node [ id 1 ] edge [ source 0 target 1 weight {} ] ]"
# Whole datasets, all of the same graph without weights.
DATASETS = {
    "own": saver("g.npz", edge_index=ARCS, x=X, y=Y, **SPLIT),
    "own sparse": saver("g.npz", **csr_parts("adj", matrix(False)), **csr_parts("x", X), y=Y, **SPLIT),
    "heterophilous": saver("g.npz", edges=ARCS.T, node_features=X, node_labels=Y, **masks("s", axis=0)),
    "ogb names": saver(
        "g.npz",
        edge_index=ARCS,
        node_feat=X,
        node_label=Y[:, None].astype(np.float32),
        train_idx=SPLIT["train"],
        valid_idx=SPLIT["val"],
        test_idx=SPLIT["test"],
    ),
    "ogb folder": lambda folder: write_ogb(folder / "ogbn_ring"),
    "saved": by(torch.save, "g.pt", data(), ...),
    "saved dictionary": by(torch.save, "g.pt", data().to_dict(), ...),
    "processed": processed,
    "graphml": by(nx.write_graphml, "g.graphml", networkx_graph(weighted=False), ...),
    "gml": by(nx.write_gml, "g.gml", networkx_graph(weighted=False), ...),
}
# Graphs with weights.
GRAPHS = {
    "csv": text("g.csv", LINES),
    "tsv": text("g.tsv.gz", LINES.replace(",", "\t")),
    "scipy": by(sp.save_npz, "g.npz", ..., matrix()),
    "mtx": by(scipy.io.mmwrite, "g.mtx", ..., matrix(), symmetry="symmetric"),
    "mtx general": by(scipy.io.mmwrite, "g.mtx", ..., matrix(), symmetry="general"),
    "mtx packed": packed(by(scipy.io.mmwrite, "g.mtx", ..., matrix(), symmetry="symmetric")),
    "saved": by(torch.save, "g.pt", BARE, ...),
    "graphml": by(nx.write_graphml, "g.graphml", networkx_graph(nodes=False, names=False), ...),
    "graphml packed": packed(by(nx.write_graphml, "g.graphml", networkx_graph(nodes=False, names=False), ...)),
    "gml": by(nx.write_gml, "g.gml", networkx_graph(nodes=False, names=False), ...),
}


def real(*parts):
    return need_data(data_root().joinpath(*parts))


def run(*arguments):
    return CliRunner().invoke(app, [str(each) for each in arguments])


# -- the same data ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", GRAPHS)
def test_every_format_holds_the_same_graph(name, tmp_path):
    graph = Graph.from_file(GRAPHS[name](tmp_path))
    assert graph.fingerprint == WEIGHTED.fingerprint
    assert graph.node_ids in (None, tuple(range(N)))
    assert Graph.from_file(GRAPHS[name](tmp_path), weighted=False).fingerprint == GRAPH.fingerprint


@pytest.mark.parametrize("name", DATASETS)
def test_every_format_holds_the_same_data(name, tmp_path):
    path = DATASETS[name](tmp_path)
    dataset = load_file(path)
    assert dataset.graph.fingerprint == GRAPH.fingerprint == Graph.from_file(path).fingerprint
    assert dataset.features.to_dense().tolist() == X.tolist()
    assert dataset.labels.tolist() == Y.tolist()
    assert [part.tolist() for _, part in dataset.split.parts()] == [part.tolist() for part in SPLIT.values()]
    if name in ("graphml", "gml"):
        assert dataset.class_names == ("a", "b", "c")
        assert dataset.graph.node_ids[3] == "node 3"
    assert load_file(path, split="random", per_class=2).split.sizes == (6, 6, 12)


@pytest.mark.parametrize("name", DATASETS)
def test_every_command_reads_a_dataset(name, tmp_path):
    path = DATASETS[name](tmp_path)
    ended = run("weights", path, "--score", "cosine", "--out", tmp_path / "w", "--no-figures", "--json")
    assert ended.exit_code == 0, ended.exception
    assert json.loads(ended.stdout)["graph"]["edges"] == GRAPH.num_edges
    ended = run("weights", path, "--out", tmp_path / "q", "--explain", "--json")  # q is the number of classes
    assert ended.exit_code == 0, ended.exception
    ended = run("sparsify", path, "--score", "cosine", "--keep-ratio", 0.6, "--no-certificate", "--out", tmp_path / "s")
    assert ended.exit_code == 0, ended.exception
    assert load_file(tmp_path / "s" / "graph.npz").features.to_dense().tolist() == X.tolist()
    ended = run("train", path, "--epochs", 1, "--hidden", 2, "--json")
    assert ended.exit_code == 0, ended.exception
    assert 0 <= json.loads(ended.stdout)["test_accuracy"] <= 1
    compared = LaboratoryOptions(dataset=str(path)).laboratory(choose_splits=1)  # what compare begins with
    assert compared.dataset.labels.tolist() == Y.tolist()


def test_compare_reads_them_too(tmp_path):
    cheap = ("--methods", "dropedge", "--trials", 1, "--seeds", 2, "--choose-splits", 1, "--epochs", 1, "--hidden", 2)
    ended = run("compare", DATASETS["graphml"](tmp_path), *cheap, "--out", tmp_path / "c", "--json")
    assert ended.exit_code == 0, ended.exception


@pytest.mark.parametrize("name", GRAPHS)
def test_every_command_reads_a_graph_or_says_what_is_missing(name, tmp_path):
    path = GRAPHS[name](tmp_path)
    ended = run("weights", path, "--score", "degree", "--out", tmp_path / "w", "--no-figures", "--json")
    assert ended.exit_code == 0, ended.exception
    assert json.loads(ended.stdout)["graph"]["nodes"] == N
    ended = run("sparsify", path, "--score", "degree", "--keep-ratio", 0.6, "--no-certificate", "--out", tmp_path / "s")
    assert ended.exit_code == 0, ended.exception
    for command in ("train", "compare"):
        ended = run(command, path, "--out", tmp_path / "m")
        assert isinstance(ended.exception, TadropedgeError)
        words = "found no x" if name == "saved" else "--nodes nodes.csv"
        assert words in str(ended.exception)
        assert not (tmp_path / "m" / "results.json").exists()
    nodes = tmp_path / "nodes.csv"
    nodes.write_text("".join(f"{place},{','.join(map(str, X[place]))},{'abc'[Y[place]]}\n" for place in range(N)))
    if name == "saved":
        with pytest.raises(TadropedgeError, match=r"nodes belongs to a graph without features, and g\.pt is a file of"):
            load_file(path, nodes=nodes)
        return
    dataset = load_file(path, nodes=nodes, per_class=2)
    assert dataset.graph.fingerprint == WEIGHTED.fingerprint
    assert dataset.features.tolist() == X.tolist()
    assert run("train", path, "--nodes", nodes, "--per-class", 2, "--epochs", 1, "--json").exit_code == 0


@pytest.mark.parametrize("name", ["csv", "graphml", "gml", "saved"])
def test_a_column_of_any_format_is_a_score(name, tmp_path):
    trust = 2 * WEIGHT
    rows = zip(*ARCS.tolist(), WEIGHT.tolist(), trust.tolist(), strict=True)
    table = "source,target,weight,trust\n" + "".join(
        f"{low},{high},{weight},{more}\n" for low, high, weight, more in rows
    )
    tensors = {"edge_index": torch.from_numpy(ARCS), "edge_weight": torch.from_numpy(WEIGHT)}
    writers = {
        **GRAPHS,
        "csv": text("g.csv", table),
        "saved": by(torch.save, "g.pt", Data(**tensors, trust=torch.from_numpy(trust), num_nodes=N), ...),
    }
    path = writers[name](tmp_path)
    graph, column = tde.scores.column.read_column(path, "trust")
    order = np.lexsort((ARCS.max(0), ARCS.min(0)))
    assert graph.fingerprint == WEIGHTED.fingerprint
    assert column.tolist() == trust[order].tolist()
    ended = run("weights", path, "--score-column", "nope", "--out", tmp_path / "w")
    assert "GRAPH g." in str(ended.exception)
    assert "has no column 'nope'" in str(ended.exception)


# -- the files of others ------------------------------------------------------------------------------------


def test_raw_files_of_citation_full_as_pyg_reads_them():
    from torch_geometric.io import read_npz

    path = real("citation_full", "citeseer", "raw", "citeseer.npz")
    theirs, ours = read_npz(str(path)), load_file(path)
    assert ours.graph.fingerprint == Graph.from_data(theirs).fingerprint == Graph.from_file(path).fingerprint
    assert torch.equal(ours.features.to_dense(), theirs.x)
    assert torch.equal(ours.labels, theirs.y)


def test_raw_files_of_heterophilous_graphs():
    path = real("heterophilous", "minesweeper", "raw", "minesweeper.npz")
    arrays, ours = np.load(path), load_file(path)
    assert ours.graph.fingerprint == Graph.from_edge_index(arrays["edges"].T, 10_000).fingerprint
    assert np.array_equal(ours.features.numpy(), arrays["node_features"])
    assert np.array_equal(ours.labels.numpy(), arrays["node_labels"])
    assert len(ours.way.splits) == len(arrays["train_masks"]) == 10
    for number, split in enumerate(ours.way.splits):
        for name, part in split.parts():
            assert np.array_equal(part.numpy(), arrays[f"{name}_masks"][number].nonzero()[0])


def test_wikipedia_names_and_positive_features_of_citation_full(tmp_path):
    path = saver("g.npz", edges=ARCS.T, features=X, target=Y)(tmp_path)
    assert load_file(path, per_class=2).labels.tolist() == Y.tolist()
    path = saver("f.npz", **csr_parts("attr", X), **csr_parts("adj", matrix()), labels=Y.astype(np.int8))(tmp_path)
    dataset = load_file(path, per_class=2)
    assert dataset.graph.weight is None
    assert dataset.features.to_dense().tolist() == (X > 0).astype(float).tolist()


def test_ogb_by_its_name_below_the_data(tmp_path, monkeypatch):
    write_ogb(tmp_path / "ogbn_ring")
    monkeypatch.setenv("TADROPEDGE_DATA", str(tmp_path))
    assert load_dataset("ogbn-ring").graph.fingerprint == GRAPH.fingerprint
    assert run("train", "ogbn-ring", "--epochs", 1, "--json").exit_code == 0
    assert run("weights", "ogbn-ring", "--score", "degree", "--no-figures", "--out", tmp_path / "w").exit_code == 0
    words = str(run("train", "ogbn-else", "--data-root", tmp_path).exception)
    assert "ogbn-else is not below" in words
    assert "--data-root FOLDER says where it is" in words


def test_unlabelled_nodes_of_ogb_and_tasks_of_several_labels(tmp_path):
    labels = np.where(np.arange(N) > 20, np.nan, Y)
    path = saver("g.npz", edge_index=ARCS, node_feat=X, node_label=labels)(tmp_path)
    assert load_file(path, per_class=2).labels.tolist() == [*Y[:21].tolist(), -1, -1, -1]
    folder = write_ogb(tmp_path / "ogbn_many")
    (folder / "raw" / "node-label.csv.gz").write_bytes(gzip.compress(b"0,1\n" * N))
    with pytest.raises(TadropedgeError, match="node-label must be one class per node"):
        load_file(folder)


# -- what a file looks like -----------------------------------------------------------------------------------

AMBIGUOUS = {
    "mtx.txt": lambda folder: by(scipy.io.mmwrite, "g.mtx", ..., matrix())(folder),
    "graphml.xml": GRAPHS["graphml"],
    "gml.txt": GRAPHS["gml"],
    "npz.bin": GRAPHS["scipy"],
    "pt.dat": GRAPHS["saved"],
}


@pytest.mark.parametrize("name", AMBIGUOUS)
def test_where_the_suffix_leaves_it_open_the_content_tells(name, tmp_path):
    path = AMBIGUOUS[name](tmp_path).rename(tmp_path / name)
    assert Graph.from_file(path).fingerprint == WEIGHTED.fingerprint
    wrong = path.rename(tmp_path / "g.csv")
    with pytest.raises(
        TadropedgeError, match=r"g\.csv: looks like an? .*, not an edge list: call it g\.(mtx|graphml|gml|npz|pt)"
    ):
        format_of(wrong)


def test_gzip_by_another_name(tmp_path):
    path = GRAPHS["tsv"](tmp_path).rename(tmp_path / "g.tsv")
    with pytest.raises(TadropedgeError, match=r"g\.tsv: looks like a file packed with gzip: call it g\.tsv\.gz"):
        Graph.from_file(path)
    path = packed(GRAPHS["scipy"])(tmp_path)
    with pytest.raises(TadropedgeError, match=r"g\.npz\.gz: an \.npz file is not read while it is packed"):
        Graph.from_file(path)


# -- files that are refused -----------------------------------------------------------------------------------

BILLION = "".join(f'<!ENTITY a{n} "{f"&a{n - 1};" * 10}">' for n in range(1, 10))
BOMB = f'<?xml version="1.0"?><!DOCTYPE g [<!ENTITY a0 "ha">{BILLION}]><graphml><graph id="&a9;"/></graphml>'
OUTSIDE = '<!DOCTYPE g [<!ENTITY e SYSTEM "file:///etc/passwd">]><graphml><graph id="&e;"/></graphml>'
HEADER = "%%MatrixMarket matrix coordinate {} {}\n"
REFUSED = {
    "bomb": ("g.graphml", BOMB, "has a DOCTYPE, which is not read"),
    "outside": ("g.graphml", OUTSIDE, "has a DOCTYPE, which is not read"),
    "bomb in UTF-16": ("g.graphml", BOMB.encode("utf-16"), "has a DOCTYPE, which is not read"),
    "deep": ("g.graphml", "<graphml>" + "<graph>" * 70, "nest deeper than 64"),
    "two graphs": ("g.graphml", "<graphml><graph/><graph/></graphml>", "expected one graph, got 2"),
    "truncated": ("g.graphml", '<graphml><graph><node id="a">', "not XML that can be read"),
    "no nodes": ("g.graphml", NO_NODES, "no nodes"),
    "deep lists": ("g.gml", "graph [ " + "a [ " * 70, "its lists nest deeper than 64"),
    "half a list": ("g.gml", "graph [ node [ id 0 ", "not a graph that networkx can read"),
    "weight of words": ("g.gml", TWO.format('"big"'), "must be a number, got 'big'"),
    "weight NaN": ("g.gml", TWO.format("NAN"), "positive and finite, got nan"),
    "complex": ("g.mtx", HEADER.format("complex", "general") + "2 2 1\n1 2 1 1\n", "got 'coordinate complex general'"),
    "skew": (
        "g.mtx",
        HEADER.format("real", "skew-symmetric") + "2 2 1\n2 1 1\n",
        "got 'coordinate real skew-symmetric'",
    ),
    "array": ("g.mtx", "%%MatrixMarket matrix array real general\n1 1\n1\n", "got 'array real general'"),
    "rectangle": ("g.mtx", HEADER.format("real", "general") + "2 3 1\n1 2 1\n", r"must be square, got shape \(2, 3\)"),
    "many": (
        "g.mtx",
        HEADER.format("real", "general") + "9 9 99999999999\n1 2 1\n",
        "99,999,999,999 entries, for which",
    ),
    "few": ("g.mtx", HEADER.format("real", "general") + "9 9 3\n1 2 1\n3 4 1\n", "too few|not a Matrix Market file"),
    "outside it": (
        "g.mtx",
        HEADER.format("real", "general") + "2 2 1\n1 3 1\n",
        "not a Matrix Market file that can be read",
    ),
    "zero-based": (
        "g.mtx",
        HEADER.format("real", "general") + "2 2 1\n0 1 1\n",
        "not a Matrix Market file that can be read",
    ),
    "negative": ("g.mtx", HEADER.format("real", "general") + "2 2 1\n1 2 -1\n", "positive and finite, got -1"),
    "NUL": ("g.mtx", HEADER.format("real", "general") + "2 2 1\n1 2 1\0\n", "got the character"),
    "packed bomb": (
        "g.mtx.gz",
        HEADER.format("real", "general") + "2 2 1\n1 2 1" + " " * 2**25,
        "packed too well to be text",
    ),
    "sizes": ("g.mtx", HEADER.format("real", "general") + "two\n", "expected a line of three sizes"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_texts_that_are_refused(name, tmp_path):
    file, content, words = REFUSED[name]
    path = text(file, content)(tmp_path)
    with pytest.raises(TadropedgeError, match=words) as caught:
        Graph.from_file(path)
    assert str(caught.value).startswith(file)
    ended = run("weights", path, "--score", "degree", "--out", tmp_path / "w")
    assert str(ended.exception).startswith(f"GRAPH {file}")
    assert not list((tmp_path / "w").glob("*.csv"))


ARRAYS = {
    "negative ids": ({"edges": -ARCS.T}, "negative node id"),
    "flat edges": ({"edges": ARCS.ravel()}, r"edges must be of shape \[A, 2\]"),
    "NaN": ({"node_features": X * np.nan}, "features must be finite"),
    "short labels": ({"node_labels": Y[:-1]}, r"edge_index holds the node id 23|labels must be int64"),
    "half classes": ({"node_labels": Y + 0.5}, "node_labels must be whole numbers of classes, got others such as 0.5"),
    "masks": ({"val_masks": np.ones((3, 7), dtype=bool)}, "val_masks is a mask of shape"),
    "no features": ({"node_features": None}, "expected features: an array 'node_features'"),
    "no labels": ({"node_labels": None}, "expected labels: an array 'node_labels'"),
}


@pytest.mark.parametrize("name", ARRAYS)
def test_arrays_of_others_that_are_refused(name, tmp_path):
    changes, words = ARRAYS[name]
    whole = {"edges": ARCS.T, "node_features": X, "node_labels": Y, **masks("s", axis=0), **changes}
    path = saver("g.npz", **{each: array for each, array in whole.items() if array is not None})(tmp_path)
    with pytest.raises(TadropedgeError, match=words):
        load_file(path)


def test_a_processed_file_of_many_graphs(tmp_path):
    InMemoryDataset.save([data(), data()], str(tmp_path / "many.pt"))
    with pytest.raises(TadropedgeError, match=r"many\.pt: expected a file of one graph, got a processed dataset of 2"):
        load_file(tmp_path / "many.pt")


def test_a_data_with_a_sparse_matrix_for_edges(tmp_path):
    values = torch.from_numpy(matrix().data)
    parts = (torch.from_numpy(part).long() for part in (matrix().indptr, matrix().indices))
    sparse = torch.sparse_csr_tensor(*parts, values, size=(N, N), check_invariants=True)
    whole = {name: value for name, value in data().to_dict().items() if name != "edge_index"}
    torch.save(Data(adj_t=sparse, **whole), tmp_path / "g.pt")
    assert load_file(tmp_path / "g.pt").graph.fingerprint == WEIGHTED.fingerprint
    assert Graph.from_file(tmp_path / "g.pt", weighted=False).fingerprint == GRAPH.fingerprint
    torch.save(Data(adj_t=sparse.to_dense(), **whole), tmp_path / "g.pt")
    with pytest.raises(TadropedgeError, match=r"g\.pt: adj_t must be a sparse CSR tensor \[N, N\], got torch\.strided"):
        load_file(tmp_path / "g.pt")


def test_tensors_that_carry_gradients(tmp_path):
    torch.save(data(x=torch.from_numpy(X).float().requires_grad_()), tmp_path / "g.pt")
    features = load_file(tmp_path / "g.pt").features
    assert features.tolist() == X.tolist()
    assert not features.requires_grad


def test_a_folder_that_is_none_of_ogb(tmp_path):
    with pytest.raises(TadropedgeError, match="is a folder, expected a file"):
        Graph.from_file(tmp_path)
    folder = write_ogb(tmp_path / "ogbn_ring")
    (folder / "raw" / "num-node-list.csv.gz").unlink()
    with pytest.raises(TadropedgeError, match=r"no such file.*num-node-list\.csv\.gz"):
        Graph.from_file(folder)


def test_xml_without_a_document_type_is_fine():
    check_xml(b"<graphml><graph/></graphml>", "g.graphml")


def test_without_networkx_one_line_says_so(tmp_path, monkeypatch):
    path = GRAPHS["graphml"](tmp_path)
    monkeypatch.setitem(sys.modules, "networkx", None)
    words = (
        r"^g\.graphml: GraphML and GML are read by networkx, which is not installed: pip install 'tadropedge\[lab\]'$"
    )
    with pytest.raises(TadropedgeError, match=words):
        Graph.from_file(path)


# -- names in GraphML and GML ---------------------------------------------------------------------------------


def test_gml_names_by_label_where_each_is_its_own_else_by_id(tmp_path):
    named = 'graph [ node [ id 5 label "ann" ] node [ id 7 label "bob" ] edge [ source 5 target 7 ] ]'
    assert Graph.from_file(text("g.gml", named)(tmp_path)).node_ids == ("ann", "bob")
    classes = named.replace("bob", "ann")  # then they are classes
    held = read_file(text("g.gml", classes)(tmp_path), tde.files.Asked(whole=True))
    assert (held.ids, held.class_names, held.labels.tolist()) == ((5, 7), ("ann",), [0, 0])
    bare = "graph [ node [ id 5 ] node [ id 7 ] edge [ source 5 target 7 ] ]"
    assert Graph.from_file(text("g.gml", bare)(tmp_path)).node_ids == (5, 7)


def test_features_as_a_list_or_in_one_text(tmp_path):
    graph = nx.path_graph(4)
    for node in graph:
        graph.nodes[node].update(x=f"[{node}, 0.5]", **{"class": node % 2})
    nx.write_graphml(graph, tmp_path / "g.graphml")
    held = read_file(tmp_path / "g.graphml", tde.files.Asked(whole=True))
    assert held.features.tolist() == [[node, 0.5] for node in range(4)]
    assert held.labels.tolist() == [0, 1, 0, 1]
    for node in graph:
        graph.nodes[node].update(x=[float(node), 0.5])
    nx.write_gml(graph, tmp_path / "g.gml")
    assert read_file(tmp_path / "g.gml", tde.files.Asked(whole=True)).features.tolist() == held.features.tolist()


def test_several_edges_of_a_multigraph_become_one(tmp_path):
    graph = nx.MultiDiGraph([(0, 1, {"weight": 1.0}), (0, 1, {"weight": 3.0}), (1, 0, {"weight": 2.0}), (1, 1, {})])
    for kind in ("graphml", "gml"):
        getattr(nx, f"write_{kind}")(graph, tmp_path / f"g.{kind}")
        read = Graph.from_file(tmp_path / f"g.{kind}")
        assert (read.num_edges, read.weight.tolist()) == (1, [2.0])


def test_a_saved_data_that_a_transform_has_seen(tmp_path):
    """PyG then stores notes in it; and nodes without an edge are nodes of the graph alone, too."""
    seen = Data(x=torch.eye(5), edge_index=torch.tensor([[0, 1, 2], [1, 2, 0]]), y=torch.arange(5) % 2)
    assert seen.is_edge_attr("edge_index")
    assert seen._store._cached_attr
    torch.save(seen, tmp_path / "g.pt")
    graph = Graph.from_file(tmp_path / "g.pt")
    assert (graph.num_nodes, graph.pairs.tolist()) == (5, [[0, 0, 1], [1, 2, 2]])
    assert load_file(tmp_path / "g.pt", per_class=1).graph.num_nodes == 5
