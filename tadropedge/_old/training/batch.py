"""T trainings of one network and structure, as one program with a leading axis T.

An epoch reads top to bottom: toss coins, learn step by step, evaluate, keep the best. A step uses the whole training
set, or a mini-batch of it where the network or the trial asks for one: then an epoch is one pass over the training
nodes, in a new order each time, but has at most :data:`MOST_STEPS` mini-batches. Nothing in an epoch leaves
the device, so on a GPU one epoch is recorded as a CUDA graph and replayed.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from tadropedge._old.checks import check_flag, check_integer, settle
from tadropedge._old.errors import TadropedgeError, lookup, show
from tadropedge._old.nn.draws import Draws
from tadropedge._old.nn.network import Shapes, TrainingStep
from tadropedge._old.registry import MEASURES
from tadropedge._old.sampling import signed
from tadropedge._old.sparse import KeptProducts
from tadropedge._old.training.config import MOST, SELECTIONS, Architecture, Outcome, Trial
from tadropedge._old.training.edges import EdgeCoins, edge_coins
from tadropedge._old.training.noise import Dropout
from tadropedge._old.training.optimizer import Adam
from tadropedge._old.training.record import Record
from tadropedge._old.training.task import TRAIN, VAL, Pass, Task, cross_entropy, mean_at, passes

MOST_STEPS = 4  # mini-batches per epoch: a large training set is seen over several epochs
ORDER = 100  # the stream that the order of the training nodes comes from
OTHERS = 2**62  # the rank of nodes that do not train
MARKS = 200  # epochs of a training on a GPU that are reported


@dataclass(frozen=True, kw_only=True)
class Course:
    """How all trials of a batch are trained: see :func:`tadropedge._old.training.trainer.train`."""

    epochs: int = 400
    selection: str = "evaluation"
    per_layer: bool = False
    keep_state: bool = False
    evaluate_every: int = 1
    measure: str = "accuracy"
    gradient_norms: bool = False  # whether those of every layer's weight are recorded

    def __post_init__(self) -> None:
        lookup("selection", self.selection, SELECTIONS)
        lookup("measure", self.measure, MEASURES)
        for name in ("epochs", "evaluate_every"):
            settle(self, **{name: check_integer(name, getattr(self, name), 1, MOST)})
        for name in ("per_layer", "keep_state", "gradient_norms"):
            settle(self, **{name: check_flag(name, getattr(self, name))})

    def evaluates(self, epoch: int) -> bool:
        """Whether an epoch ends with an evaluation; the last one always does."""
        return (epoch + 1) % self.evaluate_every == 0 or epoch + 1 == self.epochs


def mini_batches(trial: Trial, architecture: Architecture, training: int) -> tuple[int | None, int]:
    """The size of a trial's mini-batches, None for the whole training set, and how many there are per epoch.

    >>> mini_batches(Trial("fastgcn"), Architecture(), 1208), mini_batches(Trial("cdf"), Architecture(), 1208)
    ((256, 4), (None, 1))
    """
    size = trial.batch_size or architecture.network(trial.method)[1].batch_size
    if size is None:
        return None, 1
    size = min(size, training)
    return size, min(MOST_STEPS, -(-training // size))


def layer_weights(shapes: Shapes) -> list[str]:
    """The parameters whose gradients say how a network learns layer by layer, from the input to the output.

    Those called ``weight`` that are matrices; of a network that has none, all matrices, else all parameters. The output
    comes last, also where a network draws it before the layers between.

    >>> layer_weights({"input.weight": (5, 2), "input.bias": (2,), "output.weight": (2, 3), "step1.weight": (2, 2)})
    ['input.weight', 'step1.weight', 'output.weight']
    """
    matrices = [name for name, shape in shapes.items() if len(shape) > 1]
    chosen = [name for name in matrices if name.rpartition(".")[2] == "weight"] or matrices or list(shapes)
    return sorted(chosen, key=lambda name: name.startswith("output."))


def gradient_norm(gradient: Tensor) -> Tensor:
    """The L2 norm of each trial's part of ``[T, ...]``, ``[T]``; in float64, where squares of small numbers are not 0.

    >>> gradient_norm(torch.tensor([[[3e-30, 4e-30]], [[0.0, 1.0]]])).tolist() == torch.tensor([5e-30, 1.0]).tolist()
    True
    """
    squares = gradient.to(torch.float64).square()
    while squares.dim() > 1:  # axis by axis, so that rounding does not depend on the number of trials
        squares = squares.sum(dim=-1)
    return squares.sqrt().to(gradient.dtype)


class Batch:
    """Trials that share their network, its structure and the size of their mini-batches."""

    def __init__(
        self,
        task: Task,
        architecture: Architecture,
        trials: Sequence[Trial],
        split_places: Sequence[int],
        course: Course,
    ) -> None:
        self.trials, self.course = trials, course
        self.device = device = task.graph.device
        self.network = task.network(architecture, trials)
        seeds = [trial.seed for trial in trials]
        self.parameters = self.network.initial(seeds, device)
        for parameter in self.parameters.values():
            parameter.requires_grad_(True)
        self.state = self.parameters | self.network.running(len(trials), device)
        self.learning, self.looking = self._passes(task, split_places)
        self.batch_size, self.steps = mini_batches(trials[0], architecture, len(task.splits[split_places[0]][TRAIN]))
        self.epoch, self.updates = (torch.zeros((), dtype=torch.int64, device=device) for _ in range(2))
        keys = torch.tensor([signed(seed) for seed in seeds], device=device)
        self.draws, self.order = Draws(keys, self.updates), Draws(keys, self.epoch)
        self.coins = self._coins(task, keys)
        self.network.expect(self.coins.shares)
        if self.coins.expected is not None:
            self.network.soften(self.coins.expected)
        self.noise = self._noise(task, self._column("dropout").flatten(), keys)
        rates = (self._column("learning_rate"), self._column("weight_decay"))
        self.optimizer = Adam(self.parameters, *rates, self.updates)
        shapes = {name: tuple(value.shape[1:]) for name, value in self.parameters.items()}
        self.weights = layer_weights(shapes) if course.gradient_norms else []
        self.norms: list[Tensor] | None = None  # [layers, T] of each step of an epoch, where they are recorded
        layers = [name.removesuffix(".weight") for name in self.weights]
        self.record = Record(trials, course.epochs, self.state, course.keep_state, course.measure, layers=layers)

    # What a training whose nodes are spread over processes does in its own way.

    def _passes(self, task: Task, split_places: Sequence[int]) -> tuple[Pass, Pass]:
        return passes(task, split_places, self.course.selection)

    def _coins(self, task: Task, keys: Tensor) -> EdgeCoins:
        training = self.learning.masks[TRAIN]
        return edge_coins(task, self.network, self.trials, keys, training, self.course.per_layer)

    def _noise(self, task: Task, rates: Tensor, keys: Tensor) -> Dropout:
        return Dropout(rates, keys, self.updates)

    def _loss(self, losses: Tensor, nodes: Tensor) -> Tensor:
        """The loss ``[T]`` from that of every node ``[T, N]``; where others hold nodes too, their share is missing."""
        return mean_at(losses, nodes)

    def _gradients(self, loss: Tensor, penalty: Tensor | float) -> tuple[Sequence[Tensor], Tensor]:
        """The gradients of all parameters, and the whole loss ``[T]``."""
        return torch.autograd.grad((loss + penalty).sum(), list(self.parameters.values())), loss

    def _column(self, name: str) -> Tensor:
        values = [getattr(trial, name) for trial in self.trials]
        return torch.tensor(values, dtype=torch.float32, device=self.device)[:, None, None]

    def run(self, progress: Callable[[int], None] | None = None) -> list[Outcome]:
        """Run all epochs and read the outcomes; ``progress`` is called with the number of epochs that are done."""
        self.coins.look_ahead(int(self.epoch))
        run_epoch = self._recorded() if self.device.type == "cuda" and self.network.recordable else self.run_epoch
        behind = Behind(progress, self.course.epochs) if progress and self.device.type == "cuda" else None
        reached = behind.queued if behind else progress
        for epoch in range(int(self.epoch), self.course.epochs):
            self.coins.look_ahead(epoch)
            run_epoch(self.course.evaluates(epoch))
            if reached is not None:
                reached(epoch + 1)
        if behind is not None:
            behind.wait()
        return self.record.outcomes([epoch for epoch in range(self.course.epochs) if self.course.evaluates(epoch)])

    def run_epoch(self, evaluate: bool = True) -> None:
        """Toss coins, learn, evaluate, keep the best."""
        keeps = self.coins.keeps(self.epoch)
        ranks = None if self.batch_size is None else self._ranks()
        self.norms = [] if evaluate and self.weights else None
        losses = [self._learn(self._nodes(ranks, number), keeps) for number in range(self.steps)]
        train_loss, *deciding = torch.stack(losses).mean(dim=0)
        with torch.no_grad():
            self.record.trained(self.epoch, train_loss)
            if evaluate:
                if self.norms:
                    self.record.descended(self.epoch, torch.stack(self.norms).mean(dim=0))
                logits = self.network.evaluation(self.state, self.looking.x, self.epoch)
                self._check_logits(logits, self.looking)
                self.record.evaluated(self.epoch, logits, self.looking, *deciding)
            self.epoch += 1

    def _learn(self, nodes: Tensor, keeps: Sequence[Tensor | None]) -> Tensor:
        """One step of the optimiser; returns the training loss ``[T]`` and, if it is used, the validation loss."""
        seen = self.learning
        step = TrainingStep(
            x=seen.x,
            nodes=nodes,
            keeps=keeps,
            draws=self.draws,
            noise=self.noise,
            epoch=self.epoch,
            factors=self.coins.factors(keeps),
            inside=self.coins.inside,
        )
        answer: Any = self.network.training(self.state, step)  # a user's own network may return anything
        if not isinstance(answer, tuple) or len(answer) != 2:
            name = type(self.network).__name__
            raise TadropedgeError(f"the training pass of {name} must return (logits, penalty), got {show(answer)}")
        logits, penalty = answer
        self._check_logits(logits, seen)
        losses = cross_entropy(logits, seen.labels)  # [T, N]
        gradients, loss = self._gradients(self._loss(losses, nodes), penalty)
        with torch.no_grad():
            if self.norms is not None:
                by_name = dict(zip(self.parameters, gradients, strict=True))
                self.norms.append(torch.stack([gradient_norm(by_name[name]) for name in self.weights]))
            self.optimizer.step(gradients)
            self.updates += 1
            decides = self.course.selection == "training"
            return torch.stack((loss, seen.mean(losses, VAL)) if decides else (loss,))

    def _check_logits(self, logits: Tensor, seen: Pass) -> None:
        expected = (len(self.trials), seen.labels.shape[-1], self.network.problem.sizes.num_classes)
        if tuple(logits.shape) != expected:
            name = type(self.network).__name__
            raise TadropedgeError(f"{name} must return logits of shape {list(expected)}, got {list(logits.shape)}")

    def _nodes(self, ranks: Tensor | None, number: int) -> Tensor:
        """Ones ``[T, N]`` at the training nodes of one step."""
        if ranks is None or self.batch_size is None:
            return self.learning.masks[TRAIN]
        inside = (ranks >= number * self.batch_size) & (ranks < (number + 1) * self.batch_size)
        return inside.to(torch.float32)

    def _ranks(self) -> Tensor:
        """The place of each training node in this epoch's order ``[T, N]``, others last."""
        training = self.learning.masks[TRAIN] > 0
        words = self.order.words(training.shape[1], ORDER) >> 1  # the last value is free
        order = torch.where(training, words, 2**63 - 1).sort(dim=1, stable=True).indices
        places = torch.arange(order.shape[1], device=self.device).expand_as(order)
        return torch.where(training, torch.empty_like(order).scatter_(1, order, places), OTHERS)

    def _recorded(self) -> Callable[[bool], None]:
        """Warm up on a side stream, then record an epoch as a CUDA graph, which makes kernel launches free."""
        course = self.course
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        warm = min(2, course.epochs)
        with torch.cuda.stream(stream):
            for epoch in range(warm):
                self.run_epoch(course.evaluates(epoch))
        torch.cuda.current_stream().wait_stream(stream)
        kinds = {course.evaluates(epoch) for epoch in range(warm, course.epochs)}
        replays = {evaluate: self._graph(evaluate, alone=len(kinds) == 1) for evaluate in kinds}
        return lambda evaluate: replays[evaluate]()

    def _graph(self, evaluate: bool, alone: bool) -> Callable[[], None]:
        if not alone and isinstance(self.learning.x, KeptProducts):
            self.learning.x.forget()  # on replay, the graph before this one may have left an outdated product
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            self.run_epoch(evaluate)
        return graph.replay


class Behind:
    """Progress of epochs that a GPU is given long before it runs them.

    An event follows some of them into the queue. Those that the GPU has passed are reported when the next epoch is
    queued, and in the end the rest as it passes them: it is never asked to stop or to wait.
    """

    def __init__(self, progress: Callable[[int], None], epochs: int) -> None:
        self._progress, self._last, self._every = progress, epochs, max(1, epochs // MARKS)
        self._marks: deque[tuple[int, torch.cuda.Event]] = deque()

    def queued(self, epoch: int) -> None:
        """So many epochs are in the queue."""
        if epoch % self._every == 0 or epoch == self._last:
            event = torch.cuda.Event(blocking=True)
            event.record()
            self._marks.append((epoch, event))
        passed = None
        while self._marks and self._marks[0][1].query():
            passed = self._marks.popleft()[0]
        if passed is not None:
            self._progress(passed)

    def wait(self) -> None:
        """Report the epochs that are still in the queue, one mark after the other."""
        while self._marks:
            epoch, event = self._marks.popleft()
            event.synchronize()
            self._progress(epoch)
