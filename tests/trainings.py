"""Small trainings, for the tests of everything that trains."""

from __future__ import annotations

import numpy as np

from tadropedge.lab.candidate import Candidate
from tadropedge.lab.data.load import load
from tadropedge.lab.training.experiment import Experiment
from tadropedge.lab.training.trial import TrainingSettings, Trial

KARATE = load("karate")
CURVES = ("train_loss", "val_loss", "val_score", "test_score")


def experiment(data=KARATE, network="gcn", *, hidden=8, epochs=10, keep="loss", model=None, **settings):
    """Everything is evaluated in every epoch, unless a test says otherwise."""
    layers = settings.pop("layers", 2)
    told = TrainingSettings(epochs=epochs, keep=keep, rungs=settings.pop("rungs", ()))
    return Experiment(
        data=data, network=network, layers=layers, hidden=hidden, settings=settings, training=told, model=model
    )


def trial(name, **values):
    return Trial(candidate=Candidate.parse(name), **values)


def same(one, other):
    """Whether two outcomes have the same bits."""
    curves = all(np.array_equal(one.curves[name], other.curves[name], equal_nan=True) for name in CURVES)
    if one.state is None or other.state is None:
        return curves and one.best_epoch == other.best_epoch
    return curves and all(np.array_equal(one.state[name], other.state[name]) for name in one.state)
