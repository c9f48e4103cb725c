"""Who trains the batches of a search: this process, or workers elsewhere; whoever it is, this process alone writes.

An :class:`Engine` is a value that says how; while it is running it is a :class:`Crew`, which is given batches of trials
and gives back their outcomes. What a batch consists of does not depend on how many workers there are.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from tadropedge._old.checks import check_integer, settle
from tadropedge._old.errors import TadropedgeError, lookup, show
from tadropedge._old.training.config import Outcome, Trial

Train = Callable[[Sequence[Trial]], Sequence[Outcome]]
Trained = tuple[int, Sequence[Outcome]]  # the place of a batch among those that were given, and what it gave
ENGINES = ("local", "ray")


class Crew(Protocol):
    """What trains batches."""

    @property
    def together(self) -> bool:
        """Whether it wants all batches that there are, instead of one after the other."""

    def size(self, train: Train, trials: Sequence[Trial], most: int) -> int:
        """How many of these trials make a batch, where the caller would take ``most``."""

    def trained(self, train: Train, batches: Sequence[Sequence[Trial]]) -> Generator[Trained, None, None]:
        """The outcomes of every batch as it ends, in any order; what is not finished ends with the iterator."""


@runtime_checkable
class Engine(Protocol):
    """How batches are trained; ``running`` gives the crew that does it, for the duration of a block."""

    def running(self) -> AbstractContextManager[Crew]:
        """Start, or connect to, whoever trains."""


@dataclass(frozen=True)
class Local:
    """Train in this process, one batch after the other, of at most ``batch`` trials.

    >>> Local(batch=8)
    Local(batch=8)
    """

    batch: int | None = None

    def __post_init__(self) -> None:
        if self.batch is not None:
            settle(self, batch=check_integer("batch", self.batch, least=1))

    @contextmanager
    def running(self) -> Iterator[Crew]:
        """Nothing has to be started."""
        yield _Here(self.batch)


@dataclass(frozen=True)
class _Here:
    """The crew that is this process itself."""

    batch: int | None = None
    together: bool = False

    def size(self, train: Train, trials: Sequence[Trial], most: int) -> int:
        """What the caller takes, or fewer if fewer were asked for."""
        return most if self.batch is None else min(most, self.batch)

    def trained(self, train: Train, batches: Sequence[Sequence[Trial]]) -> Generator[Trained, None, None]:
        """One after the other."""
        for place, batch in enumerate(batches):
            yield place, train(batch)


_crew: ContextVar[Crew | None] = ContextVar("crew", default=None)


@contextmanager
def training_with(engine: Engine | str | None) -> Iterator[None]:
    """In this block, whatever searches trains with ``engine``: ``"local"``, ``"ray"``, or one with settings.

    ``None`` changes nothing.

    >>> with training_with(Local(batch=2)):
    ...     crew().size(len, [Trial()] * 5, 64)
    2
    """
    chosen = check_engine(engine)
    if chosen is None:
        yield
        return
    with chosen.running() as started:
        token = _crew.set(started)
        try:
            yield
        finally:
            _crew.reset(token)


def crew() -> Crew:
    """Who trains here: this process, where nobody else was named."""
    return _crew.get() or _Here()


def check_engine(engine: object) -> Engine | None:
    """Return an engine by its name, or as it is; ``None`` stays.

    >>> check_engine("cloud")
    Traceback (most recent call last):
    tadropedge._old.errors.TadropedgeError: unknown engine 'cloud'; choose from local, ray
    """
    if engine is None:
        return None
    if isinstance(engine, str):
        lookup("engine", engine, dict.fromkeys(ENGINES))
        if engine == "local":
            return Local()
        from tadropedge._old.search.ray_engine import RayEngine

        return RayEngine()
    if isinstance(engine, type) or not isinstance(engine, Engine):
        raise TadropedgeError(f"engine must be one of {', '.join(ENGINES)}, a RayEngine or None, got {show(engine)}")
    return engine
