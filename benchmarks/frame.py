"""What all benchmarks share: calls that take turns, jobs in processes of their own, csv files with a label.

A benchmark is a module with ``TABLES``: names of csv files in ``results/benchmarks/``, and the functions that measure
their rows. ``python -m benchmarks.NAME`` measures them on a CPU, ``--device cuda`` on a GPU (into files of their own).
With ``--quick`` all code is tried at tiny sizes within seconds, and nothing is written. A file is written whole, when
all of its rows are there. Every row ends with a label: commit, machine, device, versions, and a digest of the
benchmark's source.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import importlib
import io
import json
import os
import random
import re
import statistics
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch

from tadropedge.lab.reports.label import run_label

ROOT = Path(__file__).resolve().parents[1]
RESULTS = Path("results", "benchmarks")
LABEL = ("commit", "machine", "device", "versions", "source")
PRUNED = 3.0  # a way of a peer's that takes so many times as long as its best one runs once

Row = dict[str, Any]
Table = Callable[[argparse.Namespace], Iterable[Row]]

DATA = Path(os.environ.setdefault("TADROPEDGE_DATA", str(ROOT.parent / "shared" / "data")))


# -- measuring --------------------------------------------------------------------------------------------


def now(device: str = "cpu") -> float:
    """The time when all work so far is done."""
    if device.startswith("cuda"):
        torch.cuda.synchronize(device)
    return time.perf_counter()


def timed(call: Callable[[], object], device: str = "cpu") -> float:
    """Seconds of one call."""
    start = now(device)
    call()
    return now(device) - start


def medians(
    calls: Mapping[str, Callable[[], object]], seconds: float, device: str = "cpu", least: int = 3, most: int = 200
) -> dict[str, float]:
    """Median seconds of each call. They take turns in changing order, so that noise and neighbours affect all alike.

    One round warms up, the first that counts says how many rounds fit into about that many ``seconds``.
    """
    for call in calls.values():
        call()
    took: dict[str, list[float]] = {name: [] for name in calls}
    order, rounds, number = random.Random(0), least, 0
    while number < rounds:
        for name, call in order.sample(list(calls.items()), len(calls)):
            took[name].append(timed(call, device))
        if number == 0:
            rounds = min(most, max(least, int(seconds / sum(times[0] for times in took.values()))))
        number += 1
    return {name: statistics.median(times) for name, times in took.items()}


def beside(
    ours: Callable[[], object],
    ways: Mapping[str, Callable[[], object]],
    seconds: float,
    device: str = "cpu",
    peer: str = "pyg",
) -> Row:
    """Ours and the best of the peer's ``ways`` in milliseconds; ``ratio``: how many times as fast ours is."""
    once = {way: _first(call, device) for way, call in ways.items()}
    good = {way: call for way, call in ways.items() if once[way] < PRUNED * min(once.values())}
    return compared(medians({"ours": ours, **good}, seconds, device), peer)


def _first(call: Callable[[], object], device: str) -> float:
    """Seconds of the first call, of short ones the least of four: the very first may load something."""
    took = timed(call, device)
    return took if took > 0.2 else min(took, *(timed(call, device) for _ in range(3)))


def compared(found: Mapping[str, float], peer: str = "pyg") -> Row:
    """The row of median seconds of ``ours`` and of a peer's ways."""
    ways = {way: took for way, took in found.items() if way != "ours"}
    best = min(ways, key=lambda way: ways[way])
    row: Row = {"ours_ms": 1e3 * found["ours"], f"{peer}_ms": 1e3 * ways[best], f"{peer}_way": best}
    return row | {"ratio": ways[best] / found["ours"]}


def alone(job: Callable[..., Row], limit: float = 600, **arguments: Any) -> Row:
    """The row of a job in a process of its own, with its peak memory; ``status`` says why there is none.

    ``job`` is a function of a benchmark, ``arguments`` are plain values. ``base_mb`` is what Python and its packages
    hold before. On a GPU the memory is that of the GPU.
    """
    command = [sys.executable, "-m", "benchmarks.frame", name_of(job), json.dumps(arguments)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=limit, check=False, cwd=ROOT)
    except subprocess.TimeoutExpired:
        return {"status": f"more than {limit:g} s"}
    if done.returncode:
        return {"status": (done.stderr.strip().splitlines() or [f"exit {done.returncode}"])[-1][:120]}
    found: Row = json.loads(done.stdout.splitlines()[-1])
    return found


def name_of(job: Callable[..., Row]) -> str:
    """``MODULE:FUNCTION``, as :func:`child` takes it."""
    return f"benchmarks.{Path(job.__code__.co_filename).stem}:{job.__name__}"


def child(job: str, arguments: str) -> None:
    """What :func:`alone` starts: the row of a job as a line of json, from the first process of several."""
    module, _, name = job.partition(":")
    call, given = getattr(importlib.import_module(module), name), json.loads(arguments)
    base = peak_mb("cpu")
    row = call(**given)
    if os.environ.get("RANK", "0") == "0":
        device = given["device"]
        print(json.dumps({"peak_mb": peak_mb(device), "base_mb": base if device == "cpu" else 0.0, **row}))


def peak_mb(device: str) -> float:
    """The most memory that this process has held, on the GPU or in all."""
    if device == "cuda":
        return torch.cuda.max_memory_allocated() / 2**20
    status = Path("/proc/self/status").read_text()  # resource counts what the process that started this one held, too
    return int(re.search(r"VmHWM:\s+(\d+)", status)[1]) / 2**10


def reset_peak(device: str) -> None:
    """Forget the memory that was held so far."""
    if device == "cuda":
        torch.cuda.reset_peak_memory_stats()
    Path("/proc/self/clear_refs").write_text("5")


def installed(package: str, what: str) -> bool:
    """Whether a peer is installed; a line says so where it is not."""
    there = find_spec(package) is not None
    if not there:
        print(f"skipped: {what} ({package} is not installed)", flush=True)
    return there


# -- csv --------------------------------------------------------------------------------------------------


def run(tables: Mapping[str, Table], slow: Iterable[str] = ()) -> None:
    """The command of a benchmark. Tables that are ``slow`` are measured only where ``--only`` names them."""
    module = sys.modules["__main__"]
    warnings.filterwarnings("ignore", "Sparse (CSR tensor support|invariant checks)")  # of torch, about PyG's tensors
    parser = argparse.ArgumentParser(description=module.__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--quick", action="store_true", help="try all code at tiny sizes; nothing is written")
    parser.add_argument("--only", nargs="+", choices=list(tables), metavar="TABLE", help=f"of {', '.join(tables)}")
    parser.add_argument("--resume", action="store_true", help="skip what this commit has measured")
    options = parser.parse_args()
    label = label_of(Path(str(module.__file__)).stem, options.device)
    for name in options.only or [name for name in tables if name not in slow]:
        path = ROOT / RESULTS / f"{name}{'-cuda' * (options.device == 'cuda')}.csv"
        if options.resume and path.exists() and read(path)[0].items() >= label.items():
            print(f"{path.relative_to(ROOT)}: measured by this commit already", flush=True)
            continue
        print(f"\n{name}", flush=True)
        rows = []
        for row in tables[name](options):
            rows.append(row)
            print("  ".join(f"{key} {shown(value)}" for key, value in row.items()), flush=True)
        if rows and not options.quick:
            write(path, rows, label)
            print(f"written: {path.relative_to(ROOT)}", flush=True)


def write(path: Path, rows: list[Row], label: Row) -> None:
    """A csv file of rows with their label, written whole or not at all."""
    columns = list(dict.fromkeys(column for row in rows for column in row))
    text = io.StringIO()
    writer = csv.DictWriter(text, [*columns, *label], lineterminator="\n")
    writer.writeheader()
    for row in rows:
        writer.writerow({name: f"{one:.5g}" if isinstance(one, float) else one for name, one in row.items()} | label)
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(".part")
    part.write_text(text.getvalue(), encoding="utf-8")
    part.replace(path)


def read(path: Path) -> list[dict[str, str]]:
    """The rows of a csv file."""
    with path.open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


def label_of(benchmark: str, device: str) -> Row:
    """Where and on what rows are measured."""
    label = run_label(device, packages=["torch-geometric"])
    label["versions"] = ", ".join(f"{name} {version}" for name, version in label["versions"].items())
    label["source"] = digest(Path(__file__).with_name(f"{benchmark}.py"))
    return {name: label[name] for name in LABEL}


def digest(source: Path) -> str:
    """Of the source of a benchmark; empty where there is none."""
    return hashlib.sha256(source.read_bytes()).hexdigest()[:12] if source.exists() else ""


def shown(value: object) -> str:
    """A cell for people: three digits, and thousands apart.

    >>> shown("0.12345"), shown(1234567), shown(1234.5), shown("4e-15"), shown("gcn")
    ('0.123', '1,234,567', '1,234', '4e-15', 'gcn')
    """
    number = number_of(value)
    if number is None:
        return str(value)
    if re.fullmatch(r"-?\d+", str(value)) or abs(number) >= 100:
        return f"{number:,.0f}"
    return f"{number:.3g}" if number == 0 or abs(number) >= 1e-3 else f"{number:.0e}"


def number_of(value: object) -> float | None:
    """The number that a cell shows, if it is one."""
    try:
        return None if isinstance(value, bool) else float(str(value))
    except ValueError:
        return None


if __name__ == "__main__":
    child(*sys.argv[1:])
