"""What the baselines have in common: what they are given, how they start, the training pass and the evaluation pass."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import torch
from torch import Tensor

from tadropedge.graph import Graph
from tadropedge.nn.baselines.draws import Draws
from tadropedge.nn.baselines.entries import Entries
from tadropedge.nn.finish import Noise
from tadropedge.nn.layers import Parameters, Sparse
from tadropedge.shift import shift_operator
from tadropedge.sparse import sparse_product

Value = int | float | bool


@dataclass(frozen=True, eq=False)
class Problem:
    """A graph with features, the number of classes, and the settings that each trial has, ``[T]`` each.

    ``features`` are dense ``[N, F]`` or sparse. ``hidden`` is a width that all trials share.
    """

    graph: Graph
    features: Tensor | Sparse
    num_features: int
    num_classes: int
    hidden: int
    settings: dict[str, Tensor]

    @cached_property
    def entries(self) -> Entries:
        """The entries of the pattern."""
        return Entries(self.graph)

    @cached_property
    def _turned_values(self) -> Tensor | None:
        features = self.features
        return features.values[features.places.turned[1]] if isinstance(features, Sparse) else None

    def times(self, weight: Tensor) -> Tensor:
        """``X W``, ``[T, N, K]``, for weights ``[T, F, K]``."""
        if isinstance(self.features, Sparse):
            places, values = self.features.places, self.features.values
            return sparse_product(places, values, weight, turned_values=self._turned_values)
        return torch.bmm(self.features.expand(len(weight), -1, -1), weight)

    def shift(self, keep: Tensor | None) -> Sparse:
        """``Â = D̃^-1/2 (A + I) D̃^-1/2`` of the edges in the mask ``keep [T, M]``, or of all."""
        if keep is None:
            return self._whole
        return Sparse(self.graph.pattern.places, shift_operator(self.graph, keep).values, symmetric=True)

    @cached_property
    def _whole(self) -> Sparse:
        return Sparse(self.graph.pattern.places, shift_operator(self.graph).values, symmetric=True)


@dataclass(frozen=True, eq=False)
class Step:
    """What one training step is given.

    * ``nodes [T, N]``: ones at the nodes whose loss is looked at, a mini-batch or all of the training nodes.
    * ``keeps``: masks ``[T, M]`` of the edges that exist in this step, one for all layers or one each; None: all.
    * ``draws``, ``noise``: random numbers and dropout of this step. ``epoch`` counts from 0.
    """

    nodes: Tensor
    keeps: Sequence[Tensor | None]
    draws: Draws
    noise: Noise
    epoch: Tensor

    def keep(self, layer: int) -> Tensor | None:
        """The edges that exist in this layer."""
        return self.keeps[layer if len(self.keeps) > 1 else 0]


class Network:
    """A method of node classification with two layers, on parameters ``[T, ...]``.

    ``defaults`` are the settings of its public code. ``batched`` says that it learns from mini-batches of
    ``batch_size`` training nodes, and that it can learn on a graph whose edges are dropped or left out.
    ``entry_width(hidden)`` is about how many numbers an entry of the pattern takes in a training pass.
    """

    defaults: ClassVar[dict[str, Value]]
    batched: ClassVar[bool] = False

    def __init__(self, problem: Problem) -> None:
        self.problem = problem

    @staticmethod
    def entry_width(hidden: int) -> int:
        """How many numbers an entry of the pattern takes."""
        return 1

    @staticmethod
    def shapes(inputs: int, hidden: int, classes: int) -> dict[str, tuple[int, ...]]:
        """The shape of every trained parameter, without the trials axis."""
        raise NotImplementedError

    def training(self, parameters: Parameters, step: Step) -> tuple[Tensor, Tensor]:
        """Logits ``[T, N, C]`` that are right at ``step.nodes``, and what is added to the loss ``[T]``."""
        raise NotImplementedError

    def evaluation(self, parameters: Parameters, epoch: Tensor) -> Tensor:
        """Logits ``[T, N, C]`` on the whole graph: nothing is sampled, nothing is noisy."""
        raise NotImplementedError

    def initial(self, seeds: Sequence[int], device: torch.device) -> Parameters:
        """The starting parameters ``[T, ...]``, each trial a pure function of its seed: Glorot, and biases 0."""
        problem, drawn = self.problem, dict[str, list[Tensor]]()
        shapes = self.shapes(problem.num_features, problem.hidden, problem.num_classes)
        for seed in seeds:
            generator = torch.Generator().manual_seed(seed % 2**63)
            for key, shape in shapes.items():
                limit = math.sqrt(6 / sum(shape)) if len(shape) > 1 else 0.0
                drawn.setdefault(key, []).append((torch.rand(shape, generator=generator) * 2 - 1) * limit)
        return {key: torch.stack(values).to(device) for key, values in drawn.items()}

    @property
    def no_penalty(self) -> Tensor:
        """Zeros ``[T]``."""
        return torch.zeros(len(next(iter(self.problem.settings.values()))), device=self.problem.graph.device)

    def largest(self, name: str) -> int:
        """The largest value that a setting has in any trial; read once, when the network is made."""
        return int(self.problem.settings[name].max())
