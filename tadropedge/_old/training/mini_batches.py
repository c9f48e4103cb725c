"""One training by mini-batches: neighbour sampling over the kept edges, on one process or on several.

An epoch is one pass over the training nodes in a new order. Each step takes the next nodes, their mini-batch of the
edges that exist in this epoch, and makes one step of Adam. On several processes each takes its share of the nodes of a
step, and gradients are summed: the same losses, whatever their number. With a fan-out of −1 a step computes what the
whole graph would give at its nodes, dropout included.

Batch norm is the exception: its statistics are those of the rows that a layer computes in a step.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property

import torch
from torch import Tensor

from tadropedge._old.errors import TadropedgeError
from tadropedge._old.method import Method
from tadropedge._old.neighbours.coins import PairCoins
from tadropedge._old.neighbours.plan import ALL, MiniBatches
from tadropedge._old.neighbours.rows import entries_of_rows
from tadropedge._old.neighbours.sampler import MiniBatch, NeighbourSampler
from tadropedge._old.neighbours.thinned import ThinnedGraph
from tadropedge._old.nn.draws import Draws
from tadropedge._old.nn.layers import Features, Sparse
from tadropedge._old.nn.network import Network
from tadropedge._old.sampling import signed
from tadropedge._old.sparse import Csr
from tadropedge._old.training.batch import ORDER, Course, gradient_norm, layer_weights
from tadropedge._old.training.config import Architecture, Outcome, Trial
from tadropedge._old.training.edges import EdgeCoins
from tadropedge._old.training.noise import Dropout
from tadropedge._old.training.optimizer import Adam
from tadropedge._old.training.ranks import Ranks
from tadropedge._old.training.record import Record
from tadropedge._old.training.task import TEST, TRAIN, VAL, Task, cross_entropy, passes
from tadropedge._old.training.trainer import check_trial

UNSEEN = ("connected", "exact")  # options that look at the whole graph in every epoch


def check_mini_batches(
    trial: Trial, architecture: Architecture, course: Course, *, plan: MiniBatches, ranks: Ranks
) -> None:
    """Refuse what mini-batches cannot do, before any work."""
    check_trial(trial, architecture, course.selection, "node", per_layer=course.per_layer)
    name, network = architecture.network(trial.method)
    if network.hops is Network.hops:
        because = "is your own module: its layers are not seen" if network.opaque else "looks at the whole graph"
        because = (
            "samples neighbours in its own way: --batch-size says by how many nodes" if network.sampled else because
        )
        raise TadropedgeError(f"mini_batch cannot be used with {name}, which {because}")
    for option in UNSEEN:
        if option in Method.of(trial.method).options:
            raise TadropedgeError(
                f"mini_batch cannot be used with {trial.method!r}: the option {option} looks at all edges in every "
                "epoch, a mini-batch only at its own"
            )
    if plan.evaluate is not None and "expected" in Method.of(trial.method).options:
        raise TadropedgeError(
            f"{trial.method!r} is evaluated on edges with weights, which pieces of nodes do not see: leave out evaluate"
        )
    if course.selection != "evaluation":
        raise TadropedgeError(
            f"selection {course.selection!r} needs the validation loss of the training pass, which mini-batches do not "
            "compute: choose evaluation"
        )
    if trial.batch_size is not None:
        raise TadropedgeError(
            f"batch_size={trial.batch_size} and mini_batch exclude each other: the first is for the whole graph"
        )
    settings = architecture.settings_of(trial)
    if ranks.count > 1 and settings.get("batch_norm"):
        raise TadropedgeError(
            f"batch_norm cannot be used by {ranks.count} processes: its statistics would depend on their number"
        )
    if settings.get("normalization") == "spectral":
        raise TadropedgeError(
            "normalization 'spectral' divides by an eigenvalue of the whole subgraph, which a mini-batch does not see: "
            "choose another"
        )


def fanout_of(plan: MiniBatches, network: Network) -> tuple[int, ...]:
    """The fan-out of each hop that a network looks; refused where the plan has another number of them."""
    return plan.of_hops(max(network.hops or [], default=-1) + 1)


class SampledTraining:
    """The training of one trial by mini-batches, on the split of the task at ``split_place``."""

    def __init__(
        self,
        task: Task,
        architecture: Architecture,
        trial: Trial,
        course: Course,
        *,
        plan: MiniBatches,
        split_place: int = 0,
        ranks: Ranks | None = None,
    ) -> None:
        self.task, self.course, self.plan, self.ranks = task, course, plan, ranks or Ranks()
        check_mini_batches(trial, architecture, course, plan=plan, ranks=self.ranks)
        self.trial, self.device = trial, task.graph.device
        self.network = task.network(architecture, [trial])
        self.parameters = self.network.initial([trial.seed], self.device)
        for parameter in self.parameters.values():
            parameter.requires_grad_(True)
        self.state = self.parameters | self.network.running(1, self.device)
        _, self.looking = passes(task, [split_place], course.selection)
        self.training = task.splits[split_place][TRAIN].to(self.device).sort().values
        self.epoch, self.updates = (torch.zeros((), dtype=torch.int64, device=self.device) for _ in range(2))
        keys = torch.tensor([signed(trial.seed)], device=self.device)
        self.order = Draws(keys, self.epoch)
        self.sampler = self._sampler(keys)
        rate, decay = (
            torch.tensor([[[value]]], device=self.device) for value in (trial.learning_rate, trial.weight_decay)
        )
        self.optimizer = Adam(self.parameters, rate, decay, self.updates)
        self.noise = Dropout(torch.tensor([trial.dropout], device=self.device), keys, self.updates)
        shapes = {name: tuple(value.shape[1:]) for name, value in self.parameters.items()}
        self.weights = layer_weights(shapes) if course.gradient_norms else []
        layers = [name.removesuffix(".weight") for name in self.weights]
        self.record = Record([trial], course.epochs, self.state, course.keep_state, course.measure, layers=layers)

    def _sampler(self, keys: Tensor) -> NeighbourSampler:
        """Neighbours over the edges that the coins of this trial keep."""
        graph, options, hops = self.task.graph, Method.of(self.trial.method).options, self.network.hops or []
        several = self.course.per_layer or "nested" in options
        layers = self.network.draws if several and hops else 1
        whole = EdgeCoins(graph, [self.trial], self.task.scores, keys, None, layers)  # checks what options need
        if whole.expected is not None:
            self.network.soften(whole.expected)
        prob = None if whole.rows is None else whole.rows[:, 0]
        unbiased = "unbiased" in options
        coins = PairCoins(prob, self.trial.seed, layers=layers, nested="nested" in options)
        return NeighbourSampler(
            ThinnedGraph(graph, coins, whole_degrees=unbiased),
            hops,
            fanout_of(self.plan, self.network),
            unbiased=unbiased,
            dropped=unbiased and self.network.sees_dropped,
            of_rows=self.network.of_rows,
        )

    def run(self, progress: Callable[[int], None] | None = None) -> Outcome:
        """Run all epochs; ``progress`` is called with the number of epochs that are done."""
        for epoch in range(self.course.epochs):
            self.run_epoch(self.course.evaluates(epoch))
            if progress is not None:
                progress(epoch + 1)
        evaluated = [epoch for epoch in range(self.course.epochs) if self.course.evaluates(epoch)]
        return self.record.outcomes(evaluated)[0]

    def run_epoch(self, evaluate: bool = True) -> None:
        """One pass over the training nodes, then an evaluation on all edges."""
        steps = [self._step(nodes) for nodes in self.steps()]
        with torch.no_grad():
            total = self.ranks.summed(torch.stack([loss for loss, _ in steps]).sum(dim=0))
            self.record.trained(self.epoch, total / len(self.training))
            if evaluate:
                if self.weights:
                    self.record.descended(self.epoch, torch.stack([norms for _, norms in steps]).mean(dim=0))
                self.record.evaluated(self.epoch, self.evaluation(), self.looking)
            self.epoch += 1

    def evaluation(self) -> Tensor:
        """Logits ``[1, N, C]`` on all edges without noise; where pieces are asked for, only of nodes that are judged.

        A piece of nodes is computed with all that its outputs depend on. Each process takes its share of the pieces.
        """
        if self.plan.evaluate is None:
            return self.network.evaluation(self.state, self.looking.x, self.epoch)
        judged = (self.looking.masks[VAL] + self.looking.masks[TEST])[0].nonzero()[:, 0]
        shape = (1, self.task.graph.num_nodes, self.task.num_classes)
        logits = torch.zeros(shape, device=self.device)
        for nodes in judged.split(self.plan.evaluate)[self.ranks.rank :: self.ranks.count]:
            found = self.whole.sample(nodes, 0)
            x = rows_of(self.task.features, found.nodes)
            logits[:, nodes] = self.network.on_blocks(self.state, x, found.blocks, None)
        return self.ranks.summed(logits)

    @cached_property
    def whole(self) -> NeighbourSampler:
        """All neighbours, over all edges."""
        hops = self.network.hops or []
        thinned = ThinnedGraph(self.task.graph, PairCoins(None, 0))
        return NeighbourSampler(thinned, hops, [ALL] * (max(hops, default=-1) + 1), of_rows=self.network.of_rows)

    def steps(self) -> Sequence[Tensor]:
        """The training nodes of each step of this epoch: a new order in each, the same for all processes."""
        words = self.order.words(self.task.graph.num_nodes, ORDER)[0].index_select(0, self.training)
        order = (words >> 1).sort(stable=True).indices
        steps: Sequence[Tensor] = self.training.index_select(0, order).split(self.plan.size)
        return steps

    def mini_batch(self, seeds: Tensor) -> tuple[MiniBatch, Features]:
        """What the outputs of some nodes depend on in this epoch, and the features of its nodes."""
        found = self.sampler.sample(seeds, int(self.epoch))
        return found, rows_of(self.task.features, found.nodes)

    def logits(self, seeds: Tensor) -> Tensor:
        """The outputs of the training pass at some nodes, ``[1, S, C]``."""
        found, x = self.mini_batch(seeds)
        return self.network.on_blocks(self.state, x, found.blocks, self.noise.of(found.nodes))

    def _step(self, nodes: Tensor) -> tuple[Tensor, Tensor]:
        """One step of Adam: this process's sum of losses, ``[1]``, and the gradient norms of all, ``[layers, 1]``."""
        mine, parameters = self.ranks.share(nodes), list(self.parameters.values())
        if len(mine):
            loss = cross_entropy(self.logits(mine), self.task.labels.index_select(0, mine)).sum(dim=1)
            gradients = torch.autograd.grad(loss.sum() / len(nodes), parameters)
        else:  # fewer nodes than processes
            loss, gradients = torch.zeros(1, device=self.device), tuple(map(torch.zeros_like, parameters))
        with torch.no_grad():
            total = self.ranks.all_summed(gradients)
            by_name = dict(zip(self.parameters, total, strict=True))
            norms = [gradient_norm(by_name[name]) for name in self.weights]
            self.optimizer.step(total)
            self.updates += 1
            return loss.detach(), torch.stack(norms) if norms else loss.new_zeros(0, 1)


def rows_of(features: Tensor, nodes: Tensor) -> Features:
    """The features of some nodes: dense ``[1, n, F]``, or the rows of a CSR matrix.

    >>> rows_of(torch.eye(3), torch.tensor([2, 0])).tolist()
    [[[0.0, 0.0, 1.0], [1.0, 0.0, 0.0]]]
    """
    if features.layout is not torch.sparse_csr:
        return features.index_select(0, nodes)[None]
    entries, owner = entries_of_rows(features.crow_indices(), nodes)
    crow = torch.zeros(len(nodes) + 1, dtype=torch.int32, device=nodes.device)
    crow[1:] = torch.bincount(owner, minlength=len(nodes)).cumsum(0)
    col = features.col_indices().index_select(0, entries).to(torch.int32)
    return Sparse(Csr(crow, col, features.shape[1]), features.values().index_select(0, entries))
