"""What is learned, what a pass over it computes, and the loss."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from tadropedge._old.graph import Graph
from tadropedge._old.nn.layers import Features
from tadropedge._old.nn.network import Network, Problem
from tadropedge._old.sparse import KeptProducts
from tadropedge._old.training.config import Architecture, Trial

TRAIN, VAL, TEST = range(3)  # the parts of a split


@dataclass(frozen=True, kw_only=True, eq=False)
class Task:
    """What is learned: the graph, the features, the labels and the splits.

    Node level: features dense or CSR ``[N, F]``, labels ``[N]``. Graph level: features ``[S, N, F]``, labels ``[S]``.
    ``splits`` are triples of index tensors (train, validation, test); a trial names its own by number. ``scores`` holds
    the edge scores that the methods need, by name, each ``[M]``.
    """

    graph: Graph
    features: Tensor
    labels: Tensor
    num_classes: int
    splits: Sequence[tuple[Tensor, Tensor, Tensor]] = ()
    scores: Mapping[str, Tensor]

    def network(self, architecture: Architecture, trials: Sequence[Trial]) -> Network:
        """The network of trials that share its structure."""
        _, network = architecture.network(trials[0].method)
        settings = [architecture.settings_of(trial) for trial in trials]
        counts = (self.graph.num_nodes, self.features.shape[-1], self.num_classes)
        sizes = architecture.sizes(settings[0], *counts)
        return network(
            Problem(graph=self.graph, sizes=sizes, settings=settings, dropout=[trial.dropout for trial in trials])
        )

    def inputs(self) -> Features:
        """The features as a network multiplies them; the signals of a graph-level task as they are."""
        return self.features if self.features.dim() == 3 else KeptProducts.of(self.features)


@dataclass(frozen=True, eq=False)
class Pass:
    """What one forward pass computes, and the ones ``[T, N]`` at the nodes or samples of each part of a split."""

    x: Features
    labels: Tensor
    masks: Sequence[Tensor]

    def mean(self, values: Tensor, part: int) -> Tensor:
        """The mean of ``values [T, N]`` over a trial's own nodes or samples of one part, ``[T]``."""
        return mean_at(values, self.masks[part])

    def scored(self, measure: Callable[[Tensor, Tensor, Tensor], Tensor], logits: Tensor, part: int) -> Tensor:
        """What a measure says of ``logits [T, N, C]`` on one part, ``[T]``."""
        return measure(logits, self.labels, self.masks[part])


def mean_at(values: Tensor, mask: Tensor) -> Tensor:
    """The mean of ``values [T, N]`` where ``mask [T, N]`` is 1, ``[T]``: a count over a count, so accuracies are exact.

    Elsewhere the values may be anything, even without bounds: they are left out, not multiplied by 0.
    """
    return torch.where(mask > 0, values, 0.0).sum(dim=1) / mask.sum(dim=1).clamp_min(1)


def passes(task: Task, split_places: Sequence[int], selection: str) -> tuple[Pass, Pass]:
    """What the training pass and the evaluation pass compute.

    Samples of a graph-level task are independent: there a pass computes only those it needs, separately
    for each trial, so that no trial's noise depends on the splits of the others.
    """
    device = task.labels.device  # fresh splits are drawn on the CPU
    splits = [[part.to(device) for part in task.splits[place]] for place in split_places]
    masks = [_mask(task.labels, [split[part] for split in splits]) for part in (TRAIN, VAL, TEST)]
    x = task.inputs()
    if not isinstance(x, Tensor):
        whole = Pass(x, task.labels, masks)
        return whole, whole
    found = []
    for parts in ([TRAIN, VAL] if selection == "training" else [TRAIN], [VAL, TEST]):
        rows = torch.stack([torch.cat([split[part] for part in parts]) for split in splits])
        found.append(Pass(x[rows], task.labels[rows], [mask.gather(1, rows) for mask in masks]))
    return found[0], found[1]


def training_nodes(task: Task, split_places: Sequence[int]) -> Tensor:
    """Ones ``[T, N]`` at the training nodes or samples of each trial."""
    return _mask(task.labels, [task.splits[place][TRAIN].to(task.labels.device) for place in split_places])


def _mask(labels: Tensor, indices: Sequence[Tensor]) -> Tensor:
    """Ones ``[T, N]`` at the nodes or samples of each trial."""
    zeros = torch.zeros(labels.shape[0], device=labels.device)
    return torch.stack([zeros.index_fill(0, index, 1.0) for index in indices])


def cross_entropy(logits: Tensor, labels: Tensor) -> Tensor:
    """The loss of every node or sample in every trial, ``[T, N]``; where there is no label it is never used."""
    index = labels.clamp_min(0).expand(logits.shape[0], -1)
    return -logits.log_softmax(dim=-1).gather(-1, index[..., None])[..., 0]
