"""What trains the batches of a search: this process, or workers elsewhere. Only this process writes the results."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Protocol

from tadropedge.errors import TadropedgeError, lookup, show
from tadropedge.lab.training.trial import Outcome, Trial

Train = Callable[[Sequence[Trial]], list[Outcome]]
Trained = tuple[int, list[Outcome]]  # the number of a batch among those that were given, and what came of it
ENGINES = ("local", "ray")


class Executor(Protocol):
    """What trains batches. What comes of a batch does not depend on where it is trained, or on what trains beside it.

    ``workers`` is how many batches train at once; ``is_here`` says that they train in this process, which can then be
    told of every epoch. Only this process writes the results.
    """

    workers: int
    is_here: bool

    def map(self, train: Train, batches: Sequence[Sequence[Trial]]) -> Iterator[Trained]:
        """The outcomes of each batch as it ends, in any order, with its number."""


class Local:
    """Trains in this process, one batch after the other.

    >>> list(Local().map(lambda trials: trials, ["ab", "c"]))
    [(0, 'ab'), (1, 'c')]
    """

    workers = 1
    is_here = True

    def map(self, train: Train, batches: Sequence[Sequence[Trial]]) -> Iterator[Trained]:
        """One after the other: a batch begins when the one before was taken."""
        return ((number, train(batch)) for number, batch in enumerate(batches))


def check_executor(executor: Executor | None) -> Executor:
    """What was given, if it can train batches; by default this process."""
    if executor is None:
        return Local()
    if not callable(getattr(executor, "map", None)) or not hasattr(executor, "workers"):
        raise TadropedgeError(f"executor must have workers and map(), got {show(executor)}", argument="executor")
    return executor


@contextmanager
def opened(engine: str = "local", address: str | None = None) -> Iterator[Executor]:
    """The executor of this name for the duration of a block; ``address`` is that of a Ray cluster.

    >>> with opened("local") as executor:
    ...     executor.workers
    1
    """
    lookup("engine", engine, dict.fromkeys(ENGINES))
    if engine == "local":
        if address is not None:
            raise TadropedgeError(f"engine 'local' has no address, got {address!r}: take engine 'ray'")
        yield Local()
        return
    from tadropedge.lab.search.ray import Ray

    with Ray(address) as workers:
        yield workers
