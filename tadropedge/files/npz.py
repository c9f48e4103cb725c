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
from tadropedge.files.arrays import Layout, contents_of_arrays
from tadropedge.files.contents import PARTS, Array, FileContents, ReadOptions, no_column

CSR_PARTS = ("data", "indices", "indptr", "shape")
WHOLE = ("indices", "indptr", "row", "col", "shape")  # the parts of a matrix that are whole numbers
GRAPHS = {  # the arrays that make a graph
    "edge_index": {"edge_index"},
    "edges": {"edges"},
    "adj": {f"adj_{part}" for part in CSR_PARTS},
    "matrix": {"format", "shape", "data"},
}


@dataclass(frozen=True, kw_only=True)
class ArrayLayout(Layout):
    """Features may be a prefix of CSR parts.

    ``binary``: as PyTorch Geometric reads it, positive features are ones, and entries of ``adj`` are no weights.
    """

    binary: bool = False

    @property
    def sparse(self) -> set[str]:
        """The names of the CSR parts of features."""
        return {f"{self.features}_{part}" for part in CSR_PARTS}


OWN = ArrayLayout(features="x", labels="y", splits=PARTS)
LAYOUTS = (
    OWN,
    ArrayLayout(features="attr", labels="labels", binary=True),  # PyG: CitationFull, Amazon, Coauthor
    # PyG: HeterophilousGraphDataset, WikipediaNetwork
    ArrayLayout(features="node_features", labels="node_labels", splits=tuple(f"{part}_masks" for part in PARTS)),
    ArrayLayout(features="features", labels="target"),
    ArrayLayout(features="node_feat", labels="node_label", splits=("train_idx", "valid_idx", "test_idx")),  # OGB
)
NO_COLUMNS = set().union(
    *(each.names | each.sparse for each in LAYOUTS), *GRAPHS.values(), WHOLE, {"num_nodes", "node_ids"}
)


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
        wanted |= layout.names | layout.sparse if options.nodes else set()
        arrays: dict[str, Any] = {name: found[name] for name in sorted(wanted & names)}
    _check_kinds(arrays, path.name)
    if layout.binary and layout.sparse | {layout.labels} <= names and options.weight is None:
        options = replace(options, weighted=options.weighted and "edge_weight" in names)
    if layout.sparse <= set(arrays):
        features = arrays[layout.features] = _csr(arrays, f"{layout.features}_", path.name)
        features.sum_duplicates()
        if layout.binary:
            features.data[features.data > 0] = 1
    if kind == "edges":
        if arrays[kind].ndim != 2 or arrays[kind].shape[1] != 2:
            raise TadropedgeError(f"{path.name}: edges must be of shape [A, 2], got {list(arrays[kind].shape)}")
        arrays[kind] = arrays[kind].T
    elif kind in ("adj", "matrix"):
        matrix: Any = _csr(arrays, "adj_", path.name) if kind == "adj" else load_npz(path)
        if matrix.format not in ("csr", "csc", "coo") or matrix.dtype.kind not in "biuf":
            raise TadropedgeError(f"{path.name}: expected a CSR, CSC or COO matrix of numbers, got {matrix.format}")
        kind = f"a {matrix.format.upper()} matrix"
        arrays[kind] = matrix
    return contents_of_arrays(arrays, kind, layout, options, path.name, sorted(names - wanted - NO_COLUMNS))


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


def _csr(arrays: Mapping[str, Array], prefix: str, file: str) -> Any:
    """A CSR matrix of parts that fit together: compiled code would read beyond them."""
    values, indices, indptr, shape = (arrays[f"{prefix}{part}"] for part in CSR_PARTS)
    if shape.shape != (2,) or any(part.ndim != 1 for part in (values, indices, indptr)):
        shapes = ", ".join(str(list(part.shape)) for part in (values, indices, indptr, shape))
        raise TadropedgeError(f"{file}: a matrix must be three lists and its two sizes, got shapes {shapes}")
    matrix = csr_matrix((values, indices, indptr), shape=tuple(shape.tolist()))
    matrix.check_format(full_check=True)
    return matrix
