"""Whatever holds one graph with features and labels, as a dataset: a name, a path, a ``Data``, a PyG dataset.

A ``Data`` has ``x``, ``y``, ``edge_index``, and optional ``edge_weight`` and masks, as in :mod:`tadropedge._old.data.files`.
Without masks, or with ``split="random"``, a split is drawn as there: ``per_class`` labels of each class, and of the
rest a third, at most 500, to choose and at most 1000 to judge; with ``per_class="full"`` 60, 20 and 20 % of them all.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import Any

from torch import Tensor

from tadropedge._old.checks import check_seed, check_text
from tadropedge._old.data.dataset import Dataset
from tadropedge._old.data.files import Contents, data_contents, made_dataset
from tadropedge._old.data.splits import check_per_class
from tadropedge._old.errors import TadropedgeError, lookup, show

EXPECTED = "a Data of one graph, a PyG dataset of one graph, a Dataset of tadropedge, a path or a name"
TAKEN = ("split", "per_class", "split_sizes", "score_column")
PER_CLASS = 20  # labels of a random split


def object_dataset(
    data: object,
    *,
    split: str | None = None,
    per_class: int | str | None = None,
    seed: int = 0,
    score_column: str | None = None,
    **options: Any,
) -> Dataset:
    """A dataset from an object that holds one graph; names and paths are for ``load_dataset``.

    ``split``, ``per_class`` and ``score_column``, here an edge attribute of a ``Data``, are as in ``load_file``, and
    tensors may lie on any device. A ``Data`` stays as it is.

    >>> import torch
    >>> from torch_geometric.data import Data
    >>> arcs, labels = torch.tensor([[0, 1, 2, 3], [1, 2, 3, 0]]), torch.tensor([0, 1, 0, 1])
    >>> object_dataset(Data(x=torch.eye(4), edge_index=arcs, y=labels), per_class=1)
    Dataset('data', num_nodes=4, num_edges=4, num_features=4, num_classes=2, level='node', split=(2, 1, 1))
    """
    for name in options:
        lookup(f"option of a {type(data).__name__}", name, dict.fromkeys(TAKEN))
    if split is not None:
        lookup("split", split, {"file": None, "random": None})
    if per_class is not None:
        per_class = check_per_class(per_class)
        if split == "file":
            raise TadropedgeError("per_class belongs to split='random', got per_class and split='file'")
    way, count = "random" if per_class is not None else split, PER_CLASS if per_class is None else per_class
    seed = check_seed(seed)
    if score_column is not None:
        check_text("score_column", score_column)
        if isinstance(data, Dataset):
            raise TadropedgeError("a Dataset has its score_column as a tensor [M]: give it that when it is made")
    if isinstance(data, Dataset):
        return data if way != "random" else _drawn_anew(data, count, seed)
    graph, name = _one_graph(data)
    values = {key: _plain(value) for key, value in graph.to_dict().items()}
    try:
        contents = data_contents(values, score_column, name, masks=way != "random")
        return made_dataset(contents, name, way, count, seed)
    except TadropedgeError as error:
        text = str(error)
        raise TadropedgeError(text if text.startswith(name) else f"{name}: {text}") from error


def _drawn_anew(dataset: Dataset, per_class: int | str, seed: int) -> Dataset:
    if dataset.level != "node":
        raise TadropedgeError(
            f"a random split is for node-level data, and {dataset.name} is a {dataset.level}-level task"
        )
    held = dataset.to("cpu")
    contents = Contents(graph=held.graph, features=held.features, labels=held.labels)
    made = made_dataset(contents, dataset.name, "random", per_class, seed)
    return replace(held, split=made.split, drawn=made.drawn).to(dataset.device)


def _one_graph(data: object) -> tuple[Any, str]:
    """The one ``Data`` of an object, and what to call it."""
    pyg = sys.modules.get("torch_geometric.data")  # who holds a Data has imported it
    if pyg is None:
        raise TadropedgeError(f"data must be {EXPECTED}, got {show(data)}")
    name = "data"
    if isinstance(data, pyg.Dataset):
        told = getattr(data, "name", None)
        name = told if isinstance(told, str) and told else type(data).__name__
        if len(data) != 1:
            raise TadropedgeError(
                f"data must be {EXPECTED}, got {name} of {len(data)} graphs: pass one of them, such as dataset[0]"
            )
        data = data[0]
    if isinstance(data, pyg.Batch) and data.num_graphs != 1:
        raise TadropedgeError(f"data must be {EXPECTED}, got a Batch of {data.num_graphs} graphs")
    if not isinstance(data, pyg.Data):
        raise TadropedgeError(f"data must be {EXPECTED}, got {show(data)}")
    return data, name


def _plain(value: object) -> object:
    return value.detach().cpu() if isinstance(value, Tensor) else value
