"""Arrays of an ``.npz`` file, and the graph, features, labels and splits among them, whoever named them.

The graph is ``edge_index [2, A]``, ``edges [A, 2]``, the CSR parts ``adj_data``, ``adj_indices``, ``adj_indptr`` and
``adj_shape``, or what ``scipy.sparse.save_npz`` wrote. What else there is has the names of one of ``LAYOUTS``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from zipfile import is_zipfile

import numpy as np
from scipy.sparse import csr_matrix, load_npz

from tadropedge.errors import TadropedgeError, show
from tadropedge.files.contents import (
    PARTS,
    Array,
    FileContents,
    ReadOptions,
    left_out,
    listed,
    no_column,
    per_arc,
    summary,
)
from tadropedge.graph import matrix_arcs

CSR_PARTS = ("data", "indices", "indptr", "shape")
WHOLE = ("indices", "indptr", "row", "col", "shape")  # the parts of a matrix that are whole numbers
GRAPHS = {  # the arrays that make a graph
    "edge_index": {"edge_index"},
    "edges": {"edges"},
    "adj": {f"adj_{part}" for part in CSR_PARTS},
    "matrix": {"format", "shape", "data"},
}


@dataclass(frozen=True, kw_only=True)
class Layout:
    """What somebody calls ``features`` (an array, or a prefix of CSR parts), ``labels`` and the parts of ``splits``.

    ``binary``: as PyTorch Geometric reads it, positive features are ones, and entries of ``adj`` are no weights.
    """

    features: str
    labels: str
    splits: tuple[str, ...] = ()
    binary: bool = False

    @property
    def sparse(self) -> set[str]:
        """The names of the CSR parts of features."""
        return {f"{self.features}_{part}" for part in CSR_PARTS}

    @property
    def names(self) -> set[str]:
        """All arrays of nodes."""
        return {self.features, self.labels, *self.splits, *self.sparse}


OWN = Layout(features="x", labels="y", splits=PARTS)
LAYOUTS = (
    OWN,
    Layout(features="attr", labels="labels", binary=True),  # PyG: CitationFull, Amazon, Coauthor
    # PyG: HeterophilousGraphDataset, WikipediaNetwork
    Layout(features="node_features", labels="node_labels", splits=tuple(f"{part}_masks" for part in PARTS)),
    Layout(features="features", labels="target"),
    Layout(features="node_feat", labels="node_label", splits=("train_idx", "valid_idx", "test_idx")),  # OGB
)
NO_COLUMNS = set().union(*(each.names for each in LAYOUTS), *GRAPHS.values(), WHOLE, {"num_nodes", "node_ids"})


def read(path: Path, options: ReadOptions) -> FileContents:
    """The graph among the arrays of a file; features, labels and splits where they are asked for."""
    with _opened(path) as found:
        names = set(found.files)
        layout = next((each for each in LAYOUTS if {each.features, each.labels, *each.sparse} & names), OWN)
        kind = _kind_of_graph(names, path.name)
        asked = {str(each) for each in (options.weight or "edge_weight", options.column) if each is not None}
        for name in asked - names - {"edge_weight"} | asked & NO_COLUMNS:
            raise no_column(path.name, name, sorted(names - NO_COLUMNS))
        wanted = {"num_nodes", "node_ids", layout.labels} | asked | (GRAPHS[kind] if kind != "matrix" else set())
        wanted |= layout.names if options.nodes else set()
        arrays: dict[str, Any] = {name: found[name] for name in sorted(wanted & names)}
    _check_kinds(arrays, path.name)
    if kind == "matrix":
        arrays["matrix"] = load_npz(path)
    if layout.binary and layout.sparse | {layout.labels} <= names and options.weight is None:
        options = replace(options, weighted=options.weighted and "edge_weight" in names)
    graph = _matrix if kind in ("adj", "matrix") else _listed
    contents = graph(path.name, kind, arrays, options, sorted(names - wanted - NO_COLUMNS))
    contents["weight"] = contents["weight"] if options.weighted else None
    count = contents["num_nodes"]
    if count is None and layout is not OWN and layout.labels in arrays:
        contents["num_nodes"] = count = len(np.atleast_1d(arrays[layout.labels]))
    if options.nodes:
        labels = arrays.get(layout.labels)
        splits = zip(PARTS, layout.splits, strict=False)
        contents["features"] = _features(arrays, layout, path.name)
        contents["labels"] = None if labels is None else class_numbers(labels, layout.labels, path.name)
        contents["splits"] = {part: arrays[name] for part, name in splits if name in arrays}
    return FileContents(file=path.name, node_ids=_node_ids(arrays, count, path.name), **contents)


@contextmanager
def _opened(path: Path) -> Iterator[Any]:
    """The arrays of a file, each of which is read when it is asked for; nothing is unpickled."""
    if path.exists() and not is_zipfile(path):
        raise TadropedgeError(f"{path.name}: not an .npz file, which is a zip archive of arrays")
    try:
        with path.open("rb") as stream, np.load(stream, allow_pickle=False) as found:
            yield found
    except ValueError as error:
        if "allow_pickle" not in str(error):
            raise
        raise TadropedgeError(
            f"{path.name}: holds Python objects, which are not unpickled: expected numbers"
        ) from error


def _kind_of_graph(names: set[str], file: str) -> str:
    """Which of ``GRAPHS`` a file holds."""
    kinds = [kind for kind, needed in GRAPHS.items() if needed <= names]
    if len(kinds) > 1:
        told = " and ".join(", ".join(sorted(GRAPHS[kind])) for kind in kinds)
        raise TadropedgeError(f"{file}: holds two graphs, {told}: which one is meant?")
    if not kinds:
        there = show(", ".join(sorted(names)) or "nothing", typed=False, longest=160)
        raise TadropedgeError(
            f"{file}: expected an array edge_index, or a matrix saved by scipy.sparse.save_npz, found {there}"
        )
    return kinds[0]


def _check_kinds(arrays: Mapping[str, Array], file: str) -> None:
    """Check that indices are whole numbers: SciPy would cut fractions off."""
    for name, array in arrays.items():
        whole = name.rpartition("_")[2] in WHOLE or name in ("edges", "num_nodes")
        if array.dtype.kind not in ("iu" if whole else "biufSU"):
            wanted = "whole numbers" if whole else "numbers"
            raise TadropedgeError(f"{file}: {name} must hold {wanted}, got {array.dtype} of shape {array.shape}")


def _listed(
    file: str, kind: str, arrays: Mapping[str, Array], options: ReadOptions, others: list[str]
) -> dict[str, Any]:
    """A list of arcs with weights and a column in its order."""
    arcs, nodes = arrays[kind], arrays.get("num_nodes")
    if kind == "edges":
        if arcs.ndim != 2 or arcs.shape[1] != 2:
            raise TadropedgeError(f"{file}: edges must be of shape [A, 2], got {list(arcs.shape)}")
        arcs = arcs.T
    if nodes is not None and nodes.size != 1:
        raise TadropedgeError(f"{file}: num_nodes must be one whole number, got shape {list(nodes.shape)}")
    graph = listed(file, kind, arcs, arrays, options, others)
    return {**graph, "num_nodes": None if nodes is None else int(nodes.item())}


def _matrix(
    file: str, kind: str, arrays: Mapping[str, Array], options: ReadOptions, others: list[str]
) -> dict[str, Any]:
    """The entries of a matrix; numbers beside it stand in the order of its ``data`` and are brought into theirs."""
    matrix = _csr(arrays, "adj_", file) if kind == "adj" else arrays["matrix"]
    if matrix.format not in ("csr", "csc", "coo") or matrix.dtype.kind not in "biuf":
        raise TadropedgeError(f"{file}: expected a CSR, CSC or COO matrix of numbers, got {matrix.format}")
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise TadropedgeError(f"{file}: an adjacency matrix must be square, got shape {tuple(matrix.shape)}")
    rows, columns, entries = matrix_arcs(matrix)
    arcs = np.stack((rows, columns)).astype(np.int64)
    name, column, weighs = f"a {matrix.format.upper()} matrix", options.column, str(options.weight or "edge_weight")
    weight, told = entries, "the entries"
    if weighs in arrays:
        weight, told = _in_order(matrix, per_arc(arrays[weighs], matrix.nnz, file, weighs), arcs), weighs
    numbers = None if column is None else per_arc(arrays[str(column)], matrix.nnz, file, column)
    return {
        "arcs": arcs,
        "num_nodes": matrix.shape[0],
        "weight": weight,
        "column": None if numbers is None else _in_order(matrix, numbers, arcs),
        "read": summary(len(rows), name, told if options.weighted else None, column, *left_out(others)),
    }


def _in_order(matrix: Any, values: Array, arcs: Array) -> Array:
    """The value of each of ``arcs`` from ``values`` in the stored order of a matrix; repeated entries have their mean.

    >>> from scipy.sparse import csc_matrix
    >>> matrix = csc_matrix(([1.0, 1.0], ([1, 0], [0, 1])), shape=(2, 2))  # column by column: (1, 0), then (0, 1)
    >>> _in_order(matrix, np.array([10.0, 20.0]), np.array([[0, 1], [1, 0]])).tolist()
    [20.0, 10.0]
    """
    stored = matrix.tocoo()
    keys = stored.row.astype(np.int64) * matrix.shape[1] + stored.col
    distinct, place = np.unique(keys, return_inverse=True)
    means = np.bincount(place, values) / np.bincount(place)
    found: Array = means[np.searchsorted(distinct, arcs[0] * matrix.shape[1] + arcs[1])]
    return found


def _csr(arrays: Mapping[str, Array], prefix: str, file: str) -> Any:
    """A CSR matrix of parts that fit together: compiled code would read beyond them."""
    values, indices, indptr, shape = (arrays[f"{prefix}{part}"] for part in CSR_PARTS)
    if shape.shape != (2,) or any(part.ndim != 1 for part in (values, indices, indptr)):
        shapes = ", ".join(str(list(part.shape)) for part in (values, indices, indptr, shape))
        raise TadropedgeError(f"{file}: a matrix must be three lists and its two sizes, got shapes {shapes}")
    matrix = csr_matrix((values, indices, indptr), shape=tuple(shape.tolist()))
    matrix.check_format(full_check=True)
    return matrix


def _features(arrays: Mapping[str, Array], layout: Layout, file: str) -> Any:
    """Features as an array or as a CSR matrix."""
    if not layout.sparse <= set(arrays):
        return np.atleast_1d(arrays[layout.features]) if layout.features in arrays else None
    matrix = _csr(arrays, f"{layout.features}_", file)
    matrix.sum_duplicates()
    if layout.binary:
        matrix.data[matrix.data > 0] = 1
    return matrix


def class_numbers(values: Any, name: str, file: str) -> Array:
    """Labels ``[N]`` or ``[N, 1]`` as whole numbers; others write them as 2.0, and NaN where there is none.

    >>> class_numbers(np.array([[2.0], [np.nan]]), "node_label", "d.npz").tolist()
    [2, -1]
    """
    array = np.atleast_1d(values)
    array = array[:, 0] if array.ndim == 2 and array.shape[1] == 1 else array
    if array.ndim != 1 or array.dtype.kind not in "iuf":
        got = f"{array.dtype} of shape {list(array.shape)}"
        raise TadropedgeError(f"{file}: {name} must be the number of one class per node, [N], got {got}")
    numbers = np.where(np.isnan(array), -1, array)
    wrong = ~((numbers == np.round(numbers)) & (np.abs(numbers.astype(np.float64)) < 2**31))
    if wrong.any():
        raise TadropedgeError(f"{file}: {name} must be whole numbers of classes, got {numbers[wrong][0]:g}")
    return numbers.astype(np.int64)


def _node_ids(arrays: Mapping[str, Array], num_nodes: int | None, file: str) -> tuple[Any, ...] | None:
    """What the nodes are called, where the file tells."""
    ids = arrays.get("node_ids")
    if ids is None:
        return None
    if ids.shape != (num_nodes,) or ids.dtype.kind not in "iuU":
        raise TadropedgeError(
            f"{file}: node_ids must be one name for each of num_nodes={num_nodes}, got {ids.dtype} {list(ids.shape)}"
        )
    return tuple(ids.tolist())
