"""Run what is missing: what a store does not hold yet, in batches, each written as it ends."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from tadropedge._support.checks import check_kind
from tadropedge.lab.networks.network import RATES
from tadropedge.lab.search.executors import Executor, check_executor
from tadropedge.lab.search.store import Row, Store
from tadropedge.lab.training.callbacks import Callback, Checkpoint, Progress
from tadropedge.lab.training.experiment import Experiment
from tadropedge.lab.training.record import CURVES
from tadropedge.lab.training.trainer import Group, Trainer
from tadropedge.lab.training.trial import Array, Outcome, Trial

OF_ROW = ("best_epoch", "failed", "stopped", "rungs", "kept_share", "seconds")


class Watch:
    """What follows the progress of a search; a watch of your own needs only the methods that it wants."""

    def estimate(self, found: Any) -> None:
        """How much there is to do, an :class:`~tadropedge.lab.search.timing.Estimate`; it is made if this is here."""

    def plan(self, total: int) -> None:
        """So many trainings belong to what begins now, those that are already in the store among them."""

    def trained(self, count: int) -> None:
        """So many more of them are finished and written, or were found in the store."""

    def epoch(self, done: int, total: int) -> None:
        """So many epochs of the batch that trains in this process are done."""

    def replicate(self, found: Mapping[str, Sequence[Any]]) -> None:
        """One more replicate is whole: all of them by now, by candidate."""


def run_missing(
    experiment: Experiment,
    trials: Sequence[Trial],
    store: Store | None = None,
    executor: Executor | None = None,
    watch: object | None = None,
) -> list[Outcome]:
    """The outcomes of trials, in their order; those that the store does not hold are trained and written to it.

    A batch is written when it has ended, all of it or nothing. Where rungs stop trials, what comes of one depends on
    those that it is compared with: if one of them is missing, all are trained.

    >>> from tempfile import TemporaryDirectory
    >>> from tadropedge.lab import TrainingSettings, load
    >>> experiment = Experiment(data=load("karate"), hidden=4, training=TrainingSettings(epochs=3))
    >>> with TemporaryDirectory() as folder, Store(folder) as store:
    ...     first, second = (run_missing(experiment, [Trial(seed=3)], store) for _ in range(2))
    >>> first[0].test_score == second[0].test_score, first[0].seconds == second[0].seconds
    (True, True)
    """
    executor = check_executor(executor)
    if store is not None:
        check_kind("store", store, Store)
    order = [experiment.key(trial) for trial in trials]
    keys = dict(zip(order, trials, strict=True))
    rows = {} if store is None else store.get(keys)
    found = {key: outcome_of(keys[key], row) for key, row in rows.items()}
    batches = _batches(experiment, keys, found)
    missing = sum(map(len, batches))
    tell(watch, "trained", len(keys) - missing)
    checkpoint = Checkpoint(store.path.parent, keep=True) if store is not None and executor.is_here else None
    train = Training(experiment, checkpoint, watch if executor.is_here else None)
    key_of = {trial: key for key, trial in keys.items()}
    for number, outcomes in executor.map(train, batches):
        ended = {key_of[trial]: outcome for trial, outcome in zip(batches[number], outcomes, strict=True)}
        if store is not None:
            store.put("trial", {key: row_of(outcome) for key, outcome in ended.items()})
        if checkpoint is not None:
            checkpoint.remove()
        found |= ended
        tell(watch, "trained", len(ended))
    return [found[key] for key in order]


def _batches(experiment: Experiment, keys: Mapping[str, Trial], found: Collection[str]) -> list[Group]:
    """What is to be trained, in batches; with rungs, those of whole searches in which a trial is missing."""
    missing = [trial for key, trial in keys.items() if key not in found]
    if not missing or not experiment.training.rungs:
        return Trainer(experiment).batches(missing)
    compared = {trial: (experiment.structure(trial), trial.search) for trial in keys.values()}
    begun = {compared[trial] for trial in missing}
    batches = Trainer(experiment).batches([trial for trial in keys.values() if compared[trial] in begun])
    return [batch for batch in batches if not set(missing).isdisjoint(batch)]


@dataclass(frozen=True)
class Training:
    """Trains the batches of an experiment; a ``checkpoint`` holds what is under way, if there is one."""

    experiment: Experiment
    checkpoint: Checkpoint | None = None
    watch: object | None = None

    def __call__(self, trials: Sequence[Trial]) -> list[Outcome]:
        """Train a batch."""
        callbacks: list[Callback] = [] if self.checkpoint is None else [self.checkpoint]
        if self.watch is not None:
            callbacks.append(Progress(partial(tell, self.watch, "epoch")))
        return Trainer(self.experiment).train(trials, callbacks)


def tell(watch: object | None, event: str, *content: object) -> None:
    """Report an event to a watch that has a method for it."""
    listener: Callable[..., object] | None = getattr(watch, event, None)
    if listener is not None:
        listener(*content)


def row_of(outcome: Outcome) -> Row:
    """What a store keeps of an outcome: everything but the model.

    ``candidate`` is what was searched; the trial's own settings stand beside it, for those who look with SQL.
    """
    trial = outcome.trial
    scores = {name: getattr(outcome, name) for name in ("val_score", "test_score", "val_loss")}
    return {
        "candidate": trial.search[0].partition("#")[0],
        "trained": str(trial.candidate),
        **{name: getattr(trial, name) for name in ("replicate", "split", "seed", *RATES)},
        **{name: value if math.isfinite(value) else None for name, value in scores.items()},
        **{name: getattr(outcome, name) for name in OF_ROW},
        **{f"{name}_curve": outcome.curves[name] for name in CURVES},
    }


def outcome_of(trial: Trial, row: Row) -> Outcome:
    """The outcome of a trial from the row of a store."""
    curves: dict[str, Array] = {name: row[f"{name}_curve"] for name in CURVES}
    return Outcome(trial=trial, curves=curves, **{name: row[name] for name in OF_ROW} | {"rungs": tuple(row["rungs"])})
