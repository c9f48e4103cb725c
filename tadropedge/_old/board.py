"""The board on which workers say how far their batches are, and which the driver reads: an actor of Ray.

It loads without torch, so that it is there before the first worker is.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from tadropedge._old.watching import Moment

Key = tuple[str, int, int]  # of one try of one batch: the call, the place of the batch, the number of the try
Process = tuple[str, int]  # a node of the cluster, and the number of a process there
Note = tuple[Process, Moment, float]  # who trains a batch, where it is, and for how many seconds nothing was heard


class Board:
    """Where every batch at work is.

    >>> board, moment = Board(), Moment(trainings=8, finished=0, together=8, epoch=3, epochs=10)
    >>> board.note(("call", 0, 0), ("node", 123), moment)
    True
    >>> [(key, process, moment.epoch) for key, (process, moment, _) in board.notes([("call", 0, 0)]).items()]
    [(('call', 0, 0), ('node', 123), 3)]
    >>> board.notes([])
    {}
    >>> board.dismiss("call")
    >>> board.note(("call", 0, 0), ("node", 123), moment)
    False
    """

    def __init__(self) -> None:
        self._notes: dict[Key, Note] = {}  # with the time at which it was written
        self._dismissed: set[str | Key] = set()  # calls, and single tries

    def note(self, key: Key, process: Process, moment: Moment) -> bool:
        """A batch is so far, in this process; the answer is whether anybody still waits for it."""
        self._notes[key] = process, moment, time.monotonic()
        return not self._dismissed & {key, key[0]}

    def dismiss(self, which: str | Key) -> None:
        """Nobody waits for the batches of a call any more, or for one try of a batch."""
        self._dismissed.add(which)

    def notes(self, wanted: Sequence[Key]) -> dict[Key, Note]:
        """What was noted of these; all others are over and forgotten."""
        now, kept = time.monotonic(), set(wanted)
        self._notes = {key: note for key, note in self._notes.items() if key in kept}
        return {key: (process, moment, now - at) for key, (process, moment, at) in self._notes.items()}
