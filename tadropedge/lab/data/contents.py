"""What a file or a ``Data`` holds, as a dataset: features, labels, splits.

A file that holds only a graph needs a table of its nodes beside it: see :mod:`tadropedge.lab.data.tables`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from tadropedge._support.checks import check_path
from tadropedge.errors import TadropedgeError, show
from tadropedge.files import FileContents, ReadOptions, read_file
from tadropedge.lab.data.dataset import Dataset
from tadropedge.lab.data.features import feature_tensor, row_normalize
from tadropedge.lab.data.splits import PARTS, Given, PerClass, Split
from tadropedge.lab.data.tables import with_nodes


def load_file(
    path: str | Path,
    *,
    nodes: str | Path | None = None,
    header: bool | None = None,
    columns: Mapping[str, str | int] | None = None,
    column: str | int | None = None,
    weighted: bool = True,
    normalize: bool = False,
    num_features: int | None = None,
    seed: int = 0,
) -> Dataset:
    """Your own data from a file of any format of ``tadropedge.files.FORMATS``.

    Args:
        path: the file.
        nodes: a table of features and labels, beside a file that holds only a graph.
        header: whether tables have one; ``None`` looks.
        columns: as in :func:`tadropedge.files.read_file`.
        column: one number per listed edge, for the score ``column``.
        weighted: whether edge weights are read.
        normalize: divide each row of features by its sum.
        num_features: how many features a table of nodes has, which then may be without labels.
        seed: of the splits.
    """
    path = check_path("data", path)
    contents = read_file(path, header=header, columns=columns, column=column, weighted=weighted)
    if nodes is not None:
        if contents.features is not None or contents.labels is not None:
            raise TadropedgeError(f"{path.name} has features or labels of its own: leave out nodes", argument="nodes")
        contents = with_nodes(contents, check_path("nodes", nodes), header=header, num_features=num_features)
    return dataset_of(contents, path.name.partition(".")[0], normalize=normalize, seed=seed)


def load_object(data: Any, *, column: str | None = None, normalize: bool = False, seed: int = 0) -> Dataset:
    """A ``Data``, or a PyG dataset of one graph; ``column`` names an edge attribute for the score ``column``.

    >>> from torch_geometric.data import Data
    >>> arcs, labels = torch.tensor([[0, 1, 2, 3], [1, 2, 3, 0]]), torch.tensor([0, 1, 0, 1])
    >>> load_object(Data(x=torch.eye(4), edge_index=arcs, y=labels))
    Dataset('data', num_nodes=4, num_edges=4, num_features=4, num_classes=2)
    """
    from tadropedge.files.saved import contents_of

    graph, name = _one_graph(data)
    contents = contents_of(graph.to_dict(), ReadOptions(column=column), name)
    return dataset_of(contents, name, normalize=normalize, seed=seed)


def dataset_of(contents: FileContents, name: str, *, normalize: bool = False, seed: int = 0) -> Dataset:
    """The dataset of what was read."""
    file = contents.file
    if contents.features is None and contents.labels is None:
        raise TadropedgeError(f"{file} holds only a graph: a table of features and labels is named by nodes=FILE")
    if contents.features is None:
        raise TadropedgeError(f"{file} has no features: expected them as 'x'")
    try:
        features = feature_tensor(contents.features)
        labels = np.full(len(features), -1) if contents.labels is None else contents.labels
        num_nodes = features.shape[0] if contents.num_nodes is None else contents.num_nodes
        graph = replace(contents, num_nodes=num_nodes).to_graph()
        return Dataset(
            name,
            graph,
            row_normalize(features) if normalize else features,
            torch.from_numpy(np.array(labels, dtype=np.int64)),
            splits=PerClass(seed=seed),
            given={} if contents.labels is None else given_splits(contents.splits, num_nodes),
            class_names=contents.class_names,
            column=None if contents.column is None else graph.to_pairs(contents.column, "column"),
            read=contents.read,
        )
    except TadropedgeError as error:  # say which file it was
        said = str(error) if file in str(error) else f"{file}: {error}"
        raise type(error)(said, argument=error.argument) from error


def given_splits(parts: Mapping[str, Any], num_nodes: int) -> dict[str, Given]:
    """The splits ``own`` of the data: index lists or masks for train, val and test, of one split or of several.

    >>> own = given_splits({"train": [[0, 1], [2, 3]], "val": [4], "test": [5]}, num_nodes=6)["own"]
    >>> [split.train.tolist() for split in own.splits]
    [[0, 2], [1, 3]]
    """
    if not set(PARTS) <= set(parts):
        return {}
    listed = {name: _parts_of_splits(name, parts[name], num_nodes) for name in PARTS}
    counts = {name: len(each) for name, each in listed.items()}
    most = max(counts.values())
    if set(counts.values()) - {1, most}:
        told = ", ".join(f"{name} of {count}" for name, count in counts.items())
        raise TadropedgeError(f"train, val and test must be of the same number of splits, got {told}")
    splits = (Split(*(each[number % len(each)] for each in listed.values())) for number in range(most))
    return {"own": Given(tuple(splits))}


def _parts_of_splits(name: str, part: Any, num_nodes: int) -> list[Tensor]:
    """The nodes of one part in each split: columns of numbers ``[n, K]``, or of masks ``[N, K]`` or ``[K, N]``."""
    table = torch.as_tensor(np.asarray(part))
    if table.is_floating_point() or table.is_complex() or table.dim() not in (1, 2) or not table.numel():
        got = f"{table.dtype} of shape {list(table.shape)}"
        raise TadropedgeError(f"{name} must be node numbers or a mask, got {got}")
    columns = table[:, None] if table.dim() == 1 else table
    if table.dtype != torch.bool:
        return list(columns.long().unbind(dim=1))
    columns = columns if columns.shape[0] == num_nodes else columns.T
    if columns.shape[0] != num_nodes:
        shape = list(table.shape)
        raise TadropedgeError(f"{name} is a mask of shape {shape}: expected [{num_nodes}], or [{num_nodes}, K]")
    return [mask.nonzero()[:, 0] for mask in columns.unbind(dim=1)]


def _one_graph(data: Any) -> tuple[Any, str]:
    """The one ``Data`` of an object, and what to call it."""
    from torch_geometric.data import Batch, Data
    from torch_geometric.data import Dataset as Graphs

    expected, name = "expected a name, a path, a Data of one graph or a PyG dataset of one graph", "data"
    if isinstance(data, Graphs):
        told = getattr(data, "name", None)
        name = told.lower() if isinstance(told, str) and told else type(data).__name__.lower()
        if len(data) != 1:
            raise TadropedgeError(f"{expected}, got {len(data)} graphs: pass one of them, such as dataset[0]")
        data = data[0]
    if isinstance(data, Batch) and data.num_graphs != 1:
        raise TadropedgeError(f"{expected}, got a Batch of {data.num_graphs} graphs")
    if not isinstance(data, Data):
        raise TadropedgeError(f"{expected}, got {show(data)}", argument="data")
    return data, name
