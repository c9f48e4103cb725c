"""The board on which workers say how far their batches are, and which the driver reads: an actor of Ray.

It loads without torch, so that it is there before the first worker is.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from tadropedge.watching import Moment

Key = tuple[str, int, int]  # of one try of one batch: the call, the place of the batch, the number of the try
Process = tuple[str, int]  # a node of the cluster, and the number of a process there
Note = tuple[Process, Moment, float]  # who trains a batch, where it is, and for how many seconds nothing was heard


class Board:
    """Where every batch at work is.

    >>> board = Board()
    >>> board.note(("call", 0, 0), ("node", 123), Moment(trainings=8, finished=0, together=8, epoch=3, epochs=10))
    >>> [(key, process, moment.epoch) for key, (process, moment, _) in board.notes([("call", 0, 0)]).items()]
    [(('call', 0, 0), ('node', 123), 3)]
    >>> board.notes([])
    {}
    """

    def __init__(self) -> None:
        self._notes: dict[Key, Note] = {}  # with the time at which it was written

    def note(self, key: Key, process: Process, moment: Moment) -> None:
        """A batch is so far, in this process."""
        self._notes[key] = process, moment, time.monotonic()

    def notes(self, wanted: Sequence[Key]) -> dict[Key, Note]:
        """What was noted of these; all others are over and forgotten."""
        now, kept = time.monotonic(), set(wanted)
        self._notes = {key: note for key, note in self._notes.items() if key in kept}
        return {key: (process, moment, now - at) for key, (process, moment, at) in self._notes.items()}
