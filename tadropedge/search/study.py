"""Finished trials as Optuna studies, which ``optuna-dashboard`` opens and an interruption does not lose.

A trial enters its study only when it is finished, with all its results, in one transaction. So a study always holds
whole trials and nothing else, even if the process dies; on the next start the finished indices are read back.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import KW_ONLY, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import optuna
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution
from optuna.storages.journal import JournalFileBackend, JournalFileOpenLock
from optuna.trial import FrozenTrial, TrialState
from sqlalchemy.exc import SQLAlchemyError

from tadropedge.errors import TadropedgeError, reason
from tadropedge.files import beside, make_folder, sync_folder
from tadropedge.search.space import Choice, LogUniform, Parameter, Space
from tadropedge.training.config import METRICS, Outcome, Trial

Storage = str | Path | optuna.storages.BaseStorage
Curves = Mapping[str, list[float]]

POINTS = 200  # of a stored curve: enough for a figure, and short enough for every database

# No driver, no such place, no database, one of another Optuna, a name that is no URL.
STORAGE_ERRORS = (ImportError, OSError, LookupError, RuntimeError, ValueError, SQLAlchemyError)
# Optuna checks the operations of a journal with assert, or not at all.
NO_OPERATION = (LookupError, TypeError, AttributeError, AssertionError, optuna.exceptions.OptunaError)


@dataclass(frozen=True)
class Finished:
    """One finished trial: its number in the search, its settings, and the results of the kept model.

    Where ``failed`` is set, losses and accuracies are NaN. ``curves`` holds at most 200 points of each curve of
    the training, beside their ``epoch``; the search leaves it out.
    """

    index: int
    trial: Trial
    _: KW_ONLY
    train_loss: float
    val_loss: float
    val_accuracy: float
    test_accuracy: float
    best_epoch: int
    failed: bool = False
    curves: Curves | None = field(default=None, repr=False)

    @classmethod
    def of(cls, index: int, outcome: Outcome, curves: bool = False) -> Finished:
        """What is kept of an outcome."""
        stored = _curves(outcome) if curves and not outcome.failed else None
        best, failed = outcome.best_epoch, outcome.failed
        return cls(index, outcome.trial, **outcome.kept, best_epoch=best, failed=failed, curves=stored)


class Ledger:
    """The finished trials of one method, by index, in one Optuna study.

    ``settings`` holds whatever else decides an outcome (epochs, hidden, ...), as plain values. They are stored
    with the space, and a study made with other settings is refused.

    >>> memory = optuna.storages.InMemoryStorage()
    >>> ledger = Ledger(memory, "karate/gcn-2/search/cdf", "cdf", Space.of({"dropout": [0.3, 0.5]}), {"epochs": 4})
    >>> numbers = {"train_loss": 0.5, "val_loss": 0.6, "val_accuracy": 0.75, "test_accuracy": 0.5}
    >>> ledger.write([Finished(0, Trial("cdf", dropout=0.3), **numbers, best_epoch=3)])
    >>> Ledger(memory, ledger.name, "cdf", ledger.space, {"epochs": 4}).finished == ledger.finished
    True
    >>> Ledger(memory, ledger.name, "cdf", ledger.space, {"epochs": 5})
    Traceback (most recent call last):
    tadropedge.errors.TadropedgeError: study 'karate/gcn-2/search/cdf' was made with epochs=4 (now 5); \
take the old setting, or another name or storage
    """

    def __init__(
        self,
        storage: optuna.storages.BaseStorage,
        name: str,
        method: str,
        space: Space,
        settings: Mapping[str, object],
    ) -> None:
        self.name, self.method, self.space = name, method, space
        self._distributions = distributions(space)
        with quiet(), named_failures(f"cannot open study {name!r}", storage):
            self._study = _study(storage, name)
            self._check_settings(settings)
            ended = self._study.get_trials(deepcopy=False, states=(TrialState.COMPLETE, TrialState.FAIL))
        self.finished: dict[int, Finished] = {}
        for stored in ended:
            if "index" in stored.user_attrs:
                # If two processes ran the same index, both hold the same trial: the first one counts.
                row = _read(stored, method)
                self.finished.setdefault(row.index, row)

    def holds(self, index: int, trial: Trial) -> bool:
        """Whether ``index`` is finished; if so, it must have been this very trial."""
        if index not in self.finished:
            return False
        stored, wanted = _told(self.finished[index].trial), _told(trial)
        for name in dict.fromkeys((*stored, *wanted)):
            if stored.get(name) != wanted.get(name):
                raise TadropedgeError(
                    f"trial {index} of study {self.name!r} was run with {name}={stored.get(name)!r} "
                    f"(now {wanted.get(name)!r}); take another name or storage"
                )
        return True

    def write(self, rows: Iterable[Finished]) -> None:
        """Add finished trials, each in one transaction."""
        for row in rows:
            with named_failures(f"cannot write trial {row.index} to study {self.name!r}", self._study._storage):
                self._study.add_trial(_frozen(row, self._distributions))
            self.finished[row.index] = row

    def _check_settings(self, settings: Mapping[str, object]) -> None:
        space = {f"space.{name}": entry for name, entry in self.space.table().items()}
        wanted = json.loads(json.dumps({"method": self.method, **settings, **space}))  # as it will be read back
        stored = self._study.user_attrs.get("settings")
        if stored is None:
            if self._study.get_trials(deepcopy=False):
                raise TadropedgeError(f"study {self.name!r} is not one of ours: it has trials but no settings")
            # The process may have died between the creation of a study and this line.
            self._study.set_user_attr("settings", wanted)
            return
        # Studies from before training had a version are of version 1.
        stored, wanted = ({"training": 1, **table} for table in (stored, wanted))
        differing = [
            f"{key}={stored.get(key)!r} (now {wanted.get(key)!r})"
            for key in dict.fromkeys((*wanted, *stored))
            if stored.get(key) != wanted.get(key)
        ]
        if differing:
            raise TadropedgeError(
                f"study {self.name!r} was made with {', '.join(differing)}; "
                "take the old setting, or another name or storage"
            )


def open_storage(storage: Storage) -> optuna.storages.BaseStorage:
    """An Optuna storage from a path (SQLite, or a journal where it ends in .journal), any Optuna URL, or a storage.

    A journal is a file that only grows: a trial is written in half a millisecond, where SQLite takes twenty.

    >>> type(open_storage("sqlite:///:memory:")).__name__
    '_CachedStorage'
    """
    if isinstance(storage, str | Path) and str(storage).endswith(".journal"):
        return _journal(Path(storage))
    return optuna.storages.get_storage(
        storage if isinstance(storage, optuna.storages.BaseStorage) else _connect(storage)
    )


def _journal(path: Path) -> optuna.storages.JournalStorage:
    """Open a journal; half a line at its end, left by an interrupted process, is cut off."""
    path = path.expanduser().absolute()
    try:
        make_folder(path.parent)
        if not path.exists():
            path.touch()
            sync_folder(path.parent)
        lock = JournalLock(path)
        lock.acquire()
        lock.release()
        return optuna.storages.JournalStorage(JournalFileBackend(str(path), lock))
    except (OSError, ValueError) as error:
        raise TadropedgeError(f"cannot open the study storage '{path}': {reason(error)}") from error
    except NO_OPERATION as error:
        raise TadropedgeError(f"cannot open the study storage '{path}': a line is no operation of Optuna") from error


class JournalLock(JournalFileOpenLock):
    """A lock on the journal itself, which ends with its process: Optuna's own makes the next one wait for 30 seconds.

    Whoever takes it cuts off half a line at the end, which a process left that died or found the disk full.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def acquire(self) -> bool:
        """Wait until no other process writes."""
        self._file = self._path.open("r+b")
        if os.name != "nt":
            import fcntl

            fcntl.flock(self._file, fcntl.LOCK_EX)
        if self._file.seek(0, os.SEEK_END) and self._last() != b"\n":
            self._file.seek(0)
            self._file.truncate(self._file.read().rfind(b"\n") + 1)
        return True

    def release(self) -> None:
        """Let others write."""
        self._file.close()

    def _last(self) -> bytes:
        self._file.seek(-1, os.SEEK_END)
        return self._file.read()


@contextmanager
def named_failures(doing: str, storage: optuna.storages.BaseStorage) -> Iterator[None]:
    """A disk that is full or fails is one line, which says what could not be done, and where."""
    try:
        yield
    except (optuna.exceptions.StorageInternalError, SQLAlchemyError, OSError) as error:
        raise TadropedgeError(f"{doing} in '{_place(storage)}': {reason(error)}") from error


def _place(storage: optuna.storages.BaseStorage) -> str:
    """The file of a storage, or the name of its database: a URL may hold a password."""
    inner = getattr(storage, "_backend", storage)  # a cache, or a journal
    if isinstance(inner, optuna.storages.RDBStorage):
        return str(inner.engine.url.database)
    return str(getattr(inner, "_file_path", type(storage).__name__))


@contextmanager
def opened(storage: Storage) -> Iterator[optuna.storages.BaseStorage]:
    """A storage for the duration of a block; one that was already open stays open."""
    if isinstance(storage, optuna.storages.BaseStorage) or str(storage).endswith(".journal"):
        yield open_storage(storage)
        return
    connected = _connect(storage)
    try:
        yield open_storage(connected)
    finally:
        connected.remove_session()
        connected.engine.dispose()


def _connect(storage: str | Path) -> optuna.storages.RDBStorage:
    url = str(storage)
    try:
        if "://" not in url:
            path = Path(storage).expanduser().absolute()
            make_folder(path.parent)
            if not path.exists():
                _create(path)
            url = f"sqlite:///{path}"
        # A dashboard that reads may hold the file for a moment: wait for it.
        waiting = {"connect_args": {"timeout": 60}} if url.startswith("sqlite") else None
        return optuna.storages.RDBStorage(url, engine_kwargs=waiting)
    except (*STORAGE_ERRORS, optuna.exceptions.OptunaError) as error:
        raise TadropedgeError(f"cannot open the study storage '{storage}': {reason(error)}") from error


def _create(path: Path) -> None:
    """Make a database with all its tables, or none: one that was left half made would lack indices for ever."""
    temporary = beside(path)
    try:
        empty = optuna.storages.RDBStorage(f"sqlite:///{temporary}")
        empty.remove_session()
        empty.engine.dispose()
        with suppress(OSError):  # another process was faster, or the file system has no links: then it is made in place
            os.link(temporary, path)
            sync_folder(path.parent)
    finally:
        temporary.unlink(missing_ok=True)


def _study(storage: optuna.storages.BaseStorage, name: str) -> optuna.Study:
    """The study of this name, created if there is none; opening an existing one writes nothing."""
    try:
        return optuna.load_study(study_name=name, storage=storage)
    except KeyError:
        return optuna.create_study(storage=storage, study_name=name, direction="maximize", load_if_exists=True)


def study_name(dataset: str, backbone: str, layers: int, *more: str) -> str:
    """The prefix of the names of all studies of one comparison.

    >>> study_name("cora", "gcn", 2, "combinatorial")
    'cora/gcn-2/combinatorial'
    """
    return "/".join((dataset, f"{backbone}-{layers}", *more))


def distributions(space: Space) -> dict[str, BaseDistribution]:
    """The space in Optuna's words."""
    return {name: _distribution(parameter) for name, parameter in space.parameters.items()}


def _distribution(parameter: Parameter) -> BaseDistribution:
    if isinstance(parameter, Choice):
        return CategoricalDistribution(parameter.values)
    if isinstance(parameter, LogUniform):
        return FloatDistribution(parameter.low, parameter.high, log=True)
    return FloatDistribution(parameter.low, parameter.high, step=parameter.step)


def _told(trial: Trial) -> dict[str, Any]:
    """Everything that identifies a trial."""
    return {**trial.flat(), "method": trial.method, "seed": trial.seed, "split": trial.split}


def _frozen(row: Finished, space: dict[str, BaseDistribution]) -> FrozenTrial:
    """A finished trial as Optuna stores it: the objective is the validation accuracy."""
    attributes: dict[str, Any] = {
        "index": row.index,
        "seed": row.trial.seed,
        "split": row.trial.split,
        "best_epoch": row.best_epoch,
        "failed": row.failed,
    }
    if not row.failed:  # NaN is no JSON
        attributes |= {name: getattr(row, name) for name in METRICS}
    if row.trial.keep_ratio is not None:
        attributes["keep_ratio"] = row.trial.keep_ratio
    if row.curves is not None:
        attributes["curves"] = dict(row.curves)
    return optuna.trial.create_trial(
        state=TrialState.FAIL if row.failed else TrialState.COMPLETE,
        value=None if row.failed else row.val_accuracy,
        params={name: row.trial.flat().get(name) for name in space},
        distributions=space,
        user_attrs=attributes,
    )


def _read(stored: FrozenTrial, method: str) -> Finished:
    """The inverse of :func:`_frozen`."""
    attributes = stored.user_attrs
    trial = Trial.of(
        method,
        seed=attributes["seed"],
        split=attributes["split"],
        keep_ratio=attributes.get("keep_ratio"),
        **stored.params,
    )
    return Finished(
        index=attributes["index"],
        trial=trial,
        **{name: attributes.get(name, float("nan")) for name in METRICS},
        best_epoch=attributes["best_epoch"],
        failed=attributes["failed"],
        curves=attributes.get("curves"),
    )


def _curves(outcome: Outcome) -> Curves:
    """Every k-th of the epochs that were evaluated, each curve to six digits."""
    evaluated = np.flatnonzero(np.isfinite(outcome.val_loss))
    epochs = evaluated[:: max(1, -(-len(evaluated) // POINTS))]
    table = {name: [float(f"{y:.6g}") for y in getattr(outcome, name)[epochs]] for name in METRICS}
    return {"epoch": epochs.tolist(), **table}


@contextmanager
def quiet() -> Iterator[None]:
    """Optuna without its notes on standard error; warnings stay."""
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(max(before, optuna.logging.WARNING))
    try:
        yield
    finally:
        optuna.logging.set_verbosity(before)
