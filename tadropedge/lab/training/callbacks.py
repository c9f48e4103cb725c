"""Callbacks of :func:`tadropedge.lab.training.fit.fit`: progress, checkpoints and loggers.

A callback has four methods, each of which may be left as it is. A logger of one's own takes a few lines::

    class WeightsAndBiases(Callback):
        def start(self, run):
            self.log = wandb.init(config=run.batch.experiment.as_dict())

        def epoch(self, run):
            for number, metrics in run.metrics().items():
                self.log.log({f"{number}/{name}": value for name, value in metrics.items()}, step=run.epoch)

        def end(self, run):
            self.log.finish()
"""

from __future__ import annotations

import hashlib
import json
import logging
import math
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from tadropedge._support.atomic import write_atomic
from tadropedge._support.checks import check_path
from tadropedge._support.fingerprint import fingerprint
from tadropedge.errors import TadropedgeError

if TYPE_CHECKING:
    from tadropedge.lab.training.fit import Run

MARKS = 20  # how often progress is told in a training
DIGEST = hashlib.sha256().digest_size

log = logging.getLogger("tadropedge")


class Callback:
    """What is done while trials train; ``run`` is a :class:`tadropedge.lab.training.fit.Run`."""

    def start(self, run: Run) -> None:
        """Before the first epoch."""

    def step(self, run: Run, gradients: Sequence[Tensor]) -> None:
        """After each backward pass, with the gradients of ``run.parameters``; nothing is recorded then."""

    def epoch(self, run: Run) -> bool | None:
        """After each epoch, of which ``run.epoch`` are done; True ends the training."""

    def end(self, run: Run) -> None:
        """After the last epoch."""


def watches_steps(callback: Callback) -> bool:
    """Whether a callback looks at single steps."""
    return type(callback).step is not Callback.step


class Progress(Callback):
    """Calls ``report(epochs done, epochs in total)`` twenty times during a training.

    On a GPU, epochs are queued long before they run, so each report first waits for the device.
    """

    def __init__(self, report: Callable[[int, int], None]) -> None:
        self.report = report

    def epoch(self, run: Run) -> None:
        """Tell it."""
        epochs = run.training.epochs
        if run.epoch % max(1, epochs // MARKS) == 0 or run.epoch == epochs:
            if run.batch.seeds.is_cuda:
                torch.cuda.synchronize(run.batch.seeds.device)
            self.report(run.epoch, epochs)


class Checkpoint(Callback):
    """Keeps a training in a file of the ``folder`` every so many seconds, and goes on from it with the same bits.

    The file is named after the trials, so a folder may serve many trainings at once. It is written whole or not at all,
    and removed when the training ends; with ``keep`` only by :meth:`remove`, to be called once the outcome is written.
    A file that was changed is not read: the training starts anew, which is logged.
    """

    def __init__(self, folder: str | Path, every: float = 60.0, *, keep: bool = False) -> None:
        self.folder, self.every, self.keep = check_path("folder", folder), every, keep
        self.path, self.last = self.folder, 0.0
        self.ended: list[Path] = []

    def start(self, run: Run) -> None:
        """Go on from the file, if there is one."""
        experiment = run.batch.experiment
        keys = [experiment.key(trial) for trial in run.trials]
        key = fingerprint(trials=keys, rungs=run.batch.rungs, state=sorted(run.record.best_state))
        self.path, self.last = self.folder / f"{key[:32]}.training", time.monotonic()
        if self.path.exists():
            try:
                _load(self.path.read_bytes(), run)
            except (OSError, TadropedgeError) as error:
                log.warning("'%s' %s: the training starts anew", self.path, error)

    def epoch(self, run: Run) -> None:
        """Write the file where it is time."""
        if time.monotonic() - self.last >= self.every:
            write_atomic(self.path, _saved(run))
            self.last = time.monotonic()

    def end(self, run: Run) -> None:
        """Remove the file, if nobody wants it kept."""
        self.ended.append(self.path)
        if not self.keep:
            self.remove()

    def remove(self) -> None:
        """Remove the files of the trainings that have ended."""
        while self.ended:
            self.ended.pop().unlink(missing_ok=True)


def _saved(run: Run) -> bytes:
    """A checkpoint: the digest of what follows, and the tensors of a run with its epoch and its trials."""
    from safetensors.torch import save

    place = {"epoch": run.epoch, "places": run.record.places.tolist()}
    content: bytes = save(
        {name: value.detach().cpu().contiguous() for name, value in run.tensors().items()}, {"run": json.dumps(place)}
    )
    return hashlib.sha256(content).digest() + content


def _load(saved: bytes, run: Run) -> None:
    """Put a run where a checkpoint says that it was."""
    from safetensors.torch import load

    digest, content = saved[:DIGEST], saved[DIGEST:]
    if hashlib.sha256(content).digest() != digest:
        raise TadropedgeError("is damaged")
    try:
        tensors, length = load(content), int.from_bytes(content[:8], "little")
        place = json.loads(json.loads(content[8 : 8 + length])["__metadata__"]["run"])
    except Exception as error:  # a file whose digest is right and whose content is not of ours
        raise TadropedgeError("is no checkpoint") from error
    run.resume(place["epoch"], place["places"], tensors)


class TensorBoard(Callback):
    """Writes the curves of every trial for TensorBoard, which must be installed."""

    def __init__(self, folder: str | Path) -> None:
        self.folder = check_path("folder", folder)
        self.writer: Any = None

    def start(self, run: Run) -> None:
        """Open the files."""
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError as error:
            raise TadropedgeError("TensorBoard needs the package tensorboard: pip install tensorboard") from error
        self.writer = SummaryWriter(str(self.folder))

    def epoch(self, run: Run) -> None:
        """Write what was recorded of the epoch."""
        for number, metrics in run.metrics().items():
            for name, value in metrics.items():
                if math.isfinite(value):  # not every epoch is evaluated
                    self.writer.add_scalar(f"{number}/{name}", value, run.epoch)

    def end(self, run: Run) -> None:
        """Close the files."""
        self.writer.close()
