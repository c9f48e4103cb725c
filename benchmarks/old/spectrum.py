"""The lowest eigenvectors of large graphs: ours against other calls at their best settings, each in its own process.

A run that does not finish within the time limit counts as that limit; for short runs the best of three counts. Peak
memory is that of the whole process, or of the GPU, where ours runs alone and after a warm-up. The residual is
‖L V − V Λ‖, and the rank correlation is that of the weights with those of a much tighter solution of ours.

With ``--methods`` these peers and ours are measured, and the other rows of the file stay; a row names its commit, and
the load of the machine when it began.

    python benchmarks/old/spectrum.py [--device cuda] [--limit 240] [--graphs pubmed com-dblp] [--methods NAME] [--out FILE]
    python benchmarks/old/spectrum.py --growth [--effective] [--device cuda] [--sizes 10000 100000]
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
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import torch
from collaboration import ACTORS, collaboration
from peers_of_spectrum import PEERS
from report import data_root, write
from scipy.sparse.csgraph import laplacian as scipy_laplacian
from scipy.stats import spearmanr

import tadropedge._old as tde
from tadropedge._old.blocks import blocks
from tadropedge._old.data.planetoid import citation_graph
from tadropedge._old.provenance import commit
from tadropedge._old.spectrum import LAPLACIANS, cluster_subspaces, ladder
from tadropedge._old.spectrum.clusters import Clusters

OURS = "ours"
REFERENCE = "reference"
TIGHT = 1e-13  # the tolerance of the reference
CAREFUL = 0.05  # and, where rounding is the limit already, its share of that: a tenth of the usual one
GRAPHS = {"pubmed": 3, "email-enron": 7, "com-dblp": 7, "road": 7, "power-law": 7, "collaboration": 7}
GROWTH = (10_000, 30_000, 100_000, 300_000, 1_000_000)
REPEATS, SHORT = 3, 10.0  # runs of up to so many seconds are repeated
TODAY = ("eigsh SA", "eigsh sigma", "lobpcg, smoothed AMG")  # what people call now


def power_law(nodes: int, clusters: int = 7, seed: int = 0) -> tde.Graph:
    """Blocks of nodes with power-law degrees (exponent 2.5): 10 edges per node, four of five inside a block."""
    random = np.random.default_rng(seed)
    weight = np.minimum((1 - random.random(nodes)) ** (-1 / 1.5), 2 * np.sqrt(nodes))
    starts = np.linspace(0, nodes, clusters + 1).astype(int)
    total = np.concatenate(([0.0], np.cumsum(weight)))
    low = np.searchsorted(total, random.random(10 * nodes) * total[-1], side="right") - 1
    block = np.searchsorted(starts, low, side="right") - 1
    inside = random.random(len(low)) < 0.8
    begin = np.where(inside, total[starts[block]], 0.0)
    end = np.where(inside, total[starts[block + 1]], total[-1])
    high = np.searchsorted(total, begin + random.random(len(low)) * (end - begin), side="right") - 1
    return largest_component(np.stack((low, np.minimum(high, nodes - 1))), nodes)


def road(side: int = 360, seed: int = 0) -> tde.Graph:
    """A grid of which a quarter of the edges are missing."""
    node = np.arange(side * side).reshape(side, side)
    across = np.stack((node[:, :-1].ravel(), node[:, 1:].ravel()))
    down = np.stack((node[:-1].ravel(), node[1:].ravel()))
    edges = np.concatenate((across, down), axis=1)
    return largest_component(edges[:, np.random.default_rng(seed).random(edges.shape[1]) > 0.25], side * side)


def largest_component(edges: np.ndarray, nodes: int) -> tde.Graph:
    graph = tde.Graph.from_edge_index(edges, nodes)
    *_, block = blocks(graph)  # the largest comes last
    return tde.Graph.from_edge_index(np.stack((block.low, block.high)), block.size)


@lru_cache(maxsize=len(GROWTH))
def load(name: str, root: Path) -> tde.Graph:
    """A graph of one component by name."""
    if name == "pubmed":
        return citation_graph("pubmed", root)
    if name == "road":
        return road()
    if name.startswith("power-law"):
        return power_law(int(name.partition("@")[2] or 100_000))
    if name.startswith("collaboration"):
        return collaboration(int(name.partition("@")[2] or ACTORS // 8))
    graph = tde.Graph.from_file(root / "graphs" / {"com-dblp": "com-dblp.tsv.gz"}.get(name, "email-enron.txt.gz"))
    return largest_component(graph.pairs.numpy(), graph.num_nodes)


def ours(graph: tde.Graph, q: int, laplacian: str, device: str, tolerance: float) -> tuple[np.ndarray, np.ndarray]:
    """Vectors ``[n, q]`` in the order of the nodes, and what twins add to P_ii."""
    (modes,) = cluster_subspaces(graph, Clusters(q=q), laplacian, tolerance=tolerance, progress=False, device=device)
    vectors, local = np.empty(modes.vectors.shape[1:]), np.empty(graph.num_nodes)
    vectors[modes.block.nodes[0]], local[modes.block.nodes[0]] = modes.vectors[0], modes.local[0]
    return vectors, local


def answer(name: str, q: int, laplacian: str, method: str, device: str, options: argparse.Namespace) -> dict[str, Any]:
    """One method on one graph: seconds, memory, residual, weights."""
    base = peak_memory()
    graph, normalized = load(name, options.data_root), laplacian == "normalized"
    mine = method in (OURS, REFERENCE)
    if not mine:  # a factorisation that fills up must not take the machine with it
        resource.setrlimit(resource.RLIMIT_AS, (options.memory * 10**9, resource.RLIM_INFINITY))
    if device == "cuda":
        ours(power_law(GROWTH[0]), q, laplacian, device, 1e-8)  # wakes the device
        torch.cuda.reset_peak_memory_stats()
    seconds = np.inf
    for _ in range(REPEATS):  # short runs are repeated, and the shortest counts: other work only adds to a time
        start, local = time.perf_counter(), np.zeros(graph.num_nodes)
        if method == OURS:
            vectors, local = ours(graph, q, laplacian, device, 1e-8)
        elif method == REFERENCE:
            vectors, local = tight(graph, q, laplacian, device)
        else:
            L = scipy_laplacian(graph.adjacency(), normed=normalized).tocsr()
            degrees = np.asarray(graph.adjacency().sum(axis=1)).ravel()
            vectors = PEERS[method](L, degrees, q, normalized)
        seconds = min(seconds, time.perf_counter() - start)
        if seconds > SHORT or method == REFERENCE:
            break
    peak = peak_memory()
    L = scipy_laplacian(graph.adjacency(), normed=normalized).tocsr()
    image = L @ vectors
    low, high = graph.pairs.numpy()
    return {
        "seconds": seconds,
        "peak": torch.cuda.max_memory_allocated() if device == "cuda" else peak,
        "base": 0 if device == "cuda" else base,
        "residual": float(np.linalg.norm(image - vectors @ (vectors.T @ image))),
        "weights": ((vectors[low] - vectors[high]) ** 2).sum(axis=1) + local[low] + local[high],
        "nodes": graph.num_nodes,
    }


def tight(graph: tde.Graph, q: int, laplacian: str, device: str) -> tuple[np.ndarray, np.ndarray]:
    """A solution as good as float64 allows."""
    before, ladder.CAREFUL = ladder.CAREFUL, CAREFUL
    try:
        return ours(graph, q, laplacian, device, TIGHT)
    finally:
        ladder.CAREFUL = before


def peak_memory() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def child(options: argparse.Namespace) -> None:
    """One method on one graph in this process; the answer goes to a file."""
    case = (options.graph, options.q, options.laplacian, options.method, "cpu")
    np.savez(options.out, **answer(*case, options))


def measure(
    graph: str, q: int, laplacian: str, method: str, options: argparse.Namespace, limit: float
) -> dict[str, Any]:
    """Run a method, on a CPU in its own process; ``status`` says what went wrong."""
    row: dict[str, Any] = {"graph": graph, "laplacian": laplacian, "q": q, "method": method}
    if options.device == "cuda" and method in (OURS, REFERENCE):
        found = answer(graph, q, laplacian, method, "cuda", options)
    else:
        found = in_child(row, options, limit)
    if "weights" not in found:
        return {**row, **found}
    row.update({name: float(found[name]) for name in ("seconds", "peak", "base", "residual")})
    row.update(nodes=int(found["nodes"]), edges=len(found["weights"]), weights=found["weights"])
    return {**row, "status": "time limit" if row["seconds"] > limit else "", "seconds": min(row["seconds"], limit)}


def in_child(row: dict[str, Any], options: argparse.Namespace, limit: float) -> dict[str, Any]:
    """The answer of another process, or what went wrong there."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "answer.npz"
        command = [sys.executable, __file__, "--child", "--out", str(out), "--memory", str(options.memory)]
        command += ["--data-root", str(options.data_root)]
        for name in ("graph", "laplacian", "q", "method"):
            command += [f"--{name}", str(row[name])]
        try:
            # Reading the graph and starting up do not count, so the child gets a little longer.
            done = subprocess.run(command, capture_output=True, text=True, timeout=limit + 20, check=False)
            failure = (done.stderr.strip().splitlines() or [f"exit {done.returncode}"])[-1][:80]
        except subprocess.TimeoutExpired:
            failure = "time limit"
        if not out.exists():
            return {"status": failure, "seconds": limit}
        with np.load(out) as found:
            return dict(found)


def compare(options: argparse.Namespace) -> list[dict[str, Any]]:
    """All methods on all graphs."""
    rows = []
    peers = [name for name in options.methods or PEERS if "AMG" not in name or find_spec("pyamg")]
    if options.device == "cuda":
        peers = []  # they know no GPU; --device cpu is the comparison
    elif not find_spec("pyamg"):
        print("pyamg is not installed: lobpcg is left out")
    for graph in options.graphs:
        for laplacian in LAPLACIANS:
            reference = measure(graph, GRAPHS[graph], laplacian, REFERENCE, options, 3600)
            for method in (OURS, *peers):
                busy = round(os.getloadavg()[0], 1)
                row = measure(graph, GRAPHS[graph], laplacian, method, options, options.limit)
                row |= {"commit": commit(), "load": busy}
                weights = row.pop("weights", None)
                known = reference.get("weights")
                there = weights is not None and known is not None
                row["spearman"] = float(spearmanr(weights, known)[0]) if there else None
                rows.append(row)
                print(line(row), flush=True)
    return rows


def merged(rows: list[dict[str, Any]], path: Path) -> list[dict[str, Any]]:
    """The rows of a file in its order, with those that were measured now in their places."""
    if not path.exists():
        return rows
    content = json.loads(path.read_text())
    found = {_case(row): {"commit": content["run"]["commit"], **row} for row in content["spectrum"]}
    found |= {_case(row): row for row in rows}
    order = [(graph, laplacian, method) for graph in GRAPHS for laplacian in LAPLACIANS for method in (OURS, *PEERS)]
    return sorted(found.values(), key=lambda row: order.index(_case(row)))


def _case(row: dict[str, Any]) -> tuple[str, str, str]:
    return row["graph"], row["laplacian"], row["method"]


def line(row: dict[str, Any]) -> str:
    head = f"{row['graph']:16s} {row['laplacian']:13s} {row['method']:23s} {row['seconds']:7.2f} s  "
    if row.get("spearman") is None:
        return head + row["status"]
    numbers = f"{row['peak'] / 1e9:5.2f} GB  residual {row['residual']:.1e}  Spearman {row['spearman']:.6f}"
    return f"{head}{numbers}  {row['status']}"


def verdicts(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """For each graph and Laplacian: ours as a share of the best peer, and how much faster than today's calls."""
    found = []
    for case in dict.fromkeys((row["graph"], row["laplacian"]) for row in rows):
        seconds = {row["method"]: row["seconds"] for row in rows if (row["graph"], row["laplacian"]) == case}
        best = min((name for name in seconds if name != OURS), key=lambda name: seconds[name])
        verdict = {"graph": case[0], "laplacian": case[1], "seconds": seconds[OURS], "best_peer": best}
        verdict["share_of_best"] = seconds[OURS] / seconds[best]
        verdict["times_faster_than_today"] = min(seconds[name] for name in TODAY if name in seconds) / seconds[OURS]
        found.append(verdict)
        print(
            "{graph:16s} {laplacian:13s} ours takes {share_of_best:.2f} of the best peer's time ({best_peer}), and is "
            "{times_faster_than_today:.1f} times faster than today's calls".format(**verdict)
        )
    return found


def grow(options: argparse.Namespace) -> None:
    """Measure what grows, each kind into its own file; graphs that this process needs are made before."""
    if options.device == "cuda":
        for nodes in options.sizes:
            load(f"power-law@{nodes}", options.data_root)
        print("graphs are made", flush=True)
    for name, wanted, measured in (("spectrum", options.growth, growth), ("effective", options.effective, effective)):
        if wanted:
            write(f"results/benchmarks/{name}-growth-{options.device}.json", measured(options), options.device)


def growth(options: argparse.Namespace) -> dict[str, list[dict[str, Any]]]:
    """Time and memory from 10^4 to 10^6 nodes, and the exponents of the power of the edges that fits them."""
    rows: list[dict[str, Any]] = []
    for nodes in options.sizes:
        for laplacian in LAPLACIANS:
            row = measure(f"power-law@{nodes}", 7, laplacian, OURS, options, 3600)
            row.pop("weights", None)
            rows.append(row)
            size = f"{row['seconds']:8.2f} s  {row['peak'] / 1e9:5.2f} GB" if not row["status"] else row["status"]
            print(f"{row['graph']:20s} {laplacian:13s} {row.get('edges', 0):>10,} edges  {size}", flush=True)
    return {"growth": rows, "fits": [fitted(rows, laplacian) for laplacian in LAPLACIANS]}


def effective(options: argparse.Namespace) -> dict[str, list[dict[str, Any]]]:
    """The same for effective resistance, sketched to a standard error of 30 %, all in this process."""
    rows: list[dict[str, Any]] = []
    base = peak_memory()
    for nodes in options.sizes:
        graph = load(f"power-law@{nodes}", options.data_root)
        if options.device == "cuda":
            small = power_law(GROWTH[0])
            tde.effective_resistance(small, method="sketch", relative_error=0.3, device="cuda", progress=False)
            torch.cuda.reset_peak_memory_stats()
        start = time.perf_counter()
        found = tde.effective_resistance(
            graph, method="sketch", relative_error=0.3, device=options.device, progress=False
        )
        row = {
            "graph": f"power-law@{nodes}",
            "nodes": graph.num_nodes,
            "edges": graph.num_edges,
            "laplacian": "effective",
        }
        row |= {"seconds": time.perf_counter() - start, "status": "", "base": 0 if options.device == "cuda" else base}
        row["peak"] = torch.cuda.max_memory_allocated() if options.device == "cuda" else peak_memory()
        row["share_of_known_sum"] = float(found.sum()) / (graph.num_nodes - 1)
        rows.append(row)
        print(f"{nodes:>10,} nodes  {row['seconds']:8.2f} s  {row['peak'] / 1e9:5.2f} GB", flush=True)
    return {"growth": rows, "fits": [fitted(rows, "effective")]}


def fitted(rows: list[dict[str, Any]], laplacian: str) -> dict[str, Any]:
    """The powers of the edges that time and memory (above that of Python and its packages) grow with."""
    good = [row for row in rows if row["laplacian"] == laplacian and not row["status"]]
    fit: dict[str, Any] = {"laplacian": laplacian}
    edges = np.log([row["edges"] for row in good])
    for name, sizes in (
        ("seconds", [row["seconds"] for row in good]),
        ("peak", [row["peak"] - row["base"] for row in good]),
    ):
        exponent, logarithm = np.polyfit(edges, np.log(sizes), 1)
        fit[name] = {"exponent": round(float(exponent), 3), "at_one_edge": float(np.exp(logarithm))}
    print(f"{laplacian}: time ~ edges^{fit['seconds']['exponent']}, memory ~ edges^{fit['peak']['exponent']}")
    return fit


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"), help="where ours runs")
    parser.add_argument("--data-root", type=Path, default=data_root())
    parser.add_argument("--limit", type=float, default=240, help="seconds for one run")
    parser.add_argument("--memory", type=int, default=16, help="gigabytes of address space for one peer")
    parser.add_argument("--graphs", nargs="+", default=list(GRAPHS), choices=list(GRAPHS))
    parser.add_argument("--methods", nargs="+", choices=list(PEERS), help="measure these peers and ours, keep the rest")
    parser.add_argument("--growth", action="store_true", help="ours alone on graphs of growing size")
    parser.add_argument("--effective", action="store_true", help="the same for effective resistance")
    parser.add_argument("--sizes", nargs="+", type=int, default=list(GROWTH), help="nodes of the growing graphs")
    parser.add_argument("--out", help="file for the numbers (default results/benchmarks/spectrum-DEVICE.json)")
    for hidden in ("--graph", "--laplacian", "--method"):
        parser.add_argument(hidden, help=argparse.SUPPRESS)
    parser.add_argument("--q", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        return child(options)
    if options.growth or options.effective:
        if options.out:
            parser.error(f"--out {options.out} is for the comparison; growth is written to results/benchmarks/")
        return grow(options)
    out = options.out or f"results/benchmarks/spectrum-{options.device}.json"
    rows = merged(compare(options), Path(out)) if options.methods else compare(options)
    write(out, {"spectrum": rows, "verdicts": verdicts(rows) if options.device == "cpu" else []}, options.device)


if __name__ == "__main__":
    main()
