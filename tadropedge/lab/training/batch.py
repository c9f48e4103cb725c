"""What T trials of one structure are trained on: features, labels, parts of the split, and the steps of an epoch.

Which trials train together is decided in :mod:`tadropedge.lab.training.trainer`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from tadropedge.lab.networks.network import Network
from tadropedge.lab.networks.noise import Noise
from tadropedge.lab.networks.view import View
from tadropedge.lab.training.experiment import Experiment
from tadropedge.lab.training.objective import Consistency
from tadropedge.lab.training.trial import Trial
from tadropedge.operators.kernels.words import GOLDEN, MASK, mix_tensor, signed
from tadropedge.sampling.plan import Plan

FINISH = 5  # one epoch in so many is one of the last
FIXED = ("weighted", "pruned")  # uses in which nothing is random

Edges = tuple[Tensor | None, Tensor | None]  # kept and factor, as View takes them


@dataclass(frozen=True, eq=False)
class Step:
    """One step of the optimiser: what the network is given, and the nodes whose loss counts.

    ``passes`` are the features and the view of each draw of the step, one as a rule; ``labels`` are ``[n]``, ``nodes``
    a mask ``[T, n]``, and ``agree`` the rows on which the draws are asked to agree, if not on all.
    Of a mini-batch, ``share`` is this process's part of the nodes of the step, and ``part`` that of all training nodes.
    """

    passes: Sequence[tuple[Any, View]]
    labels: Tensor
    nodes: Tensor
    agree: Tensor | None = None
    share: float = 1.0
    part: float = 1.0

    @property
    def views(self) -> list[View]:
        """The view of each draw."""
        return [view for _, view in self.passes]


class Batch:
    """Trials that share their network and its structure, and what they are trained on.

    ``train``, ``val`` and ``test`` are masks ``[T, N]``, each trial by its own split; ``whole`` is the view of
    evaluation. ``epoch`` and ``step`` are tensors ``[]`` that count both from 0 and change in place. Without
    ``rungs`` no trial is stopped early.

    >>> from tadropedge.lab.candidate import Candidate
    >>> from tadropedge.lab.data.load import load
    >>> batch = Batch(Experiment(data=load("karate")), [Trial(candidate=Candidate.parse("dropedge@0.5"))])
    >>> step = next(batch.steps(epoch=0))
    >>> step.views[0].kept.shape, step.nodes.sum().item(), batch.evaluate(batch.network()).shape
    (torch.Size([1, 78]), 8.0, torch.Size([1, 34, 4]))
    """

    def __init__(self, experiment: Experiment, trials: Sequence[Trial], *, rungs: bool = True) -> None:
        self.experiment, self.trials = experiment, list(trials)
        data, first = experiment.local, trials[0].candidate
        self.training = experiment.training.shortened(first.epochs)
        self.rungs = self.training.rungs if rungs and self.training.mini_batch is None else ()
        self.x, self.labels = experiment.inputs, data.labels
        self.epoch, self.step = (torch.zeros((), dtype=torch.int64, device=data.device) for _ in range(2))
        splits = {number: data.split(number) for number in {trial.split for trial in trials}}
        self.train, self.val, self.test = (
            torch.stack([_mask(self.labels, getattr(splits[trial.split], part)) for trial in trials])
            for part in ("train", "val", "test")
        )
        agreed = [Consistency.of(trial.candidate.ways, trial.settings) for trial in trials]
        self.draws = 1 if agreed[0] is None else agreed[0].draws
        told = [(one.weight, one.temperature, one.balance) for one in agreed if one is not None]
        self.consistency = torch.tensor(told, device=data.device).T if told else None  # [3, T]
        epochs = self.training.epochs
        self.finish = epochs - epochs // FINISH if "finish" in first.ways else epochs  # the first of the last epochs
        self.seeds = torch.tensor([signed(trial.seed % 2**64) for trial in trials], device=data.device)
        fixed = first.dropping.rule is None or first.dropping.use in FIXED
        self.edges = Subgraphs([experiment.plan(one.candidate.dropping) for one in trials], self.seeds, fixed=fixed)
        self.noises = self._noises()
        self.whole = View(data.graph, *self.edges.evaluation, epoch=self.epoch)

    def network(self) -> Network:
        """A new network of these trials, each at the start that its seed decides."""
        return self.experiment.make_network(self.trials)

    def steps(self, epoch: int) -> Iterator[Step]:
        """The steps of an epoch: one, on the whole graph."""
        x = self.x if self.draws == 1 else self.x.shared()
        yield Step([(x, self.view(epoch, draw)) for draw in range(self.draws)], self.labels, self.train)

    def view(self, epoch: int, draw: int = 0) -> View:
        """What training sees of the whole graph in an epoch; several draws are independent.

        The last epochs of ``finish`` see the edges of evaluation.
        """
        edges = self.edges.evaluation if self.finishes(epoch) else self.edges.training(self.epoch, draw)
        return self.whole.of(*edges, noise=self.noises[draw], nodes=self.train)

    def finishes(self, epoch: int) -> bool:
        """Whether an epoch sees the edges of evaluation."""
        return epoch >= self.finish

    def summed(self, values: Sequence[Tensor]) -> Sequence[Tensor]:
        """The sums over the processes that share the steps; here there is one."""
        return values

    @torch.no_grad()
    def evaluate(self, network: Network) -> Tensor:
        """The logits of all nodes ``[T, N, C]``, without noise."""
        found = network(self.x, self.whole)
        logits: Tensor = found[0] if isinstance(found, tuple) else found
        return logits

    @property
    def recordable(self) -> bool:
        """Whether an epoch can be recorded as a CUDA graph."""
        return self.seeds.is_cuda and not self.edges.is_scheduled

    def kept_shares(self) -> list[float]:
        """The expected share of kept edges of each trial."""
        return [float(plan.prob.mean()) if plan.prob.numel() else 1.0 for plan in self.edges.plans]

    def take(self, places: Sequence[int]) -> None:
        """Go on with the trials at these places alone."""
        rows = list(places)
        self.trials = [self.trials[row] for row in rows]
        self.consistency = None if self.consistency is None else self.consistency[:, rows]
        self.train, self.val, self.test, self.seeds = (
            part[rows] for part in (self.train, self.val, self.test, self.seeds)
        )
        self.edges = self.edges.take(rows)
        self.noises = self._noises()
        self.whole = self.whole.of(*self.edges.evaluation)

    def column(self, name: str) -> Tensor:
        """A number of each trial, float32 ``[T]``."""
        values = [getattr(trial, name) for trial in self.trials]
        return torch.tensor(values, dtype=torch.float32, device=self.seeds.device)

    def _noises(self) -> list[Noise]:
        """The noise of each draw: that of the first is the one of a training with one draw."""
        rates = self.column("dropout")
        others = [mix_tensor(self.seeds + signed(draw * GOLDEN & MASK)) for draw in range(1, self.draws)]
        return [Noise(rates, seeds, self.step) for seeds in (self.seeds, *others)]


class Subgraphs:
    """The edges of T trials, whose ways of dropping have one use and the same options.

    ``plans`` are those of the trials, one and the same object for those that drop alike: where all do, they share one
    row of probabilities ``[M]``, else each has its own, ``[T, M]``. A mask is that of
    :meth:`tadropedge.sampling.plan.Plan.sample` with the trial's seed, whoever trains beside it.

    >>> from tadropedge import Dropping, Graph
    >>> square = Graph.from_edge_index([[0, 1, 2, 3], [1, 2, 3, 0]])
    >>> plans = [Dropping.parse(name).plan(square) for name in ("dropedge@0.25", "dropedge@0.75")]
    >>> kept, _ = Subgraphs(plans, torch.tensor([0, 1])).training(torch.tensor(3))
    >>> kept.tolist() == [plan.sample(seed, 3).tolist() for seed, plan in enumerate(plans)]
    True
    """

    def __init__(self, plans: Sequence[Plan], seeds: Tensor, *, fixed: bool = False) -> None:
        self.plans, self.seeds, self.fixed = list(plans), seeds, fixed
        self.is_scheduled = any(plan.schedule is not None for plan in plans)
        self.plan = self._together(plans)
        self.evaluation: Edges = self.plan.draw(seeds, 0, training=False)

    def training(self, epoch: Tensor, draw: int = 0) -> Edges:
        """What a training pass of an epoch sees; where nothing is random, the very edges of evaluation.

        Several draws of one epoch are independent.
        """
        if self.fixed:
            return self.evaluation
        if self.is_scheduled and draw == 0:
            self.plan = self._together([plan.at(epoch) for plan in self.plans])
        return self.plan.draw(self.seeds, epoch, draw)

    def take(self, places: Sequence[int]) -> Subgraphs:
        """Those of some of the trials."""
        return Subgraphs([self.plans[place] for place in places], self.seeds[list(places)], fixed=self.fixed)

    @staticmethod
    def _together(plans: Sequence[Plan]) -> Plan:
        first = plans[0]
        if all(plan is first for plan in plans):
            return first if first.schedule is None else first.at(0)
        return replace(first, prob=torch.stack([plan.at(0).prob for plan in plans]), schedule=None)


def _mask(labels: Tensor, nodes: Tensor) -> Tensor:
    """Ones ``[N]`` at some nodes."""
    return torch.zeros(len(labels), device=labels.device).index_fill_(0, nodes, 1.0)
