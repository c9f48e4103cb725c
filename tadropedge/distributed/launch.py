"""Whether this process is one of several that ``torchrun`` started; loads without torch."""

from __future__ import annotations

import os
import sys
import time
from typing import NoReturn

PATIENCE = 30.0  # seconds for the first process to say why it ends, before another does
LAUNCHED = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")  # what torchrun tells every process


def launched() -> bool:
    """Whether ``torchrun``, or something that says the same, started this process.

    >>> launched()
    False
    """
    return all(name in os.environ for name in LAUNCHED)


def is_first() -> bool:
    """Whether this process speaks for all: the first of several, or the only one.

    >>> is_first()
    True
    """
    return not launched() or os.environ["RANK"] == "0"


def end_after_first() -> NoReturn:
    """End without a word, but not before the first process: ``torchrun`` ends all when it sees one that failed."""
    time.sleep(PATIENCE)  # which SIGTERM interrupts
    sys.exit(2)
