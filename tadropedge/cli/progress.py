"""Progress on standard error: a live display on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import shlex
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import typer

from tadropedge.errors import without_password

SECONDS_BETWEEN_LINES = 5.0
Report = Callable[[str, int, int], None]  # (phase, done, in all)


def command_line() -> str:
    """The command as it was typed."""
    return without_password(shlex.join(["tadropedge", *sys.argv[1:]]))


_asked: list[int] = []  # signals that asked this process to end


def stop_on_signals() -> None:
    """Let Ctrl-C and SIGTERM end the command; what is finished is kept.

    A library that is being imported may swallow the interruption, so the next report of progress repeats it.
    """

    def stop(number: int, _: object) -> None:
        _asked.append(number)
        raise KeyboardInterrupt

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, stop)


def _heard(report: Report) -> Report:
    def reported(phase: str, done: int, total: int) -> None:
        report(phase, done, total)
        if _asked:
            raise KeyboardInterrupt

    return reported


@contextmanager
def live_progress(quiet: bool, kept: str = "") -> Iterator[Report]:
    """A live display with the time left on a terminal, a line now and then elsewhere, nothing with ``--json``.

    Where some work is ``kept``, an interruption ends with a line that says so, and how to resume.
    """
    try:
        if quiet:
            yield _heard(lambda phase, done, total: None)
        elif sys.stderr.isatty():
            with _display() as report:
                yield _heard(report)
        else:
            yield _heard(plain_log())
    except KeyboardInterrupt:
        if not kept:
            raise
        print(f"\nstopped; {kept}. Resume with: {command_line()}", file=sys.stderr)
        raise typer.Exit(130) from None


@contextmanager
def _display() -> Iterator[Report]:
    from rich import progress as bars
    from rich.console import Console

    columns = (bars.TextColumn("{task.description}"), bars.BarColumn(), bars.MofNCompleteColumn())
    times = (bars.TimeElapsedColumn(), bars.TextColumn("left"), bars.TimeRemainingColumn())
    with bars.Progress(*columns, *times, console=Console(stderr=True)) as display:
        tasks: dict[str, Any] = {}

        def shown(phase: str, done: int, total: int) -> None:
            if phase not in tasks:
                tasks[phase] = display.add_task(phase, total=total)
            display.update(tasks[phase], completed=done, total=total)

        yield shown


def plain_log() -> Report:
    """A line every few seconds, with the time left."""
    last = [0.0]
    begun: dict[str, tuple[float, int]] = {}

    def line(phase: str, done: int, total: int) -> None:
        now = time.monotonic()
        start, before = begun.setdefault(phase, (now, done))
        if done < total and now - last[0] < SECONDS_BETWEEN_LINES:
            return
        last[0] = now
        speed = (done - before) / max(now - start, 1e-9)
        left = f", about {(total - done) / speed:.0f} s left" if speed > 0 and done < total else ""
        print(f"{phase}: {done} of {total}{left}", file=sys.stderr, flush=True)

    return line
