"""The citation sets Cora, CiteSeer and PubMed, from the raw files in PyTorch Geometric's layout.

A set is eight files ``root/planetoid/<Name>/raw/ind.<name>.*``: features ``x``, ``tx``, ``allx`` and one-hot labels
``y``, ``ty``, ``ally`` of the labelled, test and all other nodes, the neighbours of each node in ``graph``, and the
node of each row of ``tx`` in ``test.index``. All but the last are pickles, read by :mod:`tadropedge._old.data.pickles`.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from dataclasses import dataclass
from functools import partial
from http.client import HTTPException
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
import torch
from torch import Tensor

from tadropedge._old.checks import check_flag, check_integer, check_path
from tadropedge._old.data.dataset import Dataset
from tadropedge._old.data.features import csr_tensor, row_normalized
from tadropedge._old.data.pickles import read_pickle
from tadropedge._old.data.pyg_sets import SETS, located
from tadropedge._old.data.splits import OfSizes, PerClass, Split, check_per_class, way_of
from tadropedge._old.errors import TadropedgeError, lookup, show
from tadropedge._old.files import existing, read_bytes
from tadropedge._old.graph import Graph
from tadropedge._old.progress import Progress

NAMES = {"cora": "Cora", "citeseer": "CiteSeer", "pubmed": "PubMed"}
GAMMA = {"Cora": 1e-2, "CiteSeer": 1e-2, "PubMed": 1e-3}  # the paper searches γ around these
FILES = ("x", "tx", "allx", "y", "ty", "ally", "graph", "test.index")
NUM_VAL, NUM_TEST = 500, 1000
# SHA-256 of the files one after the other. PyTorch Geometric's downloader does not verify the server's certificate.
CHECKSUMS = {
    "Cora": "0ce1f9117972bdd087a19062d3decca8abfdfef042468c282c2b977642e057dd",
    "CiteSeer": "cbadbc965a18fe92dd73960a02a21e4e098723aebcdbe7e03c407a3971644413",
    "PubMed": "34aaa088b00e246edbc2a4ab7c320063b5b07fc3b9839d5540a663f867238d4a",
}


def load_planetoid(
    name: str,
    root: str | Path | None = None,
    split: str = "full",
    *,
    per_class: int | str = 20,
    seed: int = 0,
    normalize: bool = True,
) -> Dataset:
    """Load ``cora``, ``citeseer`` or ``pubmed`` with sparse features; files that are missing are downloaded.

    ``root`` defaults to ``TADROPEDGE_DATA``, else to ``tadropedge`` in the user's cache directory. Splits:

    * ``full``, the paper's: test is ``test.index``, validation the last 500 of ``ally``, training all before them;
    * ``public``: the same test nodes, training the first ``len(y)`` nodes, validation the 500 after them;
    * ``random``: ``per_class`` labels per class, then 500 and 1000 of the others, drawn from ``seed``;
      ``per_class="full"`` is another way to say ``split="full"``.

    ``normalize`` divides each row of features by its sum. Nodes that have no row in the files (15 in CiteSeer)
    have features of zero and no label.
    """
    lookup("split", split, dict.fromkeys(("full", "public", "random")))
    folder = _folder(name)
    seed, per_class = check_integer("seed", seed, least=0), check_per_class(per_class)
    if isinstance(per_class, str) and split != per_class:
        raise TadropedgeError(f"per_class={per_class!r} and split={split!r} exclude each other")
    normalize = check_flag("normalize", normalize)
    paths = _paths(folder, root)
    _fetch(folder, list(paths.values()))
    files = _read(paths)
    features, labels = _features(files), _labels(files)
    if split == "random" and isinstance(per_class, int):
        drawn: PerClass | OfSizes = PerClass(per_class, NUM_VAL, NUM_TEST, seed=seed)
        own = drawn.split(labels, seed)
    else:
        own = _published(files, split)
        drawn = OfSizes(*own.sizes, seed=seed) if split == "full" else way_of(own, labels, seed=seed)
    return Dataset(
        name=folder.lower(),
        graph=files.graph,
        features=row_normalized(features) if normalize else features,
        labels=labels,
        num_classes=files.ally.shape[1],
        level="node",
        split=own,
        drawn=drawn,
        gamma=GAMMA[folder],
    )


cora, citeseer, pubmed = (partial(load_planetoid, name) for name in NAMES)


def citation_graph(name: str, root: str | Path | None = None) -> Graph:
    """Read the graph alone of ``cora``, ``citeseer`` or ``pubmed``; nothing is downloaded."""
    return _graph(existing(_paths(_folder(name), root)["graph"]))


def _folder(name: object) -> str:
    return lookup("dataset", name.lower() if isinstance(name, str) else name, NAMES)


def data_root(root: str | Path | None = None) -> Path:
    """The folder with all datasets: ``root``, else ``TADROPEDGE_DATA``, else ``tadropedge`` in the user's cache.

    >>> data_root("somewhere").name
    'somewhere'
    """
    if root is not None:
        return check_path("root", root)
    if given := os.environ.get("TADROPEDGE_DATA"):
        return Path(given)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "tadropedge"


def citation_files(name: str, root: str | Path | None = None) -> list[Path]:
    """Where the files of ``cora``, ``citeseer`` or ``pubmed`` lie, or would lie."""
    return list(_paths(_folder(name), root).values())


def _paths(name: str, root: str | Path | None) -> dict[str, Path]:
    top = data_root(root)
    raw = top / "planetoid" / name / "raw"
    if not raw.is_dir() and (found := located(SETS[f"Planetoid/{name}"], top)) is not None:
        raw = found.parent  # in another folder that somebody's PyTorch Geometric filled
    return {file: raw / f"ind.{name.lower()}.{file}" for file in FILES}


def _fetch(name: str, paths: list[Path]) -> None:
    """Download those of the files of a citation set that are missing.

    Files are moved into place after all are checked, so an interruption leaves no partial file.
    """
    folder, missing = paths[0].parent, [path.name for path in paths if not path.is_file()]
    if not missing:
        return
    from torch_geometric.data import download_url
    from torch_geometric.datasets import Planetoid

    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder) as temporary, Progress(f"downloading {name}", len(paths)) as bar:
            for path in paths:
                bar.note(path.name)
                download_url(f"{Planetoid.url}/{path.name}", temporary, log=False)
                bar.advance(1)
            content = b"".join((Path(temporary) / path.name).read_bytes() for path in paths)
            if hashlib.sha256(content).hexdigest() != CHECKSUMS[name]:
                raise TadropedgeError(f"what was downloaded as {name} is not what was published: its checksum is wrong")
            for file in missing:
                (Path(temporary) / file).replace(folder / file)
    except (OSError, HTTPException) as error:  # urllib's own errors are of the first kind
        raise TadropedgeError(
            f"{name} is not in '{folder}' and cannot be downloaded from {Planetoid.url} ({error}); "
            f"put these files there: {', '.join(missing)}"
        ) from error


@dataclass(frozen=True, kw_only=True)
class Files:
    """The contents of the files, checked against each other; ``x`` itself is the head of ``allx``."""

    tx: sp.csr_matrix
    allx: sp.csr_matrix
    y: npt.NDArray[Any]
    ty: npt.NDArray[Any]
    ally: npt.NDArray[Any]
    graph: Graph
    test: npt.NDArray[np.int64]


def _read(paths: dict[str, Path]) -> Files:
    """Read all files and check that they belong together."""
    x, tx, allx = (_matrix(paths[file]) for file in ("x", "tx", "allx"))
    y, ty, ally = (_one_hot(paths[file]) for file in ("y", "ty", "ally"))
    for name, matrix, classes in (("x", x, y), ("tx", tx, ty), ("allx", allx, ally)):
        if matrix.shape != (classes.shape[0], allx.shape[1]) or classes.shape[1] != ally.shape[1]:
            raise TadropedgeError(
                f"{paths[name].name}: features of shape {matrix.shape} and labels of shape {classes.shape} do not fit "
                f"allx of shape {allx.shape} and ally of shape {ally.shape}"
            )
    graph, test = _graph(paths["graph"]), _test_index(paths["test.index"])
    first, last = allx.shape[0], graph.num_nodes - 1
    distinct = len(np.unique(test)) == len(test) == len(ty)
    if not distinct or test.min() < first or test.max() > last:
        raise TadropedgeError(
            f"{paths['test.index'].name}: expected {len(ty)} distinct nodes from {first} to {last}, "
            f"got {len(test)} from {test.min()} to {test.max()}"
        )
    return Files(tx=tx, allx=allx, y=y, ty=ty, ally=ally, graph=graph, test=test)


def _matrix(path: Path) -> sp.csr_matrix:
    matrix = read_pickle(path)
    if not sp.issparse(matrix):
        raise TadropedgeError(f"{path.name}: expected a sparse matrix of features, got {type(matrix).__name__}")
    return matrix


def _one_hot(path: Path) -> npt.NDArray[Any]:
    labels = read_pickle(path)
    if not isinstance(labels, np.ndarray) or labels.ndim != 2 or not labels.size:
        raise TadropedgeError(f"{path.name}: expected a matrix of one-hot labels, got {type(labels).__name__}")
    if not (np.isin(labels, (0, 1)).all() and (labels.sum(axis=1) == 1).all()):
        row = int(((labels == 1).sum(axis=1) != 1).argmax())
        raise TadropedgeError(f"{path.name}: row {row} is not one-hot: {show(labels[row].tolist(), typed=False)}")
    return labels


def _test_index(path: Path) -> npt.NDArray[np.int64]:
    content = read_bytes(path)
    try:
        index = np.array([int(line) for line in content.decode().split()], dtype=np.int64)
    except (ValueError, OverflowError) as error:
        raise TadropedgeError(f"{path.name}: expected one node on each line ({error})") from error
    if not len(index):
        raise TadropedgeError(f"{path.name}: no test nodes in the file")
    return index


def _graph(path: Path) -> Graph:
    neighbours = read_pickle(path)
    if not isinstance(neighbours, dict) or not all(isinstance(row, list) for row in neighbours.values()):
        raise TadropedgeError(f"{path.name}: expected a dictionary of neighbour lists")
    nodes = [*neighbours, *(other for others in neighbours.values() for other in others)]
    if not all(type(node) is int and 0 <= node < len(neighbours) for node in nodes):
        wrong = next(node for node in nodes if type(node) is not int or not 0 <= node < len(neighbours))
        raise TadropedgeError(f"{path.name}: nodes run from 0 to {len(neighbours) - 1}, got {show(wrong, typed=False)}")
    arcs = [(node, other) for node, others in neighbours.items() for other in others]
    return Graph.from_edge_index(np.array(arcs, dtype=np.int64).reshape(-1, 2).T, num_nodes=len(neighbours))


def _features(files: Files) -> Tensor:
    """Features ``[N, F]`` as CSR: row i of ``tx`` belongs to node ``test[i]``."""
    entries = sp.vstack((files.allx, files.tx)).tocoo()
    node = np.concatenate((np.arange(files.allx.shape[0]), files.test))
    shape = (files.graph.num_nodes, files.allx.shape[1])
    return csr_tensor(sp.csr_matrix((entries.data, (node[entries.row], entries.col)), shape=shape))


def _labels(files: Files) -> Tensor:
    labels = np.full(files.graph.num_nodes, -1, dtype=np.int64)
    labels[: len(files.ally)] = files.ally.argmax(axis=1)
    labels[files.test] = files.ty.argmax(axis=1)
    return torch.from_numpy(labels)


def _published(files: Files, split: str) -> Split:
    """The first nodes (all that leave 500, or those of ``y``), the 500 after them, and the test nodes in order."""
    train = len(files.y) if split == "public" else len(files.ally) - NUM_VAL
    if train < 1 or train + NUM_VAL > len(files.ally):
        raise TadropedgeError(
            f"{len(files.ally)} labelled nodes are too few for {max(train, 1)} training and {NUM_VAL} validation nodes"
        )
    return Split(torch.arange(train), torch.arange(train, train + NUM_VAL), torch.from_numpy(np.sort(files.test)))
