import gzip
import os
import zipfile

import numpy as np
import pytest
import scipy.sparse as sp
from graphs import ZOO
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tadropedge import Graph, TadropedgeError

TEXTS = {
    "edges.csv": "source,target\n10,20\n20,30\n30,30\n20,10\n",
    "edges.tsv": "10\t20\n20\t30\n",
    "edges.txt": "# a comment\n% another\n10 20\n\n  20   30 \n",
    "commas.txt": "10,20\n20,30\n",
    "dos.csv": "10,20\r\n20,30\r\n",
    "bom.csv": "\ufeff10,20\n20,30\n",
    "ids": "10 20\n20 30",
}


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("name", TEXTS)
def test_integer_ids(name, packed, tmp_path):
    file = tmp_path / (name + ".gz" * packed)
    content = TEXTS[name].encode()
    file.write_bytes(gzip.compress(content) if packed else content)
    graph = Graph.from_file(file)
    assert graph.node_ids == (10, 20, 30)
    assert graph.pairs.tolist() == [[0, 1], [1, 2]]
    assert graph.weight is None


def test_string_ids_quotes_and_weights(tmp_path):
    file = tmp_path / "people.csv"
    file.write_text('"Smith, Ann",Bob,2.5\nBob,zoé,1\n')
    graph = Graph.from_file(file)
    assert graph.node_ids == ("Bob", "Smith, Ann", "zoé")
    assert graph.pairs.tolist() == [[0, 0], [1, 2]]
    assert graph.weight.tolist() == [2.5, 1.0]
    assert graph.node_index["zoé"] == 2
    assert Graph.from_file(file, weighted=False).weight is None


def test_integer_ids_with_weights_and_negative_ids(tmp_path):
    file = tmp_path / "edges.txt"
    file.write_text("-5 7 0.5\n7 100000000000 2e-3\n")
    graph = Graph.from_file(file)
    assert graph.node_ids == (-5, 7, 100000000000)
    assert graph.weight.tolist() == [0.5, 0.002]


def test_known_number_of_nodes_keeps_isolated_nodes(tmp_path):
    file = tmp_path / "edges.txt"
    file.write_text("0 3\n3 4\n")
    assert Graph.from_file(file).num_nodes == 3
    graph = Graph.from_file(file, num_nodes=6)
    assert graph.num_nodes == 6
    assert graph.pairs.tolist() == [[0, 3], [3, 4]]


def test_header_can_be_forced(tmp_path):
    file = tmp_path / "edges.csv"
    file.write_text("alice,bob\nbob,carol\n")
    assert Graph.from_file(file).num_edges == 2
    assert Graph.from_file(file, header=True).num_edges == 1
    file.write_text("u,v\nv,w\n")
    assert Graph.from_file(file, header=False).num_edges == 2


@pytest.mark.parametrize(
    ("text", "edges", "nodes"),
    [
        ("u v\nv w\nw u\n", 3, 3),  # header words that recur are ids
        ("id_1,id_2\n0,1\n1,2\n", 2, 3),  # words over integers are a header
        ("from;to;weight\n0;1;2.5\n1;2;1\n", 2, 3),
        ("0 1 # the first\n1 2\t# the second\n", 2, 3),
        ("a#1 b#2\n", 1, 2),  # a mark inside an id is no comment
    ],
)
def test_headers_and_comments(tmp_path, text, edges, nodes):
    file = tmp_path / "edges.csv"
    file.write_text(text)
    graph = Graph.from_file(file)
    assert (graph.num_edges, graph.num_nodes) == (edges, nodes)


def test_long_integers_are_the_same_ids_with_and_without_weights(tmp_path):
    for weight in ("", " 0.5"):
        file = tmp_path / "edges.txt"
        file.write_text(f"1234567890123456789 7{weight}\n")
        assert Graph.from_file(file).node_ids == (7, 1234567890123456789)
        file.write_text(f"12345678901234567890 7{weight}\n")  # beyond 64 bits
        assert Graph.from_file(file).node_ids == ("12345678901234567890", "7")


def test_options_apply_to_npz_too(tmp_path):
    matrix = sp.csr_matrix(([2.0, 3.0], ([0, 1], [1, 2])), shape=(3, 3))
    sp.save_npz(tmp_path / "matrix.npz", matrix)
    assert Graph.from_file(tmp_path / "matrix.npz").weight.tolist() == [2.0, 3.0]
    graph = Graph.from_file(tmp_path / "matrix.npz", weighted=False, num_nodes=9)
    assert graph.weight is None
    assert graph.num_nodes == 9
    np.savez(tmp_path / "arcs.npz", edge_index=np.array([[0, 7], [1, 2]]), num_nodes=5)
    with pytest.raises(TadropedgeError, match=r"arcs\.npz: edge_index holds the node id 7, but num_nodes=5"):
        Graph.from_file(tmp_path / "arcs.npz")
    with pytest.raises(TadropedgeError, match="path must be the path of a file or folder, got NoneType None"):
        Graph.from_file(None)


@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.sampled_from(sorted(ZOO)), st.sampled_from([",", "\t", " "]), st.booleans())
def test_round_trip(tmp_path, name, mark, words):
    graph = ZOO[name]
    file = tmp_path / f"round{ord(mark)}{words}.txt"
    label = (lambda i: f"n{i:03d}") if words else str
    lines = [mark.join((label(i), label(j))) for i, j in graph.pairs.T.tolist()]
    file.write_text("\n".join(lines))
    again = Graph.from_file(file)
    ids = np.array([int(str(node).lstrip("n")) for node in again.node_ids])
    assert ids[again.pairs.numpy()].tolist() == graph.pairs.tolist()


BAD = {
    "columns": ("e.csv", "1,2\n\n# note\n3,4,5\n", r"e\.csv:4: expected 2 columns, got 3"),
    "late": ("e.csv", "1,2\n" * 16 + "7\n", r"e\.csv:17: expected 2 columns, got 1"),
    "too many": ("e.txt", "1 2 3 4\n", r"e\.txt:1: expected 2 or 3 columns \(source, target, weight\), got 4; where"),
    "no weight": ("e.csv", "a,b,when,trust\n1,2,3,4\n", r"got 4; where there are more, the header must call one"),
    "numbers": ("e.csv", "a,b,w,x\n1,2,3,4\n1,2,3\n", r"e\.csv:3: expected 4 columns, got 3"),
    "one column": ("e.txt", "12\n", r"e\.txt:1: expected 2 or 3 columns"),
    "empty id": ("e.csv", "1,2\n,4\n", r"e\.csv:2: empty node id"),
    "weight word": ("e.csv", "1,2,x\n", r"e\.csv:1: weight 'x' is not a number"),
    "weight sign": ("e.csv", "1,2,1\n2,3,-4\n", r"e\.csv:2: weight '-4' must be positive and finite"),
    "weight nan": ("e.csv", "1,2,nan\n", r"e\.csv:1: weight 'nan' must be positive and finite"),
    "nothing": ("e.csv", "# only a comment\n", r"e\.csv: no edges in the file"),
    "header only": ("e.csv", "source,target\n", r"e\.csv: no edges in the file"),
    "binary": ("e.txt", b"\xff\xfe\x00\x01", r"e\.txt: not a UTF-8 text file"),
    "gzip": ("e.csv.gz", b"no gzip at all", r"e\.csv\.gz: damaged gzip file"),
    "cut gzip": ("e.csv.gz", gzip.compress(b"1,2\n" * 99)[:-9], r"e\.csv\.gz: damaged gzip file"),
    "npz": ("e.npz", b"PK but not a zip", r"e\.npz: not an \.npz file of plain arrays"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_files(name, tmp_path):
    file, content, message = BAD[name]
    file = tmp_path / file
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(TadropedgeError, match=message):
        Graph.from_file(file)


def test_missing_file_and_words_for_numbers(tmp_path):
    with pytest.raises(TadropedgeError, match=r"no such file: '.*nowhere\.csv'"):
        Graph.from_file(tmp_path / "nowhere.csv")
    file = tmp_path / "e.csv"
    file.write_text("a,b\n")
    with pytest.raises(TadropedgeError, match=r"num_nodes=4 needs integer ids, found 'a'"):
        Graph.from_file(file, num_nodes=4)


def test_npz_is_never_unpickled(tmp_path):
    file = tmp_path / "hostile.npz"
    np.savez(file, edge_index=np.array([print, print], dtype=object))
    with pytest.raises(TadropedgeError, match=r"edge_index holds Python objects, which are not unpickled"):
        Graph.from_file(file)
    np.savez(file, features=np.ones(3))
    with pytest.raises(TadropedgeError, match=r"expected an array 'edge_index' .* found 'features'"):
        Graph.from_file(file)


def test_damaged_arrays_and_oversized_fields_are_one_line(tmp_path):
    np.savez_compressed(tmp_path / "torn.npz", edge_index=np.arange(2000).reshape(2, -1))
    content = bytearray((tmp_path / "torn.npz").read_bytes())
    content[60:90] = bytes(30)
    (tmp_path / "torn.npz").write_bytes(content)
    np.savez(tmp_path / "half.npz", format=np.array("csr"), shape=np.array([2, 2]), data=np.ones(1))
    (tmp_path / "wide.csv").write_text('a,b\n"' + "x" * 200_000 + '",c\n')
    for name in ("torn.npz", "half.npz", "wide.csv"):
        with pytest.raises(TadropedgeError, match=name):
            Graph.from_file(tmp_path / name)


def test_numpy_is_given_no_characters_that_crash_it(tmp_path, monkeypatch):
    given = []
    monkeypatch.setattr(np, "loadtxt", lambda lines, **_: given.extend(lines))
    file = tmp_path / "edges.txt"
    file.write_text("1 2\n3 \U0005ebb7\n", encoding="utf-8")
    assert Graph.from_file(file).node_ids == ("1", "2", "3", "\U0005ebb7")
    assert all(line.isascii() for line in given)


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        ("1234567890123456789,5\n5,6\n", (5, 6, 1234567890123456789)),
        ("+1 2\n3 4\n", (1, 2, 3, 4)),
        ("1 2\n+1 4\n", (1, 2, 4)),
        ("+1 2 0.5\n1 4 0.5\n", (1, 2, 4)),
        ("99999999999999999999 5\n5 6\n", ("5", "6", "99999999999999999999")),
        ("5 6\n1_000 2\n", ("1_000", "2", "5", "6")),
        ("from,to\n5,6\n", (5, 6)),
        ("a,b\n5,6\n", (5, 6)),
        ("'=1+1',b\n'' ,c\n", ("''", "=1+1'", "b", "c")),
    ],
)
def test_what_looks_like_a_number_is_never_lost(text, ids, tmp_path):
    file = tmp_path / "edges.txt"
    file.write_text(text)
    assert Graph.from_file(file).node_ids == ids


@pytest.mark.parametrize("name", ["1_000", "1e3", "0x10", "1.5", "2nd"])
def test_a_first_line_that_may_be_an_edge_is_not_guessed_at(name, tmp_path):
    file = tmp_path / "edges.csv"
    file.write_text(f"{name},2\n3,4\n")
    with pytest.raises(TadropedgeError, match=r"edges.csv:1: .* say whether this line names the columns"):
        Graph.from_file(file)
    assert Graph.from_file(file, header=True).node_ids == (3, 4)
    assert Graph.from_file(file, header=False).node_ids == tuple(sorted((name, "2", "3", "4")))


def test_paths_that_are_no_files(tmp_path):
    os.mkfifo(tmp_path / "pipe.csv")
    for path, words in (
        ("a\0b.csv", "path must be the path of a file or folder, got str"),
        ("a" * 5000, "path is longer than a path can be"),
        ("a\ud800.csv", "cannot read .*surrogates"),
        (tmp_path, "is a folder, expected a file"),
        (tmp_path / "pipe.csv", "is a pipe or a device, expected a file"),
        ("/dev/zero", "is a pipe or a device, expected a file"),
        (3, "path must be the path of a file or folder, got int 3"),
    ):
        with pytest.raises(TadropedgeError, match=f"(?i){words}"):
            Graph.from_file(path)


def test_an_array_is_no_larger_than_its_file(tmp_path):
    text = b"{'descr': '<i8', 'fortran_order': False, 'shape': (2, 500000000000), }\n"
    with zipfile.ZipFile(tmp_path / "g.npz", "w") as archive:
        archive.writestr("edge_index.npy", b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text)
    with pytest.raises(
        TadropedgeError, match=r"said to have shape \(2, 500000000000\), which is 8,000,000,000,000 bytes"
    ):
        Graph.from_file(tmp_path / "g.npz")


@pytest.mark.parametrize("block", [b"1" * 2**20, b"\n" * 2**20], ids=["a long line", "blank lines"])
def test_a_packed_file_that_fills_the_memory(block, tmp_path):
    file = tmp_path / "edges.csv.gz"
    with gzip.open(file, "wb", compresslevel=1) as stream:
        for _ in range(70):
            stream.write(block)
    with pytest.raises(TadropedgeError, match="too long"):
        Graph.from_file(file)
