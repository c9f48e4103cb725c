"""Every reader of the package, a small valid file for it, and what must hold of what it returns."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import logging
import random
import tempfile
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import old_pickles
import scipy.sparse as sp
import torch
from comparisons import comparison
from torch_geometric.data import Data

from tadropedge import Graph, TadropedgeError
from tadropedge.cache import cached
from tadropedge.comparison.results import as_document, parse, read_results
from tadropedge.data import load_file
from tadropedge.data.dataset import Dataset
from tadropedge.data.features import csr_tensor
from tadropedge.data.planetoid import load_planetoid
from tadropedge.paper.document import as_plain, parse_document, read_document
from tadropedge.paper.item import Bench
from tadropedge.paper.journal import Journal
from tadropedge.paper.recipe import load_recipe
from tadropedge.paper.rows import Row
from tadropedge.training.model_file import load_model

N = 12
ARCS = np.stack((np.arange(N), (np.arange(N) + 1) % N))
X = np.arange(N * 4, dtype=np.float64).reshape(N, 4) % 5 - 1
Y = np.arange(N) % 3
SPLIT = {"train": np.array([0, 1, 2]), "val": np.array([3, 4]), "test": np.array([5, 6, 10])}
ROOT = Path(__file__).parents[2]
MOST_WORDS = 600  # of an error


@dataclass(frozen=True)
class Reader:
    """``content`` is a valid file called ``name``; ``read(folder)`` reads it and checks what it got.

    ``parts`` takes a file apart into what can be changed on its own, ``whole`` puts it together with checksums right.
    """

    name: str
    content: Callable[[], bytes]
    read: Callable[[Path], None]
    parts: Callable[[bytes], dict[str, bytes]] = lambda content: {"": content}
    whole: Callable[[dict[str, bytes], random.Random], bytes] = lambda parts, _: parts[""]
    beside: Callable[[Path], None] = lambda folder: None


def attempt(read: Callable[[], None]) -> str:
    """The one clear line of what is refused, or nothing where what was read is valid; any other error comes out."""
    try:
        read()
    except TadropedgeError as error:
        words = str(error)
        assert words.isprintable(), f"not one line: {words!r}"
        assert 0 < len(words) <= MOST_WORDS, f"{len(words)} characters: {words!r}"
        return words
    return ""


# -- what must hold --------------------------------------------------------------------------------------


def check_graph(graph: Graph) -> None:
    """Whatever was read is a graph that can be worked with."""
    low, high = graph.pairs
    assert graph.num_nodes >= 1
    assert bool((low < high).all())
    assert not graph.num_edges or (int(low.min()) >= 0 and int(high.max()) < graph.num_nodes)
    assert graph.weight is None or bool((torch.isfinite(graph.weight) & (graph.weight > 0)).all())
    assert graph.node_ids is None or len(set(graph.node_ids)) == len(graph.node_ids) == graph.num_nodes
    if graph.num_nodes < 10**6:
        assert int(graph.components.sizes.sum()) == graph.num_nodes


def check_dataset(dataset: Dataset) -> None:
    """A dataset whose features can be multiplied, and whose split fits."""
    check_graph(dataset.graph)
    assert dataset.features.shape[0] == dataset.graph.num_nodes == len(dataset.labels)
    assert int(dataset.labels.max()) < dataset.num_classes <= len(dataset.labels)
    if dataset.num_features < 10**6:
        assert bool(torch.isfinite(dataset.features @ torch.ones(dataset.num_features, 2)).any())


# -- files -----------------------------------------------------------------------------------------------


def npz(**arrays: Any) -> bytes:
    """An ``.npz`` file."""
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)
    return buffer.getvalue()


def unzipped(content: bytes) -> dict[str, bytes]:
    """The members of a zip file."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def zipped(parts: dict[str, bytes], _: random.Random | None = None, method: int = zipfile.ZIP_STORED) -> bytes:
    """A zip file of these members, every checksum right."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as archive:
        for name, part in parts.items():
            archive.writestr(zipfile.ZipInfo(name), part, compress_type=method)
    return buffer.getvalue()


def ring_matrix() -> Any:
    """The adjacency matrix of a ring."""
    ring = sp.coo_matrix((np.ones(N), tuple(ARCS)), shape=(N, N))
    return (ring + ring.T).tocsr()


def matrix_file(kind: str) -> bytes:
    """What SciPy saves of a ring in a format."""
    buffer = io.BytesIO()
    sp.save_npz(buffer, ring_matrix().asformat(kind), compressed=False)
    return buffer.getvalue()


def csr_parts(prefix: str, values: Any) -> dict[str, Any]:
    """The parts of a CSR matrix as arrays of an ``.npz`` file."""
    matrix = sp.csr_matrix(values)
    return {f"{prefix}_{part}": np.asarray(getattr(matrix, part)) for part in ("data", "indices", "indptr", "shape")}


def saved(data: Any) -> bytes:
    """What ``torch.save`` writes."""
    buffer = io.BytesIO()
    torch.save(data, buffer)
    return buffer.getvalue()


def data(**changes: Any) -> Data:
    """A Data that can be read."""
    tensors = {"edge_index": torch.from_numpy(ARCS), "x": torch.from_numpy(X).float(), "y": torch.from_numpy(Y)}
    masks = {
        f"{name}_mask": torch.zeros(N, dtype=torch.bool).index_fill_(0, torch.from_numpy(part), True)
        for name, part in SPLIT.items()
    }
    return Data(**tensors | masks | changes)


EDGES = "".join(f"{i},{j},{0.5 + i}\n" for i, j in ARCS.T.tolist()).encode()
NAMES = b"source\ttarget\n" + "".join(f'"n {i}"\tn{j}é\n' for i, j in ARCS.T.tolist()).encode()
NODES = "".join(f"{i},{X[i, 0]},{X[i, 1]},{'abc'[Y[i]]}\n" for i in range(N)).encode()


def planetoid(folder: Path) -> Path:
    """A citation set of 525 nodes that can be read; returns the folder of its files."""
    raw = folder / "planetoid" / "Cora" / "raw"
    raw.mkdir(parents=True)
    for name, content in planetoid_files().items():
        (raw / f"ind.cora.{name}").write_bytes(content)
    return raw


@cache
def planetoid_files() -> dict[str, bytes]:
    """The eight files of a citation set."""
    sizes, number = {"x": 10, "allx": 520, "tx": 4}, 525
    hot = {rows: np.eye(2, dtype=np.int32)[np.arange(rows) % 2] for rows in sizes.values()}
    features = {name: sp.csr_matrix(np.eye(rows, 3, dtype=np.float32)) for name, rows in sizes.items()}
    ring = b"}(" + b"".join(
        b"J" + place.to_bytes(4, "little") + b"](J" + ((place + 1) % number).to_bytes(4, "little") + b"e"
        for place in range(number)
    )
    return {
        **{name: old_pickles.dumps(old_pickles.matrix(matrix)) for name, matrix in features.items()},
        **{name.replace("x", "y"): old_pickles.dumps(old_pickles.array(hot[rows])) for name, rows in sizes.items()},
        "graph": old_pickles.dumps(ring + b"u"),
        "test.index": b"520\n521\n522\n523\n",
    }


@cache
def model_files() -> dict[str, bytes]:
    """A saved model that can be read, without training one."""
    from safetensors.numpy import save

    shapes = {"input.weight": (4, 3), "input.bias": (3,), "output.weight": (3, 2), "output.bias": (2,)}
    numbers = save({name: np.ones(shape, dtype=np.float32) for name, shape in shapes.items()})
    settings = {
        "format": "tadropedge-model",
        "version": 2,
        "sha256": hashlib.sha256(numbers).hexdigest(),
        "architecture": {"backbone": "gcn", "layers": 2, "hidden": 3, "settings": {}},
        "trial": {"method": "dropedge", "keep_prob": 0.5, "settings": {}},
        "dataset_name": "mine",
        "num_features": 4,
        "num_classes": 2,
        "class_names": ["a", "b"],
        "best_epoch": 3,
        "kept": {"train_loss": 0.5, "val_loss": 0.6, "val_accuracy": 0.7, "test_accuracy": 0.8},
    }
    return {"model.safetensors": numbers, "model.json": json.dumps(settings).encode()}


def read_model(folder: Path) -> None:
    """Read a model whose numbers were changed and whose checksum was set right."""
    model = load_model(folder)
    assert all(bool(torch.isfinite(value).all()) for value in model.state.values())
    assert {name: tuple(value.shape) for name, value in model.state.items()} == model.shapes
    assert all(value >= 0 for value in model.kept.values())


def read_safetensors(folder: Path) -> None:
    """The same, with a checksum that is right again."""
    settings = json.loads(model_files()["model.json"])
    settings["sha256"] = hashlib.sha256((folder / "model.safetensors").read_bytes()).hexdigest()
    (folder / "model.json").write_text(json.dumps(settings))
    read_model(folder)


def read_comparison(folder: Path) -> None:
    """Read results.json of a comparison; what was read can be written."""
    parse(as_document(read_results(folder / "results.json")))


@cache
def paper_content() -> bytes:
    """A part of the results that the repository ships."""
    whole = json.loads((ROOT / "results" / "paper" / "results.json").read_bytes())
    kept = ("datasets", "variance")
    sections = {part: {name: whole[part][name] for name in kept} for part in ("verdicts", "notes", "figures", "run")}
    content = {**{name: whole[name][:3] for name in kept}, **sections}
    parse_document(content)  # which loads what items are made of
    return json.dumps(content).encode()


def read_paper(folder: Path) -> None:
    """Read results.json of a reproduction; what was read can be written."""
    parse_document(as_plain(read_document(folder / "results.json")))


@dataclass(frozen=True)
class Piece(Row):
    """A row of the journal below."""

    found: float


def bench(folder: Path) -> Bench:
    """An item's surroundings."""
    return Bench(load_recipe("variance", "quick"), folder)


@cache
def journal_content() -> bytes:
    """Three lines of a journal: two pieces and a lap."""
    with tempfile.TemporaryDirectory() as folder:
        journal = Journal(bench(Path(folder)))
        for name in ("cora/0.3", "cora/0.7"):
            journal.rows(name, "data", Piece, lambda: [Piece(0.5), Piece(2.0)])
        journal.lap("cora", "training")
        return journal.path.read_bytes()


def lines(content: bytes) -> dict[str, bytes]:
    """The JSON of each line of a journal."""
    return {str(place): line.partition(b" ")[2] for place, line in enumerate(content.splitlines())}


def with_digests(parts: dict[str, bytes], _: random.Random) -> bytes:
    """Lines of a journal whose digests are right."""
    return b"".join(hashlib.sha256(part).hexdigest()[:16].encode() + b" " + part + b"\n" for part in parts.values())


def journal_beside(folder: Path) -> None:
    (folder / "studies").mkdir()


def read_journal(folder: Path) -> None:
    """Resume from a journal: what it holds are rows, what it lacks is made."""
    (folder / "variance.pieces").replace(folder / "studies" / "variance.pieces")
    journal = Journal(bench(folder))
    for name in ("cora/0.3", "cora/0.7", "cora/0.9"):
        assert all(isinstance(row, Piece) for row in journal.rows(name, "data", Piece, lambda: [Piece(1.0)]))
    assert all(isinstance(seconds, float) for phases in journal.seconds.values() for seconds in phases.values())
    assert all(isinstance(place, str) for place in journal.trained_on)
    json.dumps(journal.run)


ENTRY = {"values": np.linspace(0, 1, 5), "modes": np.arange(3)}


@cache
def cache_entry() -> tuple[str, bytes]:
    """The name and content of a cache entry."""
    with tempfile.TemporaryDirectory() as folder:
        cached(folder, {"a": 1}, lambda: ENTRY)
        [path] = Path(folder).iterdir()
        return path.name, path.read_bytes()


def read_cache(folder: Path) -> None:
    """An entry that was changed is computed again."""
    (folder / "entry.npz").replace(folder / cache_entry()[0])
    logging.disable()
    arrays = cached(folder, {"a": 1}, lambda: ENTRY)
    logging.disable(logging.NOTSET)
    assert set(arrays) == set(ENTRY)
    assert all(np.array_equal(arrays[name], ENTRY[name]) for name in ENTRY)


def matrix_market(field: str) -> bytes:
    """What SciPy writes of a ring as Matrix Market."""
    from scipy.io import mmwrite

    buffer = io.BytesIO()
    mmwrite(buffer, ring_matrix(), field=field, symmetry="symmetric")
    return buffer.getvalue()


def named_graph() -> Any:
    """A ring of networkx whose nodes have features, labels and a split."""
    import networkx as nx

    ring = nx.Graph()
    for node in range(N):
        part = next((name for name, nodes in SPLIT.items() if node in nodes), "")
        ring.add_node(f"n{node}", x0=float(X[node, 0]), x1=float(X[node, 1]), y="abc"[Y[node]], split=part)
    ring.add_weighted_edges_from((f"n{one}", f"n{other}", 0.5 + one) for one, other in ARCS.T.tolist())
    return ring


@cache
def markup(kind: str) -> bytes:
    """What networkx writes as GraphML or GML."""
    import networkx as nx

    buffer = io.BytesIO()
    getattr(nx, f"write_{kind}")(named_graph(), buffer)
    return buffer.getvalue()


@cache
def ogb_files() -> dict[str, bytes]:
    """The files of a set of OGB below its folder, unpacked."""
    numbers = {"raw/edge": ARCS.T, "raw/num-node-list": [[N]], "raw/node-feat": X, "raw/node-label": Y[:, None]}
    parts = {
        f"split/time/{told}": SPLIT[name][:, None] for name, told in zip(SPLIT, ("train", "valid", "test"), strict=True)
    }
    tables = {name: np.asarray(table) for name, table in (numbers | parts).items()}
    return {
        f"{name}.csv.gz": "".join(",".join(map(str, row)) + "\n" for row in table.tolist()).encode()
        for name, table in tables.items()
    }


def write_ogb(folder: Path) -> Path:
    """A set of OGB that can be read."""
    for name, content in ogb_files().items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(gzip.compress(content))
    return folder


def in_ogb(name: str) -> Reader:
    """One file of a set of OGB, changed."""
    file = Path(name).name

    def read(folder: Path) -> None:
        top = write_ogb(folder / "ogbn_ring")
        (folder / file).replace(top / name)
        check_dataset(load_file(top))

    return Reader(file, lambda: gzip.compress(ogb_files()[name]), read, **GZIP)


def in_planetoid(name: str) -> Reader:
    """One file of a citation set, changed."""

    def read(folder: Path) -> None:
        raw = planetoid(folder)
        (folder / name).replace(raw / f"ind.cora.{name}")
        check_dataset(load_planetoid("cora", folder, "public"))

    return Reader(name, lambda: planetoid_files()[name], read)


def graph_reader(name: str, content: Callable[[], bytes], **options: Any) -> Reader:
    """A file with a graph."""
    return Reader(name, content, lambda folder: check_graph(Graph.from_file(folder / name)), **options)


def data_reader(name: str, content: Callable[[], bytes], nodes: str | None = None, **options: Any) -> Reader:
    """A file with a dataset."""

    def read(folder: Path) -> None:
        table = None if nodes is None else folder / nodes
        check_dataset(load_file(folder / name if nodes != name else folder / "edges.csv", nodes=table, per_class=1))

    return Reader(name, content, read, **options)


def model_beside(folder: Path) -> None:
    for name, content in model_files().items():
        (folder / name).write_bytes(content)


ZIP: dict[str, Any] = {"parts": unzipped, "whole": zipped}
GZIP: dict[str, Any] = {
    "parts": lambda content: {"": gzip.decompress(content)},
    "whole": lambda parts, _: gzip.compress(parts[""], 1),
}
PLAIN = {"x": X, "y": Y, **SPLIT}


def heterophilous() -> dict[str, Any]:
    """The arrays of a raw file of PyG's HeterophilousGraphDataset, of two splits."""
    masks = {f"{name}_masks": np.isin(np.arange(N), part)[None].repeat(2, axis=0) for name, part in SPLIT.items()}
    return {"edges": ARCS.T, "node_features": X, "node_labels": Y, **masks}


def edges_beside(folder: Path) -> None:
    (folder / "edges.csv").write_bytes(EDGES)


READERS = {
    "npz graph": graph_reader(
        "g.npz", lambda: npz(edge_index=ARCS, num_nodes=np.array(N), edge_weight=np.ones(N)), **ZIP
    ),
    **{
        f"npz {kind} matrix": graph_reader("m.npz", lambda kind=kind: matrix_file(kind), **ZIP)
        for kind in ("csr", "csc", "coo", "bsr", "dia")
    },
    "npz dataset": data_reader("d.npz", lambda: npz(edge_index=ARCS, **PLAIN), **ZIP),
    "npz sparse dataset": data_reader(
        "s.npz",
        lambda: npz(**csr_parts("x", X), **csr_parts("adj", np.eye(N, k=1)), y=Y, **SPLIT),
        **ZIP,
    ),
    "pt": data_reader("d.pt", lambda: saved(data()), **ZIP),
    "pt csr": data_reader("c.pt", lambda: saved(data(x=csr_tensor(sp.csr_matrix(X)))), **ZIP),
    "pt coo": data_reader("o.pt", lambda: saved(data(x=torch.from_numpy(X).float().to_sparse_coo())), **ZIP),
    **{f"planetoid {name}": in_planetoid(name) for name in ("x", "ally", "graph", "test.index")},
    "pt processed": data_reader("p.pt", lambda: saved((data().to_dict(), {"x": torch.tensor([0, N])}, Data)), **ZIP),
    "pt adj_t": data_reader("a.pt", lambda: saved(data(edge_index=None, adj_t=csr_tensor(ring_matrix()))), **ZIP),
    "npz of CitationFull": data_reader(
        "f.npz",
        lambda: npz(**csr_parts("attr", X), **csr_parts("adj", np.eye(N, k=1)), labels=Y.astype(np.int8)),
        **ZIP,
    ),
    "npz of HeterophilousGraphDataset": data_reader("h.npz", lambda: npz(**heterophilous()), **ZIP),
    "npz of OGB's names": data_reader(
        "b.npz",
        lambda: npz(edge_index=ARCS, node_feat=X, node_label=Y[:, None].astype(np.float32), num_nodes=np.array(N)),
        **ZIP,
    ),
    "Matrix Market": graph_reader("m.mtx", lambda: matrix_market("real")),
    "Matrix Market pattern": graph_reader("m.mtx", lambda: matrix_market("pattern")),
    "packed Matrix Market": graph_reader("m.mtx.gz", lambda: gzip.compress(matrix_market("integer")), **GZIP),
    "GraphML": data_reader("g.graphml", lambda: markup("graphml")),
    "packed GraphML": graph_reader("g.graphml.gz", lambda: gzip.compress(markup("graphml")), **GZIP),
    "GML": data_reader("g.gml", lambda: markup("gml")),
    **{f"OGB {name}": in_ogb(name) for name in ("raw/edge.csv.gz", "raw/node-feat.csv.gz", "split/time/valid.csv.gz")},
    "edge list": graph_reader("edges.csv", lambda: EDGES),
    "edge list of names": graph_reader("names.tsv", lambda: NAMES),
    "packed edge list": graph_reader("edges.csv.gz", lambda: gzip.compress(EDGES), **GZIP),
    "node table": data_reader("nodes.csv", lambda: NODES, nodes="nodes.csv", beside=edges_beside),
    "model.json": Reader("model.json", lambda: model_files()["model.json"], read_model, beside=model_beside),
    "model.safetensors": Reader(
        "model.safetensors", lambda: model_files()["model.safetensors"], read_safetensors, beside=model_beside
    ),
    "results of a comparison": Reader(
        "results.json", lambda: json.dumps(as_document(comparison(seeds=5))).encode(), read_comparison
    ),
    "results of the paper": Reader("results.json", paper_content, read_paper),
    "journal": Reader(
        "variance.pieces", journal_content, read_journal, parts=lines, whole=with_digests, beside=journal_beside
    ),
    "cache entry": Reader("entry.npz", lambda: cache_entry()[1], read_cache, **ZIP),
}
