"""Sparsifiers by effective resistance, by degree and by chance, at budgets below and above a spanning forest.

Run: python benchmarks/old/sparsify.py [GRAPH …] [--device cuda] [--out FILE]. Scores and rows are kept in ``--cache``, so
an interrupted run resumes; the seconds of what is found there are those of the run that found it.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np
from report import data_root, write

import tadropedge._old as tde
from tadropedge._old.certificate import certify
from tadropedge._old.cli.sparsify import plain
from tadropedge._old.scores.solve import solve
from tadropedge._old.sparsifier import UNIFORM, draw

SCORES = (UNIFORM, "degree", "effective")
SIDE = 300  # of the grid


def grid(side: int) -> tde.Graph:
    """A square grid."""
    node = np.arange(side * side).reshape(side, side)
    across, down = (np.stack((a.ravel(), b.ravel())) for a, b in ((node[:, :-1], node[:, 1:]), (node[:-1], node[1:])))
    return tde.Graph.from_edge_index(np.concatenate((across, down), axis=1))


def read(name: str) -> tde.Graph:
    """A graph by its name."""
    folder = data_root() / "graphs"
    files = {"Amazon Photo": folder / "amazon_photo.npz", "com-dblp": folder / "com-dblp.tsv.gz"}
    return tde.Graph.from_file(files[name]) if name in files else grid(SIDE)


# Every graph with its budgets: the first is less than a spanning forest needs.
BUDGETS = {"Amazon Photo": (0.05, 0.2, 0.5), f"grid {SIDE} × {SIDE}": (0.4, 0.7, 0.9), "com-dblp": (0.2, 0.5, 0.8)}


def measured(graph: tde.Graph, score: str, ratio: float, device: str, cache: Path) -> dict[str, Any]:
    """One row: what was kept, the certificate, and how long scoring and judging took."""
    kept = cache / f"{graph.fingerprint[:16]}-{score}-{ratio}-{device}.json"
    if kept.exists():
        found: dict[str, Any] = json.loads(kept.read_text())
        return found
    how: dict[str, Any] = {"progress": False, "device": device}
    begun = time.perf_counter()
    scored = None if score == UNIFORM else solve(graph, score, {}, cache_dir=cache, **how)
    scoring = 0.0 if scored is None else max(scored.seconds, time.perf_counter() - begun)
    sparse = draw(graph, ratio, None if scored is None else scored.values, seed=0)
    begun = time.perf_counter()
    judged = certify(graph, sparse, **how)
    seconds = {"scoring": round(scoring, 1), "certificate": round(time.perf_counter() - begun, 1)}
    row = {**plain(judged), "seconds": seconds}
    cache.mkdir(parents=True, exist_ok=True)
    kept.write_text(json.dumps(row))
    return row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("graphs", nargs="*", default=list(BUDGETS), metavar="GRAPH")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--cache", type=Path, default=Path("sparsify-cache"))
    parser.add_argument("--out", default="results/benchmarks/sparsify.json")
    arguments = parser.parse_args()
    rows = []
    for name in arguments.graphs:
        graph = read(name)
        forest = (graph.num_nodes - graph.components.count) / graph.num_edges
        for ratio in BUDGETS[name]:
            for score in SCORES:
                found = measured(graph, score, ratio, arguments.device, arguments.cache)
                rows.append({"graph": name, "forest": forest, "keep_ratio": ratio, "score": score, **found})
                print(name, ratio, score, found["lambda_min"], found["lambda_max"], found["seconds"], flush=True)
    write(arguments.out, {"sparsify": rows}, arguments.device)


if __name__ == "__main__":
    main()
