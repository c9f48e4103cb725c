"""One training over all processes: refused where it cannot be spread, dealt out, resumed, trained, kept."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from tadropedge._old.distributed.batch import SpreadBatch
from tadropedge._old.distributed.checkpoint import NAME, read_checkpoint, restore, write_checkpoint
from tadropedge._old.distributed.deal import WholeTask, deal
from tadropedge._old.distributed.group import Group
from tadropedge._old.distributed.partition import partition
from tadropedge._old.errors import SpreadError, TadropedgeError
from tadropedge._old.fingerprint import fingerprint, of_this_package
from tadropedge._old.method import Method
from tadropedge._old.nn.network import Network
from tadropedge._old.registry import NETWORKS
from tadropedge._old.training.config import Architecture, Outcome, Trial, plug_ins
from tadropedge._old.training.edges import edge_coins
from tadropedge._old.training.laboratory import Laboratory, make_task, matmul_precision
from tadropedge._old.training.task import training_nodes
from tadropedge._old.training.trainer import check_trial

VERSION = 1  # of what a checkpoint holds
# Options of a method that look at all edges of the graph at once, and why no process can.
WHOLE_GRAPH = {
    "connected": "a spanning forest is one of the whole graph, which no process holds",
    "exact": "the number of kept edges is one of the whole graph, and masks are never sent",
}


@dataclass(frozen=True, kw_only=True)
class Keeping:
    """Where a training keeps checkpoints, and after how many epochs; without a folder there are none."""

    folder: Path | None = None
    every: int = 20


def check_spread(architecture: Architecture, trial: Trial) -> None:
    """Refuse, in one line, what cannot be trained on a graph that is spread over processes.

    >>> check_spread(Architecture(), Trial("cdf:connected"))
    Traceback (most recent call last):
    tadropedge._old.errors.TadropedgeError: 'cdf:connected' cannot be trained by several processes: a spanning forest is \
one of the whole graph, which no process holds; leave out connected
    >>> check_spread(Architecture(), Trial("graphsage"))
    Traceback (most recent call last):
    tadropedge._old.errors.TadropedgeError: graphsage cannot be trained by several processes; choose from gcn, jknet, \
incepgcn, resgcn, gcnii, appnp, sage, mlp, gat
    """
    name, network = architecture.network(trial.method)
    if not spreads(network):
        fitting = ", ".join(name for name, network in NETWORKS.items() if spreads(network))
        raise TadropedgeError(f"{name} cannot be trained by several processes; choose from {fitting}")
    for option in Method.of(trial.method).options:
        if option in WHOLE_GRAPH:
            raise TadropedgeError(
                f"{trial.method!r} cannot be trained by several processes: {WHOLE_GRAPH[option]}; leave out {option}"
            )
    if architecture.settings_of(trial).get("normalization") == "spectral":
        raise TadropedgeError(
            "normalization 'spectral' cannot be used by several processes: it divides by an eigenvalue of the whole "
            "graph; choose another, such as gcn"
        )
    if trial.batch_size is not None:
        raise TadropedgeError(
            f"batch_size={trial.batch_size} cannot be used where the rows of a graph are spread over processes: every "
            "step sees all of them"
        )


def spreads(network: type[Network]) -> bool:
    """Whether the rows of a network of this package can be spread; of a user's own class nobody knows."""
    return network.spreads and of_this_package(network)


@dataclass(frozen=True, kw_only=True, eq=False)
class SpreadPlan:
    """What all processes must know; the first one makes it."""

    architecture: Architecture
    trial: Trial
    course: Any
    precision: str
    training: str  # the fingerprint of all that decides the outcome
    checkpoint: dict[str, torch.Tensor] | None

    @property
    def epochs_done(self) -> int:
        """How many epochs the checkpoint holds."""
        return 0 if self.checkpoint is None else int(self.checkpoint["epoch"])


def prepare(
    laboratory: Laboratory, trial: Trial, size: int, how: str, keeping: Keeping
) -> tuple[SpreadPlan, WholeTask]:
    """What the first process does alone, on the CPU: check, score, partition, look for a checkpoint."""
    architecture, data = laboratory.architecture, laboratory.dataset
    check_spread(architecture, trial)
    check_trial(trial, architecture, laboratory.selection, data.level, per_layer=laboratory.per_layer)
    whole = whole_of(laboratory, trial, partition(data.graph, size, how))
    course = laboratory._course(keep_state=True)
    training = fingerprint(
        version=VERSION,
        trial=trial,
        settings=laboratory.settings,
        plug_ins=plug_ins(trial.method),
        gradient_norms=laboratory._records_gradients,
    )
    known = None if keeping.folder is None else read_checkpoint(keeping.folder, training)
    return (
        SpreadPlan(
            architecture=architecture,
            trial=trial,
            course=course,
            precision=laboratory.precision,
            training=training,
            checkpoint=known,
        ),
        whole,
    )


def whole_of(laboratory: Laboratory, trial: Trial, owner: torch.Tensor) -> WholeTask:
    """The task and the keep probabilities of one trial, to be dealt out by ``owner [N]``."""
    task = make_task(laboratory.dataset, [laboratory.split(trial.split)], laboratory._needed([trial]))
    network = task.network(laboratory.architecture, [trial])
    training = training_nodes(task, [0])
    coins = edge_coins(task, network, [trial], torch.zeros(1, dtype=torch.int64), training, laboratory.per_layer)
    return WholeTask(task=task, rows=coins.rows, shares=coins.shares, owner=owner)


def train_spread(
    group: Group,
    made: tuple[SpreadPlan, WholeTask] | None,
    keeping: Keeping,
    progress: Callable[[int, int], None] | None = None,
) -> Outcome:
    """Train what the first process ``made``; every process returns the same outcome.

    ``progress(epoch, epochs)`` is called after every epoch. Checkpoints are written by the first process; when the
    training is finished, the last one is still there: see :func:`forget`.
    """
    plan: SpreadPlan = group.from_first(None if made is None else made[0])
    task = deal(group, None if made is None else made[1])
    batch = SpreadBatch(task, plan.architecture, [plan.trial], plan.course)
    if plan.checkpoint is not None:
        restore(batch, plan.checkpoint)
    launcher = os.getppid()

    def reached(epoch: int) -> None:
        if (
            keeping.folder is not None
            and group.rank == 0
            and (epoch % keeping.every == 0 or epoch == plan.course.epochs)
        ):
            write_checkpoint(keeping.folder, batch, plan.training)
        if os.getppid() != launcher:  # or nobody would end these processes
            if group.rank == 0:
                raise SpreadError(f"torchrun ended after epoch {epoch}; run the same command again to go on from there")
            sys.exit(2)
        if progress is not None:
            progress(epoch, plan.course.epochs)

    with matmul_precision(plan.precision):
        return batch.run(reached)[0]


def forget(keeping: Keeping) -> None:
    """Remove the checkpoint of a training whose model is saved."""
    if keeping.folder is not None:
        (keeping.folder / NAME).unlink(missing_ok=True)
