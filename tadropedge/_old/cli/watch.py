"""What is known of the work at any moment: how far it is, how long it may take, and what a stop would leave."""

from __future__ import annotations

import time
from collections.abc import Callable

from tadropedge._old.watching import Event, Expected, Moment, Phase, Safe

LEAST = 0.5  # seconds of work before a time left is told
MOST_NAMED = 6  # phases that a stop names one by one


def duration(seconds: float) -> str:
    """A time in words, rounded.

    >>> duration(0.2), duration(59.7), duration(89), duration(5400)
    ('1 s', '1 min', '1 min', '1 h 30 min')
    """
    whole = max(1, round(seconds))
    if whole < 60:
        return f"{whole} s"
    minutes = round(whole / 60)
    if minutes < 60:
        return f"{minutes} min"
    hours, rest = divmod(minutes, 60)
    return f"{hours} h {rest} min" if rest and hours < 10 else f"{round(minutes / 60)} h"


class Watch:
    """The phases so far, the batch at work, and what is on disk, from what :mod:`tadropedge._old.watching` tells.

    >>> watch = Watch()
    >>> for event in (Safe("trainings", 12, 48), Phase("search", 12, 48)):
    ...     watch.listen(event)
    >>> watch.listen(Moment(trainings=36, finished=0, together=36, epoch=37, epochs=400))
    >>> watch.words
    'search: 12 of 48 trainings · epoch 37 of 400'
    >>> watch.left_behind("study.db")
    ('12 of 48 trainings (search) are kept in study.db; the batch at work (36 trainings) is lost', True)
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self.phases: dict[str, Phase] = {}
        self.current: Phase | None = None
        self.moment: Moment | None = None  # of trainings that are not written yet
        self._began: dict[str, tuple[float, int]] = {}  # when a phase began, and what was done by then
        self._trainings: dict[str, int] = {}  # phases that count trainings, and what was done when they began
        self._ahead: dict[str, int] = {}
        self._kept: dict[str, Safe] = {}
        self._counted = False  # whether the next phase counts trainings
        self._pace: tuple[float, float] | None = None  # when the first epoch had passed, and the work done by then

    def listen(self, event: Event) -> None:
        """Take in what is told."""
        match event:
            case Phase():
                self._take(event)
            case Moment():
                self.moment = event
                if not self.trains and self._trainings:  # a score was found, and the phase of before goes on
                    self.current = self.phases[list(self._trainings)[-1]]
                if self._pace is None and event.epoch:
                    self._pace = self._clock(), self._worked
            case Expected():
                self._ahead = dict(event.trainings)
            case Safe(what="trainings"):
                self._counted = True
            case Safe():
                self._kept[event.what] = event

    def _take(self, phase: Phase) -> None:
        if self._counted:
            self._trainings.setdefault(phase.name, phase.done)
            self.moment = None
        elif phase.name in self._trainings:
            self.moment = None
        self._counted = False
        self._began.setdefault(phase.name, (self._clock(), phase.done))
        self.phases[phase.name] = self.current = phase

    @property
    def trains(self) -> bool:
        """Whether the current phase counts trainings."""
        return self.current is not None and self.current.name in self._trainings

    @property
    def share(self) -> float:
        """The share of the current phase that is done."""
        if self.current is None or not self.current.total:
            return 0.0
        here = self.moment.worked if self.moment is not None and self.trains else 0.0
        return min(1.0, (self.current.done + here) / self.current.total)

    @property
    def _worked(self) -> float:
        """The work of this run, in trainings."""
        done = sum(self.phases[name].done - first for name, first in self._trainings.items())
        return done + (0.0 if self.moment is None else self.moment.worked)

    @property
    def _to_do(self) -> float:
        """The trainings of this phase that are left, and those of the phases to come where they are known."""
        begun = sum(self.phases[name].total - self.phases[name].done for name in self._trainings)
        return begun + self._coming - (0.0 if self.moment is None else self.moment.worked)

    @property
    def _coming(self) -> int:
        """The trainings of the phases to come."""
        return sum(count for name, count in self._ahead.items() if name not in self._trainings)

    @property
    def seconds(self) -> float:
        """For how long the current phase has been going on."""
        return 0.0 if self.current is None else self._clock() - self._began[self.current.name][0]

    @property
    def seconds_left(self) -> float | None:
        """About the seconds that are left of all trainings, or of another phase; ``None``: not known yet."""
        if self.current is None:
            return None
        if self.trains:
            if self._pace is None:
                return None
            (since, before), done, left = self._pace, self._worked, self._to_do
            took, done = self._clock() - since, done - before
        else:
            since, first = self._began[self.current.name]
            took, done, left = self._clock() - since, self.current.done - first, self.current.total - self.current.done
        return left * took / done if done > 0 and left > 0 and took >= LEAST else None

    @property
    def words(self) -> str:
        """Where the work is, with the time left."""
        if self.current is None:
            return ""
        name, done, total = self.current.name, self.current.done, self.current.total
        moment = self.moment if self.trains else None
        done += 0 if moment is None else moment.finished
        parts = [] if total == 1 else [f"{done:,} of {total:,}{' trainings' if self.trains else ''}"]
        if moment is not None:
            parts.append(f"epoch {moment.epoch:,} of {moment.epochs:,}")
        if (left := self.seconds_left) is not None:
            parts.append(f"about {duration(left)} left{' in all' if self.trains and self._coming else ''}")
        return f"{name}: {' · '.join(parts)}" if parts else name

    def left_behind(self, place: object) -> tuple[str, bool]:
        """What a stop at this moment keeps in ``place`` and what it loses; whether there is something to resume."""
        kept = self._kept_things() if place is not None else []
        if not self.phases and not kept:
            return "no work was done yet", False
        one = len(kept) == 1 and kept[0].startswith("1 ") and " of " not in kept[0]
        told = f"{' and '.join(kept)} {'is' if one else 'are'} kept in {place}" if kept else "nothing is kept"
        return told + self._lost(), bool(kept)

    def _kept_things(self) -> list[str]:
        phases = [self.phases[name] for name in self._trainings]
        if sum(one.done > 0 for one in phases) > MOST_NAMED:  # a map of many cells
            return [f"{sum(one.done for one in phases):,} trainings"]
        trained = [f"{one.done:,} of {one.total:,} trainings ({one.name})" for one in phases if one.done]
        told = [trained[0], *(words.replace(" trainings", "") for words in trained[1:])] if trained else []
        for kept in self._kept.values():
            if kept.total is None and kept.done:
                what = kept.what if kept.done > 1 else kept.what.replace("measurements", "measurement")
                told.append(f"{kept.done:,} {what}")
        if told:
            return told
        edges = [one for one in self._kept.values() if one.total and one.done]
        return [f"the {one.what} of {one.done:,} of {one.total:,} edges" for one in edges]

    def _lost(self) -> str:
        moment = self.moment
        if moment is None:
            return ""
        if moment.trainings == 1:
            return f"; the training at work (epoch {moment.epoch:,} of {moment.epochs:,}) is lost"
        return f"; the batch at work ({moment.trainings:,} trainings) is lost"
