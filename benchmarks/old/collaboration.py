"""A collaboration graph for the benchmarks: films are cliques of their actors.

Run as a command, it measures the lowest modes and effective resistance on it at full size, and the modes on com-dblp,
each in a process of its own: seconds, CPU seconds and peak memory (on a GPU, that of the GPU). The graph is made once;
``--folder`` keeps it.

    python benchmarks/old/collaboration.py [--device cuda] [--folder DIR] [--out FILE]
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from report import data_root, write

import tadropedge._old as tde
from tadropedge._old.blocks import Integers, blocks
from tadropedge._old.provenance import commit
from tadropedge._old.spectrum import LAPLACIANS

ACTORS = 386_000  # make a component of 384,152 actors who met in 8,659,823 pairs
SMALLEST, LARGEST, TAIL = 3, 250, 2.05  # casts: P(at least s) = (SMALLEST / s)^TAIL
NEWCOMERS = 0.29  # share of roles that go to someone who never played before
FAMOUS = 0.65  # share of the other roles that go to actors in proportion to what they played, not to any actor
ABROAD = 0.08  # share of the other roles for which actors of all countries compete
COUNTRIES = 7


def collaboration(actors: int = ACTORS, seed: int = 0) -> tde.Graph:
    """The largest component of a graph of about so many actors, linked where they shared a film.

    Casts have heavy-tailed sizes. A role goes to a newcomer, or to whoever has an earlier role drawn at random, so in
    proportion to what actors played before (Yule's process), or to any actor; most often in the country of the film.

    >>> graph = collaboration(1_000)
    >>> 900 < graph.num_nodes < 1_100, graph.num_edges > 10 * graph.num_nodes
    (True, True)
    """
    random = np.random.default_rng(seed)
    roles = int(actors / NEWCOMERS)
    sizes = SMALLEST * (1 - random.random(roles // SMALLEST)) ** (-1 / TAIL)
    sizes = np.minimum(sizes, LARGEST).astype(np.int64)
    films = int(np.searchsorted(np.cumsum(sizes), roles, side="right"))
    sizes = sizes[:films]
    country = np.repeat(random.integers(0, COUNTRIES, films), sizes)
    actor = _cast(country, random)
    low, high = _pairs(sizes)
    graph = tde.Graph.from_edge_index(np.stack((actor[low], actor[high])), int(actor.max()) + 1)
    *_, block = blocks(graph)  # the largest comes last
    return tde.Graph.from_edge_index(np.stack((block.low, block.high)), block.size)


def _cast(country: Integers, random: np.random.Generator) -> Integers:
    """The actor of each role: the number of the newcomer whom its chain of earlier roles ends at."""
    newcomer = random.random(len(country)) < NEWCOMERS
    before = np.arange(len(country))
    everywhere = random.random(len(country)) < ABROAD
    for group in (np.arange(len(country)), *(np.flatnonzero(country == nation) for nation in range(COUNTRIES))):
        newcomer[group[0]] = True
        new = newcomer[group]
        debuts = group[new]
        any_role = group[(random.random(len(group)) * np.arange(len(group))).astype(np.int64)]
        any_actor = debuts[(random.random(len(group)) * (np.cumsum(new) - new)).astype(np.int64)]
        chosen = np.where(random.random(len(group)) < FAMOUS, any_role, any_actor)
        mine = ~new & (everywhere[group] == (len(group) == len(country)))
        before[group[mine]] = chosen[mine]
    while not np.array_equal(before, following := before[before]):  # chains end at newcomers
        before = following
    return (np.cumsum(newcomer) - 1)[before]


def _pairs(sizes: Integers) -> tuple[Integers, Integers]:
    """All pairs of roles inside films of these sizes."""
    first = np.concatenate(([0], np.cumsum(sizes)[:-1]))
    low, high = [], []
    for size in np.unique(sizes):
        one, other = np.triu_indices(size, 1)
        starts = first[sizes == size][:, None]
        low.append((starts + one).ravel())
        high.append((starts + other).ravel())
    return np.concatenate(low), np.concatenate(high)


# -- measured -----------------------------------------------------------------------------------------------------

CASES = [(graph, laplacian) for graph in ("collaboration", "com-dblp") for laplacian in LAPLACIANS]
CASES.append(("collaboration", "effective"))  # at its default relative error, 0.1


def made(folder: Path) -> Path:
    """The file of the collaboration graph, which is written unless it is there."""
    file = folder / "collaboration.npz"
    if not file.exists():
        graph = collaboration()
        np.savez(file, edge_index=graph.pairs.numpy(), num_nodes=graph.num_nodes)
    return file


def measured(file: Path, quantity: str, device: str) -> dict[str, Any]:
    """One quantity of the graph in a file, in this process."""
    graph = tde.Graph.from_file(file)
    start, before = time.perf_counter(), time.process_time()
    if quantity == "effective":
        tde.effective_resistance(graph, device=device, progress=False)
    else:
        tde.aggregate_resistance(graph, q=7, laplacian=quantity, device=device, progress=False)
    on_gpu = device == "cuda"
    return {
        "nodes": graph.num_nodes,
        "edges": graph.num_edges,
        "seconds": round(time.perf_counter() - start, 2),
        "cpu_seconds": round(time.process_time() - before, 2),
        "peak": torch.cuda.max_memory_allocated()
        if on_gpu
        else 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--folder", type=Path, help="where the graph is kept (default: nowhere)")
    parser.add_argument("--out", help="file for the numbers (default results/benchmarks/collaboration-DEVICE.json)")
    parser.add_argument("--one", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(measured(Path(options.one[0]), options.one[1], options.device)))
        return
    rows, out = [], options.out or f"results/benchmarks/collaboration-{options.device}.json"
    with tempfile.TemporaryDirectory() as folder:
        for row in measured_all(options.folder or Path(folder), options.device):
            rows.append(row)
            print(row, flush=True)
            write(out, {"collaboration": rows}, options.device)


def measured_all(folder: Path, device: str) -> Iterator[dict[str, Any]]:
    """Every case, each in a process of its own."""
    files = {"collaboration": made(folder), "com-dblp": data_root() / "graphs" / "com-dblp.tsv.gz"}
    for graph, quantity in CASES:
        row = {"graph": graph, "quantity": quantity, "device": device, "commit": commit()}
        row["load"] = round(os.getloadavg()[0], 1)
        command = [sys.executable, __file__, "--device", device, "--one", str(files[graph]), quantity]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
        yield row | json.loads(done.stdout.splitlines()[-1])


if __name__ == "__main__":
    main()
