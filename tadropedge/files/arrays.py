"""A graph among named arrays, with features, labels and splits: what files of arrays and of tensors have in common."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import issparse

from tadropedge.errors import TadropedgeError
from tadropedge.files.contents import PARTS, Array, FileContents, ReadOptions, per_arc, summary
from tadropedge.graph import matrix_arcs


@dataclass(frozen=True, kw_only=True)
class Layout:
    """What somebody calls ``features``, ``labels`` and the parts of ``splits``."""

    features: str
    labels: str
    splits: tuple[str, ...] = ()

    @property
    def names(self) -> set[str]:
        """All arrays of nodes."""
        return {self.features, self.labels, *self.splits}


def contents_of_arrays(
    arrays: Mapping[str, Any], graph: str, layout: Layout, options: ReadOptions, file: str, others: Sequence[str] = ()
) -> FileContents:
    """What named arrays hold: ``graph`` names arcs ``[2, A]`` or a SciPy matrix among them, ``others`` are left out.

    Features may be a SciPy matrix, too. Numbers beside a matrix stand in the order in which it is stored.

    >>> arrays = {"edge_index": np.array([[0, 1], [1, 2]]), "y": np.array([1, 0, 1])}
    >>> found = contents_of_arrays(arrays, "edge_index", Layout(features="x", labels="y"), ReadOptions(), "mine")
    >>> found.read, found.labels.tolist()
    ('2 edges from edge_index', [1, 0, 1])
    """
    arcs, weighs = arrays[graph], str(options.weight or "edge_weight")
    is_matrix = issparse(arcs)
    if not is_matrix and (arcs.ndim != 2 or arcs.shape[0] != 2 or arcs.dtype.kind not in "iu"):
        got = f"{arcs.dtype} of shape {list(arcs.shape)}"
        raise TadropedgeError(f"{file}: edge_index must be whole numbers [2, A], got {got}")
    count = arcs.nnz if is_matrix else arcs.shape[1]
    weight, column = (
        None if name is None or name not in arrays else per_arc(arrays[name], count, file, name)
        for name in (weighs if options.weighted else None, None if options.column is None else str(options.column))
    )
    told, num_nodes = weighs, _number_of_nodes(arrays, layout, file)
    if is_matrix:
        matrix, num_nodes = arcs, arcs.shape[0]
        arcs, entries = entries_of(matrix, file)
        column = None if column is None else _in_order(matrix, column, arcs)
        weight = None if weight is None else _in_order(matrix, weight, arcs)
        if weight is None and options.weighted:
            weight, told = entries, "the entries"
    labels = arrays.get(layout.labels)
    splits = {part: arrays[name] for part, name in zip(PARTS, layout.splits, strict=False) if name in arrays}
    return FileContents(
        file=file,
        read=summary(arcs.shape[1], graph, None if weight is None else told, options.column, others=others),
        arcs=arcs,
        num_nodes=num_nodes,
        weight=weight,
        column=column,
        node_ids=_node_ids(arrays, num_nodes, file),
        features=arrays.get(layout.features) if options.nodes else None,
        labels=class_numbers(labels, layout.labels, file) if options.nodes and labels is not None else None,
        splits=splits if options.nodes else {},
    )


def entries_of(matrix: Any, file: str) -> tuple[Array, Array]:
    """The places ``[2, A]`` and the values ``[A]`` of the entries of a square matrix that are not 0."""
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise TadropedgeError(f"{file}: an adjacency matrix must be square, got shape {tuple(matrix.shape)}")
    rows, columns, values = matrix_arcs(matrix)
    return np.stack((rows, columns)).astype(np.int64), values


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


def _number_of_nodes(arrays: Mapping[str, Any], layout: Layout, file: str) -> int | None:
    """How many nodes there are, where the arrays tell; PyG's ``y`` may be of the whole graph."""
    told = arrays.get("num_nodes")
    if told is not None:
        if np.size(told) != 1:
            raise TadropedgeError(f"{file}: num_nodes must be one whole number, got shape {list(np.shape(told))}")
        return int(np.asarray(told).item())
    of_nodes = (arrays[name] for name in (layout.features, layout.labels) if name in arrays and name != "y")
    return next((each.shape[0] for each in of_nodes if each.ndim), None)


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
