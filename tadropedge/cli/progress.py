"""Progress on standard error: a live display on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from tadropedge.comparison.comparison import Report

SECONDS_BETWEEN_LINES = 5.0


@contextmanager
def live_progress(quiet: bool) -> Iterator[Report]:
    """A live display with the time left on a terminal, a line now and then elsewhere, nothing with ``--json``."""
    if quiet:
        yield lambda phase, done, total: None
        return
    if not sys.stderr.isatty():
        yield plain_log()
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, TextColumn("left"), TimeRemainingColumn(), console=Console(stderr=True)) as display:
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
