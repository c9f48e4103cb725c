"""How far the work has come, told to whoever watches; those who do the work do not know who that is, if anyone.

What is told never changes what is done: nobody waits for it, and nothing is drawn or rounded differently.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass


@dataclass(frozen=True)
class Phase:
    """``done`` of ``total`` units of a phase of the work."""

    name: str
    done: int
    total: int


@dataclass(frozen=True, kw_only=True)
class Moment:
    """Where a list of ``trainings`` is: some are ``finished``, and ``together`` of them have passed ``epoch``.

    >>> Moment(trainings=8, finished=2, together=4, epoch=5, epochs=10).worked
    4.0
    """

    trainings: int
    finished: int
    together: int
    epoch: int
    epochs: int

    @property
    def worked(self) -> float:
        """The work that is done, in trainings."""
        return self.finished + self.together * self.epoch / self.epochs


@dataclass(frozen=True)
class Expected:
    """The trainings of the phases to come, by name; not more than these."""

    trainings: Mapping[str, int]


@dataclass(frozen=True)
class Safe:
    """So much is on disk and is not done again after an interruption: ``done`` of ``total``, or of what is not known.

    ``what`` is ``trainings``, which the next :class:`Phase` counts; the ``scores`` or the ``certificate`` of edges; or
    ``measurements`` of some item.
    """

    what: str
    done: int
    total: int | None = None


Event = Phase | Moment | Expected | Safe
Listener = Callable[[Event], None]
_listener: ContextVar[Listener | None] = ContextVar("listener", default=None)


@contextmanager
def watching(listener: Listener) -> Iterator[None]:
    """In this block, what :func:`tell` is given goes to ``listener``.

    >>> seen = []
    >>> with watching(seen.append):
    ...     tell(Phase("search", 3, 48))
    >>> tell(Phase("search", 4, 48))  # nobody listens
    >>> seen
    [Phase(name='search', done=3, total=48)]
    """
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


def watched() -> bool:
    """Whether anybody listens."""
    return _listener.get() is not None


def tell(event: Event) -> None:
    """Tell whoever watches."""
    if (listener := _listener.get()) is not None:
        listener(event)


@contextmanager
def relaying(change: Callable[[Event], Event]) -> Iterator[None]:
    """In this block, what is told goes on to whoever watches as ``change`` makes it.

    >>> seen = []
    >>> with watching(seen.append), relaying(lambda event: Phase("outer", 1, 2)):
    ...     tell(Phase("search", 3, 48))
    >>> seen
    [Phase(name='outer', done=1, total=2)]
    """
    outer = _listener.get()
    with nullcontext() if outer is None else watching(lambda event: outer(change(event))):
        yield
