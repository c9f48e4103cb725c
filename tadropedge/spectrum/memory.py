"""How much memory is free, so that work that cannot fit is not begun."""

from __future__ import annotations

from pathlib import Path

import torch

from tadropedge.publish.wording import size


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
    found = {line.split(":")[0]: int(line.split()[1]) * 1024 for line in lines if len(line.split()) > 1}
    return found.get("MemAvailable")


def shortage(need: int, device: torch.device | str = "cpu") -> str | None:
    """What is missing where ``need`` bytes are not free, in words; ``None`` where they are, or nobody knows."""
    free = free_bytes(device)
    if free is None or need <= free:
        return None
    return f"needs about {size(need)} of memory, {size(free)} are free"
