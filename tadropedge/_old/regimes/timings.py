"""The seconds of an epoch in the cells of a map, measured once and kept in ``seconds.json`` with their machine.

They compare the methods of a cell with each other. A map may be judged on another machine than trained it, so the label
names the one that they were measured on.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tadropedge._old.comparison.timing import epoch_seconds
from tadropedge._old.provenance import machine
from tadropedge._old.training.config import Trial
from tadropedge._old.training.laboratory import Laboratory
from tadropedge._old.typed import build, read_json, write_json

FILE = "seconds.json"


@dataclass(frozen=True, kw_only=True)
class TimedCell:
    """The seconds of an epoch of one training, by method."""

    machine: str
    seconds: Mapping[str, float]


def timed(laboratory: Laboratory, chosen: Mapping[str, Trial], key: str, folder: Path) -> Mapping[str, float]:
    """Time an epoch of every ``chosen`` trial of the cell ``key``, unless ``folder`` has its seconds."""
    known, here = read_timings(folder), machine(laboratory.dataset.device.type)
    mine = known.get(key)
    if mine is None or not set(chosen) <= set(mine.seconds):
        found = {method: float(f"{epoch_seconds(laboratory, trial):.3g}") for method, trial in chosen.items()}
        mine = TimedCell(machine=here, seconds=found)
        write_json({**known, key: mine}, folder / FILE)
    return mine.seconds


def read_timings(folder: Path) -> dict[str, TimedCell]:
    """What a folder knows, by the keys of cells."""
    path = folder / FILE
    return build(dict[str, TimedCell], read_json(path), FILE) if path.exists() else {}


def timed_on(folder: Path) -> dict[str, object]:
    """What a label says of the machines that epochs were timed on; nothing where none was."""
    machines = dict.fromkeys(one.machine for one in read_timings(folder).values())
    return {"epochs timed on": " and ".join(machines)} if machines else {}
