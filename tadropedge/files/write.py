"""A graph as a file that others read: csv with the user's own names, ``.npz`` of plain arrays, a saved ``Data``.

All of them come back as the same graph by ``Graph.from_file``, with all digits of their weights but for float32 in a
``Data``; a csv has no isolated nodes.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from tadropedge._support.atomic import atomic
from tadropedge._support.checks import check_length, check_mapping, check_path
from tadropedge._support.memory import within_memory
from tadropedge.errors import TadropedgeError, lookup
from tadropedge.files.contents import PARTS
from tadropedge.files.npz import CSR_PARTS
from tadropedge.graph import Graph, check_graph

LINES = 100_000  # written at a time
TAKEN = ("source", "target", "weight", "edge_index", "edge_weight", "num_nodes", "node_ids")
Values = Mapping[str, Tensor]


def write_graph(path: str | Path, graph: Graph, values: Values | None = None, nodes: Values | None = None) -> Path:
    """Write ``graph`` as the suffix of ``path`` says: ``.csv``, ``.npz`` or ``.pt``.

    Args:
        path: the file; it is there whole or not at all.
        graph: the graph; edges stand in the order of ``graph.pairs``, weights are ones where it has none.
        values: further numbers of edges by name, ``[M]`` each: scores, probabilities.
        nodes: what belongs to nodes, ``[N, …]`` each: features ``x``, labels ``y``, masks ``train``, ``val``, ``test``;
            a csv has none of them.

    >>> import tempfile
    >>> graph = Graph.from_edge_index([[0, 1], [1, 2]])
    >>> path = write_graph(Path(tempfile.mkdtemp()) / "edges.csv", graph, {"score": torch.tensor([0.5, 1.0])})
    >>> print(path.read_text(), end="")
    "source","target","weight","score"
    0,1,1.0,0.5
    1,2,1.0,1.0
    """
    given = {"values": values, "nodes": nodes}
    path, graph = check_path("path", path), check_graph(graph, edges=False)
    values, nodes = ({} if each is None else dict(check_mapping(name, each)) for name, each in given.items())
    writer = lookup("suffix", path.suffix.lower(), WRITERS)
    for name, column in values.items():
        check_length(name, column, graph.num_edges, "edge of the graph")
    if taken := [name for name in (*values, *nodes) if name in TAKEN] or sorted(set(values) & set(nodes)):
        raise TadropedgeError(f"the name {taken[0]!r} is taken by the graph itself: call these numbers otherwise")
    writer(path, graph, values, nodes)
    return path


def _write_csv(path: Path, graph: Graph, values: Values, nodes: Values) -> None:
    """One line per edge: its ends by the user's own names, else their numbers, its weight, and further numbers."""
    called = graph.node_ids if graph.node_ids is not None else range(graph.num_nodes)
    columns = [_weights(graph), *(column.detach().cpu() for column in values.values())]
    pairs = graph.pairs.cpu()
    with atomic(path) as stream:
        stream.write(_lines([("source", "target", "weight", *values)]))
        for first in range(0, graph.num_edges, LINES):
            some = slice(first, first + LINES)
            ends = [[called[node] for node in end] for end in pairs[:, some].tolist()]
            stream.write(_lines(zip(*ends, *(column[some].tolist() for column in columns), strict=True)))


def _lines(rows: Iterable[Iterable[object]]) -> bytes:
    """Lines of a csv file; words stand in quotes, so that every name comes back as it was."""
    text = io.StringIO()
    csv.writer(text, quoting=csv.QUOTE_NONNUMERIC, lineterminator="\n").writerows(rows)
    return text.getvalue().encode(errors="backslashreplace")  # a lone surrogate has no bytes


def _write_npz(path: Path, graph: Graph, values: Values, nodes: Values) -> None:
    """Plain arrays: ``edge_index [2, M]``, ``num_nodes``, ``edge_weight [M]``, and ``values`` and ``nodes`` by name.

    ``node_ids [N]`` where the nodes have names of one type, texts or whole numbers; a sparse tensor as its CSR parts.
    """
    arrays: dict[str, Any] = {"edge_index": graph.pairs, "num_nodes": graph.num_nodes, "edge_weight": _weights(graph)}
    if graph.node_ids is not None and {type(name) for name in graph.node_ids} in ({str}, {int}):
        names = np.array(graph.node_ids)
        arrays |= {"node_ids": names} if names.dtype.kind in "iU" else {}  # integers beyond 64 bits have no array
    for name, value in {**values, **nodes}.items():
        if value.layout is torch.strided:
            arrays[name] = value.detach()
        else:
            csr = value.detach().to_sparse_csr()
            parts = (csr.values(), csr.col_indices(), csr.crow_indices(), tuple(csr.shape))
            arrays |= {f"{name}_{part}": each for part, each in zip(CSR_PARTS, parts, strict=True)}
    plain: dict[str, Any] = {
        name: value.cpu().numpy() if isinstance(value, Tensor) else value for name, value in arrays.items()
    }
    with atomic(path) as stream:
        np.savez(stream, **plain)


@within_memory("a Data with dense features", "an .npz file holds them sparse")
def _write_data(path: Path, graph: Graph, values: Values, nodes: Values) -> None:
    """A ``Data`` for ``torch.load``: both directions of every edge, ``edge_weight`` in float32 as PyG computes.

    ``x`` is dense, and the parts of a split are masks.
    """
    from torch_geometric.data import Data

    named = {f"{name}_mask" if name in PARTS else name: value for name, value in nodes.items()}
    dense = {
        name: (value if value.layout is torch.strided else value.to_dense()).cpu() for name, value in named.items()
    }
    per_arc = {name: value.detach().cpu().repeat(2) for name, value in values.items()}
    both = torch.cat((graph.pairs, graph.pairs.flip(0)), dim=1).cpu()
    weight = _weights(graph).float().repeat(2)
    made = Data(edge_index=both, edge_weight=weight, num_nodes=graph.num_nodes, **per_arc, **dense)
    with atomic(path) as stream:
        torch.save(made, stream)


def _weights(graph: Graph) -> Tensor:
    """The weights of the edges ``[M]``, ones where the graph has none."""
    return torch.ones(graph.num_edges, dtype=torch.float64) if graph.weight is None else graph.weight.cpu()


WRITERS: dict[str, Callable[[Path, Graph, Values, Values], None]] = {
    ".csv": _write_csv,
    ".npz": _write_npz,
    ".pt": _write_data,
}
