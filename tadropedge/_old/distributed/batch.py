"""The training loop of one process of several: that of one process, on the nodes and the rows that this one holds.

Coins, dropout and starts are pure functions of numbers in the whole graph, so that they are those of one process. Sums
over nodes (the loss, its gradients, what is evaluated) are sums over all processes, and every process takes the same
step.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from tadropedge._old.distributed.exchange import Exchange
from tadropedge._old.distributed.group import Group
from tadropedge._old.distributed.noise import SpreadDropout
from tadropedge._old.distributed.operators import SpreadProblem
from tadropedge._old.distributed.part import SpreadPart
from tadropedge._old.method import Method
from tadropedge._old.nn.network import Network
from tadropedge._old.sampling import number_words
from tadropedge._old.training.batch import Batch
from tadropedge._old.training.config import Architecture, Outcome, Trial
from tadropedge._old.training.edges import EdgeCoins, falls
from tadropedge._old.training.noise import Dropout
from tadropedge._old.training.task import TRAIN, Pass, Task, passes


@dataclass(frozen=True, kw_only=True, eq=False)
class SpreadTask(Task):
    """What this process learns from: the graph, features, labels and splits of its own part.

    ``rows [L, T, m]`` are the keep probabilities of its pairs, None where nothing is dropped, and ``shares`` the share
    of all edges that is kept on average.
    """

    part: SpreadPart
    group: Group
    rows: Tensor | None
    shares: Sequence[float]

    @cached_property
    def exchange(self) -> Exchange:
        """That of the part."""
        return Exchange(self.part, self.group)

    def network(self, architecture: Architecture, trials: Sequence[Trial]) -> Network:
        """The network of trials that share its structure, on own rows."""
        _, network = architecture.network(trials[0].method)
        settings = [architecture.settings_of(trial) for trial in trials]
        counts = (self.part.num_nodes, self.features.shape[-1], self.num_classes)
        sizes = architecture.sizes(settings[0], *counts)
        return network(
            SpreadProblem(
                graph=self.graph,
                sizes=sizes,
                settings=settings,
                dropout=[trial.dropout for trial in trials],
                part=self.part,
                exchange=self.exchange,
            )
        )


class SpreadCoins(EdgeCoins):
    """The coins of the pairs of a part, by their numbers in the whole graph."""

    def __init__(self, task: SpreadTask, trials: Sequence[Trial], seeds: Tensor, layers: int) -> None:
        self.seeds, self.layers, self.numbered = seeds, layers, False
        self.inside = self.forest = None
        self.fixed = False
        self.options = Method.of(trials[0].method).options
        self.falling = falls(trials[0])
        self.words = number_words(task.part.numbers)
        self.rows = task.rows
        self.prob = None if self.rows is None else self.rows[0]
        unbiased = self.rows is not None and "unbiased" in self.options
        self.inverse = 1 / self.rows.to(torch.float32) if unbiased and self.rows is not None else None
        self._shares = list(task.shares)

    @property
    def shares(self) -> list[float]:
        """Those of the whole graph, so that all processes decide alike."""
        return self._shares


@dataclass(frozen=True, eq=False)
class SpreadPass(Pass):
    """What one pass computes at the nodes of this process; means are over the nodes of all."""

    task: SpreadTask

    @cached_property
    def counts(self) -> list[Tensor]:
        """The nodes of each part of a split, ``[T]``, in all processes."""
        return list(self.task.group.all_sum_(torch.stack([mask.sum(dim=1) for mask in self.masks])).clamp_min(1))

    def mean(self, values: Tensor, part: int) -> Tensor:
        """The mean of ``values [T, n]`` over the nodes of one part of the split, ``[T]``."""
        total = torch.where(self.masks[part] > 0, values, 0.0).sum(dim=1)
        return self.task.group.all_sum_(total) / self.counts[part]

    def share(self, values: Tensor, part: int) -> Tensor:
        """What this process adds to that mean, with gradients."""
        return torch.where(self.masks[part] > 0, values, 0.0).sum(dim=1) / self.counts[part]

    def scored(self, measure: Callable[[Tensor, Tensor, Tensor], Tensor], logits: Tensor, part: int) -> Tensor:
        """A measure of all nodes together: their logits are gathered, in the order of the whole graph."""
        group = self.task.group
        counts, order, labels, masks = self._whole
        rows = group.gathered(logits.transpose(0, 1).contiguous(), counts)  # [N, T, C]
        found = torch.empty_like(rows).index_copy_(0, order, rows).transpose(0, 1).contiguous()
        return measure(found, labels, masks[part])

    @cached_property
    def _whole(self) -> tuple[list[int], Tensor, Tensor, list[Tensor]]:
        """How many nodes each process has, their numbers, and labels and masks of all; gathered once."""
        task, group = self.task, self.task.group
        counts = torch.zeros(group.size, dtype=torch.int64, device=self.labels.device)
        counts[group.rank] = len(self.labels)
        many: list[int] = group.all_sum_(counts).tolist()
        order = group.gathered(task.part.nodes[task.part.own], many)
        columns = [self.labels.to(torch.float64)[:, None], *(mask.t().to(torch.float64) for mask in self.masks)]
        rows = group.gathered(torch.cat(columns, dim=1), many)
        whole = torch.empty_like(rows).index_copy_(0, order, rows)
        masks = [mask.t().to(torch.float32).contiguous() for mask in whole[:, 1:].chunk(len(self.masks), dim=1)]
        return many, order, whole[:, 0].to(torch.int64), masks


class SpreadBatch(Batch):
    """Trials of one structure, of which this process trains on its part."""

    def __init__(self, task: SpreadTask, architecture: Architecture, trials: Sequence[Trial], course: object) -> None:
        self.group = task.group
        super().__init__(task, architecture, trials, [0] * len(trials), course)  # type: ignore[arg-type]

    def _passes(self, task: Task, split_places: Sequence[int]) -> tuple[Pass, Pass]:
        assert isinstance(task, SpreadTask)
        plain, _ = passes(task, split_places, self.course.selection)
        seen = SpreadPass(plain.x, plain.labels, plain.masks, task)
        _ = seen.counts  # all processes ask at once
        return seen, seen

    def _coins(self, task: Task, keys: Tensor) -> EdgeCoins:
        assert isinstance(task, SpreadTask)
        several = self.course.per_layer or "nested" in Method.of(self.trials[0].method).options
        return SpreadCoins(task, self.trials, keys, self.network.draws if several else 1)

    def _noise(self, task: Task, rates: Tensor, keys: Tensor) -> Dropout:
        assert isinstance(task, SpreadTask)
        whole = super()._noise(task, rates, keys)
        if task.group.size == 1:  # numbered as they are counted
            return whole
        part = task.part
        lengths = part.graph.pattern.crow.diff().to(torch.int64).index_select(0, part.own)
        starts = lengths.cumsum(0) - lengths
        within = torch.arange(int(lengths.sum()), device=part.device) - starts.repeat_interleave(lengths)
        return SpreadDropout(whole, part.nodes[part.own], part.first.repeat_interleave(lengths) + within)

    def _loss(self, losses: Tensor, nodes: Tensor) -> Tensor:
        assert isinstance(self.learning, SpreadPass)
        return self.learning.share(losses, TRAIN)

    def _gradients(self, loss: Tensor, penalty: Tensor | float) -> tuple[Sequence[Tensor], Tensor]:
        gradients, mine = super()._gradients(loss, penalty)
        flat = self.group.all_sum_(torch.cat([mine.detach(), *(each.flatten() for each in gradients)]))
        total, *whole = flat.split([len(mine), *(each.numel() for each in gradients)])
        return [each.view(like.shape) for each, like in zip(whole, gradients, strict=True)], total

    def run(self, progress: Callable[[int], None] | None = None) -> list[Outcome]:
        """Run the epochs that are left and read the outcomes; ``progress`` is called after each of them."""
        for epoch in range(int(self.epoch), self.course.epochs):
            self.run_epoch(self.course.evaluates(epoch))
            if progress is not None:
                progress(epoch + 1)
        return self.record.outcomes([epoch for epoch in range(self.course.epochs) if self.course.evaluates(epoch)])
