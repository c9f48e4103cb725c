"""What a command says: results on standard output; on standard error progress, notes and what a stop leaves."""

from __future__ import annotations

import json
import shlex
import sys
import time
from collections.abc import Iterable
from datetime import timedelta
from textwrap import wrap
from types import TracebackType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.table import Table

BETWEEN = 5.0  # seconds between two lines where there is no terminal; in a long run they become rarer
INTERRUPTIONS: list[int] = []  # signals that asked this process to end
_kept: list[str] = []


def command_line() -> str:
    """The command as it was typed."""
    return shlex.join(["tadropedge", *sys.argv[1:]])


# -- results ---------------------------------------------------------------------------------------------


def show(document: object, as_json: bool, parts: Iterable[str | Table]) -> None:
    """Print a document as JSON and nothing else, or else the lines and tables that tell of it."""
    if as_json:
        print(json.dumps(document, indent=2))
        return
    from rich.console import Console

    console = Console(highlight=False)
    for part in parts:
        if isinstance(part, str):
            print("\n".join(_wrapped(line, console.width) for line in part.split("\n")))
        else:
            with console.capture() as table:  # printed as the rest is: rich itself ends the process on a closed pipe
                console.print(part)
            print(table.get(), end="")


def columns() -> int:
    """How wide a text may be: as the terminal is, as ``COLUMNS`` says, or 80."""
    from rich.console import Console

    return Console().width


def _wrapped(line: str, width: int) -> str:
    r"""A line, broken between words alone, so that paths stay whole; what is indented stays a line.

    >>> _wrapped("written to a/very/long/folder", 12)
    'written to\na/very/long/folder'
    """
    if line.startswith(" "):
        return line
    return "\n".join(wrap(line, width, break_long_words=False, break_on_hyphens=False))


# -- notes -----------------------------------------------------------------------------------------------


def note(words: str) -> None:
    """Say something beside the results: on standard error, so that what is printed can be piped on."""
    print(words, file=sys.stderr, flush=True)


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


class Display:
    """What is being done, how far it is, and for how long: a moving line on a terminal, elsewhere one now and then.

    It is the watch of a search (:meth:`plan`, :meth:`trained`, :meth:`epoch`), and :meth:`step` tells of other work.
    """

    def __init__(self, quiet: bool = False) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
        from rich.table import Column

        moves = not quiet and sys.stderr is not None and sys.stderr.isatty()
        console = Console(stderr=True)
        whole, rest = Column(no_wrap=True, min_width=8), Column(no_wrap=True, overflow="ellipsis", ratio=1)
        # The time stands first and is never cut; where there is little room nothing else is shown but what is done.
        wide = [BarColumn(20), TimeRemainingColumn(table_column=whole)] if console.width >= 70 else []
        texts = [TextColumn("{task.fields[clock]}", table_column=whole), *wide]
        texts.append(TextColumn("{task.description} {task.fields[detail]}", table_column=rest))
        self._begun = self._told = time.monotonic()
        self._lines = not quiet and not moves
        self._bar = Progress(*texts, console=console, transient=True, expand=True, disable=not moves)
        self._task = self._bar.add_task("loading", total=None, detail="", clock=self)
        self._name = ""

    def __str__(self) -> str:
        """The time that has passed."""
        return str(timedelta(seconds=int(time.monotonic() - self._begun)))

    def step(self, name: str, done: int, total: int) -> None:
        """``done`` of ``total`` units of a phase are done."""
        if name != self._name or not done:  # the second round of a comparison is a new phase, too
            self._name = name
            self._bar.reset(self._task, total=total)
        count = f"{done:,} of {total:,}" if total > 1 else ""
        self._bar.update(self._task, description=name, completed=done, total=total, detail=count)
        self._tell()

    def plan(self, total: int) -> None:
        """So many trainings are to be done."""
        self.step("training", 0, total)

    def trained(self, count: int = 1) -> None:
        """So many more trainings are finished."""
        task = self._bar.tasks[0]
        self.step("training", int(task.completed) + count, int(task.total or 1))

    def epoch(self, done: int, total: int) -> None:
        """The trainings at work have done so many epochs."""
        task = self._bar.tasks[0]
        count = f"{task.completed:,.0f} of {task.total:,.0f}, " if task.total else ""
        self._bar.update(self._task, description="training", detail=f"{count}epoch {done:,} of {total:,}")
        self._tell()

    def _tell(self) -> None:
        if INTERRUPTIONS:  # a library may have swallowed it
            raise KeyboardInterrupt
        now = time.monotonic()
        if self._lines and now - self._told >= max(BETWEEN, (now - self._begun) / 20):
            self._told, task = now, self._bar.tasks[0]
            left = "" if task.time_remaining is None else f", {timedelta(seconds=int(task.time_remaining))} left"
            note(f"{self} {task.description} {task.fields['detail']}{left}")

    def __enter__(self) -> Display:
        self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.stop()
