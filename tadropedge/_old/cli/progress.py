"""Progress on standard error: a live display on a terminal, a line now and then elsewhere; what a stop leaves."""

from __future__ import annotations

import shlex
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from typing import Any

import typer

from tadropedge._old.cli.watch import Watch
from tadropedge._old.errors import without_password
from tadropedge._old.watching import Event, Listener, Moment, Phase, watching

PATIENCE = 1.5  # seconds without a word, before a command says that it has begun
FIRST_LINE, SECONDS_BETWEEN_LINES, MOST_BETWEEN_LINES = 2.0, 5.0, 60.0  # of a log; more seconds in a longer one
SECONDS_BETWEEN_LOOKS = 0.1  # of the live display
WIDE = 100  # columns from which there is room for a bar
LOADING = "loading packages and data ..."
Report = Callable[[str, int, int], None]  # (phase, done, in all)


def command_line() -> str:
    """The command as it was typed."""
    return without_password(shlex.join(["tadropedge", *sys.argv[1:]]))


_announcement: ContextVar[Announcement | None] = ContextVar("announcement", default=None)
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


@contextmanager
def live_progress(quiet: bool, place: object = None) -> Iterator[Report]:
    """A live display with the time left on a terminal, a line now and then elsewhere, nothing with ``--json``.

    It shows what it is given and what :mod:`tadropedge._old.watching` tells. An interruption ends with one line that says
    what is kept, in ``place`` if anywhere, and how to resume.
    """
    watch = Watch()
    try:
        with _shown(watch, quiet) as show:

            def listen(event: Event) -> None:
                watch.listen(event)
                if isinstance(event, (Phase, Moment)):
                    show(event)
                    if _asked:
                        raise KeyboardInterrupt

            with watching(listen):
                yield lambda phase, done, total: listen(Phase(phase, done, total))
    except KeyboardInterrupt:
        words, resumes = watch.left_behind(place)
        again = "Resume with" if resumes else "Start again with"
        print(f"\nstopped; {words}. {again}: {command_line()}", file=sys.stderr)
        raise typer.Exit(130) from None


@contextmanager
def _shown(watch: Watch, quiet: bool) -> Iterator[Listener]:
    if quiet:
        yield lambda event: None
    elif sys.stderr.isatty():
        if (announcement := _announcement.get()) is not None:
            announcement.end()
        with _display(watch) as show:
            yield show
    else:
        yield plain_log(watch)


@contextmanager
def _display(watch: Watch) -> Iterator[Listener]:
    """One line per phase, of which the last moves."""
    from rich import progress as bars
    from rich.console import Console

    console = Console(stderr=True)
    bar = (bars.BarColumn(bar_width=20),) if console.width >= WIDE else ()
    columns = (bars.TimeElapsedColumn(), *bar, bars.TextColumn("{task.description}", markup=False))
    with bars.Progress(*columns, console=console) as display:
        tasks: dict[str, Any] = {}
        last = [0.0]

        def show(event: Event) -> None:
            now, phase = time.monotonic(), watch.current
            between = isinstance(event, Moment) and 0 < event.epoch < event.epochs
            if phase is None or (between and now - last[0] < SECONDS_BETWEEN_LOOKS):
                return
            last[0] = now
            if phase.name not in tasks:
                tasks[phase.name] = display.add_task(phase.name, total=1.0)
            display.update(tasks[phase.name], description=watch.words, completed=watch.share)

        yield show


class Announcement:
    """Say on a terminal that the command has begun where it says nothing else for a while, until :meth:`end`."""

    def __init__(self) -> None:
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._say, daemon=True)
        self._thread.start()

    def _say(self) -> None:
        if not self._ended.wait(PATIENCE):
            print(LOADING, end="", file=sys.stderr, flush=True)
            self._ended.wait()
            print("\r\x1b[2K", end="", file=sys.stderr, flush=True)  # the line is empty again

    def end(self) -> None:
        """Something else is said now."""
        self._ended.set()
        self._thread.join()


def announced(command: Callable[..., None]) -> Callable[..., None]:
    """Let a command that imports torch, which takes seconds, say that it has begun."""

    @wraps(command)
    def told(**given: Any) -> None:
        if given["as_json"] or not sys.stderr.isatty():
            command(**given)
            return
        announcement = Announcement()
        token = _announcement.set(announcement)
        try:
            command(**given)
        finally:
            _announcement.reset(token)
            announcement.end()

    return told


def plain_log(watch: Watch) -> Listener:
    """A line at the ends of each phase and every few seconds between them, with the time left."""
    begun, last = time.monotonic(), [-MOST_BETWEEN_LINES]
    lines: set[str] = set()

    def line(event: Event) -> None:
        phase = watch.current
        if phase is None:
            return
        now, new = time.monotonic(), phase.name not in lines
        between = max(SECONDS_BETWEEN_LINES, min(MOST_BETWEEN_LINES, (now - begun) / 20))
        ends = isinstance(event, Phase) and (new or 1 < phase.total == phase.done)
        due = now - last[0] >= (between if last[0] > begun + FIRST_LINE else FIRST_LINE)
        if not (ends or due) or ("scoring edges" in phase.name and watch.seconds < FIRST_LINE):
            return  # a score that is there at once needs no line
        lines.add(phase.name)
        last[0] = now
        print(watch.words, file=sys.stderr, flush=True)

    return line
