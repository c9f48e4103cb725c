"""Pieces of an item that take long and are no trainings, kept on disk: killed at any moment, the same call goes on.

A piece is one line of JSON in ``studies/NAME.pieces``, appended when it is finished. A line that a kill cut short is
passed over, and its piece made again.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tadropedge.paper.item import Bench
from tadropedge.paper.stopwatch import workplace

Row = dict[str, Any]


@dataclass(frozen=True)
class Piece:
    """One finished piece: its name begins with the part of the item it belongs to (``cora/gcn/0.7``)."""

    recipe: str  # its fingerprint
    seed: int
    name: str
    seconds: float
    place: str
    rows: list[Row]


KINDS = {"recipe": str, "seed": int, "name": str, "seconds": float, "place": str, "rows": list}


class Pieces:
    """The pieces of an item, made where they are not finished."""

    def __init__(self, bench: Bench) -> None:
        self.bench = bench
        self.path = bench.folder / "studies" / f"{bench.recipe.name}.pieces"
        mine = (bench.recipe.fingerprint, bench.seed)
        self.finished = {piece.name: piece for piece in _read(self.path) if (piece.recipe, piece.seed) == mine}

    def rows(self, name: str, make: Callable[[], list[Row]]) -> list[Row]:
        """The rows of a piece; ``make`` is called where it is not finished."""
        if name not in self.finished:
            start = time.monotonic()
            rows = make()
            seconds = round(time.monotonic() - start, 3)
            recipe, place = self.bench.recipe.fingerprint, workplace(self.bench.device)
            line = json.dumps(asdict(Piece(recipe, self.bench.seed, name, seconds, place, rows)))
            _append(line, self.path)
            # Read back, so that a run gives what it would give after a restart: a list for a tuple.
            self.finished[name] = Piece(**json.loads(line))
        return self.finished[name].rows

    @property
    def run(self) -> dict[str, Any]:
        """What an item tells of its run: the seconds of its pieces by part, and where they were made."""
        seconds: dict[str, dict[str, float]] = {}
        for piece in self.finished.values():
            phases = seconds.setdefault(piece.name.partition("/")[0], {"measuring": 0.0})
            phases["measuring"] = round(phases["measuring"] + piece.seconds, 3)
        places = dict.fromkeys(piece.place for piece in self.finished.values())
        return {"seconds_of": seconds, "trained_on": list(places)}


def _read(path: Path) -> list[Piece]:
    found = []
    for line in path.read_bytes().splitlines() if path.exists() else []:
        try:
            piece = Piece(**json.loads(line))
        except (ValueError, TypeError):  # not JSON, or not a piece: it was cut short
            continue
        if all(isinstance(getattr(piece, name), kind) for name, kind in KINDS.items()):
            found.append(piece)
    return found


def _append(line: str, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a+b") as file:
        if file.tell():
            file.seek(-1, 2)
            line = line if file.read(1) == b"\n" else f"\n{line}"  # the line before was cut short
        file.write(f"{line}\n".encode())
