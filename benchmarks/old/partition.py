"""What a partition of a graph costs: METIS and our own multilevel scheme beside a random one.

``edges`` are those between processes, ``boundary`` the rows that all processes together fetch in every product, and
``load`` the work of the busiest process over the mean.

    python benchmarks/old/partition.py [--out FILE] [--quick]
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from report import data_root, write

from tadropedge._old import Graph
from tadropedge._old.data import load_dataset
from tadropedge._old.distributed.partition import cut_of, partition

WAYS = ("random", "multilevel", "metis")
PARTS = (2, 4, 8)
FILES = {
    "coauthor-cs": "coauthor_cs.npz",
    "email-enron": "email-enron.txt.gz",
    "com-dblp": "com-dblp.tsv.gz",
}


def graphs(quick: bool) -> Iterator[tuple[str, Graph]]:
    """The graphs by name."""
    yield "cora", load_dataset("cora", data_root()).graph
    if quick:
        return
    yield "pubmed", load_dataset("pubmed", data_root()).graph
    for name, file in FILES.items():
        yield name, Graph.from_file(data_root() / "graphs" / file)


def measured(name: str, graph: Graph, parts: int) -> Iterator[dict[str, Any]]:
    """One row per way, each with its cut and its boundary as shares of the random ones."""
    chance = cut_of(graph, partition(graph, parts, "random"))
    for way in WAYS:
        start = time.perf_counter()
        owner = partition(graph, parts, way)
        seconds = time.perf_counter() - start
        cut = cut_of(graph, owner)
        yield {
            "graph": name,
            "nodes": graph.num_nodes,
            "pairs": graph.num_edges,
            "processes": parts,
            "partition": way,
            **asdict(cut),
            "edges_to_random": round(cut.edges / max(1, chance.edges), 3),
            "boundary_to_random": round(cut.boundary / max(1, chance.boundary), 3),
            "seconds": round(seconds, 3),
        }


def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, help="default results/benchmarks/partition.json")
    parser.add_argument("--quick", action="store_true")
    told = parser.parse_args()
    rows = []
    for name, graph in graphs(told.quick):
        for parts in PARTS[:1] if told.quick else PARTS:
            for row in measured(name, graph, parts):
                print(row, flush=True)
                rows.append(row)
    if told.out is not None or not told.quick:
        write(told.out or "results/benchmarks/partition.json", {"partitions": rows})


if __name__ == "__main__":
    main()
