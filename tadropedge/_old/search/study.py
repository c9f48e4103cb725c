"""Finished trials as Optuna studies, which ``optuna-dashboard`` opens and an interruption does not lose.

A trial enters its study only when it is finished, with all its results, in one transaction. So a study always holds
whole trials and nothing else, even if the process dies; on the next start the finished indices are read back.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import KW_ONLY, dataclass, field, fields
from typing import Any
from weakref import WeakSet

import numpy as np
import optuna
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution
from optuna.trial import FrozenTrial, TrialState

from tadropedge._old.checks import check_integer, check_text
from tadropedge._old.errors import TadropedgeError
from tadropedge._old.fingerprint import VERSION, fingerprint
from tadropedge._old.method import Method
from tadropedge._old.search import automatic
from tadropedge._old.search.space import Choice, LogUniform, Parameter, Space
from tadropedge._old.search.storage import Storage as Storage
from tadropedge._old.search.storage import check_storage as check_storage
from tadropedge._old.search.storage import file_of, reading, told
from tadropedge._old.search.storage import open_storage as open_storage
from tadropedge._old.search.storage import opened as opened
from tadropedge._old.training.config import METRICS, SCORED, Outcome, Trial, plug_ins
from tadropedge._old.typed import Count, build

Curves = Mapping[str, list[float]]

COLUMN = automatic.GIVEN
POINTS = 200  # of a stored curve: enough for a figure, and short enough for every database

log = logging.getLogger("tadropedge")


@dataclass(frozen=True)
class Finished:
    """One finished trial: its number in the search, its settings, and the results of the kept model.

    Where ``failed`` is set, losses and accuracies are NaN. ``curves`` holds at most 200 points of each curve of
    the training, beside their ``epoch``; the search leaves it out. ``commit`` is that of the code that trained it, None
    where it is not known. ``scores`` are validation and test by the laboratory's measure where that is not accuracy.
    ``gradients`` are the geometric means over epochs of the gradient norms of the first layer and of the last, where
    they were recorded: see :attr:`~tadropedge._old.training.config.GradientNorms.ends`.
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
    commit: str | None = field(default=None, repr=False, compare=False)  # the same numbers are the same result
    scores: tuple[float, float] | None = None
    gradients: tuple[float, float] | None = field(default=None, repr=False, compare=False)  # older studies have none

    @property
    def val_score(self) -> float:
        """The laboratory's measure on validation data."""
        return self.val_accuracy if self.scores is None else self.scores[0]

    @property
    def test_score(self) -> float:
        """The laboratory's measure on test data."""
        return self.test_accuracy if self.scores is None else self.scores[1]

    def converged(self, epochs: int) -> bool:
        """Whether validation loss had stopped falling: the kept model is not of the last twentieth of the epochs.

        >>> numbers = {"train_loss": 0.5, "val_loss": 0.6, "val_accuracy": 0.75, "test_accuracy": 0.5}
        >>> [Finished(0, Trial(), **numbers, best_epoch=epoch).converged(400) for epoch in (379, 380)]
        [True, False]
        """
        return 20 * (self.best_epoch + 1) <= 19 * check_integer("epochs", epochs, least=1)

    @classmethod
    def of(cls, index: int, outcome: Outcome, curves: bool = False, commit: str | None = None) -> Finished:
        """What is kept of an outcome."""
        stored = _curves(outcome) if curves and not outcome.failed else None
        kept, best, failed = outcome.kept, outcome.best_epoch, outcome.failed
        numbers = {name: kept[name] for name in METRICS}
        scores = None if failed else _scores(kept)
        kind = {
            "failed": failed,
            "curves": stored,
            "scores": scores,
            "commit": commit,
            "gradients": _gradients(outcome),
        }
        return cls(index, outcome.trial, **numbers, best_epoch=best, **kind)  # type: ignore[arg-type]


@dataclass(frozen=True, kw_only=True)
class Stored:
    """What a study holds of a finished trial beside its settings; one that failed has no results."""

    index: Count
    seed: Count
    split: Count
    best_epoch: int
    failed: bool
    train_loss: float | None = None
    val_loss: float | None = None
    val_accuracy: float | None = None
    test_accuracy: float | None = None
    val_score: float | None = None
    test_score: float | None = None
    keep_ratio: float | None = None
    curves: dict[str, list[Any]] | None = None
    commit: str | None = None
    gradients: tuple[float, float] | None = None

    def __post_init__(self) -> None:
        if not self.failed and None in (getattr(self, name) for name in METRICS):
            raise TadropedgeError("a trial that did not fail has results")
        if (self.val_score is None) != (self.test_score is None):
            raise TadropedgeError("a trial has both scores or none")


STORED = {one.name for one in fields(Stored)}


class Ledger:
    """The finished trials of one method, by index, in one Optuna study.

    ``settings`` holds whatever else decides an outcome (epochs, hidden, ...), as plain values. They are stored
    with the space and the code of your own functions, and a study made with others is refused. A study whose data an
    older version of tadropedge fingerprinted stays as it is: the trials go into ``NAME@VERSION`` beside it.

    >>> memory = optuna.storages.InMemoryStorage()
    >>> ledger = Ledger(memory, "karate/gcn-2/search/cdf", "cdf", Space.of({"dropout": [0.3, 0.5]}), {"epochs": 4})
    >>> numbers = {"train_loss": 0.5, "val_loss": 0.6, "val_accuracy": 0.75, "test_accuracy": 0.5}
    >>> ledger.write([Finished(0, Trial("cdf", dropout=0.3), **numbers, best_epoch=3)])
    >>> Ledger(memory, ledger.name, "cdf", ledger.space, {"epochs": 4}).finished == ledger.finished
    True
    >>> Ledger(memory, ledger.name, "cdf", ledger.space, {"epochs": 5})
    Traceback (most recent call last):
    tadropedge._old.errors.TadropedgeError: study 'karate/gcn-2/search/cdf' was made with epochs=4 (now 5); \
take the old setting, or another name or storage (--out)
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
        self.auto = Method.of(method).auto
        self._distributions = distributions(space)
        self.storage = storage
        with reading(storage, f"study {name!r}"):
            with quiet():
                self._study = _study(storage, name)
            self.name = self._study.study_name
            self.id = storage.get_study_id_from_name(self.name)
            self._check_settings(settings)
        self.finished: dict[int, Finished] = {}
        self._seen: set[int] = set()  # numbers of trials in the study
        self.refresh()

    def refresh(self) -> None:
        """Read what is finished, by this process or others; a damaged trial does not count, and is reported once."""
        with reading(self.storage, f"study {self.name!r}"):
            trials = self._study.get_trials(deepcopy=False, states=(TrialState.COMPLETE, TrialState.FAIL))
        damaged = []
        for stored in trials:
            if stored.number in self._seen:
                continue
            self._seen.add(stored.number)
            names = set(stored.params)
            fits = names <= set(self._distributions) if self.auto else names == set(self._distributions)
            if fits and is_whole(stored, self.name):
                # If two processes ran the same index, both hold the same trial: the first one counts.
                row = _read(stored, self.method)
                self.finished.setdefault(row.index, row)
            else:
                damaged.append(str(stored.number))
        if damaged:
            log.warning(
                "trials %s of study %r are damaged and do not count; tadropedge recover '%s' removes them",
                ", ".join(damaged),
                self.name,
                file_of(self.storage),
            )

    def holds(self, index: int, trial: Trial) -> bool:
        """Whether ``index`` is finished; if so, it must have been this very trial."""
        if index not in self.finished:
            return False
        stored, wanted = _told(self.finished[index].trial), _told(trial)
        for name in dict.fromkeys((*stored, *wanted)):
            if stored.get(name) != wanted.get(name):
                raise TadropedgeError(
                    f"trial {index} of study {self.name!r} was run with {name}={stored.get(name)!r} "
                    f"(now {wanted.get(name)!r}); take another name or storage (--out)"
                )
        return True

    def write(self, rows: Iterable[Finished]) -> None:
        """Add finished trials, each in one transaction."""
        for row in rows:
            with told(f"cannot write trial {row.index} to study {self.name!r}", self.storage):
                self._study.add_trial(_frozen(row, self._distributions, self.name, self.auto))
            self.finished[row.index] = row

    def _check_settings(self, settings: Mapping[str, object]) -> None:
        space = {f"space.{name}": entry for name, entry in self.space.table().items()}
        head = {"method": self.method, **plug_ins(self.method)}
        head |= automatic.code(self.space.table()) if self.auto else {}
        table = {**head, **_used(settings, self.method, self.space), **space, "fingerprint": VERSION}
        wanted = json.loads(json.dumps(table))  # as it will be read back
        stored = self._study.user_attrs.get("settings")
        if not isinstance(stored, dict):
            if stored is not None or self._study.get_trials(deepcopy=False):
                raise TadropedgeError(
                    f"study {self.name!r} is not one of ours: it has trials but no settings; take another name or "
                    "storage, or set it apart with tadropedge recover"
                )
            # The process may have died between the creation of a study and this line.
            self._study.set_user_attr("settings", wanted)
            return
        one, two = ({key: json.dumps(value) for key, value in table.items()} for table in (stored, wanted))
        differing = [key for key in dict.fromkeys((*two, *one)) if one.get(key) != two.get(key)]
        if differing:
            told = [_difference(key, stored.get(key), wanted.get(key)) for key in differing]
            kinds = [kind if (kind := key.partition(".")[0]) in ("data", "code") else "setting" for key in differing]
            raise TadropedgeError(
                f"study {self.name!r} was made with {', '.join(told)}; "
                f"take the old {' and '.join(dict.fromkeys(kinds))}, or another name or storage (--out)"
            )


def _used(settings: Mapping[str, object], method: str, space: Space) -> dict[str, object]:
    """Settings without the fingerprint of a score column that the method does not look at."""
    drawn = space.table().get("score", []) if Method.of(method).auto else []
    idle = set() if COLUMN in (Method.of(method).score, *drawn) else {f"data.{COLUMN}"}
    return {name: value for name, value in settings.items() if name not in idle}


def _difference(key: str, stored: object, wanted: object) -> str:
    """A setting with another value in words; fingerprints of data and code say nothing to a reader."""
    kind, _, name = key.partition(".")
    words = {"data": f"other {name}", "code": f"other code of {name!r}"}
    return words.get(kind, f"{key}={stored!r} (now {wanted!r})")


def _study(storage: optuna.storages.BaseStorage, name: str) -> optuna.Study:
    """The study of this name, created if there is none; opening an existing one writes nothing."""
    try:
        found = optuna.load_study(study_name=name, storage=storage)
        if not _older(found.user_attrs):
            return found
        name = f"{name}@{VERSION}"
        return optuna.load_study(study_name=name, storage=storage)
    except KeyError:
        _tell_older(storage)
        return optuna.create_study(storage=storage, study_name=name, direction="maximize", load_if_exists=True)


def _older(attributes: Mapping[str, Any]) -> bool:
    """Whether a study of ours was made when data was fingerprinted in another way."""
    settings = attributes.get("settings")
    return isinstance(settings, dict) and settings.get("fingerprint") != VERSION


def _tell_older(storage: optuna.storages.BaseStorage) -> None:
    """Say once per storage, before new studies are made, that older ones are not resumed."""
    if storage in _told_older:
        return
    _told_older.add(storage)
    older = [study.study_name for study in storage.get_all_studies() if _older(study.user_attrs)]
    if older:
        log.warning(
            "%d studies such as %r were made by an older version, which could not tell all data apart: "
            "they stay readable and are not resumed",
            len(older),
            older[0],
        )


_told_older: WeakSet[optuna.storages.BaseStorage] = WeakSet()


def study_name(dataset: str, backbone: str, layers: int, *more: str) -> str:
    """The prefix of the names of all studies of one comparison.

    >>> study_name("cora", "gcn", 2, "combinatorial")
    'cora/gcn-2/combinatorial'
    """
    check_integer("layers", layers, least=1)
    names = (check_text("dataset", dataset), f"{check_text('backbone', backbone)}-{layers}")
    return "/".join((*names, *(check_text("each part of a study's name", one) for one in more)))


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


def _frozen(row: Finished, space: dict[str, BaseDistribution], name: str, auto: bool = False) -> FrozenTrial:
    """A finished trial as Optuna stores it in study ``name``: the objective is the validation score.

    With ``auto`` it holds those of its parameters that the method which it drew has a use for.
    """
    flat = automatic.told(row.trial) if auto else row.trial.flat()
    space = {name: one for name, one in space.items() if name in flat or not auto}
    attributes: dict[str, Any] = {
        "index": row.index,
        "seed": row.trial.seed,
        "split": row.trial.split,
        "best_epoch": row.best_epoch,
        "failed": row.failed,
    }
    if not row.failed:  # NaN is no JSON
        attributes |= {name: getattr(row, name) for name in (METRICS if row.scores is None else METRICS + SCORED)}
    if row.trial.keep_ratio is not None and "keep_ratio" not in space:
        attributes["keep_ratio"] = row.trial.keep_ratio
    if row.curves is not None:
        attributes["curves"] = dict(row.curves)
    if row.commit is not None:
        attributes["commit"] = row.commit
    if row.gradients is not None:
        attributes["gradients"] = list(row.gradients)
    frozen = optuna.trial.create_trial(
        state=TrialState.FAIL if row.failed else TrialState.COMPLETE,
        value=None if row.failed else row.val_score,
        params={name: flat.get(name) for name in space},
        distributions=space,
        user_attrs=attributes,
    )
    frozen.set_user_attr("digest", _digest(frozen, name))
    return frozen


def _digest(stored: FrozenTrial, name: str) -> str:
    """Letters that change with everything a finished trial of study ``name`` holds."""
    kinds = stored.distributions  # as they will be read: 1 is stored as 1.0
    params = {
        key: kinds[key].to_external_repr(kinds[key].to_internal_repr(value)) for key, value in stored.params.items()
    }
    attributes = {key: value for key, value in stored.user_attrs.items() if key != "digest"}
    content = fingerprint(
        study=name, state=stored.state.name, values=stored.values, params=params, attributes=attributes
    )
    return content[:16]


def is_whole(stored: FrozenTrial, name: str) -> bool:
    """Whether a finished trial of study ``name`` is as it was written; those of version 0.1 have no digest."""
    attributes = stored.user_attrs
    try:
        build(Stored, {key: value for key, value in attributes.items() if key in STORED}, "trial")
    except TadropedgeError:
        return False
    results = attributes["failed"] or stored.value == attributes.get("val_score", attributes["val_accuracy"])
    return results and attributes.get("digest", "") in ("", _digest(stored, name))


def _read(stored: FrozenTrial, method: str) -> Finished:
    """The inverse of :func:`_frozen`."""
    attributes, params = stored.user_attrs, stored.params
    if Method.of(method).auto:
        method, params = automatic.drawn(method, params)
    told = {"keep_ratio": attributes.get("keep_ratio"), **params}
    trial = Trial.of(method, seed=attributes["seed"], split=attributes["split"], **told)
    return Finished(
        index=attributes["index"],
        trial=trial,
        **{name: attributes.get(name, float("nan")) for name in METRICS},
        best_epoch=attributes["best_epoch"],
        failed=attributes["failed"],
        curves=attributes.get("curves"),
        commit=attributes.get("commit"),
        scores=_scores(attributes),
        gradients=tuple(attributes["gradients"]) if "gradients" in attributes else None,
    )


def _gradients(outcome: Outcome) -> tuple[float, float] | None:
    """What is kept of the gradient norms of a training that did not fail, to six digits."""
    if outcome.failed or outcome.gradient_norms is None:
        return None
    first, last = (float(f"{one:.6g}") for one in outcome.gradient_norms.ends)
    return (first, last) if np.isfinite((first, last)).all() else None  # NaN is no JSON


def _scores(table: Mapping[str, Any]) -> tuple[float, float] | None:
    """Validation and test by the laboratory's measure; ``None`` where that is accuracy."""
    return (table["val_score"], table["test_score"]) if "val_score" in table else None


def _curves(outcome: Outcome) -> Curves:
    """Every k-th of the epochs that were evaluated, each curve to six digits."""
    evaluated = np.flatnonzero(np.isfinite(outcome.val_loss))
    epochs = evaluated[:: max(1, -(-len(evaluated) // POINTS))]
    names = METRICS if outcome.scores is None else METRICS + SCORED
    table = {name: [float(f"{y:.6g}") for y in getattr(outcome, name)[epochs]] for name in names}
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
