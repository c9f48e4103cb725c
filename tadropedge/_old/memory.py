"""Memory: how much is free, work that is refused before it begins, and one error for every way of running out.

>>> with within_memory("a table of all pairs", "take fewer nodes"):  # doctest: +ELLIPSIS
...     raise MemoryError("Unable to allocate 8.00 TiB for an array")
Traceback (most recent call last):
tadropedge._old.errors.NotEnoughMemoryError: not enough memory for a table of all pairs: a piece of 8.8 TB was asked \
for, ... are free; take fewer nodes
"""

from __future__ import annotations

import errno
import re
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from tadropedge._old.errors import NotEnoughMemoryError, TadropedgeError

if TYPE_CHECKING:  # the command line asks what an error means before torch is loaded, or when it could not be
    import torch

ROOT = Path("/")
LARGE = 2**26  # bytes: asking what is free takes half a millisecond, which is not worth it in a hot loop for less

# What NumPy, SciPy's SuperLU, torch, SQLite, zlib and the loader of shared libraries say, in small letters.
SAID = (
    *("unable to allocate", "can't allocate memory", "cannot allocate memory", "not enough memory", "out of memory"),
    *("bad_alloc", "bad allocation", "malloc fail", "failed to allocate", "can't start new thread"),
    *(
        "outofmemoryerror",
        "failed to map segment",
        "array is too big",
        "maximum allowed dimension exceeded",
        "size calculation overflowed",
    ),
)
ASKED = re.compile(r"allocate ([0-9.]+) (bytes|[KMGTPE]iB)")
UNITS = {"bytes": 1, **{f"{letter}iB": 1024**power for power, letter in enumerate("KMGTPE", 1)}}


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


def free_bytes(device: torch.device | str = "cpu") -> int | None:
    """Free bytes of a CUDA device, or what this process may still take of the machine; ``None``: nobody knows.

    The smallest of what the machine has, what its control groups allow, and the limits of the process.

    >>> free_bytes() is None or free_bytes() > 0
    True
    """
    if str(device).startswith("cuda"):
        import torch

        # What torch keeps from earlier work is free for what comes next.
        kept = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
        return int(torch.cuda.mem_get_info(device)[0]) + kept
    known = [_machine(ROOT), *_groups(ROOT), *_limits(ROOT)]
    return min((max(0, free) for free in known if free is not None), default=None)


def shortage(need: float, device: torch.device | str = "cpu") -> str | None:
    """What is missing where ``need`` bytes are not free, in words; ``None`` where they are, or nobody knows."""
    free = free_bytes(device)
    if free is None or need <= free:
        return None
    return f"needs about {size(need)} of memory, {size(free)} are free"


def check_memory(need: float, what: str, instead: str = "", device: torch.device | str = "cpu") -> None:
    """Refuse work that cannot fit before it begins.

    >>> check_memory(1e18, "a matrix of all pairs", "take fewer nodes")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    tadropedge._old.errors.NotEnoughMemoryError: a matrix of all pairs needs about 1000000.0 TB of memory, ... are free; \
take fewer nodes
    """
    missing = shortage(need, device)
    if missing:
        raise NotEnoughMemoryError("; ".join(filter(None, (f"{what} {missing}", instead))))


def check_room(need: int, what: str) -> None:
    """:func:`check_memory` for what is done often: what is small is not worth a look at the machine."""
    if need >= LARGE:
        check_memory(need, what)


def ran_out(error: BaseException) -> bool:
    """Whether an error says that memory ran out, whatever its type.

    >>> ran_out(RuntimeError("DefaultCPUAllocator: can't allocate memory")), ran_out(RuntimeError("singular"))
    (True, False)
    """
    if isinstance(error, MemoryError) or (isinstance(error, OSError) and error.errno == errno.ENOMEM):
        return True
    if isinstance(error, SystemError):  # Python had no memory left to make a MemoryError
        return (free_bytes() or LARGE) < LARGE
    text = f"{type(error).__name__}: {error}".lower()
    return any(words in text for words in SAID)


def not_enough(
    error: BaseException, what: str, instead: str = "", device: torch.device | str = "cpu"
) -> TadropedgeError:
    """The one line for an error of which :func:`ran_out` is true; what the failed work still holds is released."""
    with suppress(Exception):
        traceback.clear_frames(error.__traceback__)
    asked = ASKED.search(str(error))
    piece = f"a piece of {size(float(asked[1]) * UNITS[asked[2]])} was asked for" if asked else ""
    free = free_bytes(device)
    have = "" if free is None else f"{size(free)} are free"
    facts = ", ".join(filter(None, (piece, have)))
    return NotEnoughMemoryError(
        "; ".join(filter(None, (f"not enough memory for {what}" + (facts and f": {facts}"), instead)))
    )


@contextmanager
def within_memory(what: str, instead: str = "", device: torch.device | str = "cpu") -> Iterator[None]:
    """Memory that runs out inside, in any of its disguises, is a :class:`NotEnoughMemoryError` of one line."""
    try:
        yield
    except TadropedgeError:
        raise
    except Exception as error:
        if not ran_out(error):
            raise
        raise not_enough(error, what, instead, device) from None


def _machine(root: Path) -> int | None:
    """What the system says is available to new work."""
    return _table(root / "proc/meminfo").get("MemAvailable:", None)


def _groups(root: Path) -> Iterator[int]:
    """What each control group above this process still allows, of version 2 or 1; files in memory that can go count."""
    with suppress(OSError):
        for line in (root / "proc/self/cgroup").read_text().splitlines():
            _, controllers, path = line.split(":", 2)
            if controllers == "":
                top, files = root / "sys/fs/cgroup", ("memory.max", "memory.current", "")
            elif "memory" in controllers.split(","):
                top, files = root / "sys/fs/cgroup/memory", ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_")
            else:
                continue
            here = top / path.lstrip("/")
            for group in (here, *here.parents):
                yield from _group(group, *files)
                if group == top:
                    break


def _group(group: Path, limit: str, usage: str, prefix: str) -> Iterator[int]:
    with suppress(OSError, ValueError):  # "max" is no number: no limit
        most, used = (int((group / name).read_text()) for name in (limit, usage))
        kept = _table(group / "memory.stat", unit=1)
        files = sum(kept.get(f"{prefix}{name}", 0) for name in ("inactive_file", "active_file"))
        yield most - max(0, used - files)


def _limits(root: Path) -> Iterator[int]:
    """What the limits of this process on its address space and its data leave (``ulimit -v``, ``ulimit -d``)."""
    with suppress(ImportError, OSError, ValueError, IndexError):  # other systems than Linux
        import resource

        pages = [int(word) for word in (root / "proc/self/statm").read_text().split()]
        for limit, used in ((resource.RLIMIT_AS, pages[0]), (resource.RLIMIT_DATA, pages[5])):
            most = resource.getrlimit(limit)[0]
            if most != resource.RLIM_INFINITY and most < sys.maxsize:
                yield most - used * resource.getpagesize()


def _table(path: Path, unit: int = 1024) -> dict[str, int]:
    """Lines of a name and a number, in bytes."""
    with suppress(OSError, ValueError, IndexError):
        words = [line.split() for line in path.read_text(encoding="ascii").splitlines()]
        return {name: int(number) * unit for name, number, *_ in words}
    return {}
