"""The frame of an experiment: an item is a grid of cells, and each cell is measured once and kept.

An item is presets, ``measure`` (one cell to rows), claims and one figure. The frame keeps cells in a
:class:`tadropedge.lab.Store`, goes on where it was stopped, says who measured what, judges the claims and renders.

python -m experiments.paper variance --preset quick --out reproduction
"""

from __future__ import annotations

import argparse
import hashlib
import inspect
import json
import os
import platform
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pandas as pd
import torch
from matplotlib.figure import Figure
from torch import Tensor
from tqdm import tqdm

import tadropedge as tde
from experiments.claims import Claim
from experiments.pages import write_pages
from tadropedge.lab import Dataset, Store, load

VERSION = 1  # raise it when the package measures something else, so that old cells are not found
PRESETS = ("quick", "paper")
ITS_OWN = "experiments.paper."  # modules whose change is another measurement; that of the frame is not
ROOT = Path(__file__).resolve().parents[1]

Row = dict[str, Any]
Cell = dict[str, Any]
Measure = Callable[..., list[Row]]


@dataclass(frozen=True, kw_only=True)
class Item:
    """A table or a figure of the paper: the names of ``measure``'s arguments after ``run`` are the axes of its grid.

    A preset has a list for each axis; its other entries are settings that all cells share, ``run["samples"]``.
    """

    name: str
    where: str
    protocol: str
    measure: Measure
    claims: Callable[[pd.DataFrame], list[Claim]]
    figure: Callable[[pd.DataFrame], Figure] | None
    presets: Mapping[str, Mapping[str, Any]]

    @property
    def axes(self) -> list[str]:
        """The names of a cell's coordinates."""
        return list(inspect.signature(self.measure).parameters)[1:]

    def cells(self, preset: str) -> list[Cell]:
        """All cells of a preset."""
        values = [self.presets[preset][axis] for axis in self.axes]
        return [dict(zip(self.axes, chosen, strict=True)) for chosen in product(*values)]

    def settings(self, preset: str) -> dict[str, Any]:
        """What all cells of a preset share."""
        return {name: value for name, value in self.presets[preset].items() if name not in self.axes}

    @property
    def source(self) -> str:
        """The code that decides a cell: its module without what judges and draws it, and what that module imports."""
        module = sys.modules[self.measure.__module__]
        code = inspect.getsource(module)
        for apart in filter(None, (self.claims, self.figure)):
            code = code.replace(inspect.getsource(apart), "")
        beside = {getattr(each, "__module__", None) or "" for each in vars(module).values()} - {module.__name__}
        return code + "".join(inspect.getsource(sys.modules[one]) for one in sorted(beside) if one.startswith(ITS_OWN))


ITEMS: dict[str, Item] = {}


def item(
    name: str,
    *,
    where: str,
    protocol: str,
    quick: Mapping[str, Any],
    paper: Mapping[str, Any],
    claims: Callable[[pd.DataFrame], list[Claim]],
    figure: Callable[[pd.DataFrame], Figure] | None = None,
) -> Callable[[Measure], Measure]:
    """Register ``measure(run, **cell) -> rows`` as an item; what ``quick`` does not say is as in ``paper``."""

    def register(measure: Measure) -> Measure:
        ITEMS[name] = Item(
            name=name,
            where=where,
            protocol=protocol,
            measure=measure,
            claims=claims,
            figure=figure,
            presets={"quick": {**paper, **quick}, "paper": paper},
        )
        return measure

    return register


class Run:
    """What ``measure`` has at hand: the settings of its preset, data, scores, and the store for its trainings.

    Data lie on the CPU; ``device`` is where an :class:`tadropedge.lab.Experiment` trains on them.
    """

    def __init__(self, settings: Mapping[str, Any], store: Store, *, seed: int = 0, device: str = "cpu") -> None:
        self.settings, self.store, self.seed, self.device = settings, store, seed, device

    def __getitem__(self, name: str) -> Any:
        """A setting that all cells share."""
        return self.settings[name]

    def dataset(self, name: str) -> Dataset:
        """A dataset by its name, with the paper's split."""
        return _dataset(name)

    def scores(self, data: Dataset, laplacian: str) -> Tensor:
        """Aggregate resistance ω ``[M]`` of the edges, q the number of classes."""
        key = data.graph.fingerprint, data.num_classes, laplacian
        if key not in _SCORES:
            _SCORES[key] = tde.edge_scores(data.graph, "aggregate", q=data.num_classes, laplacian=laplacian)
        return _SCORES[key]


_SCORES: dict[tuple[str, int, str], Tensor] = {}


@cache
def _dataset(name: str) -> Dataset:
    return load(name, split="full")


# -- measuring -------------------------------------------------------------------------------------------


def key_of(one: Item, cell: Cell, preset: str, run: Run) -> str:
    """The fingerprint of everything that decides a cell: item, cell, settings, seed, data, code and version."""
    data = run.dataset(cell["dataset"]).fingerprint() if "dataset" in cell else ""
    parts = [VERSION, one.name, cell, one.settings(preset), run.seed, data, one.source]
    return hashlib.sha256(json.dumps(parts, sort_keys=True, default=list).encode()).hexdigest()


def run_item(one: Item, preset: str, run: Run) -> pd.DataFrame:
    """Measure the cells that the store does not hold, and return the rows of all, each with its commit."""
    keys = {key_of(one, cell, preset, run): cell for cell in one.cells(preset)}
    found = run.store.get(keys)
    label = {"protocol": one.protocol, "seed": run.seed, "commit": commit(), "machine": machine(run.device)}
    missing = [key for key in keys if key not in found]
    for key in tqdm(missing, desc=one.name, disable=None):
        began, cell = time.monotonic(), keys[key]
        rows = [cell | row for row in one.measure(run, **cell)]
        plain = json.loads(json.dumps(rows, default=_plain))
        found[key] = {"item": one.name, "rows": plain, "seconds": time.monotonic() - began, **label}
        run.store.put("cell", {key: found[key]})
    return pd.DataFrame([{"commit": found[key]["commit"], **row} for key in keys for row in found[key]["rows"]])


def again(one: Item, preset: str, run: Run, share: float) -> tuple[int, float]:
    """Measure a share of the cells anew: how many, and the largest relative difference of any number."""
    keys = {key_of(one, cell, preset, run): cell for cell in one.cells(preset)}
    chosen = [key for key in sorted(keys) if int(key[:8], 16) < share * 16**8] or sorted(keys)[:1]
    kept, largest = run.store.get(chosen), 0.0
    with TemporaryDirectory() as folder, Store(folder) as store:
        fresh = Run(run.settings, store, seed=run.seed, device=run.device)
        for key in kept:
            old, new = (pd.DataFrame(rows) for rows in (kept[key]["rows"], one.measure(fresh, **keys[key])))
            for column in new.columns.intersection(old.columns):
                if pd.api.types.is_numeric_dtype(new[column]) and pd.api.types.is_numeric_dtype(old[column]):
                    a, b = (each[column].to_numpy(float) for each in (old, new))
                    gaps = np.abs(a - b) / np.maximum(np.maximum(np.abs(a), np.abs(b)), 1e-300)
                    largest = max(largest, float(np.nan_to_num(gaps).max(initial=0.0)))
    return len(kept), largest


def _plain(value: Any) -> Any:
    """A number or an array as JSON has it."""
    return value.tolist() if hasattr(value, "tolist") else list(value)


def commit() -> str:
    """The commit of this checkout, and whether its code was changed since; a copy is told ``TADROPEDGE_COMMIT``."""
    if told := os.environ.get("TADROPEDGE_COMMIT"):
        return told

    def git(*arguments: str) -> str:
        try:
            return subprocess.run(["git", "-C", str(ROOT), *arguments], capture_output=True, text=True).stdout.strip()
        except OSError:  # no git here
            return ""

    changed = git("status", "--porcelain", "--", "tadropedge", "experiments")
    return (git("rev-parse", "--short=12", "HEAD") or "not a checkout") + (" with local changes" if changed else "")


def machine(device: str) -> str:
    """Cores, threads and, where it was used, the GPU."""
    cpu = f"{os.cpu_count()} cores, {platform.machine()}, {torch.get_num_threads()} torch threads"
    return f"{torch.cuda.get_device_name()}; {cpu}" if device.startswith("cuda") else cpu


# -- the command -----------------------------------------------------------------------------------------


def main(words: Path, arguments: Sequence[str] | None = None) -> None:
    """Measure items, then judge and draw all that the folder holds."""
    parser = argparse.ArgumentParser(prog="python -m experiments.paper", description="Repeat the paper's results.")
    parser.add_argument("items", nargs="+", choices=["all", *ITEMS], metavar="ITEM", help=f"all, {', '.join(ITEMS)}")
    parser.add_argument("--preset", choices=PRESETS, default="quick")
    parser.add_argument("--out", type=Path, default=Path("reproduction"))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", default="cpu", help="where networks of the tables and fixed settings train")
    parser.add_argument("--again", type=float, metavar="SHARE", help="measure a share of the kept cells anew, compare")
    parser.add_argument("--judge", action="store_true", help="judge and draw the csv files of OUT; measure nothing")
    options = parser.parse_args(arguments)
    warnings.simplefilter("ignore", tde.RepeatedEigenvalueWarning)  # in a few small components
    chosen = list(ITEMS) if "all" in options.items else options.items
    if not options.judge:
        with Store(options.out) as store:
            for name in chosen:
                one = ITEMS[name]
                run = Run(one.settings(options.preset), store, seed=options.seed, device=options.device)
                if options.again:
                    count, largest = again(one, options.preset, run, options.again)
                    print(f"{name}: {count} cells measured again, largest relative difference {largest:.2g}")
                    continue
                began = time.monotonic()
                rows = run_item(one, options.preset, run)
                print(f"{name}: {len(rows)} rows, {time.monotonic() - began:.1f} s", flush=True)
                write_rows(rows, options.out / f"{name}.csv")
                _note(options.out, one, options)
    if not options.again:
        tables = {name: read_rows(path) for name in ITEMS if (path := options.out / f"{name}.csv").exists()}
        write_pages({name: (ITEMS[name], rows) for name, rows in tables.items()}, options.out, words)


def write_rows(rows: pd.DataFrame, path: Path) -> None:
    """A csv file; lists are written as JSON."""
    beside = path.with_suffix(".tmp")
    rows.map(lambda value: json.dumps(value) if isinstance(value, list) else value).to_csv(beside, index=False)
    beside.replace(path)


def read_rows(path: Path) -> pd.DataFrame:
    """What :func:`write_rows` has written."""
    rows = pd.read_csv(path, keep_default_na=False, na_values=[""])
    for name in rows:
        first = rows[name].dropna().iloc[:1]
        if len(first) and isinstance(first.iloc[0], str) and first.iloc[0].startswith("["):
            rows[name] = rows[name].map(json.loads, na_action="ignore")
    return rows


def _note(folder: Path, one: Item, options: argparse.Namespace) -> None:
    """Write into ``run.json`` how an item was measured."""
    path = folder / "run.json"
    runs = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    runs[one.name] = {
        "preset": options.preset,
        "protocol": one.protocol,
        "seed": options.seed,
        "commit": commit(),
        "machine": machine(options.device),
        "settings": one.presets[options.preset],
    }
    beside = path.with_suffix(".tmp")
    beside.write_text(json.dumps(runs, indent=1, default=list), encoding="utf-8")
    beside.replace(path)
