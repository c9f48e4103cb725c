"""What training costs: the chosen setting of a candidate alone, and a whole search before it begins."""

from __future__ import annotations

import math
import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from tadropedge.lab.candidate import Candidate
from tadropedge.lab.search.executors import Executor, Local
from tadropedge.lab.search.protocol import Search, check, trials_of
from tadropedge.lab.search.store import Store
from tadropedge.lab.training.callbacks import Callback
from tadropedge.lab.training.experiment import Experiment
from tadropedge.lab.training.trainer import Trainer
from tadropedge.lab.training.trial import TrainingSettings, Trial

EPOCHS = 40  # of a training that is timed: 11 of them are evaluated
LEAST = 10  # of these, however long they take
MOST = 3.0  # seconds for the others
REPEATS = 3  # of such a training
PROGRAMS = 4  # of a search, which trains as one or more, that are timed to estimate it
PER_PHASE = 4  # epochs between two rungs of these


@dataclass(frozen=True, kw_only=True)
class Cost:
    """What a training costs: seconds of an epoch of training and of an evaluation, and bytes at the peak."""

    train: float
    evaluate: float
    peak_bytes: int


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """How many trainings there are to do, and about how many seconds they will take."""

    trainings: int
    seconds: float


def seconds_per_epoch(experiment: Experiment, trial: Trial) -> Cost:
    """The cost of one trial that trains alone for a few epochs: of the fastest ones, which nothing else delayed."""
    short = experiment.trained_with(replace(experiment.training, epochs=EPOCHS, rungs=(), keep="measure"))
    trial, found = _of_all_epochs(trial), []
    for _ in range(REPEATS):
        watch = Stopwatch(experiment.device, most=MOST)
        Trainer(short).train([trial], [watch])
        found.append(_typical(short.training, watch.own, range(len(watch.own)), min))
    train, both = map(min, zip(*found, strict=True))
    return Cost(train=train, evaluate=max(both - train, 0.0), peak_bytes=_peak_bytes(short, trial))


def estimate(
    candidates: Sequence[Candidate],
    experiment: Experiment,
    search: Search,
    store: Store | None = None,
    executor: Executor | None = None,
) -> Estimate:
    """How long a search will take, from a few epochs of each kind of training; what is done is not counted.

    >>> from tadropedge.lab import TrainingSettings, load
    >>> experiment = Experiment(data=load("karate"), hidden=4, training=TrainingSettings(epochs=3))
    >>> estimate([Candidate.parse("dropedge")], experiment, Search(trials=4, replicates=10)).trainings
    40
    """
    check(candidates, experiment, search)
    fixed = experiment.data.num_splits == 1
    trainings, seconds = 0, 0.0
    timed: dict[object, tuple[float, float]] = {}
    for candidate in candidates:
        numbers = range(1 if fixed else search.replicates)
        searched = [trials_of(candidate, experiment, search, number) for number in numbers]
        keys = [experiment.key(trial) for trials in searched for trial in trials]
        share = 1 - (len(store.get(keys)) / len(keys) if store is not None else 0.0)
        count, starts = round(share * search.trials * len(numbers)), search.replicates if fixed else 0
        dropping = candidate.dropping
        kind = (
            experiment.name_of(candidate),
            dropping.rule and dropping.use,
            dropping.options,
            candidate.ways,
            candidate.epochs,
        )
        if count + starts and kind not in timed:
            timed[kind] = _seconds_of(searched[0], experiment)
        of_search, of_start = timed.get(kind, (0.0, 0.0))
        trainings += count + starts
        seconds += count * of_search + starts * of_start
    return Estimate(trainings=trainings, seconds=seconds / (executor or Local()).workers)


class Stopwatch(Callback):
    """Takes the time of every epoch, and stops after so many seconds."""

    def __init__(self, device: str, most: float = math.inf) -> None:
        self.device, self.most, self.times = device, most, list[tuple[float, float]]()

    def start(self, run: Any) -> None:
        """Begin."""
        self.times = [self._now()]

    def epoch(self, run: Any) -> bool:
        """Note the end of an epoch, and say whether it was the last."""
        self.times.append(self._now())
        return len(self.times) > LEAST and self.times[-1][0] - self.times[0][0] > self.most

    @property
    def seconds(self) -> list[float]:
        """Of each epoch."""
        return [float(wall) for wall, _ in np.diff(self.times, axis=0)]

    @property
    def own(self) -> list[float]:
        """The same as on an idle machine: on a CPU the processor time, if less, since other programs run there, too."""
        return [float(min(both)) for both in np.diff(self.times, axis=0)] if self.device == "cpu" else self.seconds

    def _now(self) -> tuple[float, float]:
        if self.device != "cpu":
            torch.cuda.synchronize(self.device)
        return time.perf_counter(), time.process_time()


def _seconds_of(trials: Sequence[Trial], experiment: Experiment) -> tuple[float, float]:
    """Seconds of a trial of a search, whose rungs stop some, and of a training that no rung stops."""
    real = experiment.training.shortened(trials[0].candidate.epochs)
    ends = [PER_PHASE * (place + 1) for place in range(len(real.rungs) + 1)]
    short = experiment.trained_with(replace(real, epochs=ends[-1], rungs=tuple(ends[:-1]), keep="measure"))
    batches = Trainer(short).batches([_of_all_epochs(trial) for trial in trials])[:PROGRAMS]
    searched = alone = 0.0
    for batch in batches:
        watch, begun = Stopwatch(experiment.device), time.perf_counter()
        Trainer(short).train(batch, [watch])
        others = max(time.perf_counter() - begun - sum(watch.seconds), 0.0)
        phases = [_typical(short.training, watch.seconds, range(end - PER_PHASE, end), np.median) for end in ends]
        reals = [range(*pair) for pair in pairwise((0, *real.rungs, real.epochs))]
        searched += others + sum(_sum(real, epochs, *phase) for epochs, phase in zip(reals, phases, strict=True))
        alone += others + _sum(real, range(real.epochs), *phases[0])
    count = sum(map(len, batches))
    return searched / count, alone / count


def _of_all_epochs(trial: Trial) -> Trial:
    """The same trial of a candidate that trains as long as others."""
    return replace(trial, candidate=replace(trial.candidate, epochs=1.0))


def _sum(training: TrainingSettings, epochs: range, train: float, both: float) -> float:
    return sum(both if training.evaluates(epoch) else train for epoch in epochs)


def _typical(
    training: TrainingSettings, seconds: Sequence[float], epochs: range, middle: Callable[[list[float]], Any]
) -> tuple[float, float]:
    """Of the epochs without an evaluation and of those with one."""
    groups: Mapping[bool, list[float]] = {False: [], True: []}
    for epoch in epochs:
        groups[training.evaluates(epoch)].append(seconds[epoch])
    return float(middle(groups[False])), float(middle(groups[True]))


# -- memory ----------------------------------------------------------------------------------------------


def _peak_bytes(experiment: Experiment, trial: Trial) -> int:
    """The most memory that tensors of one training hold at once, beyond those that are there before."""
    trainer, first = Trainer(experiment), Stopwatch(experiment.device, most=0.0)
    if experiment.device == "cpu":
        with _Tensors() as tensors:
            trainer.train([trial], [first])
        return int(tensors.peak)
    torch.cuda.reset_peak_memory_stats(experiment.device)
    before = torch.cuda.memory_allocated(experiment.device)
    trainer.train([trial], [first])
    return int(torch.cuda.max_memory_allocated(experiment.device)) - before


class _Tensors(TorchDispatchMode):
    """Counts the bytes of the tensors that operations make, from when they are made until they are freed."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.now, self.peak = 0, 0
        self._alive: set[int] = set()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        made = func(*args, **(kwargs or {}))
        given = {id(storage) for storage in self._storages((args, kwargs))}  # a view of what was there is not new
        for storage in self._storages(made):
            if id(storage) not in given | self._alive:
                self._alive.add(id(storage))
                self.now += storage.nbytes()
                self.peak = max(self.peak, self.now)
                weakref.finalize(storage, self._freed, id(storage), storage.nbytes())
        return made

    def _freed(self, key: int, size: int) -> None:
        self._alive.discard(key)
        self.now -= size

    @staticmethod
    def _storages(values: Any) -> list[torch.UntypedStorage]:
        """The memory of all dense tensors in a nest of containers."""
        tensors = (value for value in tree_leaves(values) if isinstance(value, Tensor))
        return [tensor.untyped_storage() for tensor in tensors if tensor.layout is torch.strided]
