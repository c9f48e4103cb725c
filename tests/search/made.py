"""Outcomes made by hand, and executors that make them: what a search does is then known beforehand."""

import numpy as np

from tadropedge.lab import Candidate, Experiment, TrainingSettings, load
from tadropedge.lab.training.trial import Outcome


def experiment(epochs=5, **settings):
    """Karate, as small as can be."""
    training = TrainingSettings(epochs=epochs, **settings.pop("training", {}))
    return Experiment(data=load("karate"), training=training, **{"hidden": 4} | settings)


def candidates(*names):
    return [Candidate.parse(name) for name in names]


def made(trial, validation=0.5, test=0.5, loss=1.0, failed=False):
    """An outcome of two epochs, of which the second is kept."""
    values = {"train_loss": 1.0, "val_loss": loss, "val_score": validation, "test_score": test}
    curves = {name: np.full(2, value, dtype=np.float32) for name, value in values.items()}
    return Outcome(trial=trial, curves=curves, best_epoch=1, failed=failed, kept_share=0.25)


class Made:
    """Gives every trial the outcome that a function of it says, and remembers the trials."""

    is_here = False

    def __init__(self, outcome=made, workers=1):
        self.outcome, self.workers, self.trained = outcome, workers, []

    def map(self, train, batches):
        for number, batch in enumerate(batches):
            self.trained += batch
            yield number, [self.outcome(trial) for trial in batch]


class Stopping:
    """Trains, and stops as by Ctrl-C when so many batches are done; without a number it only counts."""

    is_here, workers = True, 1

    def __init__(self, batches=None):
        self.left, self.trained = batches, []

    def map(self, train, batches):
        for number, batch in enumerate(batches):
            if self.left == 0:
                raise KeyboardInterrupt
            outcomes = train(batch)
            self.left = None if self.left is None else self.left - 1
            self.trained += batch
            yield number, outcomes


def plain(found):
    """Replicates as numbers that can be compared."""
    return {name: [(one.number, one.chosen, one.validation, one.test) for one in rows] for name, rows in found.items()}
