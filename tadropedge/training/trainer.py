"""The trainer: T models at once, each with its own start, settings, noise, subgraphs and split.

An epoch reads top to bottom: draw, forward, loss, step, evaluate, keep the best. Nothing in it leaves the device, so
on a GPU one epoch is captured as a CUDA graph and replayed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from tadropedge.errors import check_integer, lookup
from tadropedge.graph import Graph
from tadropedge.nn.backbones import Backbone
from tadropedge.nn.filters import FilterNetwork
from tadropedge.nn.layers import Features, Operator, Sparse
from tadropedge.sparse import KeptProducts
from tadropedge.training.config import SELECTIONS, Architecture, Outcome, Trial
from tadropedge.training.edges import Subgraphs, keep_matrix
from tadropedge.training.noise import Dropout
from tadropedge.training.optimizer import Adam

TRAIN, VAL, TEST = range(3)  # the parts of a split
METRICS = ("train_loss", "val_loss", "val_accuracy", "test_accuracy")


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
    Trials of unlike structure (self weights, batch norm, numbers of samples) are trained one group after the other.
    ``split_places`` says where in ``task.splits`` the split of each trial stands; by default at its own number.
    """
    lookup("selection", selection, SELECTIONS)
    check_integer("epochs", epochs, least=1)
    outcomes: dict[int, Outcome] = {}
    where = [trial.split for trial in trials] if split_places is None else split_places
    groups: dict[tuple[object, ...], list[int]] = {}
    for place, trial in enumerate(trials):
        sizes = [len(part) for part in task.splits[where[place]]] if architecture.backbone == "gcnn" else []
        groups.setdefault((trial.self_weight, trial.batch_norm, *sizes), []).append(place)
    for places in groups.values():
        mine, splits = [trials[place] for place in places], [where[place] for place in places]
        batch = Batch(task, architecture, mine, splits, epochs, selection, per_layer, keep_state)
        for place, outcome in zip(places, batch.run(progress), strict=True):
            outcomes[place] = outcome
    return [outcomes[place] for place in range(len(trials))]


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


class Batch:
    """Trials of one structure, as one program with a leading axis T."""

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
        self.task, self.trials, self.epochs, self.split_places = task, trials, epochs, split_places
        self.selection, self.keep_state = selection, keep_state
        device = task.graph.device
        self.device = device
        sizes = (task.graph.num_nodes, task.num_features, task.num_classes)
        self.backbone = build_network(architecture, trials[0], *sizes)
        seeds = [trial.seed for trial in trials]
        self.parameters = self.backbone.initial(seeds, device)
        self.running = self.backbone.running(len(trials), device)
        self.epoch = torch.zeros((), dtype=torch.int64, device=device)
        seed_tensor = torch.tensor(seeds, device=device)
        self.subgraphs = Subgraphs(
            task.graph,
            keep_matrix(task.graph, trials, task.weights),
            seed_tensor,
            [trial.normalization for trial in trials],
        )
        self.num_draws = self.backbone.draws if per_layer else 1
        self.noise = Dropout(self._column("dropout").flatten(), seed_tensor, self.epoch)
        self.optimizer = Adam(self.parameters, self._column("learning_rate"), self._column("weight_decay"), self.epoch)
        self.whole = self.subgraphs.whole()
        self.passes = self._passes(sampled=isinstance(self.backbone, FilterNetwork))
        self.curves = torch.full((len(METRICS), epochs, len(trials)), float("nan"), device=device)
        self.best_loss = torch.full((len(trials),), float("inf"), device=device)
        self.best_epoch = torch.zeros(len(trials), dtype=torch.int64, device=device)
        self.best_state = {k: v.clone() for k, v in (self.parameters | self.running).items()} if keep_state else {}

    def _column(self, name: str) -> Tensor:
        values = [getattr(trial, name) for trial in self.trials]
        return torch.tensor(values, dtype=torch.float32, device=self.device)[:, None, None]

    def _passes(self, sampled: bool) -> list[Pass]:
        """What the training pass and the evaluation pass compute.

        Samples of a graph-level task are independent: there a pass computes only those it looks at, and for each trial
        its own, so that no trial's noise depends on the splits of the others.
        """
        looked_at = [[TRAIN, VAL] if self.selection == "training" else [TRAIN], [VAL, TEST]]
        masks = self._split_masks()
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

    def _split_masks(self) -> list[Tensor]:
        """For train, validation and test: ones ``[T, N]`` at a trial's nodes or samples."""
        masks = []
        for part in range(3):
            rows = []
            for place in self.split_places:
                index = self.task.splits[place][part].to(self.device)
                rows.append(torch.zeros(self.task.labels.shape[0], device=self.device).index_fill_(0, index, 1.0))
            masks.append(torch.stack(rows))
        return masks

    def _logits(self, part: Pass, shifts: Sequence[Operator], noise: Dropout | None = None) -> Tensor:
        return self.backbone(self.parameters, self.running, part.features, shifts, noise)  # type: ignore[arg-type]

    # -- one epoch --------------------------------------------------------------------------------------

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
            val_loss = evaluation.mean(cross_entropy(logits, evaluation.labels), VAL)
            right = (logits.argmax(dim=-1) == evaluation.labels).to(torch.float32)
            row = torch.stack((train_loss, val_loss, evaluation.mean(right, VAL), evaluation.mean(right, TEST)))
            self.curves.index_copy_(1, self.epoch[None], row[:, None, :])
            self._keep_best(val_loss if self.selection == "evaluation" else training.mean(losses, VAL))
            self.epoch += 1

    def _keep_best(self, loss: Tensor) -> None:
        better = loss < self.best_loss  # NaN is never better
        self.best_loss.copy_(torch.where(better, loss, self.best_loss))
        self.best_epoch.copy_(torch.where(better, self.epoch, self.best_epoch))
        if self.keep_state:
            now = self.parameters | self.running
            for name, best in self.best_state.items():
                mine = better.view(-1, *[1] * (best.dim() - 1))
                best.copy_(torch.where(mine, now[name], best))

    # -- all epochs -------------------------------------------------------------------------------------

    def run(self, progress: Callable[[int], None] | None = None) -> list[Outcome]:
        """Run all epochs and read the outcomes."""
        # The largest eigenvalue is looked for on the host, which a CUDA graph cannot record.
        recordable = self.device.type == "cuda" and "spectral" not in self.subgraphs.names
        advance = self._captured() if recordable else self.step
        for epoch in range(int(self.epoch), self.epochs):
            advance()
            if progress is not None:
                progress(epoch + 1)
        return self._outcomes()

    def _captured(self) -> Callable[[], None]:
        """Warm up on a side stream, then record one epoch as a CUDA graph: launches cost nothing after that."""
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(min(2, self.epochs)):
                self.step()
        torch.cuda.current_stream().wait_stream(stream)
        if self.epochs <= 2:
            return self.step
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            self.step()
        return graph.replay

    def _outcomes(self) -> list[Outcome]:
        curves = self.curves.cpu().numpy()
        best = self.best_epoch.tolist()
        states = {name: value.cpu().numpy() for name, value in self.best_state.items()}
        outcomes = []
        for place, trial in enumerate(self.trials):
            mine = dict(zip(METRICS, curves[:, :, place], strict=True))
            failed = not bool(np.isfinite(mine["train_loss"]).all() and np.isfinite(mine["val_loss"]).all())
            state = {name: value[place] for name, value in states.items()} if states else None
            outcomes.append(Outcome(trial, **mine, best_epoch=best[place], failed=failed, state=state))
        return outcomes


def _kept(features: Tensor | Sparse) -> KeptProducts:
    """Features ``[N, F]`` whose products with the weights two passes share."""
    if isinstance(features, Sparse):
        return KeptProducts.sparse(features.places, features.values)
    return KeptProducts.dense(features)


def cross_entropy(logits: Tensor, labels: Tensor) -> Tensor:
    """The loss of every node or sample in every trial, ``[T, N]``; where there is no label it is never looked at."""
    index = labels.clamp_min(0).expand(logits.shape[0], -1)
    return -logits.log_softmax(dim=-1).gather(-1, index[..., None])[..., 0]


def build_network(
    architecture: Architecture, trial: Trial, num_nodes: int, num_features: int, num_classes: int
) -> Backbone | FilterNetwork:
    """The network of an architecture; the trial says whether it has self weights and batch norm."""
    layers, hidden = architecture.layers, architecture.hidden
    if architecture.backbone == "gcnn":
        return FilterNetwork(layers, architecture.order, num_nodes, num_features, hidden, num_classes)
    options = (trial.self_weight, trial.batch_norm)
    return Backbone(architecture.backbone, layers, num_features, hidden, num_classes, *options)
