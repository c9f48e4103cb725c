"""A progress bar that stays out of the way: shown on a terminal, and only when the work takes long."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from tqdm import tqdm

from tadropedge.errors import TadropedgeError, show

PATIENCE = 2.0  # seconds before a bar appears

Show = bool | Callable[[int, int], None] | None


class Progress(tqdm):  # type: ignore[misc]
    """Count ``total`` units of work on standard error.

    ``shown=None`` draws a bar when standard error is a terminal and the work takes more than two seconds;
    ``True`` draws it always and at once, ``False`` never. A function instead is called with (done, total).

    >>> with Progress("solving", total=10, shown=print) as bar:
    ...     bar.advance(3)
    ...     with bar.step(7) as report:
    ...         report(0.5)
    3 10
    6 10
    10 10
    """

    def __init__(self, title: str, total: int, shown: Show = None) -> None:
        if not (shown is None or shown in (True, False) or callable(shown)):
            wanted = "True, False, None or a function progress(done, total)"
            raise TadropedgeError(f"progress must be {wanted}, got {show(shown)}", argument="progress")
        self._done, self._listener = 0, shown if callable(shown) else None
        disable = None if shown is None else callable(shown) or not shown
        delay = PATIENCE if shown is None else 0.0
        super().__init__(desc=title, total=total, disable=disable, delay=delay, leave=False, unit_scale=True)

    def advance(self, units: int) -> None:
        """Move the bar on by ``units``; ``tqdm.update`` itself counts nothing where no bar is drawn."""
        self.update(units)
        self._done += units
        if self._listener is not None:
            self._listener(self._done, self.total)

    @property
    def is_done(self) -> bool:
        """Whether all units are done."""
        return self._done >= (self.total or 0)

    @contextmanager
    def step(self, units: int) -> Iterator[Callable[[float], None]]:
        """One long step of ``units``: call what it gives with the share that is done, from 0 to 1."""
        begun = self._done

        def report(share: float) -> None:
            reached = begun + int(units * min(max(share, 0.0), 1.0))
            self.advance(max(reached - self._done, 0))  # a share that falls back moves nothing

        yield report
        report(1.0)
