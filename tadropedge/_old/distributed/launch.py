"""Whether this process is one of several that ``torchrun`` started; loads without torch."""

from __future__ import annotations

import os
import sys
import time
from contextlib import suppress
from typing import NoReturn

from tadropedge._old.errors import SpreadError

PATIENCE = 30.0  # seconds for the first process to say why it ends, before another does
LAUNCHED = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")  # what torchrun tells every process


def launched() -> bool:
    """Whether ``torchrun``, or something that says the same, started this process.

    >>> launched()
    False
    """
    return all(name in os.environ for name in LAUNCHED)


def ranks_told() -> tuple[int, int]:
    """The number of this process and how many there are, as the environment says."""
    told = {name: os.environ.get(name, "") for name in ("RANK", "WORLD_SIZE", "MASTER_PORT")}
    for name, value in told.items():
        if not (value.isascii() and value.isdigit() and len(value) <= 9):
            raise SpreadError(f"{name} must be a whole number, as torchrun sets it, got {value!r}: start with torchrun")
    rank, size = int(told["RANK"]), int(told["WORLD_SIZE"])
    if rank >= size:
        raise SpreadError(f"RANK must be below WORLD_SIZE, {size}, got {rank}: start with torchrun")
    return rank, size


def is_first() -> bool:
    """Whether this process speaks for all: the first of several, or the only one.

    >>> is_first()
    True
    """
    return not launched() or os.environ["RANK"] == "0"


def end_after_first() -> NoReturn:
    """End without a word, but not before the first process: ``torchrun`` ends all when it sees one that failed."""
    with suppress(KeyboardInterrupt):  # which SIGTERM is here
        time.sleep(PATIENCE)
    sys.exit(2)
