"""How much memory is free, so that work that cannot fit is not begun."""

from __future__ import annotations

from pathlib import Path

import torch


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


def readable(size: float) -> str:
    """A number of bytes for people.

    >>> readable(2.5e9), readable(3e5)
    ('2.5 GB', '0.3 MB')
    """
    return f"{size / 1e9:.1f} GB" if size >= 1e8 else f"{size / 1e6:.1f} MB"
