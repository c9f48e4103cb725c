"""Hostile files by name: each must be refused with one clear line that says what is wrong, in seconds and in memory.

They are read in a child with limits, because what they do to a careless reader is a crash, a hang or a full memory.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import struct
import warnings
import zipfile
import zlib
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import old_pickles
import scipy.sparse as sp
import torch

from tadropedge import Graph
from tadropedge.data import Dataset, Split, load_file, random_split, shuffled_split
from tadropedge.data.features import csr_tensor
from tadropedge.data.planetoid import load_planetoid
from tadropedge.training.model_file import load_model
from torture import Case
from torture.process import assert_refused, command, forked
from torture.readers import (
    ARCS,
    EDGES,
    PLAIN,
    SPLIT,
    N,
    X,
    Y,
    attempt,
    csr_parts,
    data,
    edges_beside,
    journal_beside,
    matrix_file,
    model_beside,
    model_files,
    npz,
    planetoid,
    read_comparison,
    read_journal,
    read_model,
    read_paper,
    read_safetensors,
    saved,
    unzipped,
    zipped,
)

TRIES = "hostile files, matrices and paths"
SECONDS, MEGABYTES = 20.0, 1500
Hostile = dict[str, tuple[Callable[[], Any], tuple[str, ...]]]  # by name: what to read, and words of its refusal
HUGE = 2**40


def cases() -> Iterator[Case]:
    """Everything below, by name."""
    for part in (npz_graphs, matrices, npz_datasets, saved_data, tables, pickles, models, documents, objects, paths):
        for name, (read, words) in part().items():
            yield Case(name, partial(refused, read, words))
    for name, arguments in PATHS.items():
        yield Case(f"command line: {name}", partial(command_refused, arguments))


def refused(read: Callable[[], Any], words: tuple[str, ...], folder: Path) -> None:
    """One clear line with these words, within the limits."""

    def child() -> int:
        said = attempt(read)
        assert said, "nothing was refused"
        for word in words:
            assert word in said, f"expected {word!r} in {said!r}"
        return 0

    ended = forked(child, folder, seconds=SECONDS, megabytes=MEGABYTES)
    assert ended.code == 0, str(ended)


def command_refused(arguments: list[str], folder: Path) -> None:
    """The same on the command line."""
    os.mkfifo(folder / "pipe.csv")
    (folder / "folder.csv").mkdir()
    before = sorted(folder.iterdir())
    assert_refused(command(arguments, folder, seconds=SECONDS, megabytes=MEGABYTES))
    assert sorted(folder.iterdir()) == before


Content = bytes | Callable[[], bytes]  # what takes long to make is made in the child


def graph_of(name: str, content: Content) -> None:
    """Read a graph from a file with this content, in the folder of the child."""
    Path(name).write_bytes(content if isinstance(content, bytes) else content())
    Graph.from_file(name)


def data_of(name: str, content: Content) -> None:
    """Read a dataset."""
    Path(name).write_bytes(content if isinstance(content, bytes) else content())
    load_file(name, per_class=1)


def header(shape: str, kind: str = "<i8", content: bytes = b"", version: int = 1) -> bytes:
    """A file of one array that says of itself what it likes."""
    text = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}".encode() + b"\n"
    return b"\x93NUMPY" + bytes([version, 0]) + struct.pack("<H", len(text)) + text + content


def bomb(megabytes: int) -> bytes:
    """A small zip file of an array that unpacks to so many megabytes of zeros, made without packing them."""
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    start = header(f"(2, {megabytes * 2**16})")
    pieces = [packer.compress(start) + packer.flush(zlib.Z_FULL_FLUSH)]
    pieces += [packer.compress(bytes(2**20)) + packer.flush(zlib.Z_FULL_FLUSH)] * megabytes
    content = b"".join(pieces) + packer.flush()
    member, buffer = zipfile.ZipInfo("edge_index.npy"), io.BytesIO()
    member.compress_type, member.CRC, member.header_offset = zipfile.ZIP_DEFLATED, 0, 0
    member.file_size, member.compress_size = len(start) + megabytes * 2**20, len(content)
    with zipfile.ZipFile(buffer, "w") as archive:
        buffer.write(member.FileHeader() + content)
        archive.filelist.append(member)
        archive.start_dir, archive._didModify = buffer.tell(), True
    return buffer.getvalue()


def npz_graphs() -> Hostile:
    """Graphs as plain arrays."""
    array = header("(2, 12)", content=ARCS.tobytes())
    wrong: dict[str, tuple[bytes, str]] = {
        "a header that claims 7 TiB": (zipped({"edge_index.npy": header("(2, 500000000000)")}), "bytes"),
        "a header that claims 10^400 entries": (zipped({"edge_index.npy": header(f"(2, {10**400})")}), ""),
        "a header with a negative shape": (zipped({"edge_index.npy": header("(2, -12)", content=ARCS.tobytes())}), ""),
        "a header of another version": (zipped({"edge_index.npy": header("(2, 12)", version=3)}), "npz"),
        "a header that is a call": (zipped({"edge_index.npy": header("__import__('os')")}), "npz"),
        "a header nested 10,000 deep": (zipped({"edge_index.npy": header("(" * 10_000)}), "npz"),
        "entries of no size": (zipped({"edge_index.npy": header(f"(2, {HUGE})", "<U0")}), "plain"),
        "records": (zipped({"edge_index.npy": header("(2, 12)", "|V8", ARCS.tobytes())}), "plain"),
        "pickled objects": (npz(edge_index=np.array([print, print], dtype=object)), "unpickled"),
        "an archive that is no archive": (b"PK\x03\x04" + b"\0" * 100, "npz"),
        "an array that is no archive": (array, "npz"),
        "an empty file": (b"", "npz"),
        "a member that is cut": (npz(edge_index=ARCS)[:-30], "npz"),
        "a member that is encrypted": (_encrypted(), "npz"),
        "ids of 10^15": (npz(edge_index=np.array([[0], [10**15]])), "nodes"),
        "ids that need more memory than there is": (npz(edge_index=np.array([[0], [3 * 10**9]])), "memory"),
        "unsigned ids beyond 64 bits": (npz(edge_index=np.array([[0], [2**64 - 1]], dtype=np.uint64)), "edge_index"),
        "num_nodes that is a fraction": (npz(edge_index=ARCS, num_nodes=np.array(60.7)), "whole number"),
        "num_nodes that is a list": (npz(edge_index=ARCS, num_nodes=np.arange(3)), "whole number"),
        "num_nodes of 10^18": (npz(edge_index=ARCS, num_nodes=np.array(10**18)), "nodes"),
        "ids that are fractions": (npz(edge_index=ARCS + 0.5), "whole numbers"),
        "weights that are NaN": (npz(edge_index=ARCS, edge_weight=np.full(N, np.nan)), "positive and finite"),
        "an unknown matrix format": (npz(format=b"xyz", shape=(3, 3), data=np.ones(1)), "edge_index"),
        "arrays of other names": (npz(**{f"array_{place}": Y for place in range(500)}), "edge_index"),
    }
    found = {f"npz: {name}": (partial(graph_of, "g.npz", content), (word,)) for name, (content, word) in wrong.items()}
    return {**found, "npz: a bomb": (lambda: graph_of("g.npz", bomb(MEGABYTES + 400)), ("memory",))}


def _encrypted() -> bytes:
    content = bytearray(npz(edge_index=ARCS))
    content[6] |= 1
    content[content.index(b"PK\x01\x02") + 8] |= 1
    return bytes(content)


def matrices() -> Hostile:
    """Sparse matrices whose indices point outside, as files and as objects that were changed after they were made."""
    changes: dict[str, dict[str, Any]] = {
        "csr": {
            "indptr": np.array([0, 99, *range(2, N + 1)]),
            "indices": np.full(2 * N, 2**28),
            "indices ": np.full(2 * N, -1),
            "indptr ": np.array([0, 3 * 2**61, -3 * 2**61, *range(2, N - 1), 2 * N]),  # whose differences wrap around
            "data": np.ones(3),
        },
        "csc": {"indices": np.array([2**28, 9] * N), "indptr": np.arange(N + 1)[::-1]},
        "bsr": {"indices": np.full(2 * N, 2**20), "indptr": np.arange(N + 1) * 10**6, "data": np.ones((2 * N, 5, 5))},
        "coo": {"row": np.full(2 * N, 10**9), "col": np.full(2 * N, -5), "data": np.ones(99)},
        "dia": {"offsets": np.arange(99), "data": np.ones(4)},
    }
    found: Hostile = {}
    for kind, parts in changes.items():
        for part, value in parts.items():
            arrays = {name.removesuffix(".npy"): member for name, member in unzipped(matrix_file(kind)).items()}
            whole = {name: np.load(io.BytesIO(member)) for name, member in arrays.items()} | {part.strip(): value}
            content, name = npz(**whole), f"{kind} matrix with other {part}"
            found[f"npz: {name}"] = (partial(graph_of, "m.npz", content), ("not a",))
            found[f"from_scipy: {name}"] = (partial(_from_scipy, kind, part.strip(), value), ("matrix",))
    shape = npz(format=b"coo", shape=np.array([HUGE, HUGE]), row=[0], col=[1], data=[1.0])
    fraction = npz(format=b"coo", shape=np.array([3.7, 3.2]), row=[0], col=[1], data=[1.0])
    found["npz: coo matrix of 2^40 rows"] = (partial(graph_of, "m.npz", shape), ("2^63",))
    found["npz: coo matrix of 3.7 rows"] = (partial(graph_of, "m.npz", fraction), ("whole",))
    found["from_scipy: lil matrix with columns outside"] = (_lil, ("matrix",))
    found["from_scipy: dok matrix with keys outside"] = (_dok, ("matrix",))
    return found


def _from_scipy(kind: str, part: str, value: Any) -> None:
    matrix = sp.load_npz(io.BytesIO(matrix_file(kind)))
    setattr(matrix, part, value)
    Graph.from_scipy(matrix)


def _lil() -> None:
    matrix = sp.lil_matrix((N, N))
    matrix[0, 1] = 1.0
    matrix.rows[0] = [10**8]
    Graph.from_scipy(matrix)


def _dok() -> None:
    matrix = sp.dok_matrix((N, N))
    matrix[0, 1] = 1.0
    matrix._dict[(10**8, 3)] = 1.0
    Graph.from_scipy(matrix)


def npz_datasets() -> Hostile:
    """Datasets as plain arrays."""
    sparse = {"edge_index": ARCS, "y": Y, **SPLIT, **csr_parts("x", X)}
    dense = {"edge_index": ARCS, **PLAIN}
    wrong: dict[str, tuple[dict[str, Any], str]] = {
        "labels of 2·10^9": ({**dense, "y": Y * 10**9}, "label"),
        "a label beyond 64 bits": ({**dense, "y": np.where(Y == 2, 2**64 - 1, Y).astype(np.uint64)}, "2^63"),
        "labels that are fractions": ({**dense, "y": Y + 0.5}, "whole numbers"),
        "labels of text": ({**dense, "y": Y.astype(str)}, "whole numbers"),
        "features of text": ({**dense, "x": X.astype(str)}, "real numbers"),
        "complex features": ({**dense, "x": X * 1j}, "real numbers"),
        "columns that are fractions": ({**sparse, "x_indices": sparse["x_indices"] + 0.5}, "whole numbers"),
        "columns outside": ({**sparse, "x_indices": sparse["x_indices"] + 10**7}, "index"),
        "a shape of fractions": ({**sparse, "x_shape": np.array([12.7, 4.2])}, "whole"),
        "a shape of 2^62 columns": ({**sparse, "x_shape": np.array([12, 2**62])}, "2^63"),
        "a shape of 2^50 rows": ({**sparse, "x_shape": np.array([2**50, 4])}, ""),
        "rows that run backwards": ({**sparse, "x_indptr": sparse["x_indptr"][::-1]}, "indptr"),
        "a split of fractions": ({**dense, "train": np.array([0.0, 1.0, 2.0])}, "train"),
        "a split outside": ({**dense, "val": np.array([3, 10**12])}, "split.val"),
        "an adjacency outside": ({**PLAIN, **csr_parts("adj", np.eye(N)), "adj_indices": np.full(N, 2**28)}, "adj"),
    }
    return {
        f"dataset: {name}": (partial(data_of, "d.npz", npz(**arrays)), (word,))
        for name, (arrays, word) in wrong.items()
    }


def saved_data() -> Hostile:
    """Saved ``Data``."""
    csr = csr_tensor(sp.csr_matrix(X))
    outside = (csr.crow_indices(), csr.col_indices() + 10**6, csr.values())
    backwards = (csr.crow_indices().flip(0), csr.col_indices(), csr.values())
    coo = torch.sparse_coo_tensor(torch.tensor([[0, 10**7], [0, 10**7]]), torch.ones(2), (N, 4), check_invariants=False)
    forged = [torch.sparse_csr_tensor(*parts, (N, 4), check_invariants=False) for parts in (outside, backwards)]
    wrong: dict[str, tuple[Callable[[], Any], str]] = {
        "an expanded tensor of 10^12 entries": (lambda: data(x=torch.ones(1).expand(10**6, 10**6)), "memory"),
        "expanded labels": (lambda: data(y=torch.zeros(1, dtype=torch.int64).expand(10**12)), "memory"),
        "expanded arcs": (lambda: data(edge_index=torch.zeros(2, 1, dtype=torch.int64).expand(2, 10**12)), "memory"),
        "CSR features outside": (lambda: data(x=forged[0]), "index"),
        "CSR features that run backwards": (lambda: data(x=forged[1]), "indptr"),
        "COO features outside": (lambda: data(x=coo), "index"),
        "sparse labels": (lambda: data(y=torch.from_numpy(Y).to_sparse()), "dense"),
        "a sparse mask": (lambda: data(train_mask=torch.ones(N).to_sparse()), "dense"),
        "sparse arcs": (lambda: data(edge_index=torch.from_numpy(ARCS).to_sparse()), "dense"),
        "quantised features": (lambda: data(x=torch.quantize_per_tensor(torch.ones(N, 4), 0.1, 0, torch.qint8)), ""),
        "complex features": (lambda: data(x=torch.ones(N, 4) * 1j), "dense"),
        "features on no device": (lambda: data(x=torch.ones(N, 4, device="meta")), ""),
        "labels of 2·10^9": (lambda: data(y=torch.from_numpy(Y) * 10**9), "label"),
        "arcs of 10^15": (lambda: data(edge_index=torch.tensor([[0], [10**15]])), "node id"),
        "a list": (lambda: [1, 2, 3], "Data"),
        "a function": (lambda: print, ""),
    }
    found: Hostile = {
        f"pt: {name}": (partial(data_of, "d.pt", partial(_saved, make)), (word,))
        for name, (make, word) in wrong.items()
    }
    members = dict.fromkeys(("d/data.pkl", "d/data/0"), bytes(10**6))
    packed = zipped(members, method=zipfile.ZIP_DEFLATED)
    found["pt: packed members"] = (partial(data_of, "d.pt", packed), ("unpack",))
    found["pt: a pickle of old"] = (partial(data_of, "d.pt", b"\x80\x02cos\nsystem\nX\x04\x00\x00\x00echo\x85R."), ())
    return found


def _saved(make: Callable[[], Any]) -> bytes:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of torch, about kinds of tensors that it will drop
        return saved(make())


def tables() -> Hostile:
    """Edge lists and tables of nodes."""
    wrong: dict[str, tuple[str, Content, str]] = {
        "a first id like a number": ("e.csv", b"1_000,2\n3,4\n", "e.csv:1: '1_000'"),
        "a first id in hexadecimal": ("e.csv", b"0x10,2\n3,4\n", "e.csv:1: '0x10'"),
        "a first id with an exponent": ("e.txt", b"1e3 2\n3 4\n", "e.txt:1: '1e3'"),
        "zeros": ("e.csv", lambda: b"\0" * 10**6, ""),
        "a line of 100 MB": ("e.csv", lambda: b"1" * 10**8, "too long"),
        "bytes that are no UTF-8": ("e.csv", b"1,2\n\xff\xfe,3\n", "UTF-8"),
        "a surrogate": ("e.csv", "a,b\n\ud800,c\n".encode("utf-8", "surrogatepass"), "UTF-8"),
        "UTF-16": ("e.csv", "1,2\n3,4\n".encode("utf-16"), "UTF-8"),
        "a packed line of 100 MB": ("e.csv.gz", partial(_packed, b"1", 100), "too long"),
        "100 MB of blank lines, packed": ("e.csv.gz", partial(_packed, b"\n", 100), "too long"),
        "a packed file that is cut": ("e.csv.gz", gzip.compress(EDGES)[:-9], "gzip"),
        "a packed file that is none": ("e.csv.gz", EDGES, "gzip"),
        "a quote that never ends": ("e.csv", b'a,b\n"' + b"x," * 10**5, "field"),
        "a cell of 200,000 characters": ("e.csv", b'"a","' + b"x" * 200_000 + b'",3,4,5\n', ""),
        "a weight of 10^400": ("e.csv", b"1,2,1e400\n", "weight"),
        "a weight that is a formula": ("e.csv", b"1,2,=1+1\n", "weight"),
        "nothing but comments": ("e.csv", b"# a\n% b\n", "no edges"),
    }
    found: Hostile = {
        f"edge list: {name}": (partial(graph_of, file, content), (word,))
        for name, (file, content, word) in wrong.items()
    }
    found["edge list: 8 TB of nothing"] = (_hole, ("memory",))
    lines = {
        "a node twice, as 7 and 007": (b"7,1,a\n007,2,b\n", "twice"),
        "a feature of 10^400": (b"0,1e400,a\n1,1,b\n", "finite"),
        "a first feature in hexadecimal": (b"0,0x10,a\n1,1,b\n", "nodes.csv:1"),
        "no label": (b"0,1,\n1,2,-1\n", "label"),
        "a class for each node": (b"0,1,a\n1,2,b\n2,3,c\n", "names the node 3"),
    }
    for name, (content, word) in lines.items():
        found[f"table: {name}"] = (partial(_table, content), (word,))
    return found


def _packed(block: bytes, megabytes: int) -> bytes:
    buffer = io.BytesIO()
    with gzip.GzipFile(fileobj=buffer, mode="wb", compresslevel=1) as stream:
        for _ in range(megabytes):
            stream.write(block * 2**20)
    return buffer.getvalue()


def _hole() -> None:
    with Path("e.csv").open("wb") as file:
        file.truncate(2**43)
    Graph.from_file("e.csv")


def _table(content: bytes) -> None:
    edges_beside(Path())
    Path("nodes.csv").write_bytes(content)
    load_file("edges.csv", nodes="nodes.csv", per_class=1)


def pickles() -> Hostile:
    """Files of a citation set."""
    wide = sp.csr_matrix(np.eye(10, 3, dtype=np.float32))
    wide.indices = wide.indices + 10**8
    wrong = {
        "columns outside": ("x", old_pickles.dumps(old_pickles.matrix(wide)), "index"),
        "a memo of 2^32": ("x", b"\x80\x02Nr\xff\xff\xff\xff.", "object"),
        "a text of 2^63 bytes": ("x", b"\x80\x04\x8e" + b"\xff" * 7 + b"\x7f.", "pickle"),
        "a call": ("graph", b"cos\nsystem\n(S'echo'\ntR.", "not admitted"),
        "lists 10,000 deep": ("graph", b"(l" * 10_000 + b"." * 1, ""),
        "an array of pointers": ("ally", old_pickles.dumps(old_pickles.array(np.ones((4, 2)), b"O8")), "another type"),
        "neighbours outside": ("graph", b"\x80\x02}(K\x00](J\xff\xff\xff\x7feu.", "nodes run"),
        "nothing": ("ty", b"", ""),
        "a test index beyond 64 bits": ("test.index", b"9" * 30, "one node"),
    }
    return {
        f"planetoid: {name}": (partial(_planetoid, file, content), (word,))
        for name, (file, content, word) in wrong.items()
    }


def _planetoid(file: str, content: bytes) -> None:
    (planetoid(Path()) / f"ind.cora.{file}").write_bytes(content)
    load_planetoid("cora", Path(), "public")


def models() -> Hostile:
    """Saved models."""
    good = json.loads(model_files()["model.json"])
    changes: dict[str, tuple[dict[str, Any], str]] = {
        "an accuracy of NaN": ({"kept": {"val_accuracy": float("nan")}}, "NaN"),
        "an accuracy of 7": ({"kept": {"val_accuracy": 7}}, "[0, 1]"),
        "too few class names": ({"class_names": ["a"]}, "class_names"),
        "a class name with a surrogate": ({"class_names": ["a", "\ud800"]}, "surrogate"),
        "10^9 hidden units": ({"architecture": {**good["architecture"], "hidden": 10**9}}, ""),
        "10^9 layers": ({"architecture": {**good["architecture"], "layers": 10**9}}, "layers"),
        "2^31 features": ({"num_features": 2**31}, "num_features"),
        "a checksum of another file": ({"sha256": "0" * 64}, "checksum"),
    }
    found: Hostile = {
        f"model: {name}": (partial(_settings, json.dumps({**good, **change}).encode()), (word,))
        for name, (change, word) in changes.items()
    }
    found["model: a member twice"] = (
        partial(_settings, model_files()["model.json"][:-1] + b', "num_classes": 3}'),
        ("twice",),
    )
    found["model: a header of 2^60 bytes"] = (partial(_numbers, struct.pack("<Q", 2**60) + b"{}"), ("safetensors",))
    claim = json.dumps({"input.weight": {"dtype": "F32", "shape": [10**6, 10**6], "data_offsets": [0, 8]}}).encode()
    found["model: a tensor of 10^12 entries"] = (
        partial(_numbers, struct.pack("<Q", len(claim)) + claim + bytes(8)),
        ("safetensors",),
    )
    return found


def _settings(content: bytes) -> None:
    model_beside(Path())
    Path("model.json").write_bytes(content)
    read_model(Path())


def _numbers(content: bytes) -> None:
    model_beside(Path())
    Path("model.safetensors").write_bytes(content)
    read_safetensors(Path())


def documents() -> Hostile:
    """results.json of both kinds, and journals."""
    contents = {
        "lists 100,000 deep": (b"[" * 100_000, "JSON"),
        "a number of 10,000 digits": (b'{"compare": ' + b"9" * 10_000 + b"}", "JSON"),
        "NaN": (b'{"compare": [], "run": {"seconds": NaN}}', "NaN"),
        "a member twice": (b'{"compare": [], "compare": []}', "twice"),
        "a surrogate": (b'{"compare": [], "run": {"a": "\\ud800"}}', "JSON"),
        "UTF-16 cut short": ("{}".encode("utf-16")[:-1], "JSON"),
        "nothing": (b"", "JSON"),
        "10^5 unknown members": (json.dumps(dict.fromkeys(map(str, range(10**5)))).encode(), ""),
    }
    found: Hostile = {}
    for kind, read in (("comparison", read_comparison), ("paper", read_paper)):
        for name, (content, word) in contents.items():
            found[f"{kind}: {name}"] = (partial(_document, read, content), (word,))
    for name, line in {"a list": b"[]", "no name": b'{"seconds": 1}', "no JSON": b"{", "deep": b"[" * 100_000}.items():
        found[f"journal: {name}"] = (partial(_journal, line), ("variance.pieces:1",))
    return found


def _document(read: Callable[[Path], None], content: bytes) -> None:
    Path("results.json").write_bytes(content)
    read(Path())


def _journal(line: bytes) -> None:
    journal_beside(Path())
    Path("variance.pieces").write_bytes(hashlib.sha256(line).hexdigest()[:16].encode() + b" " + line + b"\n")
    read_journal(Path())


def objects() -> Hostile:
    """What is handed over in Python."""
    masked = np.ma.array(ARCS, mask=ARCS == 3)
    weights = np.ma.array(np.ones(N), mask=np.arange(N) == 3)
    named = nx.path_graph(3)
    named.add_edge(0, "\ud800")
    csr = csr_tensor(sp.csr_matrix(X))
    outside = (csr.crow_indices(), csr.col_indices() + 10**6, csr.values())
    large = torch.tensor([0, 1, 2 * 10**9])
    return {
        "masked arcs": (lambda: Graph.from_edge_index(masked), ("masked",)),
        "masked weights": (lambda: Graph.from_edge_index(ARCS, edge_weight=weights), ("masked",)),
        "a node name with a surrogate": (lambda: Graph.from_networkx(named), ("surrogate",)),
        "10^15 nodes": (lambda: Graph.from_edge_index(ARCS, num_nodes=10**15), ("nodes",)),
        "a Dataset with columns outside": (partial(_dataset, features=outside), ("index",)),
        "a Dataset with 2·10^9 classes": (partial(_dataset, num_classes=2 * 10**9), ("num_classes",)),
        "a Dataset whose class name has a surrogate": (
            partial(_dataset, class_names=("a", "b", "\ud800")),
            ("class_names",),
        ),
        "random_split of a label 2·10^9": (lambda: random_split(large, 1, 1, 1), ("2000000000",)),
        "shuffled_split that is too large": (lambda: shuffled_split(large, (10**12, 1, 1)), ("nodes",)),
    }


def _dataset(**changes: Any) -> None:
    parts = changes.pop("features", None)
    features = torch.from_numpy(X).float()
    if parts is not None:
        features = torch.sparse_csr_tensor(*parts, (N, 4), check_invariants=False)
    split = Split(*map(torch.from_numpy, SPLIT.values()))
    told: dict[str, Any] = {"num_classes": 3, "level": "node", "split": split, **changes}
    Dataset("mine", Graph.from_edge_index(ARCS), features, torch.from_numpy(Y), **told)


def paths() -> Hostile:
    """Paths that are no files, for every reader."""
    os_error = {"NUL": "a\0b", "5,000 characters": "a" * 5000, "a surrogate": "a\ud800", "a device": "/dev/zero"}
    wrong = {**os_error, "a folder": ".", "no such file": "none", "a file in a file": "/proc/self/stat/x"}
    found: Hostile = {}
    for name, path in wrong.items():
        found[f"graph: {name}"] = (partial(Graph.from_file, path), ())
        found[f"dataset: {name}"] = (partial(load_file, path), ())
        found[f"model: {name}"] = (partial(load_model, path), ())
    found["graph: a pipe"] = (_pipe, ("pipe",))
    found["graph: no path"] = (lambda: Graph.from_file(3), ("path",))  # type: ignore[arg-type]
    return found


def _pipe() -> None:
    os.mkfifo("pipe.csv")
    Graph.from_file("pipe.csv")


LONG = "a" * 5000
PATHS = {
    "weights of a pipe": ["weights", "pipe.csv"],
    "weights of a folder": ["weights", "folder.csv"],
    "weights of a device": ["weights", "/dev/zero"],
    "weights of 5,000 characters": ["weights", f"{LONG}.csv"],
    "weights of a name of 5,000 characters": ["weights", LONG],
    "weights of a surrogate": ["weights", "a\ud800.csv"],
    "train on a pipe": ["train", "pipe.csv", "--nodes", "pipe.csv"],
    "train on a folder": ["train", "folder.csv", "--nodes", "folder.csv"],
    "compare on 5,000 characters": ["compare", f"{LONG}.npz"],
    "report of a folder of 5,000 characters": ["report", LONG],
}
