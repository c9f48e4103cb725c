"""Signals that wait: what is being written or read in a storage is completed before Ctrl-C or SIGTERM end the work.

A statement that is interrupted half-way may leave a cursor open, which the exception keeps alive and which locks an
SQLite file: giving back the claims on trials would then wait for a minute and fail.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Hold Ctrl-C and SIGTERM back until the block is done, then let them through."""
    if threading.current_thread() is not threading.main_thread():  # where Python delivers no signals
        yield
        return
    caught: list[int] = []
    stopping = (signal.SIGINT, signal.SIGTERM)
    before = {number: signal.signal(number, lambda number, _: caught.append(number)) for number in stopping}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)
        if caught:
            signal.raise_signal(caught[0])
