"""One journal per item: measurements that are finished, the seconds that work took, and where it ran.

A line is JSON with a digest in front, appended to ``studies/NAME.pieces`` as soon as something is finished. A line that
was cut short or changed is passed over. So an item that is interrupted resumes after the last whole line; trainings
themselves are kept in Optuna studies (``trainings.py``).
"""

from __future__ import annotations

import json
import logging
import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeVar

import torch

from tadropedge._old.atomic import make_folder, sync_folder
from tadropedge._old.errors import TadropedgeError, cannot_write
from tadropedge._old.fingerprint import fingerprint
from tadropedge._old.paper.item import Bench
from tadropedge._old.paper.rows import Row, unchecked
from tadropedge._old.provenance import commit, machine
from tadropedge._old.typed import build, read_json
from tadropedge._old.watching import Safe, tell

R = TypeVar("R", bound=Row)

COMMIT = "; commit "  # in front of the commit of a place

log = logging.getLogger("tadropedge")


@dataclass(frozen=True)
class Earlier:
    """``studies/NAME-PRESET.seconds.json``, where version 0.1 kept the seconds of trainings."""

    seconds: dict[str, dict[str, float]]
    trained_on: list[str]


@dataclass(frozen=True, kw_only=True)
class Line:
    """A line of a journal: a piece of a recipe and a seed with its ``rows``, or a lap of a ``preset``."""

    name: str
    seconds: float
    place: str
    phase: str = "measuring"
    preset: str | None = None
    recipe: str | None = None
    seed: int | None = None
    data: str = ""
    rows: list[dict[str, Any]] | None = None

    @property
    def commit(self) -> str | None:
        """What was at work, as :func:`workplace` says it.

        >>> Line(name="cora/0.7", seconds=1.0, place="2 cores; torch 2; commit 0123456789ab").commit
        '0123456789ab'
        """
        return self.place.rpartition(COMMIT)[2] if COMMIT in self.place else None


class Journal:
    """Seconds by part and phase, machines, and finished pieces, summed over all runs of an item."""

    def __init__(self, bench: Bench, ending: str = "pieces") -> None:
        self.bench, recipe = bench, bench.recipe
        self.path = bench.folder / "studies" / f"{recipe.name}.{ending}"
        self.seconds: dict[str, dict[str, float]] = {}
        self.trained_on: list[str] = []  # machine, torch and commit of every run that did some of the work
        self._pieces: dict[tuple[str, str], Line] = {}  # by name and data
        earlier = self.path.with_name(f"{recipe.name}-{recipe.preset}.seconds.json")
        if earlier.exists():
            found = build(Earlier, read_json(earlier), earlier.name)
            self.seconds, self.trained_on = found.seconds, found.trained_on
        lines = list(_lines(self.path))
        for line in lines:
            self._take(line)
        if any(line.rows is not None and not line.data for line in lines):
            log.warning(
                "'%s' holds measurements of an older version, which did not note their data: they are not used",
                self.path,
            )
        self._last = time.monotonic()

    def rows(self, name: str, data: object, kind: type[R], make: Callable[[], Sequence[R]]) -> list[R]:
        """The rows of a piece of work, made where they are not there yet; its name begins with its part (cora/0.7).

        ``data`` is what it is measured on: a piece of other data is made again. Each row names the commit that made it.
        """
        found = fingerprint(data=data)[:16]
        if (name, found) not in self._pieces:
            if self.bench.again is not None:
                raise TadropedgeError(f"{name!r} is not in '{self.path}': only what is finished can be measured again")
            self.start()
            made = [row.columns() for row in make()]
            key = {"recipe": self.bench.recipe.fingerprint, "seed": self.bench.seed, "data": found}
            self._write({**key, "name": name, **self._lap(), "rows": made})
        tell(Safe(f"measurements of {self.bench.recipe.name}", len(self._pieces)))
        rows = _rows(self._pieces[name, found], kind)
        if self.bench.again is not None:
            self.bench.again(name, rows, make)
        return rows

    def row(self, name: str, data: object, kind: type[R], make: Callable[[], R]) -> R:
        """A piece that is one row."""
        (found,) = self.rows(name, data, kind, lambda: [make()])
        return found

    def last(self, name: str, kind: type[R]) -> R | None:
        """The row of the last piece of this name, whatever it is of."""
        found = [row for (piece, _), line in self._pieces.items() if piece == name for row in _rows(line, kind)]
        return found[-1] if found else None

    def start(self) -> None:
        """What went by until now counts for nothing."""
        self._last = time.monotonic()

    def lap(self, part: str, phase: str) -> None:
        """Add the seconds since the last lap."""
        self._write({"preset": self.bench.recipe.preset, "name": part, "phase": phase, **self._lap()})

    @property
    def run(self) -> dict[str, Any]:
        """What an item says of its run: how long its parts took, and where they ran."""
        return {"seconds_of": self.seconds, "trained_on": self.trained_on}

    def _lap(self) -> dict[str, Any]:
        now = time.monotonic()
        seconds, self._last = round(now - self._last, 3), now
        return {"seconds": seconds, "place": workplace(self.bench.device)}

    def _write(self, line: dict[str, Any]) -> None:
        content = json.dumps(line)
        try:
            _append(f"{_digest(content)} {content}\n".encode(), self.path)
        except OSError as error:
            raise cannot_write(self.path, error) from error
        # As it will be read, so that a run gives what it would give after a restart.
        self._take(build(Line, json.loads(content), self.path.name))

    def _take(self, line: Line) -> None:
        """Count a line: a piece of this recipe and seed, or a lap of this preset."""
        part = line.name
        if line.rows is not None:
            mine = (line.recipe, line.seed) == (self.bench.recipe.fingerprint, self.bench.seed)
            piece = part, line.data
            if not mine or piece in self._pieces:
                return
            self._pieces[piece] = line
            part = part.partition("/")[0]
        elif line.preset != self.bench.recipe.preset:
            return
        phases = self.seconds.setdefault(part, {})
        phases[line.phase] = round(phases.get(line.phase, 0.0) + line.seconds, 3)
        if line.place not in self.trained_on:
            self.trained_on.append(line.place)


def _rows(piece: Line, kind: type[R]) -> list[R]:
    return [replace(kind.of(row, piece.name, unchecked), commit=piece.commit) for row in piece.rows or ()]


def workplace(device: str) -> str:
    """Machine, torch and commit: where numbers come from."""
    return f"{machine(device)}; torch {torch.__version__}{COMMIT}{commit()}"


def _lines(path: Path) -> Iterator[Line]:
    lines = path.read_text(encoding="utf-8", errors="replace").split("\n") if path.exists() else []
    for number, line in enumerate(lines, 1):
        digest, _, content = line.partition(" ")
        if digest == _digest(content):  # so nothing was cut short: what is wrong now was made so
            try:
                yield build(Line, json.loads(content), f"{path.name}:{number}")
            except (json.JSONDecodeError, RecursionError) as error:
                raise TadropedgeError(f"{path.name}:{number}: not JSON ({error})") from error


def _digest(content: str) -> str:
    return sha256(content.encode()).hexdigest()[:16]


def _append(line: bytes, path: Path) -> None:
    make_folder(path.parent)
    with path.open("a+b") as file:
        new = not file.tell()
        if not new:
            file.seek(-1, os.SEEK_END)
            line = line if file.read(1) == b"\n" else b"\n" + line  # the line before was cut short
        file.write(line)
        file.flush()
        os.fsync(file.fileno())
    if new:
        sync_folder(path.parent)
