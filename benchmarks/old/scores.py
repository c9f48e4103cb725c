"""Seconds and memory of every score that is near-linear in the edges, beside networkit and SciPy, in one run.

* ``com-dblp``: the triangles of each edge by ours, by networkit's ``TriangleEdgeScore`` (edges sorted and indexed
  beforehand, on one thread and on all, whichever is faster) and by SciPy's ``(A @ A).multiply(A)``; the local scores
  beside networkit's. The calls take turns, and the ratio is that of their medians.
* ``power-law``: a random graph of 10⁷ edges whose expected degrees follow a power law (exponent 2.5), with a hub of
  10⁵ neighbours: seconds and peak memory of each score, each in its own process.

networkit is not a dependency (pip install networkit==11.2); without it the other columns are measured.

    python benchmarks/old/scores.py [--device cuda] [--edges 10000000] [--out FILE]
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from report import data_root, write

import tadropedge._old as tde
from tadropedge._old.triangles import triangles

SCORES = ("degree", "jaccard", "common-neighbours", "forman", "cosine", "local-degree", "local-similarity")
SCORES += ("pagerank", "eigenvector")
FEATURES = 64
HUB = 100_000
PEER = {
    "triangles": "TriangleEdgeScore",
    "local-degree": "LocalDegreeScore",
    "local-similarity": "LocalSimilarityScore",
}


def power_law(edges: int, seed: int = 0) -> tde.Graph:
    """Ends drawn in proportion to weights of exponent 2.5, ten edges per node, and a hub of 10⁵ neighbours."""
    rng = np.random.default_rng(seed)
    nodes, hub = max(2, edges // 10), min(HUB, edges // 20)
    weight = (np.arange(1, nodes + 1) / nodes) ** (-1 / 1.5)
    ladder = np.cumsum(weight) / weight.sum()
    names = rng.permutation(nodes)  # the order of the nodes says nothing about their degrees
    drawn = int(1.05 * edges)
    arcs = names[np.searchsorted(ladder, rng.random((2, drawn))).clip(max=nodes - 1)]
    spokes = np.stack((np.zeros(hub, dtype=np.int64), 1 + rng.choice(nodes - 1, hub, replace=False)))
    keys = np.unique(np.sort(np.concatenate((spokes, arcs), axis=1), axis=0)[0:2].T @ np.array([nodes, 1]))
    keys = keys[keys // nodes != keys % nodes]
    # What is too much is left out at random, but never an edge of the hub.
    free = np.flatnonzero(keys >= nodes)
    keys = np.delete(keys, rng.choice(free, max(0, len(keys) - edges), replace=False))
    return tde.Graph(torch.from_numpy(np.stack((keys // nodes, keys % nodes))), nodes)


def timed(call: Callable[[], object], device: str) -> float:
    """Seconds of one call."""
    if device == "cuda":
        torch.cuda.synchronize()
    start = time.perf_counter()
    call()
    if device == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter() - start


def calls_of_networkit(graph: tde.Graph) -> dict[tuple[str, str], Callable[[], object]]:
    """Its scores by their names here and the number of threads; none where it is not installed."""
    try:
        import networkit as nk
    except ImportError:
        return {}
    low, high = graph.pairs.cpu().numpy()
    theirs = nk.GraphFromCoo((np.ones(len(low)), (low, high)), n=graph.num_nodes, weighted=False, directed=False)
    theirs.sortEdges()
    theirs.indexEdges()
    most = os.cpu_count() or 1

    def run(name: str, threads: int) -> object:
        nk.setNumberOfThreads(threads)
        try:
            known = nk.sparsification.TriangleEdgeScore(theirs).run() if name == "local-similarity" else None
            given = () if known is None else (known.scores(),)
            return getattr(nk.sparsification, PEER[name])(theirs, *given).run()
        finally:
            nk.setNumberOfThreads(most)

    return {(name, f"networkit, {n} threads"): partial(run, name, n) for name in PEER for n in {1, most}}


def beside_peers(graph: tde.Graph, device: str, repeat: int) -> list[dict[str, Any]]:
    """Medians of ours and theirs, which take turns; the peers run on the CPU in any case."""
    there = graph.to(device)
    A = graph.adjacency()
    A.data[:] = 1
    calls: dict[tuple[str, str], Callable[[], object]] = {("triangles", "ours"): lambda: triangles(there)}
    for name in ("jaccard", "local-degree", "local-similarity"):
        calls[name, "ours"] = partial(tde.SCORES[name], there)
    calls |= calls_of_networkit(graph)
    calls["triangles", "scipy"] = lambda: (A @ A).multiply(A)
    seconds: dict[tuple[str, str], list[float]] = {key: [] for key in calls}
    for turn in range(repeat + 1):
        for (name, method), call in calls.items():
            if method == "scipy" and turn > 2:
                continue
            took = timed(call, device)
            if turn or method == "scipy":  # the first turn warms up
                seconds[name, method].append(took)
    found = {key: statistics.median(times) for key, times in seconds.items()}
    rows = []
    for (name, method), took in found.items():
        peers = [one for (what, other), one in found.items() if what == name and other.startswith("networkit")]
        row = {"graph": "com-dblp", "edges": graph.num_edges, "score": name, "method": method, "device": device}
        row |= {"seconds": round(took, 5), "repetitions": len(seconds[name, method])}
        row["times_networkit"] = round(took / min(peers), 3) if peers and method == "ours" else None
        rows.append(row)
    return rows


def alone(score: str, file: str, device: str) -> dict[str, Any]:
    """One score of a saved graph: seconds of the second call on a GPU, of the first on a CPU, and peak memory."""
    pairs, nodes = torch.load(file)
    graph = tde.Graph(pairs, nodes).to(device)
    generator = torch.Generator().manual_seed(0)
    settings = {"features": torch.rand(nodes, FEATURES, generator=generator).to(device)} if score == "cosine" else {}
    if device == "cuda":
        tde.SCORES[score](graph, **settings)
        torch.cuda.reset_peak_memory_stats()
    before = time.process_time()
    seconds = timed(lambda: tde.SCORES[score](graph, **settings), device)
    worked = time.process_time() - before  # of all cores; on a busy machine it says more than the time that passed
    peak = torch.cuda.max_memory_allocated() if device == "cuda" else 1024 * memory_of_this_process()
    return {"score": score, "seconds": round(seconds, 3), "cpu_seconds": round(worked, 3), "peak": peak}


def memory_of_this_process() -> int:
    """The largest resident memory so far, in kB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def large(edges: int, device: str, folder: Path, scores: tuple[str, ...]) -> list[dict[str, Any]]:
    """Each score of the generated graph in its own process, so that its peak memory is its own."""
    graph = power_law(edges)
    file = folder / f"power-law-{edges}.pt"
    torch.save((graph.pairs, graph.num_nodes), file)
    hub = int(torch.bincount(graph.pairs.flatten()).max())
    rows = []
    for score in scores:
        command = [sys.executable, __file__, "--one", score, "--graph", str(file), "--device", device]
        answer = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        row = {"graph": "power-law", "nodes": graph.num_nodes, "edges": graph.num_edges, "largest_degree": hub}
        rows.append(row | {"device": device} | json.loads(answer.splitlines()[-1]))
        took, worked, peak = (rows[-1][key] for key in ("seconds", "cpu_seconds", "peak"))
        print(f"{score:20s} {took:8.2f} s {worked:8.2f} s of work {peak / 1e9:6.2f} GB", flush=True)
    file.unlink()
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--data-root", type=Path, default=data_root())
    parser.add_argument("--edges", type=int, default=10_000_000, help="of the generated graph; 0: leave it out")
    parser.add_argument("--repeat", type=int, default=9)
    parser.add_argument("--scores", nargs="+", default=SCORES, choices=SCORES)
    parser.add_argument("--folder", type=Path, default=Path("/tmp"), help="where the generated graph is kept meanwhile")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    parser.add_argument("--graph", help=argparse.SUPPRESS)
    parser.add_argument("--out", help="file for the numbers (default results/benchmarks/scores-DEVICE.json)")
    options = parser.parse_args()
    if options.one:
        print(json.dumps(alone(options.one, options.graph, options.device)))
        return
    rows = {}
    if options.repeat:
        graph = tde.Graph.from_file(options.data_root / "graphs" / "com-dblp.tsv.gz")
        rows["peers"] = beside_peers(graph, options.device, options.repeat)
        for row in rows["peers"]:
            ratio = "" if row["times_networkit"] is None else f"{row['times_networkit']:6.2f} times networkit"
            print(f"{row['score']:18s} {row['method']:22s} {1e3 * row['seconds']:9.1f} ms {ratio}", flush=True)
    if options.edges:
        rows["large"] = large(options.edges, options.device, options.folder, tuple(options.scores))
    write(options.out or f"results/benchmarks/scores-{options.device}.json", rows, options.device)


if __name__ == "__main__":
    main()
