"""Memory: how much is free, work that is refused before it begins, and one error for running out.

>>> with within_memory("a table of all pairs", "take fewer nodes"):  # doctest: +ELLIPSIS
...     raise MemoryError("Unable to allocate 8.00 TiB for an array")
Traceback (most recent call last):
tadropedge.errors.NotEnoughMemoryError: not enough memory for a table of all pairs (... are free); take fewer nodes
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil  # torch-geometric requires it
import torch

from tadropedge.errors import NotEnoughMemoryError

LARGE = 2**26  # bytes: asking what is free takes half a millisecond, which is not worth it in a hot loop for less
GROUPS = Path("/sys/fs/cgroup")


def size(count: float) -> str:
    """A number of bytes.

    >>> size(512), size(2_500_000), size(13e9), size(8e15)
    ('512 B', '2.5 MB', '13.0 GB', '8000.0 TB')
    """
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1000:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:.1f} TB"


def free_bytes(device: torch.device | str = "cpu") -> int:
    """Free bytes of a CUDA device, or what this process may still take of the machine or of its control group.

    >>> free_bytes() > 0
    True
    """
    if torch.device(device).type == "cuda":
        # What torch keeps from earlier work is free for what comes next.
        kept = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
        return int(torch.cuda.mem_get_info(device)[0]) + kept
    return min([int(psutil.virtual_memory().available), *_control_groups()])


def check_memory(need: float, what: str, instead: str = "", device: torch.device | str = "cpu") -> None:
    """Refuse work that cannot fit before it begins.

    >>> check_memory(1e18, "a matrix of all pairs", "take fewer nodes")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    tadropedge.errors.NotEnoughMemoryError: a matrix of all pairs needs about 1000000.0 TB of memory, ... are free; \
take fewer nodes
    """
    if need >= LARGE and need > (free := free_bytes(device)):
        said = f"{what} needs about {size(need)} of memory, {size(free)} are free"
        raise NotEnoughMemoryError("; ".join(filter(None, (said, instead))))


def ran_out(error: BaseException) -> bool:
    """Whether an error says that memory ran out.

    >>> ran_out(RuntimeError("DefaultCPUAllocator: can't allocate memory")), ran_out(RuntimeError("singular"))
    (True, False)
    """
    words = ("can't allocate memory", "Storage size calculation overflowed")
    said = isinstance(error, RuntimeError) and any(each in str(error) for each in words)
    return said or isinstance(error, MemoryError | torch.OutOfMemoryError)


@contextmanager
def within_memory(what: str, instead: str = "", device: torch.device | str = "cpu") -> Iterator[None]:
    """Memory that runs out inside is a :class:`~tadropedge.NotEnoughMemoryError` of one line."""
    try:
        yield
    except NotEnoughMemoryError:
        raise
    except Exception as error:
        if not ran_out(error):
            raise
        said = f"not enough memory for {what} ({size(free_bytes(device))} are free)"
        raise NotEnoughMemoryError("; ".join(filter(None, (said, instead)))) from None


def _control_groups() -> Iterator[int]:
    """What each control group (version 2) above this process still allows."""
    with suppress(OSError, ValueError):  # another system than Linux, or no groups
        here = GROUPS / Path("/proc/self/cgroup").read_text().rpartition("::")[2].strip().lstrip("/")
        for group in (here, *here.parents):
            if (limit := group / "memory.max").is_file() and (most := limit.read_text().strip()) != "max":
                yield max(0, int(most) - int((group / "memory.current").read_text()))
            if group == GROUPS:
                return
