"""Masks that keep components whole, and masks of an exact size: their time beside plain coins and SciPy's forest.

One mask per call. SciPy's ``minimum_spanning_tree`` (on the CPU, of the same priorities) finds the forest alone; our
time for ``connected`` includes it, the coins and the mask. The largest graph has 10⁷ random edges on 10⁶ nodes.
``fixed``, on a GPU, is what a CUDA graph records: rounds of fixed shapes.

    python benchmarks/old/forests.py [--device cuda] [--repeat 5] [--out FILE]
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

import torch
from report import data_root, write
from sampling import medians
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import minimum_spanning_tree

import tadropedge._old as tde
from tadropedge._old.data.planetoid import citation_graph
from tadropedge._old.forest import ForestPlan
from tadropedge._old.sampling import FOREST, draw, order_of, pair_words


def graphs(root: Path) -> Iterator[tuple[str, tde.Graph]]:
    yield "cora", citation_graph("cora", root)
    yield "com-dblp", tde.Graph.from_file(root / "graphs" / "com-dblp.tsv.gz")
    arcs = torch.randint(0, 10**6, (2, 10**7), generator=torch.Generator().manual_seed(0))
    yield "random", tde.Graph.from_edge_index(arcs, 10**6)


def measure(name: str, graph: tde.Graph, repeat: int, device: str) -> dict[str, object]:
    graph = graph.to(device)
    plan, words = ForestPlan.of(graph), pair_words(graph.num_edges, graph.device)
    prob = torch.linspace(0.5, 1, graph.num_edges, dtype=torch.float64, device=device)
    seed = torch.tensor(0, device=device)
    order = order_of(words, seed, seed, prob, FOREST).cpu().numpy() + 1e-12  # SciPy takes a weight of 0 for no edge
    low, high = graph.pairs.cpu().numpy()
    rows = {
        "plain": {},
        "connected": {"forest": plan},
        "exact": {"exact": True},
        "both": {"forest": plan, "exact": True},
    }
    if device == "cuda":
        rows["fixed"] = {"forest": plan, "fixed": True}
    calls = [
        lambda epoch, options=options: draw(words, seed, torch.tensor(epoch, device=device), prob, **options)
        for options in rows.values()
    ]
    shape = (graph.num_nodes, graph.num_nodes)
    calls.append(lambda _: minimum_spanning_tree(csr_matrix((order, (low, high)), shape)))
    seconds = dict(zip([*rows, "scipy"], medians(calls, repeat, device), strict=True))
    milliseconds = {f"{way}_milliseconds": round(1e3 * each, 3) for way, each in seconds.items()}
    return {"graph": name, "device": device, "nodes": graph.num_nodes, "edges": graph.num_edges, **milliseconds}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--data-root", type=Path, default=data_root())
    parser.add_argument("--out", help="file for the numbers (default results/benchmarks/forests-DEVICE.json)")
    options = parser.parse_args()
    rows = []
    for name, graph in graphs(options.data_root):
        rows.append(measure(name, graph, options.repeat, options.device))
        print("  ".join(f"{key.removesuffix('_milliseconds')} {value}" for key, value in rows[-1].items()), flush=True)
    write(options.out or f"results/benchmarks/forests-{options.device}.json", {"forests": rows}, options.device)


if __name__ == "__main__":
    main()
