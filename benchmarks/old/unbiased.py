"""How far thinned operators are from the whole one, on average and one by one: renormalised and unbiased.

For every normalisation and some rules at one budget, over many draws on Cora: the bias, ‖mean of S_t x − S x‖ / ‖S x‖,
and the spread, the root of the mean of ‖S_t x − mean‖² / ‖S x‖², for a random signal x of 16 columns. The bias of an
unbiased operator is what chance leaves, its spread over the root of the number of draws.

    python benchmarks/old/unbiased.py [--draws 2000] [--keep-ratio 0.5] [--out FILE]
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import torch
from report import data_root, write

import tadropedge._old as tde
from tadropedge._old.data.planetoid import citation_graph
from tadropedge._old.shift import NORMALIZATIONS

RULES = {"dropedge": (None, "uniform"), "degree-proportional": ("degree", "proportional")}
BATCH = 50  # operators at once
DOUBLE = torch.float64


def measured(graph: tde.Graph, normalization: str, prob: torch.Tensor, draws: int, unbiased: bool) -> dict[str, float]:
    """Bias and spread of one kind of operator."""
    x = torch.randn(graph.num_nodes, 16, dtype=DOUBLE, generator=torch.Generator().manual_seed(0))
    given: dict[str, Any] = {"normalization": normalization, "dtype": DOUBLE}
    whole = tde.shift_operator(graph, **given) @ x
    total, squares = torch.zeros_like(whole), 0.0
    for first in range(0, draws, BATCH):
        keep = tde.sample_edges(prob, seed=range(first, min(draws, first + BATCH)))
        images = tde.shift_operator(graph, keep, unbiased=prob if unbiased else None, **given) @ x
        total += images.sum(dim=0)
        squares += float((images**2).sum())
    mean = total / draws
    size = float((whole**2).sum())
    bias = float(((mean - whole) ** 2).sum() / size) ** 0.5
    return {"bias": round(bias, 4), "spread": round(((squares / draws - float((mean**2).sum())) / size) ** 0.5, 4)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=2000)
    parser.add_argument("--keep-ratio", type=float, default=0.5)
    parser.add_argument("--data-root", type=Path, default=data_root())
    parser.add_argument("--out", default="results/benchmarks/unbiased.json")
    options = parser.parse_args()
    graph, rows = citation_graph("cora", options.data_root), []
    for method, (score, rule) in RULES.items():
        scores = torch.ones(graph.num_edges) if score is None else tde.edge_scores(graph, score)
        prob = tde.keep_probabilities(scores, keep_ratio=options.keep_ratio, strategy=rule)
        for normalization in NORMALIZATIONS:
            row: dict[str, Any] = {"method": method, "normalization": normalization, "keep_ratio": options.keep_ratio}
            for name, unbiased in (("renormalised", False), ("unbiased", True)):
                draws = options.draws if unbiased or normalization != "spectral" else min(options.draws, 200)
                found = measured(graph, normalization, prob, draws, unbiased)
                row |= {f"{name}_{what}": value for what, value in found.items()} | {f"{name}_draws": draws}
            rows.append(row)
            print("  ".join(f"{key} {value}" for key, value in row.items()), flush=True)
    write(options.out, {"unbiased": rows})


if __name__ == "__main__":
    main()
