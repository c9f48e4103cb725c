"""Progress on standard error: a moving line on a terminal, a plain one now and then elsewhere; what a stop leaves."""

from __future__ import annotations

import shlex
import sys
import time
from types import TracebackType
from typing import Any

FIRST_LINE, BETWEEN_LINES, MOST_BETWEEN = 2.0, 5.0, 60.0  # seconds of a plain log; in a long one lines are rarer
LEAST = 3.0  # seconds of work from which the time that is left can be told
BAR = 20  # columns
WIDE = 70  # columns of a terminal from which there is room for a bar
INTERRUPTIONS: list[int] = []  # signals that asked this process to end
_kept: list[str] = []


def keeps(folder: object) -> None:
    """From now on an interruption keeps what is finished in ``folder``, and the same command goes on from there."""
    _kept[:] = [str(folder)]


def stopped() -> str:
    """What an interruption leaves.

    >>> _kept.clear()
    >>> stopped()
    'stopped: nothing is kept; run the same command to start again'
    """
    if not _kept:
        return "stopped: nothing is kept; run the same command to start again"
    return f"stopped: what was finished is kept in {_kept[0]}; run the same command to go on from there"


def note(words: str) -> None:
    """Say something beside the results: on standard error, so that what is printed can be piped on."""
    print(words, file=sys.stderr, flush=True)


class Display:
    """What is being done, how far it is, and for how long. ``quiet`` shows nothing.

    It is the watch of a search (:meth:`plan`, :meth:`trained`, :meth:`epoch`), and :meth:`step` tells of other work.
    """

    def __init__(self, quiet: bool = False) -> None:
        self._quiet = quiet
        self._begun = self._phase_begun = time.monotonic()
        self._name, self._done, self._total, self._detail = "", 0.0, 0, ""
        self._last_line = -MOST_BETWEEN
        self._live: Any = None
        self._width = 80

    # -- what is told -------------------------------------------------------------------------------------

    def step(self, name: str, done: int, total: int) -> None:
        """``done`` of ``total`` units of a phase are done."""
        if name != self._name or not done:  # the second round of a comparison is a new phase, too
            self._name, self._phase_begun = name, time.monotonic()
        self._done, self._total, self._detail = done, total, ""
        self._tell()

    def plan(self, total: int) -> None:
        """So many trainings are to be done."""
        self.step("training", 0, total)

    def trained(self, count: int = 1) -> None:
        """So many more trainings are finished."""
        self.step("training", round(self._done - self._done % 1) + count, max(self._total, 1))

    def epoch(self, done: int, total: int) -> None:
        """The trainings at work have done so many epochs."""
        self._name = self._name or "training"
        self._detail = f"epoch {done:,} of {total:,}"
        self._tell()

    # -- what is shown ------------------------------------------------------------------------------------

    def words(self) -> str:
        """Where the work is, with the time that is left."""
        if not self._name:
            return "loading"
        count = f"{self._done:,.0f} of {self._total:,}" if self._total > 1 else ""
        left = self._left()
        parts = [count, self._detail, "" if left is None else f"about {duration(left)} left"]
        return f"{self._name} {' · '.join(filter(None, parts))}".strip()

    def _left(self) -> float | None:
        """Seconds."""
        took = time.monotonic() - self._phase_begun
        if took < LEAST or not 0 < self._done < self._total:
            return None
        return took * (self._total - self._done) / self._done

    def _line(self) -> Any:
        """The moving line: the time first, so that the end of the terminal never cuts it."""
        from rich.text import Text

        share = min(1.0, self._done / self._total) if self._total else 0.0
        bar = ""
        if self._width >= WIDE and self._total > 1:
            bar = f" {'━' * round(BAR * share)}{'╺' * (BAR - round(BAR * share))}"
        return Text(f"{clock(time.monotonic() - self._begun)}{bar} {self.words()}", no_wrap=True, overflow="ellipsis")

    def _tell(self) -> None:
        if INTERRUPTIONS:  # a library may have swallowed it
            raise KeyboardInterrupt
        if self._quiet or self._live is not None:
            return
        now = time.monotonic()
        between = min(MOST_BETWEEN, max(BETWEEN_LINES, (now - self._begun) / 20))
        if now - self._begun >= FIRST_LINE and now - self._last_line >= between:
            self._last_line = now
            note(f"{clock(now - self._begun)} {self.words()}")

    def __enter__(self) -> Display:
        if not self._quiet and sys.stderr is not None and sys.stderr.isatty():
            from rich.console import Console
            from rich.live import Live

            console = Console(stderr=True)
            self._width = console.width
            self._live = Live(console=console, get_renderable=self._line, refresh_per_second=8, transient=True)
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live is not None:
            self._live.stop()


def clock(seconds: float) -> str:
    """A time that has passed, in at most seven letters for ten hours.

    >>> clock(7), clock(83.2), clock(3723)
    ('7s', '1:23', '1:02:03')
    """
    whole = int(seconds)
    if whole < 60:
        return f"{whole}s"
    minutes, rest = divmod(whole, 60)
    return f"{minutes}:{rest:02}" if minutes < 60 else f"{minutes // 60}:{minutes % 60:02}:{rest:02}"


def duration(seconds: float) -> str:
    """About how long, in words.

    >>> duration(0.2), duration(89), duration(5400)
    ('1 s', '1 min', '1 h 30 min')
    """
    whole = max(1, round(seconds))
    if whole < 60:
        return f"{whole} s"
    minutes = round(whole / 60)
    hours, rest = divmod(minutes, 60)
    return f"{minutes} min" if not hours else f"{hours} h {rest} min" if rest else f"{hours} h"


def command_line() -> str:
    """The command as it was typed."""
    return shlex.join(["tadropedge", *sys.argv[1:]])
