"""Trainings on a worker of Ray: a task that trains one batch, and says on a board how far it is.

A trainer is packed once, with the user's own scores, rules and networks that it needs, and lies in Ray's object store.
A worker process unpacks it for its first batch, moves it to its own device and keeps it for the batches that follow.
"""

from __future__ import annotations

import os
import pickle
import signal
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from tadropedge._old import __version__
from tadropedge._old.board import Key
from tadropedge._old.errors import TadropedgeError, show
from tadropedge._old.fingerprint import INSTALLED, PACKAGE, STANDARD, of_this_package
from tadropedge._old.registry import MEASURES, NETWORKS, SCORES, STRATEGIES
from tadropedge._old.training.config import Outcome, Trial
from tadropedge._old.training.laboratory import VERSION, Laboratory
from tadropedge._old.watching import Event, Moment, watching

REGISTRIES: dict[str, Any] = {"scores": SCORES, "strategies": STRATEGIES, "networks": NETWORKS, "measures": MEASURES}
HEARD = 30.0  # seconds in which the first note should be on the board
BETWEEN = 0.25  # seconds from one note on the board to the next
VERSIONS = {"tadropedge": __version__, "training": str(VERSION)}
Train = Callable[[Sequence[Trial]], Sequence[Outcome]]


@dataclass(frozen=True, kw_only=True)
class Errand:
    """Where a task finds its trainer, and what it may use: the reference is inside, so that Ray does not unpack it."""

    packed: Any  # the reference to it
    board: Any
    gpus: float
    versions: Mapping[str, str]


def packed(train: Train, trials: Sequence[Trial]) -> bytes:
    """A trainer as bytes, with all that another process needs to train these trials.

    A laboratory is packed on the CPU, with its scores. Modules that are not installed are packed with their code.
    """
    from ray import cloudpickle

    laboratory = laboratory_of(train)
    if laboratory is not None:
        train = getattr(laboratory.moved(trials, "cpu"), train.__name__)
    own = {kind: _own(registry) for kind, registry in REGISTRIES.items()}
    entries = [entry for table in own.values() for entry in table.values()]
    by_value = _not_installed([*entries, *(getattr(entry, "factory", entry) for entry in entries), train])
    for module in by_value:
        cloudpickle.register_pickle_by_value(module)
    try:
        path = [folder for folder in sys.path if folder]
        return bytes(cloudpickle.dumps((path, cloudpickle.dumps(own), cloudpickle.dumps(train))))
    except (pickle.PicklingError, TypeError, AttributeError, ValueError) as error:
        names = ", ".join(name for table in own.values() for name in table) or show(train, typed=False)
        raise TadropedgeError(f"{names} cannot be sent to the workers of Ray ({error})") from error
    finally:
        for module in by_value:
            cloudpickle.unregister_pickle_by_value(module)


def laboratory_of(train: object) -> Laboratory | None:
    """The laboratory of which a trainer is a method."""
    owner = getattr(train, "__self__", None)
    return owner if isinstance(owner, Laboratory) else None


def _own(registry: Any) -> dict[str, Any]:
    """The entries of a registry that a user added; those that were never used are ours."""
    known = {name: entry for name, entry in registry._entries.items() if not isinstance(entry, str)}
    return {name: entry for name, entry in known.items() if not of_this_package(entry)}


def _not_installed(entries: Sequence[Any]) -> list[Any]:
    """The modules of these that a worker may not have, and those beside them: neither installed nor ours."""
    names = {str(getattr(entry, "__module__", "")) for entry in entries}
    folders = {Path(file).resolve().parent for name in names if (file := _source(name)) is not None}
    loaded = {name: file for name in list(sys.modules) if (file := _source(name)) is not None}
    return [
        sys.modules[name]
        for name, file in loaded.items()
        if any(folder in Path(file).resolve().parents for folder in folders)
    ]


def _source(name: str) -> str | None:
    """The file of a loaded module that is not installed."""
    file = getattr(sys.modules.get(name), "__file__", None)
    if not isinstance(file, str) or name == "__main__" or name.partition(".")[0] == PACKAGE:
        return None
    installed = INSTALLED & set(Path(file).parts) or file.startswith(STANDARD)
    return None if installed else file


# -- in the worker ------------------------------------------------------------------------------------------------

_unpacked: dict[str, Train] = {}  # the last one, by its reference


class Dismissed(Exception):  # noqa: N818
    """Nobody waits for this batch any more."""


def train_batch(work: Errand, key: Key, trials: Sequence[Trial]) -> list[Outcome]:
    """Train one batch; what does not fit into the memory of this worker is cut as in one process."""
    try:
        note = _Note(work.board, key, len(trials))
        _check_versions(work.versions)
        torch.set_num_threads(1)  # as many as the task asks for: numbers do not depend on where it runs
        train = _trainer(work)
        note.tell(None)
        with watching(note.tell):
            return list(train(trials))
    except Dismissed:
        return []


def fitting(work: Errand, trials: Sequence[Trial]) -> int:
    """How many of these trials fit at once into the memory of this worker."""
    _check_versions(work.versions)
    laboratory = laboratory_of(_trainer(work))
    return len(trials) if laboratory is None else laboratory.fitting(trials)


def end_process(number: int) -> None:
    """End a process of this node that hangs: one that is stopped, or waits in a driver, does not hear Ray."""
    with suppress(ProcessLookupError):
        os.kill(number, signal.SIGKILL)


def _trainer(work: Errand) -> Train:
    import ray

    name = work.packed.hex()
    if name not in _unpacked:
        _unpacked.clear()  # before the next one is moved to the device
        path, own, train = pickle.loads(ray.get(work.packed))
        sys.path += [folder for folder in path if folder not in sys.path]
        for kind, table in pickle.loads(own).items():
            for entry, found in table.items():
                REGISTRIES[kind][entry] = found
        _unpacked[name] = _moved(pickle.loads(train), "cuda" if work.gpus else "cpu")
    return _unpacked[name]


def _moved(train: Train, device: str) -> Train:
    laboratory = laboratory_of(train)
    return train if laboratory is None else getattr(laboratory.moved([], device), train.__name__)


def _check_versions(wanted: Mapping[str, str]) -> None:
    if wanted != VERSIONS:
        here, there = (", ".join(f"{name} {one}" for name, one in table.items()) for table in (VERSIONS, wanted))
        raise TadropedgeError(f"a worker of Ray has {here}, and this process {there}: install the same on all machines")


class _Note:
    """Says on the board how far one try of a batch is, not too often."""

    def __init__(self, board: Any, key: Key, trials: int) -> None:
        import ray

        self._board, self._key, self._last = board, key, 0.0
        self._moment = Moment(trainings=trials, finished=0, together=trials, epoch=0, epochs=1)
        self._process = ray.get_runtime_context().get_node_id(), os.getpid()
        # What hangs from now on is known to have begun.
        self._answer = board.note.remote(key, self._process, self._moment)
        self._heed(HEARD)

    def tell(self, event: Event | None) -> None:
        """Note where the trainings are; whatever else is told is a sign of life."""
        self._moment = event if isinstance(event, Moment) else self._moment
        now = time.monotonic()
        if event is None or now - self._last >= BETWEEN:
            self._last = now
            self._heed(0)
            self._answer = self._board.note.remote(self._key, self._process, self._moment)

    def _heed(self, seconds: float) -> None:
        """Stop if the board answered that nobody waits; an answer that is not there yet is not waited for."""
        import ray

        wanted = True
        with suppress(ray.exceptions.RayError):
            wanted = ray.get(self._answer, timeout=seconds)
        if not wanted:
            raise Dismissed
