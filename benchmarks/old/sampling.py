"""One training epoch's mask and normalised operator: ours against PyTorch Geometric's, in one run.

Ours: ``sample_edges`` and ``shift_operator`` on the fixed pattern. PyG's: ``dropout_edge(force_undirected=True)`` and
``gcn_norm``. The two take turns, and the ratio is that of their medians. ``reads_milliseconds`` are those of adding up
degrees and of bringing numbers to the edges and entries alone, which any operator of the whole pattern needs.

    python benchmarks/old/sampling.py [--device cuda] [--out FILE]
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import torch
from report import data_root, write
from torch_geometric.nn.conv.gcn_conv import gcn_norm
from torch_geometric.utils import dropout_edge

import tadropedge._old as tde
from tadropedge._old.data.planetoid import citation_graph

KEEP = 0.7


def graphs(root: Path) -> Iterator[tuple[str, tde.Graph, int]]:
    """Name, graph and number of repetitions."""
    yield "cora", citation_graph("cora", root), 400
    yield "pubmed", citation_graph("pubmed", root), 200
    yield "com-dblp", tde.Graph.from_file(root / "graphs" / "com-dblp.tsv.gz"), 40


def medians(calls: list[Callable[[int], object]], repeat: int, device: str) -> list[float]:
    """Median seconds of each call; the calls take turns, so noise affects all of them."""
    seconds: list[list[float]] = [[] for _ in calls]
    for epoch in range(repeat + 5):
        for place, call in enumerate(calls):
            if device == "cuda":
                torch.cuda.synchronize()
            start = time.perf_counter()
            call(epoch)
            if device == "cuda":
                torch.cuda.synchronize()
            if epoch >= 5:  # the first rounds warm up
                seconds[place].append(time.perf_counter() - start)
    return [statistics.median(times) for times in seconds]


def compare(name: str, graph: tde.Graph, repeat: int, device: str) -> dict[str, object]:
    graph = graph.to(device)
    edge_index = torch.cat((graph.pairs, graph.pairs.flip(0)), dim=1)
    prob = torch.full((graph.num_edges,), KEEP, dtype=torch.float64, device=device)

    def ours(epoch: int) -> tde.ShiftOperator:
        return tde.shift_operator(graph, tde.sample_edges(prob, seed=0, epoch=epoch))

    def pyg(_: int) -> object:
        kept, _mask = dropout_edge(edge_index, p=1 - KEEP, force_undirected=True)
        return gcn_norm(kept, None, graph.num_nodes)

    pattern = graph.pattern
    low, high = pattern.pairs
    kept, nodes = prob.float(), torch.ones(graph.num_nodes, device=device)
    both = torch.cat((kept, nodes))

    def reads(_: int) -> object:
        degrees = nodes.clone().scatter_add_(0, low, kept).scatter_add_(0, high, kept)
        return degrees.index_select(0, low), degrees.index_select(0, high), both.index_select(0, pattern.pair_source)

    mine, theirs, least = medians([ours, pyg, reads], repeat, device)
    return {
        "graph": name,
        "device": device,
        "edges": graph.num_edges,
        "milliseconds": round(1e3 * mine, 3),
        "pyg_milliseconds": round(1e3 * theirs, 3),
        "reads_milliseconds": round(1e3 * least, 3),
        "times_faster": round(theirs / mine, 2),
        "repetitions": repeat,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--data-root", type=Path, default=data_root())
    parser.add_argument("--out", help="file for the numbers (default results/benchmarks/sampling-DEVICE.json)")
    options = parser.parse_args()
    rows = []
    for name, graph, repeat in graphs(options.data_root):
        rows.append(compare(name, graph, repeat, options.device))
        print(
            "{graph:10s} {device}  ours {milliseconds:8.3f} ms   PyG {pyg_milliseconds:8.3f} ms   reads "
            "alone {reads_milliseconds:7.3f} ms   {times_faster:5.2f} times faster".format(**rows[-1]),
            flush=True,
        )
    write(options.out or f"results/benchmarks/sampling-{options.device}.json", {"sampling": rows}, options.device)


if __name__ == "__main__":
    main()
