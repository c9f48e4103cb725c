"""What the machine gives: how many threads torch uses, and how much memory is free."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import torch

from tadropedge.publish.wording import size

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


def free_bytes(device: torch.device | str = "cpu") -> int | None:
    """Free bytes of a CUDA device or of the machine, or ``None`` where that is not known.

    >>> free_bytes() is None or free_bytes() > 0
    True
    """
    device = torch.device(device)
    if device.type == "cuda":
        return int(torch.cuda.mem_get_info(device)[0])
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:")), None)


def shortage(need: int, device: torch.device | str = "cpu") -> str | None:
    """What is missing where ``need`` bytes are not free, in words; ``None`` where they are, or nobody knows."""
    free = free_bytes(device)
    if free is None or need <= free:
        return None
    return f"needs about {size(need)} of memory, {size(free)} are free"
