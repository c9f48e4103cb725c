"""A progress bar that stays out of the way: shown on a terminal, and only when the work takes long."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import TracebackType

from tqdm import tqdm

PATIENCE = 2.0  # seconds before a bar appears
SECONDS_A_TICK = 1.0

Show = bool | Callable[[int, int], None] | None


class Progress:
    """Count ``total`` units of work on standard error.

    ``show=None`` draws a bar when standard error is a terminal and the work takes more than two seconds;
    ``True`` draws it always and at once, ``False`` never. A function instead is called with (done, total).

    >>> with Progress("solving", total=10, show=False) as bar:
    ...     bar.note("dense")
    ...     bar.advance(10)
    """

    def __init__(self, title: str, total: int, show: Show = None) -> None:
        self._total, self._done = total, 0
        self._listener = show if callable(show) else None
        disable = None if show is None else callable(show) or not show
        delay = PATIENCE if show is None else 0.0
        self._bar = tqdm(desc=title, total=total, disable=disable, delay=delay, leave=False, unit_scale=True)
        self._ended = threading.Event()
        if not self._bar.disable:
            # One large component is one long step: a separate clock keeps the elapsed time moving.
            threading.Thread(target=self._tick, args=(delay,), daemon=True).start()

    def _tick(self, delay: float) -> None:
        wait = delay
        while not self._ended.wait(wait):
            self._bar.refresh()
            wait = SECONDS_A_TICK

    def advance(self, units: int) -> None:
        """Move the bar on by ``units``."""
        self._bar.update(units)
        self._done += units
        if self._listener is not None:
            self._listener(self._done, self._total)

    @contextmanager
    def step(self, units: int) -> Iterator[Callable[[float], None]]:
        """One long step of ``units``: call what it gives with the share that is done, from 0 to 1.

        >>> with Progress("solving", total=10, show=False) as bar, bar.step(10) as report:
        ...     report(0.5)
        """
        done = 0

        def report(share: float) -> None:
            nonlocal done
            reached = int(units * min(max(share, 0.0), 1.0))
            self.advance(max(reached - done, 0))  # a share that falls back moves nothing
            done = max(reached, done)

        yield report
        report(1.0)

    def note(self, text: str) -> None:
        """Say what is being done right now."""
        self._bar.set_postfix_str(text, refresh=False)  # a refresh would not wait

    def __enter__(self) -> Progress:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        self._bar.close()
