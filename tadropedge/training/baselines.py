"""The training of the methods of ``nn.baselines``: the loop of the backbones, with mini-batches where they have them.

An epoch is one pass over the training nodes in mini-batches of ``batch_size``, in an order that is new in each epoch,
but at most :data:`MOST_STEPS` of them: a large training set is seen over several epochs. Each epoch ends with
an evaluation on the whole graph, where nothing is sampled and nothing is noisy.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from tadropedge.nn.baselines import NETWORKS, Problem, Step
from tadropedge.nn.baselines.draws import Draws
from tadropedge.nn.baselines.network import Network, Value
from tadropedge.sampling import key_tensor, pair_words, toss
from tadropedge.training.config import EXTRAS, Method, Trial
from tadropedge.training.edges import keep_matrix
from tadropedge.training.loop import Loop
from tadropedge.training.noise import Dropout
from tadropedge.training.optimizer import Adam
from tadropedge.training.task import TRAIN, Pass, Task, cross_entropy, split_masks

MOST_STEPS = 4  # mini-batches an epoch
ORDER = 100  # the stream that the order of the training nodes comes from


class BaselineBatch(Loop):
    """Trials of one baseline and structure (see :func:`structure`), as one program with a leading axis T."""

    def __init__(
        self,
        task: Task,
        trials: Sequence[Trial],
        split_places: Sequence[int],
        epochs: int,
        per_layer: bool,
        keep_state: bool,
    ) -> None:
        device = task.graph.device
        self.masks = split_masks(task, split_places)
        self.network = make_network(task, trials)
        seeds = [trial.seed for trial in trials]
        self.parameters = self.network.initial(seeds, device)
        super().__init__(trials, epochs, self.parameters, keep_state)
        self.seen = Pass(task.features, task.labels, self.masks)
        self.batch_size, self.steps = structure(trials[0], task, split_places[0])[-2:]
        self.updates = torch.zeros((), dtype=torch.int64, device=device)
        self.seeds = torch.tensor(seeds, device=device)
        self.draws = Draws(self.seeds, self.updates)
        self.order = Draws(self.seeds, self.epoch)
        self.noise = Dropout(self.column("dropout").flatten(), self.seeds, self.updates)
        self.optimizer = Adam(self.parameters, self.column("learning_rate"), self.column("weight_decay"), self.updates)
        self.subgraphs = 2 if per_layer else 1
        self.inside, self.prob = _training_edges(task, trials, self.masks[TRAIN])

    def step(self) -> None:
        """Mini-batch by mini-batch: draw, forward, loss, step; then evaluate and keep the best."""
        keeps = [self._keep(layer) for layer in range(self.subgraphs)]
        ranks = self._ranks()
        losses = []
        for number in range(self.steps):
            nodes = self.masks[TRAIN]
            if ranks is not None:
                inside = (ranks >= number * self.batch_size) & (ranks < (number + 1) * self.batch_size)
                nodes = inside.to(torch.float32)
            losses.append(self._learn(Step(nodes, keeps, self.draws, self.noise, self.epoch)))
        with torch.no_grad():
            logits = self.network.evaluation(self.parameters, self.epoch)
            self.record(torch.stack(losses).mean(dim=0), logits, self.seen)

    def _learn(self, step: Step) -> Tensor:
        """One step of the optimiser; returns the loss without penalties, ``[T]``."""
        for parameter in self.parameters.values():
            parameter.requires_grad_(True)
        logits, penalty = self.network.training(self.parameters, step)
        losses = cross_entropy(logits, self.seen.labels)
        # Elsewhere the logits may be anything, even without bounds: they are left out, not multiplied by 0.
        chosen = torch.where(step.nodes > 0, losses, 0.0)
        loss = chosen.sum(dim=1) / step.nodes.sum(dim=1).clamp_min(1)
        gradients = torch.autograd.grad((loss + penalty).sum(), list(self.parameters.values()))
        with torch.no_grad():
            self.optimizer.step(gradients)
            self.updates += 1
        return loss.detach()

    def _ranks(self) -> Tensor | None:
        """The place of each training node in this epoch's order ``[T, N]``, others last; None without mini-batches."""
        if not self.network.batched:
            return None
        words = self.order.words(self.masks[TRAIN].shape[1], ORDER) >> 1  # the last value is free
        order = torch.where(self.masks[TRAIN] > 0, words, 2**63 - 1).sort(dim=1, stable=True).indices
        places = torch.arange(order.shape[1], device=self.device).expand_as(order)
        ranks = torch.empty_like(order).scatter_(1, order, places)
        return torch.where(self.masks[TRAIN] > 0, ranks, 2**62)

    def _keep(self, layer: int) -> Tensor | None:
        """The edges that exist in this epoch ``[T, M]``, with the coins that the backbones toss; None: all."""
        if self.prob is None:
            return self.inside
        multiplier, offset = key_tensor(self.seeds, self.epoch, layer)
        words = pair_words(self.prob.shape[-1], self.device)
        kept = toss(words, multiplier[:, None], offset[:, None], self.prob)
        return kept if self.inside is None else kept & self.inside


def structure(trial: Trial, task: Task, split_place: int) -> tuple[str, int, int, int]:
    """What trials that are trained together share: the network, its width, the mini-batch and the steps an epoch."""
    network = Method.of(trial.method).network or ""
    training = len(task.splits[split_place][TRAIN])
    size = min(int(extra(trial, "batch_size")), training) if NETWORKS[network].batched else training
    return network, width(trial), size, min(MOST_STEPS, -(-training // max(size, 1)))


def extra(trial: Trial, name: str) -> Value:
    """A setting of the trial's network: the trial's own, or the default.

    >>> extra(Trial("fastgcn"), "hidden"), extra(Trial("fastgcn", hidden=32), "hidden")
    (16, 32)
    """
    own: Value | None = getattr(trial, name)
    return Method.of(trial.method).extras[name] if own is None else own


def width(trial: Trial) -> int:
    """The width of the hidden layer of the trial's network; 0 where it is the backbone's."""
    return int(extra(trial, "hidden")) if Method.of(trial.method).network is not None else 0


def make_network(task: Task, trials: Sequence[Trial]) -> Network:
    """The network of a batch of trials, with their settings."""
    method = Method.of(trials[0].method)
    settings = {}
    for name in method.extras:
        kind = torch.float32 if EXTRAS[name] is float else torch.int64
        settings[name] = torch.tensor([extra(trial, name) for trial in trials], dtype=kind, device=task.graph.device)
    sizes = (task.num_features, task.num_classes, width(trials[0]))
    problem = Problem(task.graph, task.features, *sizes, settings)
    return NETWORKS[method.network or ""](problem)


def _training_edges(task: Task, trials: Sequence[Trial], training: Tensor) -> tuple[Tensor | None, Tensor | None]:
    """The edges that a trial may learn on, a mask ``[T, M]``, and their probabilities of being kept; None: all."""
    method = Method.of(trials[0].method)
    inside = prob = None
    if any("inductive" in method.extras and extra(trial, "inductive") for trial in trials):
        low, high = task.graph.pairs
        between = (training[:, low] > 0) & (training[:, high] > 0)
        inductive = torch.tensor([bool(extra(trial, "inductive")) for trial in trials], device=between.device)
        inside = between | ~inductive[:, None]
    if any(Method.of(trial.method).strategy is not None for trial in trials):
        prob = keep_matrix(task.graph, trials, task.weights)
    return inside, prob
