"""Run what is missing: batches of mixed methods through the trainer, each written to its study as it ends."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from tadropedge._old.checks import check_function, check_integer, check_kind, check_list, check_seed, check_table, check_text
from tadropedge._old.errors import TadropedgeError
from tadropedge._old.memory import check_memory
from tadropedge._old.method import Method
from tadropedge._old.provenance import commit
from tadropedge._old.search.claims import PAUSE, Claims
from tadropedge._old.search.engines import Train as Train
from tadropedge._old.search.engines import crew
from tadropedge._old.search.entrants import Entrant
from tadropedge._old.search.signals import uninterrupted
from tadropedge._old.search.space import Spaces, check_spaces
from tadropedge._old.search.study import Finished, Ledger, Storage, opened
from tadropedge._old.training.config import Outcome, Trial
from tadropedge._old.watching import Safe, tell

Progress = Callable[[int, int], None]
Table = dict[str, list[Finished]]

BATCH = 64
JOB_BYTES = 2_000  # of a trial that is to be run, and of what is found


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

    Ctrl-C and SIGTERM wait until a batch that is being written is complete, so no finished trial is lost.
    """
    names = dict.fromkeys(Method.of(method).name for method in check_list("methods", methods, "methods"))
    if not names:
        raise TadropedgeError(f"methods are empty: name at least one, got {methods!r}")
    (table,) = run_searches(
        train, space, [Entrant(method) for method in names], trials, seed, storage,
        name=name, settings=settings, batch=batch, progress=progress,
    )  # fmt: skip
    return table


def run_searches(
    train: Train,
    space: Spaces,
    entrants: Sequence[Entrant],
    trials: int,
    seed: int,
    storage: Storage,
    *,
    splits: Sequence[int] = (0,),
    only: Mapping[str, Sequence[int]] | None = None,
    name: str = "search",
    settings: Mapping[str, object] | None = None,
    batch: int = BATCH,
    progress: Progress | None = None,
) -> list[Table]:
    """The same for ``entrants``, by their names, on each of the ``splits``: one table for each split.

    The study of an entrant on split 0 is called ``NAME/PLACE``, on split k ``NAME/PLACE/split-k``. ``only``: those of
    the trials that are run, by the names of entrants.
    """
    trials, seed = check_integer("trials", trials, 1), check_seed(seed)
    check_work(train, space, name, settings, batch, progress)
    check_jobs(trials * len(splits) * len(entrants))
    with opened(storage) as base:

        def ledger(entrant: Entrant, split: int) -> Ledger:
            place = f"{name}/{entrant.place}" + (f"/split-{split}" if split else "")
            fingerprint = {"seed": seed, **(settings or {}), **entrant.settings}
            return Ledger(base, place, entrant.method, entrant.space(space), fingerprint)

        ledgers = {(entrant, split): ledger(entrant, split) for split in splits for entrant in entrants}
        wanted = {entrant: range(trials) if only is None else only[entrant.name] for entrant in entrants}
        # Index by index, so that an interrupted search has tried the same settings everywhere.
        jobs = [
            Job(one, i, entrant.trial(one.space, seed, i, split))
            for i in range(trials)
            for (entrant, split), one in ledgers.items()
            if i in wanted[entrant]
        ]
        run_jobs(train, jobs, batch=batch, progress=progress)
    return [
        {entrant.name: [ledgers[entrant, split].finished[i] for i in wanted[entrant]] for entrant in entrants}
        for split in splits
    ]


def check_jobs(count: int) -> None:
    """Refuse more trials than memory can list, before the first one is trained."""
    check_memory(count * JOB_BYTES, f"a list of {count} trials", "take fewer trials, seeds or methods")


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


Look = Callable[[Train, Sequence[Job]], None]
_look: ContextVar[Look | None] = ContextVar("look", default=None)


@contextmanager
def looking(look: Look) -> Iterator[None]:
    """In this block :func:`run_jobs` runs nothing: it shows its trainer and its jobs to ``look``.

    So whoever trains through it can be looked at again without knowing of it.
    """
    token = _look.set(look)
    try:
        yield
    finally:
        _look.reset(token)


def run_jobs(
    train: Train,
    jobs: Sequence[Job],
    *,
    batch: int = BATCH,
    progress: Progress | None = None,
    curves: bool = False,
) -> None:
    """Run the jobs that are not finished, and write them batch by batch, with their ``curves`` if asked.

    What another process on the same storage is training is waited for; all jobs must be of one storage.
    """
    check_integer("batch", batch, least=1)
    if (look := _look.get()) is not None:
        look(train, jobs)
        return
    jobs = _by_kind(jobs)
    missing = {(job.ledger.id, job.index): job for job in jobs if not job.ledger.holds(job.index, job.trial)}
    count = _Count(progress, len(jobs))
    count.reach(len(jobs) - len(missing))
    if not missing:
        return
    try:
        _run(train, jobs, missing, count, batch=batch, curves=curves)
    except KeyboardInterrupt:  # which may have come when a batch was written and not yet counted
        count.reach(sum(job.ledger.holds(job.index, job.trial) for job in jobs))
        raise


def _by_kind(jobs: Sequence[Job]) -> list[Job]:
    """The jobs with those of one network and the same options next to each other, else in their order.

    A batch trains one kind after the other, so a batch of one kind takes less time than one of many.
    """
    kinds: dict[tuple[object, ...], list[Job]] = {}
    for job in jobs:
        method = Method.of(job.trial.method)
        kinds.setdefault((method.network, *method.options), []).append(job)
    return [job for alike in kinds.values() for job in alike]


def _run(
    train: Train,
    jobs: Sequence[Job],
    missing: dict[tuple[int, int], Job],
    count: _Count,
    *,
    batch: int,
    curves: bool,
) -> None:
    claims, code, trainers = Claims.on(jobs[0].ledger.storage), commit(), crew()
    batch = trainers.size(train, [job.trial for job in missing.values()], batch)
    places = {key: place for place, key in enumerate(dict.fromkeys((job.ledger.id, job.index) for job in jobs))}
    while missing:
        # A batch is the unit of work.
        with claims.taken(list(missing), len(missing) if trainers.together else batch) as keys:
            if not claims.alone:
                looked_at = [missing[key] for key in keys] or missing.values()
                with uninterrupted():
                    for ledger in {job.ledger.id: job.ledger for job in looked_at}.values():
                        ledger.refresh()  # somebody else may have finished what is free now
            part = {key: missing[key] for key in keys if missing[key].index not in missing[key].ledger.finished}
            # What a stop left of many batches makes up the same batches again.
            cut: dict[int, list[Job]] = {}
            for key, job in part.items():
                cut.setdefault(places[key] // batch if trainers.together else 0, []).append(job)
            batches = list(cut.values())
            with closing(trainers.trained(train, [[job.trial for job in one] for one in batches])) as ended:
                for place, outcomes in ended:
                    _write(_checked(outcomes, batches[place]), batches[place], curves, code)
                    count.add(len(outcomes))
        missing = {key: job for key, job in missing.items() if not job.ledger.holds(job.index, job.trial)}
        count.reach(len(jobs) - len(missing))
        if not part:
            time.sleep(PAUSE)


def _write(outcomes: Sequence[Outcome], batch: Sequence[Job], curves: bool, code: str | None) -> None:
    with uninterrupted():
        for job, outcome in zip(batch, outcomes, strict=True):
            job.ledger.write([Finished.of(job.index, outcome, curves, code)])


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


class _Count:
    """How many of ``total`` jobs are finished and written, reported each time that it has changed."""

    def __init__(self, progress: Progress | None, total: int) -> None:
        self._progress, self._total = progress, total
        self._told = -1

    def add(self, more: int) -> None:
        """So many more are."""
        self.reach(max(0, self._told) + more)

    def reach(self, done: int) -> None:
        """So many are."""
        if self._progress is None or done == self._told:
            return
        with uninterrupted():  # what is counted as told has been told
            self._told = done
            tell(Safe("trainings", done, self._total))  # which says what the numbers of the next report are
            self._progress(done, self._total)
