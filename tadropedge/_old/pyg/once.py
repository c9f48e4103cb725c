"""What is said once for a whole dataset, and not again for every graph or in every worker."""

from __future__ import annotations

import mmap
import warnings

KINDS = ("scores", "repeated", "budget", "forest", "batch", "order", "weights", "summed", "cached")


class Once:
    """Which messages a transform or a module has given.

    Workers that are forked share this memory with the process they come from, so a message of one is not repeated by
    the others. Copies and pickles start from what was said so far; spawned workers hold such copies.

    >>> once = Once()
    >>> once.first("scores"), once.first("scores"), once.first("budget")
    (True, False, True)
    """

    def __init__(self, said: bytes = b"") -> None:
        self._said = mmap.mmap(-1, len(KINDS))
        self._said[: len(said)] = said

    def first(self, kind: str) -> bool:
        """Whether this is the first time; it is not from now on."""
        place = KINDS.index(kind)
        before = self._said[place]
        self._said[place] = 1
        return not before

    def warn(self, kind: str, message: str) -> None:
        """Say it, unless something of this kind was said before."""
        if self.first(kind):
            warnings.warn(message, stacklevel=3)

    def __reduce__(self) -> tuple[type[Once], tuple[bytes]]:
        return Once, (bytes(self._said[:]),)
