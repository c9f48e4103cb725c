"""How long the trainings of an item took, and where they ran: summed over all its runs, on whatever machine."""

from __future__ import annotations

import time
from pathlib import Path

import torch

from tadropedge.comparison.checks import each, mapping, members_of, number, text
from tadropedge.comparison.results import read_json, write_json
from tadropedge.paper.item import Bench
from tadropedge.provenance import commit, machine


class Stopwatch:
    """Seconds by part and phase, and where they were spent, on disk: summed over all runs of an item."""

    def __init__(self, path: Path, device: str = "cpu") -> None:
        self.path, self.device = path, device
        self.seconds: dict[str, dict[str, float]] = {}
        self.trained_on: list[str] = []  # machine, torch and commit of every run that trained something
        if path.exists():
            content = members_of(read_json(path), path.name, {"seconds", "trained_on"})
            self.seconds = seconds_by_part(content["seconds"], f"{path.name}: seconds")
            self.trained_on = list(each(text, content["trained_on"], f"{path.name}: trained_on"))
        self._last = time.monotonic()

    @classmethod
    def of(cls, bench: Bench) -> Stopwatch:
        """The stopwatch of an item, beside its studies."""
        return cls(bench.folder / "studies" / f"{bench.recipe.name}-{bench.recipe.preset}.seconds.json", bench.device)

    def start(self) -> None:
        """What went by until now counts for nothing."""
        self._last = time.monotonic()

    def lap(self, part: str, phase: str) -> None:
        """Add the time since the last lap."""
        now = time.monotonic()
        phases = self.seconds.setdefault(part, {})
        phases[phase] = round(phases.get(phase, 0.0) + now - self._last, 3)
        self._last = now
        place = workplace(self.device)
        if place not in self.trained_on:
            self.trained_on.append(place)
        write_json({"seconds": self.seconds, "trained_on": self.trained_on}, self.path)


def workplace(device: str) -> str:
    """Machine, torch and commit: where numbers come from."""
    return f"{machine(device)}; torch {torch.__version__}; commit {commit()}"


def seconds_by_part(value: object, where: str) -> dict[str, dict[str, float]]:
    """Seconds by part and phase, as read from JSON.

    >>> seconds_by_part({"cora": {"search": "long"}}, "seconds")
    Traceback (most recent call last):
    tadropedge.errors.TadropedgeError: seconds.cora.search must be a number, got 'long'
    """
    parts = {part: mapping(phases, f"{where}.{part}") for part, phases in mapping(value, where).items()}
    return {
        part: {phase: number(seconds, f"{where}.{part}.{phase}") for phase, seconds in phases.items()}
        for part, phases in parts.items()
    }
