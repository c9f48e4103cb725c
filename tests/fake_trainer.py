"""A trainer that trains nothing: outcomes are a pure function of the trial, so searches can be compared exactly."""

import math
import os
import signal
import time
import zlib
from dataclasses import asdict
from pathlib import Path

import numpy as np
import sqlalchemy

from tadropedge.search.engine import run_search
from tadropedge.search.protocol import honest
from tadropedge.search.space import default_space
from tadropedge.training.config import Outcome, Trial

METHODS = ("original", "dropedge", "cdf", "effective-cdf")
EPOCHS = 5
# What decides the result; batch and storage do not.
SEARCH = {"space": default_space(0.01), "seed": 3, "name": "fake/gcn-2", "settings": {"epochs": EPOCHS}}
TRIALS, REPLICATES = 5, 2  # of one comparison


def outcome(trial: Trial) -> Outcome:
    """Curves that depend on every setting; a learning rate above 0.007 without batch norm diverges."""
    noise = np.random.default_rng(zlib.crc32(repr(asdict(trial)).encode()))
    curves = {name: noise.random(EPOCHS, dtype=np.float32) for name in ("train_loss", "val_loss", "val_accuracy")}
    # Most of it is decided by the settings, so that there is something to find.
    good = -abs(math.log10(trial.weight_decay) + 4) - abs(trial.keep_prob - 0.7)
    curves["val_accuracy"] = (0.8 + 0.1 * good + 0.01 * curves["val_accuracy"]).astype(np.float32)
    test = (curves["val_accuracy"] + 0.01 * noise.random(EPOCHS, dtype=np.float32)).astype(np.float32)
    failed = trial.learning_rate > 0.03 and not trial.settings.get("batch_norm")
    best = int(curves["val_loss"].argmin())
    return Outcome(trial=trial, **curves, test_accuracy=test, best_epoch=best, failed=failed)


class Trainer:
    """Logs every trial when it is trained, and takes its time where asked."""

    def __init__(self, log: Path | None = None, seconds: float = 0.0) -> None:
        self.batches: list[list[Trial]] = []
        self.log, self.seconds = log, seconds

    def __call__(self, trials) -> list[Outcome]:
        self.batches.append(list(trials))
        for one in trials:
            time.sleep(self.seconds)
            if self.log is not None:
                with self.log.open("a") as stream:
                    stream.write(f"{one!r}\n")
        return [outcome(one) for one in trials]

    @property
    def trials(self) -> list[Trial]:
        return [one for batch in self.batches for one in batch]


def kept_share(trial: Trial) -> float:
    """As on many edges: cdf keeps half of what p would drop, and here effective resistances keep a third."""
    return trial.keep_prob + (1 - trial.keep_prob) / (3 if trial.method.startswith("effective") else 2)


def compare(storage, train, batch=3):
    """A search and the honest protocol after it, as one text: equal texts are equal tables, to the last bit."""
    table = run_search(train, methods=METHODS, trials=TRIALS, storage=storage, batch=batch, **SEARCH)
    result = honest(train, table, replicates=REPLICATES, storage=storage, kept_share=kept_share, batch=batch, **SEARCH)
    arrays = {"accuracy": result.accuracy, "reference": result.reference}
    return "\n".join(repr(part) for part in (table, result.runs, result.reference_runs, result.kept_share, arrays))


def run_and_be_killed(storage: Path, log: Path, answer: Path, statement: int | None = None) -> None:
    """A whole comparison in a process of its own; dies by SIGKILL after its ``statement``-th line of SQL."""
    left = [statement]

    def count(*_) -> None:
        if left[0] is not None:
            left[0] -= 1
            if left[0] == 0:
                os.kill(os.getpid(), signal.SIGKILL)

    sqlalchemy.event.listen(sqlalchemy.engine.Engine, "after_cursor_execute", count)
    text = compare(storage, Trainer(log, seconds=0.02))
    answer.write_text(text)
