"""Run what is missing: batches of mixed methods through the trainer, each written to its study as it ends."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from tadropedge.errors import (
    TadropedgeError,
    check_function,
    check_integer,
    check_kind,
    check_list,
    check_table,
    check_text,
)
from tadropedge.method import Method
from tadropedge.search.space import Spaces, check_spaces, space_for, trial
from tadropedge.search.study import Finished, Ledger, Storage, opened
from tadropedge.training.config import Outcome, Trial

Train = Callable[[Sequence[Trial]], Sequence[Outcome]]
Progress = Callable[[int, int], None]
Table = dict[str, list[Finished]]

BATCH = 64


def run_search(
    train: Train,
    space: Spaces,
    methods: Sequence[str],
    trials: int,
    seed: int,
    storage: Storage,
    *,
    name: str = "search",
    settings: Mapping[str, object] | None = None,
    batch: int = BATCH,
    progress: Progress | None = None,
) -> Table:
    """The finished trials 0 … ``trials`` − 1 of every method; what ``storage`` already holds is not run again.

    * ``train``: from a batch of trials to their outcomes, in the same order.
    * ``space``: one for all methods, or a function from a method to its own, such as ``method_space``.
    * ``storage``: a path (SQLite), an Optuna storage URL or an Optuna storage. The study of a method is called
      ``NAME/search/METHOD``; ``settings`` are what else decides an outcome (epochs, ...), see :class:`Ledger`.
    * ``progress(done, total)`` is called at the start and after each batch.

    Ctrl-C waits until a batch that is being written is complete, so no finished trial is lost.
    """
    names = list(dict.fromkeys(Method.of(method).name for method in check_list("methods", methods, "methods")))
    if not names:
        raise TadropedgeError(f"methods are empty: name at least one, got {methods!r}")
    trials, seed = check_integer("trials", trials, least=1), check_integer("seed", seed, least=0)
    check_work(train, space, name, settings, batch, progress)
    fingerprint = {"seed": seed, **(settings or {})}
    with opened(storage) as base:
        ledgers = [
            Ledger(base, f"{name}/search/{method}", method, space_for(space, method), fingerprint) for method in names
        ]
        # Index by index, so that an interrupted search has tried the same settings with every method.
        jobs = [Job(one, i, trial(one.space, seed, i, one.method)) for i in range(trials) for one in ledgers]
        run_jobs(train, jobs, batch=batch, progress=progress)
    return {ledger.method: [ledger.finished[i] for i in range(trials)] for ledger in ledgers}


def check_work(train: object, space: object, name: object, settings: object, batch: object, progress: object) -> None:
    """Check what every search is given, before any work."""
    check_function("train", train, "train(trials) -> outcomes")
    check_spaces(space)
    check_text("name", name)
    if settings is not None:
        check_table("settings", settings)
    check_integer("batch", batch, least=1)
    if progress is not None:
        check_function("progress", progress, "progress(done, total)", arguments=2)


@dataclass(frozen=True, eq=False)
class Job:
    """A trial to run, and where it is written when it is finished."""

    ledger: Ledger
    index: int
    trial: Trial


def run_jobs(
    train: Train,
    jobs: Sequence[Job],
    *,
    batch: int = BATCH,
    progress: Progress | None = None,
    curves: bool = False,
) -> None:
    """Run the jobs that are not finished, and write them batch by batch, with their ``curves`` if asked."""
    check_integer("batch", batch, least=1)
    progress = progress or _silent
    missing = [job for job in jobs if not job.ledger.holds(job.index, job.trial)]
    done = len(jobs) - len(missing)
    progress(done, len(jobs))
    # A batch is the unit of work: an engine on many machines would distribute batches and write only here.
    for start in range(0, len(missing), batch):
        part = missing[start : start + batch]
        outcomes = _checked(train([job.trial for job in part]), part)
        with _uninterrupted():
            for job, outcome in zip(part, outcomes, strict=True):
                job.ledger.write([Finished.of(job.index, outcome, curves)])
        done += len(part)
        progress(done, len(jobs))


def _checked(outcomes: Sequence[Outcome], part: Sequence[Job]) -> Sequence[Outcome]:
    """Check that the trainer returned the outcomes of the trials it was given, in the same order."""
    for outcome in check_list("what the trainer returns", outcomes, "outcomes"):
        check_kind("what the trainer returns", outcome, Outcome)
    if len(outcomes) != len(part):
        raise TadropedgeError(f"the trainer was given {len(part)} trials and returned {len(outcomes)} outcomes")
    for job, outcome in zip(part, outcomes, strict=True):
        if outcome.trial != job.trial:
            raise TadropedgeError(f"the trainer was given {job.trial} and returned the outcome of {outcome.trial}")
    return outcomes


def _silent(done: int, total: int) -> None:
    """No progress display."""


@contextmanager
def _uninterrupted() -> Iterator[None]:
    """Hold Ctrl-C back until the block is done, then let it through."""
    if threading.current_thread() is not threading.main_thread():  # where Python delivers no signals
        yield
        return
    pressed: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, _: pressed.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.SIG_DFL if before is None else before)
        if pressed:
            signal.raise_signal(signal.SIGINT)
