"""What a user's own file holds, whatever its format."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from tadropedge.data.splits import Split
from tadropedge.errors import TadropedgeError
from tadropedge.graph import Graph


@dataclass(frozen=True)
class Contents:
    """A graph, features ``[N, F]``, labels ``[N]``; ``split`` and ``class_names`` where the file has them."""

    graph: Graph
    features: Tensor
    labels: Tensor
    split: Split | None = None
    class_names: tuple[str, ...] | None = None


def own_split(parts: Mapping[str, Any], num_nodes: int) -> Split | None:
    """The file's own split: index lists or masks ``[N]`` for train, val and test in this order, or ``None`` thrice.

    >>> own_split({"train": [True, False, True, False], "val": [1], "test": [3]}, num_nodes=4).train.tolist()
    [0, 2]
    >>> own_split({"train": [0, 1], "val": [2], "test": None}, num_nodes=4)
    Traceback (most recent call last):
    tadropedge.errors.TadropedgeError: the split is not whole: there is no test
    """
    absent = [name for name, part in parts.items() if part is None]
    if len(absent) == len(parts):
        return None
    if absent:
        raise TadropedgeError(f"the split is not whole: there is no {' and no '.join(absent)}")
    return Split(*(_indices(name, part, num_nodes) for name, part in parts.items()))


def _indices(name: str, part: Any, num_nodes: int) -> Tensor:
    try:
        indices = torch.as_tensor(part)
    except (TypeError, ValueError, RuntimeError) as error:
        raise TadropedgeError(f"{name} must be node indices or a mask, got {type(part).__name__}") from error
    if indices.is_floating_point() or indices.is_complex():
        raise TadropedgeError(f"{name} must be node indices or a mask, got {indices.dtype}")
    if indices.dtype != torch.bool:
        return indices.long()
    if list(indices.shape) != [num_nodes]:
        raise TadropedgeError(f"{name} is a mask of shape {list(indices.shape)}: expected [{num_nodes}]")
    return indices.nonzero()[:, 0]
