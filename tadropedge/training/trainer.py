"""The trainer: T models at once, each with its own start, settings, noise, subgraphs and split.

An epoch reads top to bottom: draw, forward, loss, step, evaluate, keep the best.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from tadropedge.errors import TadropedgeError, check_integer, lookup
from tadropedge.nn.backbones import Backbone
from tadropedge.nn.filters import FilterNetwork
from tadropedge.nn.layers import Operator, Sparse
from tadropedge.sparse import KeptProducts
from tadropedge.training.baselines import BaselineBatch, structure
from tadropedge.training.config import SELECTIONS, Architecture, Method, Outcome, Trial
from tadropedge.training.edges import Subgraphs, keep_matrix
from tadropedge.training.loop import Loop
from tadropedge.training.noise import Dropout
from tadropedge.training.optimizer import Adam
from tadropedge.training.task import TEST, TRAIN, VAL, Pass, Task, cross_entropy, split_masks


def train(
    task: Task,
    architecture: Architecture,
    trials: Sequence[Trial],
    *,
    split_places: Sequence[int] | None = None,
    epochs: int = 400,
    selection: str = "evaluation",
    per_layer: bool = False,
    keep_state: bool = False,
    progress: Callable[[int], None] | None = None,
) -> list[Outcome]:
    """Train all ``trials`` and return their outcomes in order.

    The kept model is the one of lowest validation loss, measured in evaluation mode (``selection="evaluation"``)
    or on the training pass, as DropEdge does (``"training"``). ``per_layer`` draws a new subgraph for each layer.
    Trials of unlike structure (self weights, batch norm, numbers of samples, networks of ``nn.baselines``, which have
    two layers whatever the ``architecture``) are trained one group after the other.
    ``split_places`` says where in ``task.splits`` the split of each trial stands; by default at its own number.
    """
    lookup("selection", selection, SELECTIONS)
    check_integer("epochs", epochs, least=1)
    outcomes: dict[int, Outcome] = {}
    where = [trial.split for trial in trials] if split_places is None else split_places
    groups: dict[tuple[object, ...], list[int]] = {}
    for place, trial in enumerate(trials):
        if Method.of(trial.method).network is not None:
            _check_baseline(trial, architecture, selection)
            groups.setdefault(structure(trial, task, where[place]), []).append(place)
            continue
        sizes = [len(part) for part in task.splits[where[place]]] if architecture.backbone == "gcnn" else []
        groups.setdefault((trial.self_weight, trial.batch_norm, *sizes), []).append(place)
    for places in groups.values():
        mine, splits = [trials[place] for place in places], [where[place] for place in places]
        batch: Loop
        if Method.of(mine[0].method).network is None:
            batch = Batch(task, architecture, mine, splits, epochs, selection, per_layer, keep_state)
        else:
            batch = BaselineBatch(task, mine, splits, epochs, per_layer, keep_state)
        for place, outcome in zip(places, batch.run(progress), strict=True):
            outcomes[place] = outcome
    return [outcomes[place] for place in range(len(trials))]


def _check_baseline(trial: Trial, architecture: Architecture, selection: str) -> None:
    if architecture.backbone == "gcnn":
        raise TadropedgeError(f"{trial.method} classifies nodes and cannot be trained on a graph-level task")
    if selection != "evaluation":
        raise TadropedgeError(
            f"{trial.method} has no validation loss on its training pass: selection {selection!r} does not fit, "
            "choose evaluation"
        )


class Batch(Loop):
    """Trials of one backbone and structure, as one program with a leading axis T."""

    def __init__(
        self,
        task: Task,
        architecture: Architecture,
        trials: Sequence[Trial],
        split_places: Sequence[int],
        epochs: int,
        selection: str,
        per_layer: bool,
        keep_state: bool,
    ) -> None:
        self.task, self.split_places, self.selection = task, split_places, selection
        device = task.graph.device
        sizes = (task.graph.num_nodes, task.num_features, task.num_classes)
        self.backbone = build_network(architecture, trials[0], *sizes)
        seeds = [trial.seed for trial in trials]
        self.parameters = self.backbone.initial(seeds, device)
        self.running = self.backbone.running(len(trials), device)
        super().__init__(trials, epochs, self.parameters | self.running, keep_state)
        seed_tensor = torch.tensor(seeds, device=device)
        self.subgraphs = Subgraphs(
            task.graph,
            keep_matrix(task.graph, trials, task.weights),
            seed_tensor,
            [trial.normalization for trial in trials],
        )
        self.num_draws = self.backbone.draws if per_layer else 1
        self.noise = Dropout(self.column("dropout").flatten(), seed_tensor, self.epoch)
        self.optimizer = Adam(self.parameters, self.column("learning_rate"), self.column("weight_decay"), self.epoch)
        self.whole = self.subgraphs.whole()
        self.passes = self._passes(sampled=isinstance(self.backbone, FilterNetwork))

    @property
    def recordable(self) -> bool:
        """The largest eigenvalue is looked for on the host, which a CUDA graph cannot record."""
        return super().recordable and "spectral" not in self.subgraphs.names

    def _passes(self, sampled: bool) -> list[Pass]:
        """What the training pass and the evaluation pass compute.

        Samples of a graph-level task are independent: there a pass computes only those it looks at, and for each trial
        its own, so that no trial's noise depends on the splits of the others.
        """
        looked_at = [[TRAIN, VAL] if self.selection == "training" else [TRAIN], [VAL, TEST]]
        masks = split_masks(self.task, self.split_places)
        if not sampled:
            features = _kept(self.task.features)
            return [Pass(features, self.task.labels, masks) for _ in looked_at]
        passes = []
        for parts in looked_at:
            splits = [self.task.splits[place] for place in self.split_places]
            rows = torch.stack([torch.cat([split[part] for part in parts]) for split in splits]).to(self.device)
            samples, labels = self.task.features[rows], self.task.labels[rows]  # type: ignore[index]
            passes.append(Pass(samples, labels, [mask.gather(1, rows) for mask in masks]))
        return passes

    def _logits(self, part: Pass, shifts: Sequence[Operator], noise: Dropout | None = None) -> Tensor:
        return self.backbone(self.parameters, self.running, part.features, shifts, noise)  # type: ignore[arg-type]

    def step(self) -> None:
        """Draw, forward, loss, step, evaluate, keep the best."""
        shifts: list[Operator] = [self.subgraphs.draw(self.epoch, layer) for layer in range(self.num_draws)]
        for parameter in self.parameters.values():
            parameter.requires_grad_(True)
        training, evaluation = self.passes
        losses = cross_entropy(self._logits(training, shifts, self.noise), training.labels)  # [T, N]
        train_loss = training.mean(losses, TRAIN)
        gradients = torch.autograd.grad(train_loss.sum(), list(self.parameters.values()))
        with torch.no_grad():
            self.optimizer.step(gradients)
            logits = self._logits(evaluation, [self.whole])
            deciding = training.mean(losses, VAL) if self.selection == "training" else None
            self.record(train_loss, logits, evaluation, deciding)


def _kept(features: Tensor | Sparse) -> KeptProducts:
    """Features ``[N, F]`` whose products with the weights two passes share."""
    if isinstance(features, Sparse):
        return KeptProducts.sparse(features.places, features.values)
    return KeptProducts.dense(features)


def build_network(
    architecture: Architecture, trial: Trial, num_nodes: int, num_features: int, num_classes: int
) -> Backbone | FilterNetwork:
    """The network of an architecture; the trial says whether it has self weights and batch norm."""
    layers, hidden = architecture.layers, architecture.hidden
    if architecture.backbone == "gcnn":
        return FilterNetwork(layers, architecture.order, num_nodes, num_features, hidden, num_classes)
    options = (trial.self_weight, trial.batch_norm)
    return Backbone(architecture.backbone, layers, num_features, hidden, num_classes, *options)
