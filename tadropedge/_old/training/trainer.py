"""The trainer: any list of trials, in groups that train as one program."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import torch

from tadropedge._old.checks import check_integer
from tadropedge._old.errors import TadropedgeError
from tadropedge._old.method import Method
from tadropedge._old.training.batch import Batch, Course, mini_batches
from tadropedge._old.training.config import Architecture, Outcome, Trial, check_weighs
from tadropedge._old.training.edges import edge_coins, falls
from tadropedge._old.training.task import TRAIN, Task, training_nodes


def train(
    task: Task,
    architecture: Architecture,
    trials: Sequence[Trial],
    course: Course,
    *,
    split_places: Sequence[int] | None = None,
    progress: Callable[[int, int, int], None] | None = None,
) -> list[Outcome]:
    """Train all ``trials`` and return their outcomes in order.

    The kept model is the one of lowest validation loss, measured in evaluation mode (``selection="evaluation"``)
    or on the training pass, as DropEdge does (``"training"``). ``per_layer`` draws a new subgraph for each layer.
    Trials that differ in structure (network, shared settings, mini-batches, options) are trained one group after the
    other, and so is each trial of an opaque network, a user's own module. Evaluation is on the whole graph, whatever
    the options.
    ``split_places`` gives the place of each trial's split in ``task.splits``; by default it is the split's number.
    ``progress(finished, together, epoch)``: so many trials are finished, and a group of so many has passed an epoch.
    """
    where = [trial.split for trial in trials] if split_places is None else split_places
    groups: dict[tuple[object, ...], list[int]] = {}
    for place, trial in enumerate(trials):
        level = "node" if task.features.dim() == 2 else "graph"
        check_trial(trial, architecture, course.selection, level, per_layer=course.per_layer)
        alone = (place,) if architecture.network(trial.method)[1].opaque else ()
        groups.setdefault((*structure(trial, architecture, task, where[place]), *alone), []).append(place)
    outcomes: dict[int, Outcome] = {}
    batches = [([trials[place] for place in places], [where[place] for place in places]) for places in groups.values()]
    if len(batches) > 1:  # a single one checks itself as it starts
        for mine, splits in batches:
            check_options(task, architecture, mine, splits, course)
    for places, (mine, splits) in zip(groups.values(), batches, strict=True):
        report = None if progress is None else partial(progress, len(outcomes), len(mine))
        outcomes |= dict(zip(places, Batch(task, architecture, mine, splits, course).run(report), strict=True))
    return [outcomes[place] for place in range(len(trials))]


def structure(trial: Trial, architecture: Architecture, task: Task, split_place: int) -> tuple[object, ...]:
    """What trials that are trained together share: the network, its shared settings, the mini-batches, the options."""
    name, network = architecture.network(trial.method)
    settings, sizes = architecture.settings_of(trial), [len(part) for part in task.splits[split_place]]
    shared = (settings[key] for key in network.shared)
    samples = sizes if network.level == "graph" else []
    options = (*Method.of(trial.method).options, falls(trial))
    return (name, *shared, *samples, *mini_batches(trial, architecture, sizes[TRAIN]), *options)


def check_trial(
    trial: Trial, architecture: Architecture, selection: str, level: str, *, per_layer: bool = False
) -> None:
    """Refuse a trial that its network cannot be trained with, before training starts."""
    check_named(trial)
    name, network = architecture.network(trial.method)
    if network.level != level:
        raise TadropedgeError(f"{name} is for {network.level}-level tasks and cannot be trained on a {level}-level one")
    check_integer(f"layers of {name}", architecture.layers, least=network.least_layers)
    architecture.settings_of(trial)
    method = Method.of(trial.method)
    if method.strategy is not None and not network.drops:
        raise TadropedgeError(f"{name} {network.because} and cannot be trained with {trial.method}: take original")
    check_weighs(name, trial.method)
    if network.opaque and (per_layer or "nested" in method.options):
        asked = "per_layer" if per_layer else f"{trial.method!r}: the option nested"
        raise TadropedgeError(
            f"{asked} needs a subgraph for each layer, and the layers inside the model {name!r} are not seen: it is "
            "given one subgraph per step"
        )
    if per_layer and "nested" in method.options:
        raise TadropedgeError(
            f"{trial.method}: nested and per_layer exclude each other: nested masks come from one coin for all layers, "
            "with per_layer each layer has coins of its own"
        )
    if selection != "evaluation" and network.sampled:
        raise TadropedgeError(
            f"{trial.method} has no validation loss on its training pass: selection {selection!r} cannot be used, "
            "choose evaluation"
        )


def check_named(trial: Trial) -> None:
    """Refuse ``auto``, which is no method of its own.

    >>> check_named(Trial("auto"))
    Traceback (most recent call last):
    tadropedge._old.errors.TadropedgeError: 'auto' is a search over methods, which compare runs; to train one model, name a \
method such as degree-proportional
    """
    if Method.of(trial.method).auto:
        raise TadropedgeError(
            f"{trial.method!r} is a search over methods, which compare runs; to train one model, name a method such as "
            "degree-proportional"
        )


def check_options(
    task: Task, architecture: Architecture, trials: Sequence[Trial], split_places: Sequence[int], course: Course
) -> None:
    """Refuse trials of one structure whose keep probabilities do not allow their options, before any is trained."""
    if Method.of(trials[0].method).options:
        network = task.network(architecture, trials)
        training = training_nodes(task, split_places)
        seeds = torch.zeros(len(trials), dtype=torch.int64, device=task.graph.device)
        edge_coins(task, network, trials, seeds, training, course.per_layer)
