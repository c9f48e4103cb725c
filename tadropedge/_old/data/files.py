"""A user's own data, from a file of any format that :mod:`tadropedge._old.files` reads, as a dataset.

``docs/formats.md`` describes every layout, field by field. A file that holds only a graph needs a table of its nodes
beside it: see :mod:`tadropedge._old.data.tables`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from tadropedge._old.arrays import plain_array, whole_numbers
from tadropedge._old.checks import check_flag, check_integer, check_path, check_text
from tadropedge._old.data.dataset import Dataset
from tadropedge._old.data.features import as_float32, csr_tensor, row_normalized
from tadropedge._old.data.splits import (
    Drawn,
    Given,
    OfSizes,
    PerClass,
    Split,
    check_per_class,
    full_way,
    num_classes,
    split_seeds,
    way_of,
)
from tadropedge._old.data.tables import read_table
from tadropedge._old.errors import TadropedgeError, lookup
from tadropedge._old.files import Asked, Held, format_of
from tadropedge._old.files.saved import held_data
from tadropedge._old.graph import Graph, graph_of
from tadropedge._old.scores.column import held_column

NUM_VAL, NUM_TEST = 500, 1000  # of a random split, where there are enough nodes
NEEDS_NODES = "{} needs a table of features and labels: nodes='nodes.csv'"


@dataclass(frozen=True, kw_only=True)
class Contents:
    """A graph, features ``[N, F]``, labels ``[N]``; ``splits`` and ``class_names`` where the file has them."""

    graph: Graph
    features: Tensor
    labels: Tensor
    splits: tuple[Split, ...] = ()
    class_names: tuple[str, ...] | None = None
    score_column: Tensor | None = None


def load_file(
    path: str | Path,
    *,
    nodes: str | Path | None = None,
    header: bool | None = None,
    split: str | None = None,
    per_class: int | str = 20,
    seed: int = 0,
    normalize: bool = False,
    score_column: str | None = None,
) -> Dataset:
    """Load a user's own node-level data from a file of any format; ``nodes`` is a table beside a graph without any.

    ``split``: ``"file"``, the file's own, or the first of them; ``"random"``, ``per_class`` labels per class, and of
    the rest a third, at most 500, to choose and at most 1000 to judge, drawn from ``seed``; ``None`` for the first
    where there is one, else the second. With ``per_class="full"`` 60 % of the labelled nodes train, 20 % choose and
    20 % judge. ``normalize`` divides each row of features by its sum. ``header`` says whether
    ``nodes`` has one. ``score_column`` names what becomes the score ``column``: a column of an edge list, by the name
    in its header or by its number from 3 on, an array of an ``.npz`` file or an edge attribute of a ``Data``, each with
    one number per listed edge, of which the mean counts where an edge is listed several times.
    """
    path = check_path("path", path)
    nodes = None if nodes is None else check_path("nodes", nodes)
    header = None if header is None else check_flag("header", header)
    seed, per_class = check_integer("seed", seed, least=0), check_per_class(per_class)
    normalize = check_flag("normalize", normalize)
    score_column = None if score_column is None else check_text("score_column", score_column)
    if split is not None:
        lookup("split", split, {"file": None, "random": None})
    try:
        contents = read_contents(path, nodes, header, score_column, masks=split != "random")
        if normalize:
            contents = replace(contents, features=row_normalized(contents.features))
        return made_dataset(contents, path.name.partition(".")[0], split, per_class, seed)
    except TadropedgeError as error:  # say which file it was, unless that is said
        text = str(error)
        named = any(Path(file).name in text for file in (path, nodes) if file is not None)
        raise TadropedgeError(text if named else f"{path.name}: {text}") from error


def made_dataset(contents: Contents, name: str, split: str | None, per_class: int | str, seed: int) -> Dataset:
    """The dataset of what was read, with its own split or a random one as :func:`load_file` says."""
    own, drawn = _split(contents, split, per_class, seed)
    dataset = Dataset(
        name=name,
        graph=contents.graph,
        features=contents.features,
        labels=contents.labels,
        num_classes=num_classes(contents.labels),
        level="node",
        split=own,
        drawn=drawn,
        class_names=contents.class_names,
        score_column=contents.score_column,
    )
    return dataset if drawn is not None else replace(dataset, drawn=way_of(own, dataset.labels, seed=seed))


def read_contents(
    path: Path,
    nodes: str | Path | None = None,
    header: bool | None = None,
    column: str | None = None,
    *,
    masks: bool = True,
) -> Contents:
    """What a file holds, without a split where it has none or ``masks`` are not asked for; ``column`` is a score."""
    kind = format_of(path)
    if nodes is None:
        held = kind.read(path, Asked(column=column, whole=True, masks=masks))
        if held.features is None and held.labels is None and not held.lacking:
            raise TadropedgeError(f"{path.name}: {NEEDS_NODES.format(kind.name)}")
        return contents_of(held, path.name, column)
    if not kind.nodes:
        raise TadropedgeError(f"nodes belongs to a graph without features, and {path.name} is {kind.name}")
    graph, table, score = read_table(path, Path(nodes), header, column)
    features, labels = torch.from_numpy(table.features), torch.from_numpy(table.labels)
    return Contents(graph=graph, features=features, labels=labels, class_names=table.class_names, score_column=score)


def contents_of(held: Held, file: str, column: str | None = None) -> Contents:
    """The graph, features, labels and splits that ``file`` holds; ``column`` is the one that was asked for."""
    if held.features is None:
        raise TadropedgeError(held.lacking["features"])
    features = feature_tensor(held.features)
    if held.labels is None:
        raise TadropedgeError(held.lacking["labels"])
    labels, nodes = whole_numbers(held.labels, "y"), features.shape[0]
    graph = graph_of(replace(held, num_nodes=nodes if held.num_nodes is None else held.num_nodes), file)
    return Contents(
        graph=graph,
        features=features,
        labels=torch.from_numpy(labels.copy()),
        splits=own_splits(held.parts, nodes),
        class_names=held.class_names,
        score_column=None if column is None else held_column(held, graph, column, file),
    )


def feature_tensor(features: Any) -> Tensor:
    """Features as float32, dense or CSR as they are in the file."""
    return torch.from_numpy(as_float32(features, "x")) if isinstance(features, np.ndarray) else csr_tensor(features)


def data_contents(
    values: Mapping[str, Any], column: str | None = None, file: str = "the Data", *, masks: bool = True
) -> Contents:
    """What the attributes of a ``Data`` hold; its tensors lie on the CPU. ``column`` names one that is a score."""
    held = held_data(values, Asked(column=column, whole=True, masks=masks), file)
    return contents_of(held, file, column)


def _split(contents: Contents, split: str | None, per_class: int | str, seed: int) -> tuple[Split, Drawn | None]:
    """The dataset's own split, and how others are drawn; ``None``: as it shows."""
    if contents.splits and split != "random":
        return contents.splits[0], Given(contents.splits) if len(contents.splits) > 1 else None
    if split == "file":
        raise TadropedgeError("the file has no split: expected train, val and test")
    drawn: PerClass | OfSizes
    if isinstance(per_class, str):
        drawn = full_way(contents.labels, seed=seed)
    else:
        drawn = balanced_way(contents.labels, per_class, seed=seed)
    return drawn.split(contents.labels, split_seeds(seed)[0]), drawn


def balanced_way(labels: Tensor, per_class: int, *, seed: int = 0) -> PerClass:
    """``per_class`` labels of each class, and of the rest a third, at most 500, to choose and at most 1000 to judge.

    >>> balanced_way(torch.arange(34) % 4, 5)
    PerClass(per_class=5, num_val=4, num_test=10, seed=0)
    """
    labelled = labels[labels >= 0]
    rest = labelled.numel() - per_class * labelled.unique().numel()
    num_val = min(NUM_VAL, max(1, rest // 3))
    return PerClass(per_class, num_val, min(NUM_TEST, max(1, rest - num_val)), seed=seed)


def own_splits(parts: Mapping[str, Any], num_nodes: int) -> tuple[Split, ...]:
    """The file's own splits: index lists or masks for train, val and test in this order, or ``None`` thrice.

    >>> [split.train.tolist() for split in own_splits({"train": [[0, 1], [2, 3]], "val": [4], "test": [5]}, 6)]
    [[0, 2], [1, 3]]
    >>> own_splits({"train": [0, 1], "val": [2], "test": None}, num_nodes=4)
    Traceback (most recent call last):
    tadropedge._old.errors.TadropedgeError: the split is not whole: there is no test (split='random' draws one)
    """
    absent = [name for name, part in parts.items() if part is None]
    if len(absent) == len(parts):
        return ()
    if absent:
        lacking = " and no ".join(absent)
        raise TadropedgeError(f"the split is not whole: there is no {lacking} (split='random' draws one)")
    columns = {name: _columns(name, part, num_nodes) for name, part in parts.items()}
    counts = {name: len(listed) for name, listed in columns.items()}
    count = max(counts.values())
    if set(counts.values()) - {1, count}:
        told = ", ".join(f"{name} of {number}" for name, number in counts.items())
        raise TadropedgeError(f"train, val and test must be of the same number of splits, got {told}")
    return tuple(Split(*(listed[place % len(listed)] for listed in columns.values())) for place in range(count))


def _columns(name: str, part: Any, num_nodes: int) -> list[Tensor]:
    """The indices of one part in each split: columns of indices ``[n, K]``, or masks ``[N, K]`` or ``[K, N]``."""
    table = _table(name, part)
    if table.dtype != torch.bool:
        if table.dim() != 2 or not table.shape[1]:
            return [table.long()]  # a Split refuses what is no list of indices
        return list(table.long().unbind(dim=1))
    masks = table[:, None] if table.dim() == 1 else table
    if masks.dim() == 2 and masks.shape[0] != num_nodes:
        masks = masks.T
    if masks.dim() != 2 or masks.shape[0] != num_nodes or not masks.shape[1]:
        raise TadropedgeError(
            f"{name} is a mask of shape {list(table.shape)}: expected [{num_nodes}], or [{num_nodes}, K] for K splits"
        )
    return [mask.nonzero()[:, 0] for mask in masks.unbind(dim=1)]


def _table(name: str, part: Any) -> Tensor:
    try:
        table = part if isinstance(part, Tensor) else torch.as_tensor(plain_array(part, name))
    except TadropedgeError:
        raise
    except (TypeError, ValueError, RuntimeError) as error:
        raise TadropedgeError(f"{name} must be node indices or a mask, got {type(part).__name__}") from error
    if table.is_floating_point() or table.is_complex():
        raise TadropedgeError(f"{name} must be node indices or a mask, got {table.dtype}")
    return table
