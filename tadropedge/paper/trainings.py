"""Trainings of an item: resumed after a kill and counted together.

Every study carries a digest of what decides its outcomes. So a recipe that was changed finds an empty place, and one
that asks for more trials or seeds keeps what is finished.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import optuna

from tadropedge.comparison.comparison import LARGEST_BATCH
from tadropedge.comparison.statistics import honest_rows
from tadropedge.errors import TadropedgeError
from tadropedge.method import Method
from tadropedge.paper.item import Bench
from tadropedge.search.engine import Job, Table, Train, run_jobs, run_search
from tadropedge.search.protocol import Replicates, adaptive, honest, reference, replicate
from tadropedge.search.space import Space, Spaces
from tadropedge.search.study import Finished, Ledger
from tadropedge.training.config import Trial
from tadropedge.training.laboratory import Laboratory

Progress = Callable[[int, int], None]


@dataclass
class Tally:
    """One count of trainings for the whole item, where the work comes in pieces: it never goes backwards.

    ``total`` is what is planned; a piece that turns out to need ``extra`` trainings raises it.
    """

    bench: Bench
    total: int
    done: int = 0
    _here: int = 0
    _extra: int = 0

    def show(self, done_here: int, extra: int = 0) -> None:
        """Tell how far the current piece has come."""
        self._here, self._extra = max(self._here, done_here), max(self._extra, extra)
        self.bench.report(self.bench.recipe.name, self.done + self._here, self.total + self._extra)

    def finish(self) -> None:
        """A piece is finished; one that showed nothing was not part of the plan."""
        self.done, self.total = self.done + self._here, self.total + self._extra
        self._here = self._extra = 0
        self.show(0)


@dataclass(frozen=True, eq=False)
class Search:
    """A random search and what follows it, in one laboratory."""

    laboratory: Laboratory
    space: Spaces
    methods: Sequence[str]
    trials: int
    seeds: int
    place: str  # in front of the names of its studies
    splits: Sequence[int] | None = None  # of the fresh seeds; None: 1, 2, ...
    most_seeds: int = 0  # more of them, up to this number, while a difference is known less well than
    half_width: float = 0.0  # this: what the differences are has no say in it

    @property
    def count(self) -> int:
        """How many trainings that is."""
        return len(self.methods) * self.trials + self._each_seed * self.seeds

    @property
    def _each_seed(self) -> int:
        """Trainings of one fresh seed: every method, and the reference of those that look at the topology."""
        return len(self.methods) + sum(adaptive(method) for method in self.methods)

    def run(
        self,
        seed: int,
        storage: optuna.storages.BaseStorage,
        lap: Callable[[str], None],
        show: Progress,
        train: Train | None = None,
    ) -> tuple[Table, Replicates]:
        """Both protocols, or what is missing of them; ``lap(phase)`` and ``show(done, extra)`` after each batch.

        ``extra`` counts the trainings beyond ``count``: those of the seeds that were added.
        """
        train = train or self.laboratory.train
        laboratory, settings = self.laboratory, self.laboratory.settings
        spaces = self.space if isinstance(self.space, Space) else {name: self.space(name) for name in self.methods}
        content = spaces.table() if isinstance(spaces, Space) else {name: one.table() for name, one in spaces.items()}
        name = f"{self.place}/{digest(settings, content, seed)}"
        batch = min(LARGEST_BATCH, laboratory.fitting())
        table: Table = {}
        for methods in alike(self.methods):  # a kill loses one batch, so networks do not wait for each other
            table |= run_search(
                train,
                self.space,
                methods,
                self.trials,
                seed,
                storage,
                name=name,
                settings=settings,
                batch=batch,
                progress=_timed(partial(lap, "search"), partial(_shown, show, len(table) * self.trials, 0)),
            )
        searched = len(self.methods) * self.trials
        seeds = self.seeds
        # Fresh splits of other sizes are another experiment: they find an empty place.
        sizes = laboratory.fresh_sizes
        place = name if sizes is None else f"{name}/test-{sizes[-1]}"
        settings = settings if sizes is None else {**settings, "fresh split": list(sizes)}
        while True:
            extra = self._each_seed * (seeds - self.seeds)
            fresh = honest(
                train,
                table,
                self.space,
                seeds,
                seed,
                storage,
                laboratory.kept_share,
                splits=self.splits if self.splits is not None else range(1, seeds + 1),
                name=place,
                settings=settings,
                batch=batch,
                progress=_timed(partial(lap, "retraining"), partial(_shown, show, searched, extra)),
                curves=False,
            )
            more = self._seeds_needed(seeds, fresh)
            if more <= seeds:
                return table, fresh
            seeds = more

    def _seeds_needed(self, seeds: int, fresh: Replicates) -> int:
        """How many seeds bring the widest interval of a difference down to the half-width that is wanted."""
        if not self.half_width:
            return seeds
        rows = honest_rows(fresh.accuracy, fresh.reference).values()
        ends = [(row.difference_low, row.difference_high) for row in rows]
        widest = max((0.5 * (high - low) for low, high in ends if low is not None and high is not None), default=0.0)
        if widest <= self.half_width:
            return seeds
        return min(self.most_seeds, math.ceil(1.1 * seeds * (widest / self.half_width) ** 2))


def alike(methods: Sequence[str]) -> list[list[str]]:
    """The methods by their network: those of one train together.

    >>> alike(["original", "cdf", "fastgcn", "ptdnet"])
    [['original', 'cdf'], ['fastgcn'], ['ptdnet']]
    """
    groups: dict[str | None, list[str]] = {}
    for method in methods:
        groups.setdefault(Method.of(method).network, []).append(method)
    return list(groups.values())


def nothing(*_: object) -> None:
    """Nothing is timed or shown where nothing is trained."""


def fresh_columns(search: Search, fresh: Replicates, method: str) -> dict[str, Any]:
    """What a row keeps of the fresh trainings, so that others can be paired with them.

    Entry s is replicate s: its start and split are the same for every search with that seed and those test nodes.
    """
    laboratory = search.laboratory
    accuracies = [None if math.isnan(value) else round(float(value), 6) for value in fresh.accuracy[method]]
    return {
        "fresh_accuracies": accuracies,
        "test_nodes": (laboratory.fresh_sizes or laboratory.dataset.split.sizes)[-1],
    }


class UnfinishedError(TadropedgeError):
    """A training was asked for where none may be run."""


def no_training(trials: Sequence[Trial]) -> list[Any]:
    """Stands for the trainer where only finished trainings are looked at."""
    raise UnfinishedError(f"{len(trials)} trainings are not finished")


@dataclass
class Repeats:
    """Fixed settings, each trained with the same fresh seeds: what the figures are drawn from."""

    laboratory: Laboratory
    place: str
    seeds: int
    seed: int
    fresh_splits: bool = True
    curves: bool = False
    _bases: dict[str, Trial] = field(default_factory=dict)

    def add(self, label: str, base: Trial) -> Trial:
        """Train ``base`` too, under a name."""
        # With every setting of the network named: the place of the trainings says them all.
        self._bases[label] = base.but(**self.laboratory.architecture.settings_of(base))
        return self._bases[label]

    def add_reference(self, label: str, base: Trial) -> Trial:
        """Train DropEdge with the settings and the expected kept share of ``base``, under a name."""
        return self.add(label, reference(base, round(self.laboratory.kept_share(base), 6)))

    def run(
        self, storage: optuna.storages.BaseStorage, lap: Callable[[str], None], show: Callable[[int], None]
    ) -> dict[str, list[Finished]]:
        """The finished trainings by name, replicate by replicate; what the storage holds is not run again.

        ``lap("training")`` and ``show(done)`` are called after each batch.
        """
        settings = {"seed": self.seed, **self.laboratory.settings}
        jobs: dict[str, list[Job]] = {}
        for label, base in self._bases.items():
            told = {name: value for name, value in base.flat().items() if name != "keep_ratio"}
            space = Space.of({name: [value] for name, value in told.items()})
            own = {**settings, "keep_ratio": base.keep_ratio, "curves": self.curves}
            name = f"{self.place}/{label}/{digest(own, space.table(), self.seed)}"
            ledger = Ledger(storage, name, base.method, space, own)
            splits = range(1, self.seeds + 1) if self.fresh_splits else [0] * self.seeds
            jobs[label] = [Job(ledger, s, replicate(base, self.seed, s, split)) for s, split in enumerate(splits)]
        everything = [job for group in zip(*jobs.values(), strict=True) for job in group]
        batch = min(LARGEST_BATCH, self.laboratory.fitting())
        run_jobs(
            self.laboratory.train,
            everything,
            batch=batch,
            progress=_timed(partial(lap, "training"), show),
            curves=self.curves,
        )
        return {label: [job.ledger.finished[job.index] for job in mine] for label, mine in jobs.items()}


def _timed(lap: Callable[[], None], show: Callable[[int], None]) -> Progress:
    """Progress that calls ``lap`` where something was trained, and ``show`` always."""
    seen: list[int] = []

    def progress(done: int, _: int) -> None:
        if seen and done > seen[-1]:  # the first call tells what was there before
            lap()
        seen.append(done)
        show(done)

    return progress


def _shown(show: Progress, before: int, extra: int, done: int) -> None:
    """Progress of a phase, told as progress of the search it belongs to."""
    show(before + done, extra)


def digest(settings: Mapping[str, object], space: Mapping[str, object], seed: int) -> str:
    """Eight letters that change with whatever decides an outcome.

    >>> digest({"epochs": 400}, {}, 0) == digest({"epochs": 400}, {}, 1)
    False
    """
    content = json.dumps([settings, space, seed], sort_keys=True)
    return hashlib.sha256(content.encode()).hexdigest()[:8]
