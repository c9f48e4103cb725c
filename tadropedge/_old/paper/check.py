"""A second look at what is shipped: a sample of the recorded trainings and measurements of an item is made again.

The item is run from what it recorded. On the way each list of trainings and each measurement passes by, and a sample of
them is made again by the code, and on the machine, of now. The outcomes are pieces of ``studies/ITEM.checks``, so a
check that is interrupted resumes; its last line is the summary that the pages print.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import partial
from hashlib import sha256
from typing import Annotated, Any

import numpy as np

from tadropedge._old.errors import TadropedgeError
from tadropedge._old.paper.item import Bench
from tadropedge._old.paper.journal import Journal, workplace
from tadropedge._old.paper.judge import mean_and_error
from tadropedge._old.paper.registry import item_module
from tadropedge._old.paper.rows import INLINED, Measured, Row
from tadropedge._old.provenance import commit
from tadropedge._old.search.engine import Job, Train, looking
from tadropedge._old.search.study import Finished
from tadropedge._old.typed import MaybeNan

LEAST = 16  # trainings that are made again together: a batch of fewer takes a GPU as long
ERRORS = 3.0  # standard errors that the mean difference may lie from zero
FAR, MANY = 0.05, 0.01  # of a test accuracy; and the share of trainings that may differ by more
ROUNDING, TINY = 1e-3, 1e-9  # how much a measurement may differ, relative to its size; what counts as zero
CHECKED = "checked"  # the piece that holds the summary


RULE = (
    f"*It agrees* says: the mean difference of the test accuracies is within {ERRORS:g} standard errors of zero, at "
    f"most {100 * MANY:g} % of the trainings differ by more than {100 * FAR:g} points or failed once, and measured "
    f"numbers differ by less than {100 * ROUNDING:g} %. A sample is trained in smaller batches than the "
    "whole was, where a GPU sums in another order: such trainings begin alike and drift apart."
)


@dataclass
class Sample:
    """At least a ``share`` of everything that passes by, in groups of at least ``least``; each key counts once.

    Which ones are taken follows from their names alone.

    >>> sample = Sample(0.05, least=2)
    >>> [len(sample.of([(study, index) for index in range(30)])) for study in ("a", "b", "c", "a")]
    [2, 2, 2, 0]
    """

    share: float
    least: int
    _: KW_ONLY
    seen: set[tuple[str, int]] = field(default_factory=set)
    taken: int = 0

    def of(self, keys: Sequence[tuple[str, int]]) -> list[int]:
        """The places of the keys that are taken, in their order."""
        new = {key: place for place, key in enumerate(keys) if key not in self.seen}
        self.seen.update(new)
        needed = math.ceil(self.share * len(self.seen)) - self.taken
        if needed <= 0:
            return []
        shuffled = sorted(new, key=lambda key: sha256(f"{key[0]}/{key[1]}".encode()).digest())
        taken = shuffled[: max(needed, self.least)]
        self.taken += len(taken)
        return sorted(new[key] for key in taken)


@dataclass(frozen=True, kw_only=True)
class Retrained(Row):
    """One training: what is recorded, and what it gave again; NaN where it failed."""

    study: str
    index: int
    test_accuracy: MaybeNan
    test_accuracy_again: MaybeNan
    val_loss: MaybeNan
    val_loss_again: MaybeNan
    best_epoch: int
    best_epoch_again: int

    @property
    def equal(self) -> bool:
        """Whether all three numbers are the same, or both failed."""
        pairs = (
            (self.test_accuracy, self.test_accuracy_again),
            (self.val_loss, self.val_loss_again),
            (self.best_epoch, self.best_epoch_again),
        )
        return all(old == new or (math.isnan(old) and math.isnan(new)) for old, new in pairs)

    @property
    def difference(self) -> float:
        """Of the test accuracies, new minus recorded; 0 where both failed, NaN where one of them did."""
        return 0.0 if self.equal else self.test_accuracy_again - self.test_accuracy


@dataclass(frozen=True, kw_only=True)
class Remeasured(Row):
    """One piece of measurement: the largest relative difference of its numbers."""

    piece: str
    difference: float


@dataclass(frozen=True, kw_only=True)
class Checked(Row):
    """The summary: how many of how many were made again, and how they differ from what is recorded.

    ``equal`` trainings have the same test accuracy, validation loss and best epoch. ``other`` is the mean |difference|
    of the test accuracies of those that have not, ``largest`` the largest, ``far`` how many differ by more than FAR or
    failed once; ``mean`` is that of all signed differences, new minus recorded.
    """

    place: str
    trainings: int
    trained: int
    equal: int
    far: int
    other: float
    largest: float
    mean: Annotated[Measured, INLINED]
    pieces: int
    measured: int
    relative: float

    @property
    def agrees(self) -> bool:
        """Whether the mean difference is within three standard errors of zero and few trainings are far off."""
        near = abs(self.mean.value) <= ERRORS * self.mean.error or self.mean.value == 0
        return near and self.far <= MANY * self.trained and self.relative <= ROUNDING

    @property
    def sentence(self) -> str:
        """What the pages say.

        >>> one = Checked(
        ...     place="NVIDIA H200; 16 cores", commit="0123456789ab", trainings=12180, trained=612, equal=598, far=0,
        ...     other=0.0011, largest=0.004, mean=Measured(0.00002, 0.00006), pieces=0, measured=0, relative=0.0,
        ... )
        >>> print(one.sentence)
        It agrees: 612 of 12,180 trainings (5.0 %) were trained again at commit 0123456789ab on NVIDIA H200: 598 \
equal, the others differ by 0.11 points on average and by 0.40 at most; mean difference +0.002 ± 0.006 points.
        """
        said = [tell() for count, tell in ((self.trained, self._trainings), (self.measured, self._pieces)) if count]
        return f"{'It agrees' if self.agrees else 'It differs'}: {'; '.join(said)}."

    def _trainings(self) -> str:
        told = f"{_of(self.trained, self.trainings, 'trainings')} were trained again {self._where()}: "
        if self.equal == self.trained:
            return told + "all equal"
        mean = f"{100 * self.mean.value:+.3f}".replace("-", "−")
        far = f", {self.far} of them by more than {100 * FAR:g}" if self.far else ""
        return (
            f"{told}{self.equal:,} equal, the others differ by {100 * self.other:.2f} points on average and by "
            f"{100 * self.largest:.2f} at most{far}; mean difference {mean} ± "
            f"{100 * self.mean.error:.3f} points"
        )

    def _pieces(self) -> str:
        told = "all equal" if self.relative == 0 else f"the largest relative difference is {self.relative:.2g}"
        made = f"{'was' if self.measured == 1 else 'were'} made again {self._where()}"
        return f"{_of(self.measured, self.pieces, 'measurements')} {made}: {told}"

    def _where(self) -> str:
        return f"at commit {self.commit} on {self.place.partition(';')[0]}"


def _of(some: int, all_: int, what: str) -> str:
    """How many of how many.

    >>> _of(61, 1200, "trainings")
    '61 of 1,200 trainings (5.1 %)'
    """
    return f"{some:,} of {all_:,} {what} ({100 * some / all_:.1f} %)"


class SecondLook:
    """One check of one item: what passes by is counted, and a sample of it made again."""

    def __init__(self, bench: Bench, share: float, least: int = LEAST) -> None:
        self.bench, self.journal, self.commit = bench, Journal(bench, "checks"), commit()
        self.jobs, self.pieces = Sample(share, least), Sample(share, 1)
        self.trained: list[Retrained] = []
        self.measured: list[Remeasured] = []

    def run(self) -> Checked:
        """Run the item from what is recorded, and keep the summary."""
        with looking(self._trainings):
            item_module(self.bench.recipe.name).run(replace(self.bench, again=self._piece))
        data = [self.commit, self.jobs.share, self.trained, self.measured]
        return self.journal.row(CHECKED, data, Checked, self._summary)

    def _trainings(self, train: Train, jobs: Sequence[Job]) -> None:
        missing = [job for job in jobs if not job.ledger.holds(job.index, job.trial)]
        if missing:
            raise TadropedgeError(
                f"{len(missing)} of {len(jobs)} trainings such as {missing[0].index} of study "
                f"{missing[0].ledger.name!r} are not finished: only what is recorded can be trained again"
            )
        chosen = [jobs[place] for place in self.jobs.of([(job.ledger.name, job.index) for job in jobs])]
        if chosen:
            recorded = [(job.ledger.name, job.ledger.finished[job.index]) for job in chosen]
            data = [self.commit, *((name, replace(row, curves=None)) for name, row in recorded)]
            name = f"trainings/{chosen[0].ledger.name}"
            self.trained += self.journal.rows(name, data, Retrained, partial(_train, train, chosen))

    def _piece(self, name: str, rows: Sequence[Row], make: Callable[[], Sequence[Row]]) -> None:
        if self.pieces.of([(name, 0)]):
            again = partial(_measure, name, rows, make)
            data = [self.commit, *rows]
            self.measured.append(self.journal.row(f"measurements/{name}", data, Remeasured, again))

    def _summary(self) -> Checked:
        differences = np.array([row.difference for row in self.trained])
        known = differences[~np.isnan(differences)]
        others = np.abs([row.difference for row in self.trained if not row.equal and not math.isnan(row.difference)])
        return Checked(
            place=workplace(self.bench.device),
            trainings=len(self.jobs.seen),
            trained=len(self.trained),
            equal=sum(row.equal for row in self.trained),
            far=int((~(np.abs(differences) <= FAR)).sum()),
            other=float(others.mean()) if len(others) else 0.0,
            largest=float(others.max(initial=0.0)),
            mean=mean_and_error(known) if len(known) else Measured(0.0, 0.0),
            pieces=len(self.pieces.seen),
            measured=len(self.measured),
            relative=max((row.difference for row in self.measured), default=0.0),
        )


def last_check(bench: Bench) -> Checked | None:
    """The summary of the last check of an item, if there was one."""
    return Journal(bench, "checks").last(CHECKED, Checked)


def _train(train: Train, jobs: Sequence[Job]) -> list[Retrained]:
    rows = []
    for job, outcome in zip(jobs, train([job.trial for job in jobs]), strict=True):
        recorded, again = job.ledger.finished[job.index], Finished.of(job.index, outcome)
        rows.append(
            Retrained(
                study=job.ledger.name,
                index=job.index,
                test_accuracy=recorded.test_accuracy,
                test_accuracy_again=again.test_accuracy,
                val_loss=recorded.val_loss,
                val_loss_again=again.val_loss,
                best_epoch=recorded.best_epoch,
                best_epoch_again=again.best_epoch,
            )
        )
    return rows


def _measure(name: str, rows: Sequence[Row], make: Callable[[], Sequence[Row]]) -> Remeasured:
    old, new = (
        [leaf for row in some for leaf in _leaves(replace(row, commit=None).columns())] for some in (rows, make())
    )
    if len(old) != len(new):
        return Remeasured(piece=name, difference=math.inf)
    return Remeasured(piece=name, difference=max(map(_relative, old, new), default=0.0))


def _leaves(value: Any) -> list[Any]:
    """The numbers and words inside a value.

    >>> _leaves({"name": "cora", "sizes": (1, {"low": 0.5})})
    ['cora', 1, 0.5]
    """
    if isinstance(value, Mapping):
        value = list(value.values())
    return [leaf for part in value for leaf in _leaves(part)] if isinstance(value, list | tuple) else [value]


def _relative(old: object, new: object) -> float:
    """How far two numbers are apart relative to the larger one; infinite for what is no number and differs.

    >>> round(_relative(2.0, 2.002), 6), _relative("cdf", "cdf"), _relative(1.0, None)
    (0.000999, 0.0, inf)
    """
    if old == new or (old != old and new != new):  # both NaN
        return 0.0
    if not isinstance(old, int | float) or not isinstance(new, int | float):
        return math.inf
    found = abs(new - old) / max(abs(old), abs(new), TINY)
    return found if math.isfinite(found) else math.inf
