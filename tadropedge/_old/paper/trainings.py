"""Trainings of an item: they resume after an interruption, and are counted and timed together.

Every study carries a digest of what decides its outcomes. So a recipe that was changed finds an empty place, and one
that asks for more trials or seeds keeps what is finished.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass
from typing import Any

import optuna

from tadropedge._old import provenance
from tadropedge._old.comparison.comparison import LARGEST_BATCH
from tadropedge._old.comparison.statistics import honest_rows
from tadropedge._old.data.dataset import Dataset
from tadropedge._old.errors import TadropedgeError
from tadropedge._old.fingerprint import fingerprint
from tadropedge._old.method import Method
from tadropedge._old.paper.item import Bench
from tadropedge._old.paper.journal import Journal
from tadropedge._old.paper.rows import grouped
from tadropedge._old.search.engine import Table, Train, run_search
from tadropedge._old.search.engines import training_with
from tadropedge._old.search.protocol import Replicates, adaptive, honest
from tadropedge._old.search.space import Space, Spaces
from tadropedge._old.search.study import Finished
from tadropedge._old.training.config import Architecture, Trial
from tadropedge._old.training.laboratory import Laboratory

Progress = Callable[[int, int], None]


def laboratory(
    bench: Bench,
    dataset: Dataset,
    network: str = "gcn",
    laplacian: str = "combinatorial",
    fresh_sizes: tuple[int, int, int] | None = None,
    **settings: Any,
) -> Laboratory:
    """Where an item trains: the recipe's width, epochs and precision, and ``settings`` of the network beside them."""
    recipe = bench.recipe.settings
    sizes = {name: recipe[name] for name in ("layers", "hidden", "order") if name in recipe} | settings
    own = {"order": sizes.pop("order")} if "order" in sizes else {}
    return Laboratory(
        dataset,
        Architecture(network, **sizes, settings=own),
        recipe["epochs"],
        laplacian,
        fresh_sizes=fresh_sizes,
        precision=recipe.get("precision", "highest"),
        cache_dir=bench.cache_dir,
    )


@dataclass
class Work:
    """The trainings of a whole item: one count, which never goes backwards, and one journal of their seconds.

    ``total`` is what is planned; a piece that turns out to need ``extra`` trainings raises it.
    """

    bench: Bench
    total: int
    _: KW_ONLY
    done: int = 0
    _here: int = 0
    _extra: int = 0

    def __post_init__(self) -> None:
        self.journal = Journal(self.bench)

    def show(self, done_here: int, extra: int = 0) -> None:
        """Report how far the current piece has come."""
        self._here, self._extra = max(self._here, done_here), max(self._extra, extra)
        self.bench.report(self.bench.recipe.name, self.done + self._here, self.total + self._extra)

    def finish(self) -> None:
        """A piece is finished; one that showed nothing was not part of the plan."""
        self.done, self.total = self.done + self._here, self.total + self._extra
        self._here = self._extra = 0
        self.show(0)

    def timed(self, part: str, phase: str, extra: int = 0) -> Progress:
        """Progress of one phase of a part: seconds are written where something was trained, the count always shown."""
        seen: list[int] = []

        def progress(done: int, _: int) -> None:
            if seen and done > seen[-1]:  # the first call says what was there before
                self.journal.lap(part, phase)
            seen.append(done)
            self.show(done, extra)

        return progress

    def run(self, **numbers: object) -> dict[str, Any]:
        """What an item says of its run: how much it trained, in words, how long that took and where."""
        recipe = self.bench.recipe
        return {"settings": recipe.text(recipe.effort, **numbers), **self.journal.run}


def trainings(methods: Sequence[str], trials: int, seeds: int) -> int:
    """How many trainings both protocols take: every method, and the reference of those that look at the topology.

    >>> trainings(["dropedge", "cdf"], 100, 20)
    260
    """
    return len(methods) * trials + (len(methods) + sum(map(adaptive, methods))) * seeds


@dataclass(frozen=True)
class Fresh:
    """What a row keeps of fresh trainings, so that others can be paired with them; None is unknown.

    Entry s is replicate s: its start and split are the same for every search with that seed and those test nodes.
    ``val_accuracy`` is that of the trial whose settings were chosen.
    """

    val_accuracy: float | None = None
    fresh_accuracies: tuple[float | None, ...] | None = None
    test_nodes: int | None = None


@dataclass(frozen=True, eq=False, kw_only=True)
class Search:
    """A random search and what follows it, in one laboratory."""

    laboratory: Laboratory
    space: Spaces
    methods: Sequence[str]
    trials: int
    seeds: int
    place: str  # in front of the names of its studies
    most_seeds: int = 0  # more of them, up to this number, while a difference is known less well than
    half_width: float = 0.0  # this: this does not depend on the differences

    def run(
        self, work: Work, storage: optuna.storages.BaseStorage, part: str, now: bool = True
    ) -> tuple[Table, Replicates] | None:
        """Both protocols, or what is missing of them; None where that may not be trained ``now``."""
        with suppress(UnfinishedError):
            table = self.searched(work, storage, part, now)
            return table, self.retrained(work, storage, part, table, now)
        return None

    def searched(self, work: Work, storage: optuna.storages.BaseStorage, part: str, now: bool = True) -> Table:
        """The trials of the search."""
        name, settings = self._study(work.bench.seed)
        table: Table = {}
        # An interruption loses one batch, so networks do not wait for each other.
        for methods in grouped(self.methods, lambda method: Method.of(method).network).values():
            with training_with(_trainers(now)):
                table |= run_search(
                    self._train(now), self.space, methods, self.trials, work.bench.seed, storage,
                    name=name, settings=settings, batch=largest_batch(self.laboratory),
                    progress=work.timed(part, "search") if now else None,
                )  # fmt: skip
            work.finish()
        return table

    def retrained(
        self, work: Work, storage: optuna.storages.BaseStorage, part: str, table: Table, now: bool = True
    ) -> Replicates:
        """The settings that are best on validation, on fresh seeds and splits."""
        laboratory, seed = self.laboratory, work.bench.seed
        name, settings = self._study(seed)
        # Fresh splits of other sizes are another experiment: they find an empty place.
        if (sizes := laboratory.fresh_sizes) is not None:
            name, settings = f"{name}/test-{sizes[-1]}", laboratory.settings
        seeds, planned = self.seeds, trainings(list(table), 0, self.seeds)
        while True:
            extra = trainings(list(table), 0, seeds) - planned
            with training_with(_trainers(now)):
                fresh = honest(
                    self._train(now), table, self.space, seeds, seed, storage, laboratory.kept_share,
                    splits=range(1, seeds + 1), name=name, settings=settings, batch=largest_batch(laboratory),
                    progress=work.timed(part, "retraining", extra) if now else None, curves=False,
                )  # fmt: skip
            more = self._seeds_needed(seeds, fresh)
            if more <= seeds:
                work.finish()
                return fresh
            seeds = more

    def _study(self, seed: int) -> tuple[str, dict[str, object]]:
        """What stands in front of the names of the studies, and the settings that they carry."""
        everything = self.laboratory.settings
        settings = {**everything, "fresh_sizes": everything["split"]}  # a search has no fresh splits
        spaces = self.space if isinstance(self.space, Space) else {name: self.space(name) for name in self.methods}
        content = spaces.table() if isinstance(spaces, Space) else {name: one.table() for name, one in spaces.items()}
        return f"{self.place}/{digest(settings, content, seed)}", settings

    def _train(self, now: bool) -> Train:
        return self.laboratory.train if now else no_training

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

    def fresh(self, found: Replicates, method: str) -> Fresh:
        """What a row keeps of the fresh trainings of a method."""
        sizes = self.laboratory.fresh_sizes or self.laboratory.dataset.split.sizes
        val_accuracy = round(found.chosen[method].val_accuracy, 6)
        return Fresh(val_accuracy, rounded(found.accuracy[method], 6), sizes[-1])


def commits(runs: Iterable[Finished]) -> str | None:
    """The commits that made some trainings, in the order of these; None where none is known."""
    return provenance.commits(run.commit for run in runs)


def rounded(values: Any, digits: int) -> tuple[float | None, ...]:
    """Numbers for a row; None for NaN.

    >>> rounded([0.12345, math.nan], 3)
    (0.123, None)
    """
    return tuple(None if math.isnan(value) else round(float(value), digits) for value in values)


class UnfinishedError(TadropedgeError):
    """A training was asked for where none may be run."""


def no_training(trials: Sequence[Trial], **_: object) -> list[Any]:
    """Stands for the trainer where only finished trainings are looked at."""
    raise UnfinishedError(f"{len(trials)} trainings are not finished")


def _trainers(now: bool) -> str | None:
    """Whoever was named trains; where nothing may be trained, nobody else has to be asked."""
    return None if now else "local"


def largest_batch(laboratory: Laboratory) -> int:
    """How many trials are trained between two writes."""
    return min(LARGEST_BATCH, laboratory.fitting())


def digest(settings: Mapping[str, object], space: Mapping[str, object], seed: int) -> str:
    """Eight letters that change with whatever decides an outcome.

    >>> digest({"epochs": 400}, {}, 0) == digest({"epochs": 400}, {}, 1)
    False
    """
    return fingerprint(settings=settings, space=space, seed=seed)[:8]
