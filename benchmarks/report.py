"""What the benchmarks share: where the data is, medians of calls that take turns, a table, and json with a label."""

from __future__ import annotations

import json
import os
import platform
import random
import statistics
import subprocess
import time
from collections.abc import Callable, Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.io import read_planetoid_data

ROOT = Path(__file__).resolve().parents[1]
CITATION = {"cora": "Cora", "pubmed": "PubMed"}

Row = dict[str, Any]


# -- data ------------------------------------------------------------------------------------------------


def data_folder() -> Path:
    """``TADROPEDGE_DATA``, else ``../shared/data`` beside the project."""
    return Path(os.environ.get("TADROPEDGE_DATA", ROOT.parent / "shared" / "data"))


def graph_data(name: str) -> Data:
    """A graph as PyG's users have it, both directions of every edge, sorted by rows; with features where it has any."""
    if name in CITATION:
        return read_planetoid_data(str(data_folder() / "planetoid" / CITATION[name] / "raw"), name)
    folder = data_folder() / "graphs"
    if (folder / f"{name}.npz").exists():
        with np.load(folder / f"{name}.npz") as held:
            x = torch.zeros(*held["x_shape"].tolist())
            row = np.repeat(np.arange(len(x)), np.diff(held["x_indptr"]))
            x[torch.from_numpy(row), torch.from_numpy(held["x_indices"]).long()] = torch.from_numpy(held["x_data"])
            edge_index, y = both_directions(torch.from_numpy(held["edge_index"])), torch.from_numpy(held["y"])
        return Data(x=x, edge_index=edge_index, y=y)
    pairs = np.loadtxt(folder / f"{name}.tsv.gz", dtype=np.int64).T
    compact = np.unique(pairs, return_inverse=True)[1].reshape(2, -1)  # ids have gaps
    return Data(edge_index=both_directions(torch.from_numpy(compact)), num_nodes=int(compact.max()) + 1)


def block_model(nodes: int = 5_000, degree: int = 100, classes: int = 5, features: int = 64) -> Data:
    """A block model of that mean degree, four of five edges inside the classes, with noisy features."""
    random_numbers = torch.Generator().manual_seed(0)
    y = torch.arange(nodes) % classes
    count = nodes * degree // 2
    one = torch.randint(nodes, (count,), generator=random_numbers)
    step = torch.randint(1, nodes // classes, (count,), generator=random_numbers) * classes
    across = torch.randint(1, nodes, (count,), generator=random_numbers)
    inside = torch.rand(count, generator=random_numbers) < 0.8
    other = (one + torch.where(inside, step, across)) % nodes
    x = torch.nn.functional.one_hot(y, features).float() + torch.randn(nodes, features, generator=random_numbers)
    return Data(x=x, edge_index=both_directions(torch.stack((one, other))), y=y)


def both_directions(edge_index: Tensor) -> Tensor:
    """Both directions of every edge once, sorted by rows, without self-loops."""
    low, high = edge_index[:, edge_index[0] != edge_index[1]]
    nodes = int(edge_index.max()) + 1
    keys = torch.cat((low * nodes + high, high * nodes + low)).unique()
    return torch.stack((keys // nodes, keys % nodes))


# -- measuring -------------------------------------------------------------------------------------------


def medians(calls: Mapping[str, Callable[[], object]], seconds: float, least: int = 3, most: int = 200) -> Row:
    """Median seconds of each call. They take turns in changing order, so that noise and neighbours affect all alike.

    One round warms up, a second says how many rounds fit into about that many ``seconds``.
    """
    took: dict[str, list[float]] = {name: [] for name in calls}
    order, rounds, number = random.Random(0), least, 0
    while number < rounds + 1:
        for name, call in order.sample(list(calls.items()), len(calls)):
            start = time.perf_counter()
            call()
            took[name].append(time.perf_counter() - start)
        if number == 1:
            rounds = min(most, max(least, int(seconds / sum(times[1] for times in took.values()))))
        number += 1
    return {name: statistics.median(times[1:]) for name, times in took.items()}


# -- what comes out --------------------------------------------------------------------------------------


def table(rows: list[Row]) -> str:
    """Rows as aligned columns."""
    cells = [list(rows[0]), *([_cell(value) for value in row.values()] for row in rows)]
    widths = [max(len(line[column]) for line in cells) for column in range(len(rows[0]))]
    return "\n".join("  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True)) for line in cells)


def write(name: str, protocol: str, tables: Mapping[str, object], path: Path | None = None) -> None:
    """Write ``results/benchmarks/NAME.json``: how it was measured, where, and the rows."""
    path = path or ROOT / "results" / "benchmarks" / f"{name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"protocol": protocol, **tables, "run": label()}, indent=1) + "\n")
    print(f"written: {path}")


def label() -> Row:
    """Where and on what the numbers were measured."""
    changed = _git("status", "--porcelain", "--", "tadropedge", "benchmarks")
    versions = {name: metadata.version(name) for name in ("torch", "torch-geometric", "numpy", "scipy")}
    return {
        "commit": _git("rev-parse", "--short=12", "HEAD") + (" with local changes" if changed else ""),
        "machine": f"{os.cpu_count()} cores, {platform.machine()}, {torch.get_num_threads()} torch threads",
        "versions": {"python": platform.python_version(), **versions},
    }


def _cell(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _git(*arguments: str) -> str:
    return subprocess.run(["git", "-C", str(ROOT), *arguments], capture_output=True, text=True).stdout.strip()
