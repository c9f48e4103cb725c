"""Graphs of up to 10^8 edges on one machine: seconds and peak memory of ``tadropedge weights``, from file to files.

The graph is that of ``spectrum.py --growth`` (blocks of nodes with power-law degrees, about 10 edges per node), made in
pieces and written as an ``.npz`` file that can be mapped into memory. Each quantity is computed by the command itself,
in its own process, and counts with everything: reading, scoring, the probabilities of every rule, and the files. Peak
memory is that of the whole process, or with ``--device cuda`` of the GPU, where reading and writing count as time only.
With ``--no-csv`` the only file of scores is ``weights.npz``: a line of text per edge takes longer than most scores.
With ``--scores-only`` one process reads the graph once and computes every quantity: no rules, no files.

    python benchmarks/old/hundred_million.py [--edges 100000000] [--quantities degree jaccard normalized] [--device cuda]
        [--no-csv | --scores-only]
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.lib import format as npy
from report import write

import tadropedge._old as tde
from tadropedge._old.provenance import commit
from tadropedge._old.spectrum import LAPLACIANS

PIECE = 4_000_000  # edges that are drawn and written together
CLUSTERS, PER_NODE = 7, 10
QUANTITIES = {
    "degree": ["--score", "degree"],
    "jaccard": ["--score", "jaccard"],
    "normalized": ["--q", "7", "--laplacian", "normalized"],
    "combinatorial": ["--q", "7", "--laplacian", "combinatorial"],
    "effective": ["--score", "effective", "--relative-error", "0.3"],
}
CHEAP = ("degree", "jaccard", "normalized")


def make(path: Path, edges: int, seed: int = 0) -> None:
    """Write ``edges [A, 2]`` in int32, piece by piece: beside one piece, memory holds two numbers for each node.

    Blocks of nodes with power-law degrees (exponent 2.5), four of five edges inside a block; a few are listed twice.
    """
    nodes, random = max(edges // PER_NODE, CLUSTERS), np.random.default_rng(seed)
    total = np.minimum((1 - random.random(nodes)) ** (-1 / 1.5), 2 * np.sqrt(nodes))
    total = np.concatenate(([0.0], np.cumsum(total)))
    starts = np.linspace(0, nodes, CLUSTERS + 1).astype(int)
    header = {"descr": npy.dtype_to_descr(np.dtype(np.int32)), "fortran_order": False, "shape": (edges, 2)}
    with zipfile.ZipFile(path, "w", allowZip64=True) as archive:
        with archive.open("num_nodes.npy", "w") as stream:
            npy.write_array(stream, np.array(nodes), allow_pickle=False)
        with archive.open("edges.npy", "w", force_zip64=True) as stream:
            npy.write_array_header_1_0(stream, header)
            for first in range(0, edges, PIECE):
                stream.write(draw(total, starts, min(PIECE, edges - first), random).tobytes())


def draw(total: np.ndarray, starts: np.ndarray, count: int, random: np.random.Generator) -> np.ndarray:
    """``count`` edges ``[count, 2]``: their ends by the running ``total`` of the nodes' weights."""
    low = _before(total, random.random(count) * total[-1])
    block = np.searchsorted(starts, low, side="right") - 1
    inside = random.random(count) < 0.8
    begin = np.where(inside, total[starts[block]], 0.0)
    end = np.where(inside, total[starts[block + 1]], total[-1])
    high = _before(total, begin + random.random(count) * (end - begin))
    return np.stack((low, np.minimum(high, len(total) - 2)), axis=1).astype(np.int32)


def _before(total: np.ndarray, at: np.ndarray) -> np.ndarray:
    """The place of the last number that is at most as large, found by torch, which uses all cores."""
    found: np.ndarray = torch.searchsorted(torch.from_numpy(total), torch.from_numpy(at), right=True).numpy()
    return found - 1


def score(graph: tde.Graph, quantity: str, device: str) -> None:
    """The scores of the edges, with the settings of the command."""
    if quantity == "effective":
        tde.effective_resistance(graph, relative_error=0.3, device=device, progress=False)
    elif quantity in LAPLACIANS:
        tde.aggregate_resistance(graph, q=7, laplacian=quantity, device=device, progress=False)
    else:
        tde.edge_scores(graph, quantity, device=device)


def scored(file: Path, options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Every quantity in this process; ``seconds`` count the reading of the graph, ``reading``, with each of them."""
    begun = time.perf_counter()
    graph = tde.Graph.from_file(file)
    reading = time.perf_counter() - begun
    for quantity in options.quantities:
        row = {"quantity": quantity, "device": options.device, "commit": commit(), "files": False}
        row |= {"nodes": graph.num_nodes, "edges": graph.num_edges, "load": round(os.getloadavg()[0], 1), "status": ""}
        if options.device == "cuda":
            torch.cuda.reset_peak_memory_stats()
        begun = time.perf_counter()
        score(graph, quantity, options.device)
        row |= {"reading": reading, "writing": 0.0, "seconds": reading + time.perf_counter() - begun}
        row |= {"peak": peak(options.device), "resident": peak("cpu")}
        yield row | {"bytes_per_edge": row["peak"] / row["edges"]}


def peak(device: str) -> int:
    """Bytes of the GPU, or of this process."""
    return (
        torch.cuda.max_memory_allocated()
        if device == "cuda"
        else resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    )


def child(arguments: list[str], device: str) -> None:
    """The command in this process; what it took goes to the last line that is printed."""
    from tadropedge._old.cli import app

    begun = time.perf_counter()
    app(["weights", *arguments, "--device", device], standalone_mode=False)
    print(json.dumps({"seconds": time.perf_counter() - begun, "resident": peak("cpu"), "peak": peak(device)}))


def measure(file: Path, quantity: str, options: argparse.Namespace) -> dict[str, Any]:
    """One quantity in another process; ``status`` says what went wrong."""
    out = options.folder / f"weights-{quantity}"
    row: dict[str, Any] = {"quantity": quantity, "device": options.device, "commit": commit()}
    row["csv"], row["load"] = options.csv, round(os.getloadavg()[0], 1)
    shutil.rmtree(out, ignore_errors=True)
    command = [sys.executable, __file__, "--device", options.device, "--child", str(file), *QUANTITIES[quantity]]
    command += ["--no-figures", "--csv" if options.csv else "--no-csv", "--json", "--out", str(out)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=options.limit, check=False)
    except subprocess.TimeoutExpired:
        return {**row, "status": f"more than {options.limit} s"}
    if done.returncode:
        return {**row, "status": (done.stderr.strip().splitlines() or [f"exit {done.returncode}"])[-1][:200]}
    row |= json.loads(done.stdout.splitlines()[-1])
    summary = json.loads((out / "summary.json").read_text())
    row |= {"nodes": summary["graph"]["nodes"], "edges": summary["graph"]["edges"], "status": ""}
    row |= {"writing": summary["run"]["seconds"]["writing"], "bytes_per_edge": row["peak"] / row["edges"]}
    shutil.rmtree(out)
    return row


def line(row: dict[str, Any]) -> str:
    """A row as it is printed."""
    head = f"{row['quantity']:14s} {row['device']:5s}"
    if row["status"]:
        return f"{head} {row['status']}"
    size = f"{row['peak'] / 1e9:6.2f} GB, {row['bytes_per_edge']:5.0f} bytes per edge"
    part = "writing" if row.get("files", True) else "reading"
    return f"{head} {row['edges']:>12,} edges {row['seconds']:8.1f} s ({row[part]:.1f} s of it {part})  {size}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--edges", type=int, default=100_000_000, help="edges that are drawn; a few are drawn twice")
    parser.add_argument("--quantities", nargs="+", default=list(CHEAP), choices=list(QUANTITIES))
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument(
        "--folder", type=Path, default=Path("hundred"), help="for the graph and the files, removed later"
    )
    parser.add_argument("--csv", action=argparse.BooleanOptionalAction, default=True, help="write weights.csv")
    parser.add_argument("--scores-only", action="store_true", help="in one process, without the command and its files")
    parser.add_argument("--limit", type=float, default=7200, help="seconds for one quantity")
    parser.add_argument("--out", help="file for the numbers (default results/benchmarks/hundred-million-DEVICE.json)")
    parser.add_argument("--child", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        return child(options.child, options.device)
    options.folder.mkdir(parents=True, exist_ok=True)
    file = options.folder / f"power-law-{options.edges}.npz"
    if not file.exists():
        begun = time.perf_counter()
        make(file, options.edges)
        print(f"{file}: made in {time.perf_counter() - begun:.1f} s", flush=True)
    rows, out = [], options.out or f"results/benchmarks/hundred-million-{options.device}.json"
    measured = (
        scored(file, options) if options.scores_only else (measure(file, one, options) for one in options.quantities)
    )
    for row in measured:
        rows.append(row)
        print(line(rows[-1]), flush=True)
        write(out, {"rows": rows}, options.device)  # after each: the next may take an hour


if __name__ == "__main__":
    main()
