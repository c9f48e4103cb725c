"""A graph as files that others read: csv with the user's own names, ``.npz`` of plain arrays, a saved ``Data``.

``edges.csv`` and ``graph.npz`` come back as the same graph by ``Graph.from_file``, with all digits of its weights; a
csv has no isolated nodes. Where features and labels come along, ``graph.npz`` and ``data.pt`` are datasets, too.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from tadropedge._old.atomic import atomic
from tadropedge._old.data.features import CSR_PARTS
from tadropedge._old.data.files import Contents
from tadropedge._old.data.splits import PARTS
from tadropedge._old.graph import Graph
from tadropedge._old.memory import within_memory
from tadropedge._old.publish.tables import csv_lines

LINES = 100_000  # written at a time


def write_edges(path: Path, graph: Graph) -> Path:
    """One line per edge: its ends by the user's own names, else their numbers, and its weight with all digits."""
    called = graph.node_ids if graph.node_ids is not None else range(graph.num_nodes)
    with atomic(path) as stream:
        stream.write(csv_lines([("source", "target", "weight")], quoted=True))
        for first in range(0, graph.num_edges, LINES):
            some = slice(first, first + LINES)
            ends = ([called[node] for node in end] for end in graph.pairs[:, some].tolist())
            stream.write(csv_lines(zip(*ends, weights(graph)[some].tolist(), strict=True), quoted=True))
    return path


def write_arrays(path: Path, graph: Graph, contents: Contents | None = None) -> Path:
    """Plain arrays: ``edge_index [2, M]``, ``num_nodes``, ``edge_weight [M]``, and what :func:`with_nodes` finds.

    ``node_ids [N]`` where the nodes have names of one type, texts or whole numbers.
    """
    arrays: dict[str, Any] = {"edge_index": graph.pairs, "num_nodes": graph.num_nodes, "edge_weight": weights(graph)}
    if graph.node_ids is not None and {type(name) for name in graph.node_ids} in ({str}, {int}):
        arrays["node_ids"] = np.array(graph.node_ids)
    for name, value in with_nodes(contents).items():
        if name == "x" and value.layout is torch.sparse_csr:
            parts = (value.values(), value.col_indices(), value.crow_indices(), tuple(value.shape))
            arrays |= {f"x_{part}": each for part, each in zip(CSR_PARTS, parts, strict=True)}
        else:
            arrays[name] = value
    plain: dict[str, Any] = {name: np.asarray(value) for name, value in arrays.items()}
    with atomic(path) as stream:
        np.savez(stream, **plain)
    return path


@within_memory("a Data with dense features", "the .npz file holds them sparse")
def write_data(path: Path, graph: Graph, contents: Contents | None = None) -> Path:
    """A ``Data`` for ``torch.load``: both directions of every edge, ``edge_weight`` in float32 as PyG computes.

    ``x`` is dense, and the parts of a split are masks.
    """
    from torch_geometric.data import Data

    nodes = with_nodes(contents)
    values = {name: value for name, value in nodes.items() if name in ("x", "y")}
    if "x" in values and values["x"].layout is torch.sparse_csr:
        values["x"] = values["x"].to_dense()
    masks = {f"{name}_mask": value for name, value in nodes.items() if name not in values}
    both = torch.cat((graph.pairs, graph.pairs.flip(0)), dim=1)
    edge_weight = weights(graph).float().repeat(2)
    made = Data(edge_index=both, edge_weight=edge_weight, num_nodes=graph.num_nodes, **values, **masks)
    with atomic(path) as stream:
        torch.save(made, stream)
    return path


def with_nodes(contents: Contents | None) -> dict[str, Tensor]:
    """What belongs to nodes: ``x``, ``y``; of one split the masks ``train``, ``val``, ``test [N]``, of K ``[N, K]``."""
    if contents is None:
        return {}
    masks: dict[str, Tensor] = {}
    for name in PARTS if contents.splits else ():
        columns = torch.zeros(contents.graph.num_nodes, len(contents.splits), dtype=torch.bool)
        for place, split in enumerate(contents.splits):
            columns[getattr(split, name).cpu(), place] = True
        masks[name] = columns[:, 0] if len(contents.splits) == 1 else columns
    return {"x": contents.features.cpu(), "y": contents.labels.cpu(), **masks}


def weights(graph: Graph) -> Tensor:
    """The weights of the edges ``[M]``, ones where the graph has none."""
    return torch.ones(graph.num_edges, dtype=torch.float64) if graph.weight is None else graph.weight


WRITERS: dict[str, Callable[[Path, Graph, Contents | None], Path]] = {
    "edges.csv": lambda path, graph, contents: write_edges(path, graph),
    "graph.npz": write_arrays,
    "data.pt": write_data,
}
