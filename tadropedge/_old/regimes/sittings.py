"""What the trainings of a map took: every sitting that trained any, in ``sittings.json``.

A map is measured in many sittings, by several processes side by side, or on other machines than the one that judges it
in the end. Its label names the machines and the commits that trained it, and the time that passed while any did.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tadropedge._old.provenance import commits
from tadropedge._old.publish.label import run_label
from tadropedge._old.typed import build, read_json, write_json

FILE = "sittings.json"
APART = 5.0  # seconds between two looks at the journals


@dataclass(frozen=True, kw_only=True)
class Sitting:
    """One call that trained: when it ``began`` (seconds since 1970), how long it went on, and what it ran on."""

    began: float
    seconds: float
    commit: str
    machine: str
    device: str
    versions: Mapping[str, str] = field(default_factory=dict)


class SittingClock:
    """Writes the sitting that is under way, as long as it goes on, so that a kill loses seconds of it."""

    def __init__(self, folder: Path, device: str) -> None:
        self._path, self._studies = folder / FILE, folder / "studies"
        self._earlier = read_sittings(folder)
        self._began, self._size, self._looked = time.time(), self._written(), time.monotonic()
        self._label = run_label(device)

    def look(self, *, last: bool = False) -> None:
        """Write down how long it took so far, if a training was kept since it began."""
        now = time.monotonic()
        if (last or now - self._looked > APART) and self._written() > self._size:
            self._looked = now
            took = {"began": round(self._began, 1), "seconds": round(time.time() - self._began, 1)}
            mine = build(Sitting, {**self._label, **took}, FILE)
            write_json([*self._earlier, mine], self._path)

    def _written(self) -> int:
        return sum(path.stat().st_size for path in self._studies.glob("*.journal"))


def read_sittings(folder: Path) -> list[Sitting]:
    """The sittings that a folder knows of."""
    path = folder / FILE
    return build(list[Sitting], read_json(path), FILE) if path.exists() else []


def passed(sittings: Sequence[Sitting]) -> float:
    """The seconds in which at least one of them was under way.

    >>> how = {"commit": "0123abcd", "machine": "2 cores", "device": "cpu"}
    >>> passed([Sitting(began=began, seconds=10, **how) for began in (0, 5, 100)])
    25.0
    """
    total, end = 0.0, float("-inf")
    for one in sorted(sittings, key=lambda one: one.began):
        total += max(0.0, one.began + one.seconds - max(one.began, end))
        end = max(end, one.began + one.seconds)
    return total


def trained_by(sittings: Sequence[Sitting]) -> dict[str, object]:
    """What a label says of the sittings that trained a map; nothing where none is known.

    >>> how = {"began": 0.0, "seconds": 10.0, "machine": "2 cores"}
    >>> two = [Sitting(commit=one, device=one, versions={"torch": "2.6"}, **how) for one in ("a", "b")]
    >>> told = trained_by(two)
    >>> told["commit"], told["machine"], told["versions"]
    ('a, b', '2 cores', {'torch': '2.6'})
    >>> told["seconds"], told["seconds by device"]
    (10.0, {'a': 10.0, 'b': 10.0})
    """
    if not sittings:
        return {}
    order = sorted(sittings, key=lambda one: one.began)
    names = dict.fromkeys(name for one in order for name in one.versions)
    devices = {one.device: [other for other in order if other.device == one.device] for one in order}
    return {
        "seconds": round(passed(order), 1),
        **{name: commits(getattr(one, name) for one in order) for name in ("commit", "device")},
        "machine": " and ".join(dict.fromkeys(one.machine for one in order)),
        "versions": {name: commits(one.versions.get(name) for one in order) for name in names},
        "sittings": len(order),
        "seconds by device": {device: round(passed(some), 1) for device, some in devices.items()},
    }
