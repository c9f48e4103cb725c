"""What is learned, the parts of its splits, and the loss."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from tadropedge.graph import Graph
from tadropedge.nn.layers import Features, Sparse

TRAIN, VAL, TEST = range(3)  # the parts of a split


@dataclass(frozen=True, eq=False)
class Task:
    """What is learned: the graph, the features, the labels and the splits.

    Node level: features dense ``[N, F]`` or sparse, labels ``[N]``. Graph level: features ``[S, N, F]``, labels
    ``[S]``. ``splits`` are triples of index tensors (train, validation, test); a trial names its own by number.
    ``weights`` holds the edge weights that the methods need, "aggregate" and "effective", each ``[M]``.
    """

    graph: Graph
    features: Tensor | Sparse
    num_features: int
    labels: Tensor
    num_classes: int
    splits: Sequence[tuple[Tensor, Tensor, Tensor]]
    weights: dict[str, Tensor]


@dataclass(frozen=True, eq=False)
class Pass:
    """What one forward pass computes, and the ones ``[T, N]`` at the nodes or samples of each part of a split."""

    features: Features
    labels: Tensor
    masks: Sequence[Tensor]

    def mean(self, values: Tensor, part: int) -> Tensor:
        """The mean of ``values [T, N]`` over a trial's own nodes or samples of one part, ``[T]``."""
        mask = self.masks[part]
        return (values * mask).sum(dim=1) / mask.sum(dim=1).clamp_min(1)  # a count over a count: accuracies are exact


def split_masks(task: Task, split_places: Sequence[int]) -> list[Tensor]:
    """For train, validation and test: ones ``[T, N]`` at the nodes or samples of each trial's split."""
    masks = []
    device = task.labels.device
    for part in range(3):
        rows = []
        for place in split_places:
            index = task.splits[place][part].to(device)
            rows.append(torch.zeros(task.labels.shape[0], device=device).index_fill_(0, index, 1.0))
        masks.append(torch.stack(rows))
    return masks


def cross_entropy(logits: Tensor, labels: Tensor) -> Tensor:
    """The loss of every node or sample in every trial, ``[T, N]``; where there is no label it is never looked at."""
    index = labels.clamp_min(0).expand(logits.shape[0], -1)
    return -logits.log_softmax(dim=-1).gather(-1, index[..., None])[..., 0]
