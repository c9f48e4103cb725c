"""One call of ``TADropEdge`` against PyTorch Geometric's ``dropout_edge``, in one run.

Ours draws one coin per edge, so both directions share it: with given probabilities, by a rule, from a ``Data`` to a
``Data``, and by the function. PyG's is measured as it is, which treats directions apart, with ``force_undirected``, and
from a ``Data`` to a ``Data``. All take turns, and ratios are those of medians: ``times_faster`` is against plain
``dropout_edge``, the fastest of them. In its turn a call runs twice and the second run counts: the first would pay for
the caches that the call before it has filled.

    python benchmarks/old/pyg.py [--device cuda] [--out FILE]
"""

from __future__ import annotations

import argparse
import random
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import torch
from report import data_root, write
from sampling import KEEP, graphs
from torch_geometric.data import Data
from torch_geometric.utils import dropout_edge

import tadropedge._old as tde
from tadropedge._old.pyg import AddKeepProbability, AddScore, TADropEdge, ta_dropout_edge

RULE = {"score": "degree", "strategy": "proportional", "keep_ratio": KEEP}


def prepared(graph: tde.Graph, device: str) -> Data:
    """The graph as PyG's users have it, both directions, sorted by rows as its datasets are."""
    edge_index = torch.cat((graph.pairs, graph.pairs.flip(0)), dim=1)
    order = torch.argsort(edge_index[0] * graph.num_nodes + edge_index[1])
    plain = Data(edge_index=edge_index[:, order].contiguous(), num_nodes=graph.num_nodes)
    scored = AddScore(RULE["score"])(plain)
    return AddKeepProbability(RULE["strategy"], keep_ratio=KEEP)(scored).to(device)


def calls(data: Data, device: str) -> dict[str, Callable[[int], object]]:
    """What is measured, ours first."""
    edge_index, prob, drop = data.edge_index, data.edge_keep_prob, 1 - KEEP
    bare = Data(edge_index=edge_index, num_nodes=data.num_nodes)
    given, rule, whole = (made.to(device) for made in (TADropEdge(), TADropEdge(**RULE), TADropEdge(**RULE)))
    return {
        "given": lambda _: given(edge_index, prob),
        "rule": lambda _: rule(edge_index),
        "data": lambda _: whole(bare),
        "function": lambda epoch: ta_dropout_edge(edge_index, prob, epoch=epoch),
        "pyg": lambda _: dropout_edge(edge_index, p=drop),
        "pyg_undirected": lambda _: dropout_edge(edge_index, p=drop, force_undirected=True),
        "pyg_data": lambda _: bare.edge_subgraph(dropout_edge(edge_index, p=drop)[1]),
    }


def medians(made: dict[str, Callable[[int], object]], repeat: int, device: str) -> dict[str, float]:
    """Median seconds of each call; they take turns in changing order, so noise and neighbours affect all of them."""
    seconds: dict[str, list[float]] = {name: [] for name in made}
    order = random.Random(0)
    wait = torch.cuda.synchronize if device == "cuda" else lambda: None
    for epoch in range(repeat + 5):
        for name, call in order.sample(list(made.items()), len(made)):
            call(2 * epoch)
            wait()
            start = time.perf_counter()
            call(2 * epoch + 1)
            wait()
            if epoch >= 5:  # the first rounds warm up
                seconds[name].append(time.perf_counter() - start)
    return {name: statistics.median(times) for name, times in seconds.items()}


def compare(name: str, graph: tde.Graph, repeat: int, device: str) -> dict[str, object]:
    """Milliseconds of each call, and how many times faster are the slower of ours on arcs, and ours on a ``Data``."""
    seconds = medians(calls(prepared(graph, device), device), repeat, device)
    slowest = max(seconds["given"], seconds["rule"])
    return {
        "graph": name,
        "device": device,
        "edges": graph.num_edges,
        **{f"{call}_milliseconds": round(1e3 * time, 3) for call, time in seconds.items()},
        "times_faster": round(seconds["pyg"] / slowest, 2),
        "times_faster_undirected": round(seconds["pyg_undirected"] / slowest, 2),
        "times_faster_data": round(seconds["pyg_data"] / seconds["data"], 2),
        "repetitions": repeat,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--data-root", type=Path, default=data_root())
    parser.add_argument("--out", help="file for the numbers (default results/benchmarks/pyg-DEVICE.json)")
    options = parser.parse_args()
    rows = []
    for name, graph, repeat in graphs(options.data_root):
        rows.append(compare(name, graph, repeat, options.device))
        print(
            "{graph:10s} {device}  given {given_milliseconds:7.3f}  rule {rule_milliseconds:7.3f}  data "
            "{data_milliseconds:7.3f}  function {function_milliseconds:7.3f}   PyG {pyg_milliseconds:7.3f}, undirected "
            "{pyg_undirected_milliseconds:7.3f}, data {pyg_data_milliseconds:7.3f} ms   {times_faster:5.2f} times "
            "faster".format(**rows[-1]),
            flush=True,
        )
    write(options.out or f"results/benchmarks/pyg-{options.device}.json", {"pyg": rows}, options.device)


if __name__ == "__main__":
    main()
