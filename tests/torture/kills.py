"""Signals at any moment of the commands that write folders: a kill, Ctrl-C, a request to end."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from torture import Case, jobs

TRIES = "kills and interruptions at any moment"

SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT)
MOMENTS = 24  # of each command
GOLDEN = 0.6180339887498949  # multiples of it, without their whole parts, are spread evenly and in no order


def cases() -> Iterator[Case]:
    """Every command, at moments that look random and are always the same."""
    for job in jobs.COMMANDS:
        for place in range(MOMENTS):
            number, moment = SIGNALS[place % len(SIGNALS)], (place + 1) * GOLDEN % 1.0
            yield Case(f"{job}: {number.name} after {moment:.0%}", partial(survives, job, number, moment))


def survives(job: str, number: signal.Signals, moment: float, folder: Path) -> None:
    """Send the signal when a share of the time has passed that the whole command takes, and run it again."""
    seconds = moment * jobs.whole(job).seconds
    jobs.begin(job, folder)
    ended = jobs.run(job, folder, partial(_send_later, number, seconds))
    assert ended.code in (0, 130, -signal.SIGKILL), f"{number.name}: {ended}"
    jobs.check_disturbed(job, ended, folder)
    jobs.check_resumed(job, folder)


def _send_later(number: signal.Signals, seconds: float) -> None:
    def send() -> None:
        while signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:  # until the command line runs
            time.sleep(0.001)
        time.sleep(seconds)
        os.kill(os.getpid(), number)

    threading.Thread(target=send, daemon=True).start()
