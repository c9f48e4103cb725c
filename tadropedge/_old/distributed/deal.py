"""The first process reads the data, scores, partitions and deals out: the others never hold more than their part.

What is dealt: the part of the graph, the features, labels and split of its own nodes, and the keep probabilities of its
pairs. Masks are never sent: each process tosses the coins of its pairs itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from tadropedge._old.distributed.batch import SpreadTask
from tadropedge._old.distributed.group import Group
from tadropedge._old.distributed.part import SpreadPart
from tadropedge._old.sparse import Csr
from tadropedge._old.training.task import Task


@dataclass(frozen=True, kw_only=True, eq=False)
class WholeTask:
    """What the first process deals out: a task with one split, probabilities ``rows [L, T, M]``, and ``owner [N]``."""

    task: Task
    rows: Tensor | None
    shares: Sequence[float]
    owner: Tensor


def deal(group: Group, whole: WholeTask | None) -> SpreadTask:
    """The task of this process; ``whole`` is there in the first one alone."""
    shares, num_classes, width = group.from_first(
        None if whole is None else (list(whole.shares), whole.task.num_classes, whole.task.features.shape[-1])
    )
    if whole is None:
        return _task(group, group.dealt(), shares, num_classes, width)
    for rank in range(1, group.size):
        group.deal(_share(whole, rank, group.size), rank)
    return _task(group, _share(whole, 0, group.size), shares, num_classes, width)


def _share(whole: WholeTask, rank: int, size: int) -> dict[str, Tensor]:
    """Everything that one process needs, by name."""
    task = whole.task
    part = SpreadPart.of(task.graph, whole.owner, rank, size)
    mine = part.nodes[part.own]
    held = {**part.tensors(), "labels": task.labels[mine]}
    held |= {f"features.{name}": value for name, value in _rows_of(task.features, mine).items()}
    place = torch.full((part.num_nodes,), -1)
    place[mine] = torch.arange(len(mine))
    for number, nodes in enumerate(task.splits[0]):
        here = place[nodes]
        held[f"split.{number}"] = here[here >= 0]
    if whole.rows is not None:
        held["rows"] = whole.rows[..., part.numbers]
    return held


def _task(group: Group, held: dict[str, Tensor], shares: Sequence[float], num_classes: int, width: int) -> SpreadTask:
    """The task of what was dealt, on the device of this process."""
    part = SpreadPart.made(held, group.device)
    here = {name: value.to(group.device) for name, value in held.items()}
    train, val, test = (here[f"split.{number}"] for number in range(3))
    return SpreadTask(
        graph=part.graph,
        features=_features({name: here[name] for name in here if name.startswith("features.")}, width),
        labels=here["labels"],
        num_classes=num_classes,
        splits=[(train, val, test)],
        scores={},
        part=part,
        group=group,
        rows=here.get("rows"),
        shares=shares,
    )


def _rows_of(features: Tensor, rows: Tensor) -> dict[str, Tensor]:
    """Some rows of dense or CSR features, as dense tensors by name."""
    if features.layout is not torch.sparse_csr:
        return {"dense": features[rows]}
    crow, col, values = features.crow_indices(), features.col_indices(), features.values()
    counts = crow.diff()[rows]
    ends = counts.cumsum(0)
    entries = torch.arange(int(counts.sum())) + (crow[rows] - ends + counts).repeat_interleave(counts)
    return {"crow": torch.nn.functional.pad(ends, (1, 0)), "col": col[entries], "values": values[entries]}


def _features(parts: dict[str, Tensor], width: int) -> Tensor:
    if "features.dense" in parts:
        return parts["features.dense"]
    crow, col, values = (parts[f"features.{name}"] for name in ("crow", "col", "values"))
    places = Csr(crow, col, width)
    return torch.sparse_csr_tensor(places.crow, places.col, values, (places.num_rows, width), check_invariants=False)
