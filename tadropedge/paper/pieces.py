"""Pieces of an item that take long and are no trainings, kept on disk: killed at any moment, the same call goes on.

A piece is one line of JSON in ``studies/NAME.pieces``, appended when it is finished, with a digest of itself. A line
that a kill cut short, or that was changed, is passed over, and its piece made again.
"""

from __future__ import annotations

import hashlib
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
            content = json.dumps(asdict(Piece(recipe, self.bench.seed, name, seconds, place, rows)))
            _append(f"{_digest(content)} {content}", self.path)
            # Read back, so that a run gives what it would give after a restart: a list for a tuple.
            self.finished[name] = Piece(**json.loads(content))
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
    lines = path.read_text(encoding="utf-8", errors="replace").split("\n") if path.exists() else []
    halves = [line.partition(" ") for line in lines]
    return [Piece(**json.loads(content)) for digest, _, content in halves if digest == _digest(content)]


def _digest(content: str) -> str:
    return hashlib.sha256(content.encode()).hexdigest()[:16]


def _append(line: str, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a+b") as file:
        if file.tell():
            file.seek(-1, 2)
            line = line if file.read(1) == b"\n" else f"\n{line}"  # the line before was cut short
        file.write(f"{line}\n".encode())
