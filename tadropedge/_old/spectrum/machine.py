"""How many threads torch uses."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch

WORTH_THREADS = 50_000  # nodes


@contextmanager
def few_threads(nodes: int) -> Iterator[None]:
    """One thread for small graphs: a second one gains little there, and on a busy machine it is waited for."""
    before = torch.get_num_threads()
    torch.set_num_threads(1 if nodes < WORTH_THREADS else before)
    try:
        yield
    finally:
        torch.set_num_threads(before)
