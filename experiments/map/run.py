"""Measure the cells of a recipe, in pieces: whatever ends a piece, what was trained in it is in the store."""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping, Sequence
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import tadropedge as tde
from experiments.frame import commit, machine
from experiments.map.recipe import Cell
from tadropedge.lab import Candidate, Experiment, Search, Store, TrainingSettings, load, nested

YARDSTICK = "mlp"


class TimeIsUpError(Exception):
    """The time of this piece is over."""


class Watch:
    """Follows one cell: says how far it is, notes who trained how much of it, and ends the piece in time.

    It ends after a batch that was trained, never before, so that every piece gets on.
    """

    def __init__(self, cell: Cell, store: Store, device: str, until: float | None) -> None:
        self.cell, self.store, self.until, self.begun = cell, store, until, time.monotonic()
        self.piece: dict[str, Any] = {"commit": commit(), "machine": machine(device), "seconds": 0.0, "trainings": 0}
        self.pieces = [*store.get([cell.place]).get(cell.place, {"pieces": []})["pieces"], self.piece]
        self.total = self.done = self.told = 0
        self.trains = False

    def plan(self, total: int) -> None:
        """So many trainings belong to what begins now: all candidates, or the controls of those that won."""
        self.total += total

    def epoch(self, done: int, total: int) -> None:
        """A batch trains: the next ones that are finished were not in the store."""
        self.trains = True

    def trained(self, count: int) -> None:
        """So many trainings more are in the store."""
        self.done += count
        if not self.trains:
            return
        self.trains = False
        self.piece["trainings"] += count
        self.piece["seconds"] = time.monotonic() - self.begun
        self.store.put("pieces", {self.cell.place: {"pieces": self.pieces}})
        if self.until is not None and time.monotonic() > self.until:
            raise TimeIsUpError

    def replicate(self, found: Mapping[str, Sequence[Any]]) -> None:
        """One more replicate is whole; a line for each that trained anything."""
        if self.piece["trainings"] > self.told:
            self.told = self.piece["trainings"]
            numbers = f"{min(map(len, found.values()))} of {self.cell.replicates} replicates of {len(found)} candidates"
            trained = f"{self.done:,} of {self.total:,} trainings"
            print(f"{self.cell.name}: {numbers}, {trained}, about {self.left / 60:.1f} min left", flush=True)

    @property
    def left(self) -> float:
        """The seconds that the rest will take, by those of all pieces of this cell so far."""
        spent, trained = (sum(piece[name] for piece in self.pieces) for name in ("seconds", "trainings"))
        return (self.total - self.done) * spent / max(trained, 1)


def measure(cell: Cell, store: Store, device: str, watch: Watch) -> None:
    """Run whatever the store lacks of a cell, and write what ``compare`` found, as plain values.

    Beside it stands an MLP of the usual two layers, which is that of ``compare`` where the network has as many: one of
    eight layers is a bad yardstick.
    """
    data = load(cell.source, seed=cell.seed, **cell.data)
    search = Search(trials=cell.trials, replicates=cell.replicates, seed=cell.seed, space=cell.space)
    training = TrainingSettings(**{**cell.training, "rungs": tuple(cell.training["rungs"])})
    shared = {"hidden": cell.experiment["hidden"], "training": training, "device": device}
    experiment = {**cell.experiment, **shared}
    found = tde.compare(data, cell.usable(data), search=search, out=store, watch=watch, **experiment)
    flat = nested([Candidate.parse(YARDSTICK)], Experiment(data=data, **shared), search, store)[YARDSTICK]
    row = {"results": found.as_dict(), "yardstick": [one.test for one in flat], "pieces": watch.pieces}
    store.put("cell", {cell.key: {**row, "data": data.fingerprint()}})


def run(
    cells: Sequence[Cell], folder: Path, *, named: str = "*", time_budget: float | None = None, device: str = "cpu"
) -> bool:
    """Measure the cells whose names match, in their order; whether all of them are whole now."""
    chosen = [cell for cell in cells if fnmatch(cell.name, named)]
    if not chosen:
        known = ", ".join(dict.fromkeys(cell.name for cell in cells))
        raise tde.TadropedgeError(f"no cell is called {named!r}; there are {known}")
    until = None if time_budget is None else time.monotonic() + time_budget
    warnings.simplefilter("ignore", tde.RepeatedEigenvalueWarning)  # in a few small components
    with Store(folder) as store:
        whole = set(store.get(cell.key for cell in chosen))
        for place, cell in enumerate([cell for cell in chosen if cell.key not in whole]):
            if place and until is not None and time.monotonic() > until:
                break
            print(f"{len(whole)} of {len(chosen)} cells are whole; next is {cell.name}", flush=True)
            try:
                measure(cell, store, device, Watch(cell, store, device, until))
            except TimeIsUpError:
                break
            except tde.TadropedgeError as error:  # the others are measured all the same
                print(f"{cell.name}: {error}", flush=True)
                continue
            whole.add(cell.key)
    left = "" if len(whole) == len(chosen) else ": the same command goes on"
    print(f"{len(whole)} of {len(chosen)} cells are whole{left}")
    return len(whole) == len(chosen)
