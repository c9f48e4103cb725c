"""Random edges, and scores that find them: every method at one budget and with fixed settings, on the same splits.

As many random edges as the graph has are added to Amazon Photo, Cora-ML and Chameleon (``examples/noisy.py``). A
two-layer GCN of 64 hidden units (learning rate 0.01, weight decay 5e-4, dropout 0.5, 200 epochs) is trained with 20
labels per class: as it is, with features whose rows sum to one, and with a self weight, through which a node sees its
own features whatever its edges are. All methods but ``original`` keep the same share of the edges. Nothing is tuned:
what tuning makes of it is the business of ``tadropedge compare``.

    python benchmarks/old/noise.py [--device cuda] [--splits 50] [--out FILE]
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from report import ROOT, data_root, write

import tadropedge._old as tde
from tadropedge._old.data import Dataset, load_file
from tadropedge._old.method import Method
from tadropedge._old.training.config import Architecture, Trial
from tadropedge._old.training.laboratory import Laboratory

sys.path.insert(0, str(ROOT / "examples"))
from noisy import random_pairs

GRAPHS = ("amazon_photo", "cora_ml", "chameleon_filtered")
SCORES = ("inverse-effective", "inverse-degree", "jaccard", "common-neighbours", "cosine")
METHODS = ("original", "dropedge", *(f"{score}-proportional" for score in SCORES))
SHARE = 0.5  # of kept edges: as many as the graph had
LABELS = 20  # per class
# What differs: whether rows of features are divided by their sums, and whether there is a self weight.
VARIANTS = {"plain": (False, False), "row-normalised features": (True, False), "self weight": (False, True)}


def noisy(data: Dataset, seed: int) -> tuple[Dataset, torch.Tensor]:
    """The dataset with as many random edges as it has, and which edges ``[M]`` are random."""
    graph = data.graph
    added = torch.from_numpy(random_pairs(graph, graph.num_edges, seed))
    whole = tde.Graph.from_edge_index(torch.cat((graph.pairs, added), dim=1), graph.num_nodes)
    found = torch.zeros(whole.num_edges, dtype=torch.bool)
    found[whole.arc_pair[graph.num_edges :]] = True
    return replace(data, graph=whole), found


def area(scores: torch.Tensor, noise: torch.Tensor) -> float:
    """The chance that a random edge has a lower score than one of the graph; ties count half."""
    scores, noise = scores.cpu(), noise.cpu()
    ascending = scores[~noise].sort().values
    low, high = (torch.searchsorted(ascending, scores[noise], right=right) for right in (False, True))
    return 1 - float((low + high).double().mean()) / (2 * len(ascending))


def rows_of(name: str, root: Path, device: str, splits: int) -> Iterator[dict[str, Any]]:
    """One row per method and variant."""
    for variant, (normalize, self_weight) in VARIANTS.items():
        file = root / "graphs" / f"{name}.npz"
        loaded = load_file(file, split="random", per_class=LABELS, seed=0, normalize=normalize)
        data, noise = noisy(loaded, seed=0)
        mine = Laboratory(data.to(device), Architecture("gcn", 2, 64), epochs=200, choose_splits=1)
        scores: dict[str, np.ndarray[Any, Any]] = {}
        for method in METHODS:
            trials = [
                Trial.of(method, keep_ratio=SHARE, seed=number, split=number, self_weight=self_weight)
                for number in range(1, splits + 1)
            ]
            scores[method] = np.array([100 * outcome.kept["test_accuracy"] for outcome in mine.train(trials)])
        for method, found in scores.items():
            score, inverse = Method.of(method).score, Method.of(method).inverse
            gain = found - scores["dropedge"]
            yield {
                "graph": name,
                "variant": variant,
                "method": method,
                "accuracy": round(float(found.mean()), 2),
                "gain": round(float(gain.mean()), 2),
                "gain_error": round(float(1.96 * gain.std(ddof=1) / len(gain) ** 0.5), 2),
                "area": None if score is None else round(area(mine.scores(score), noise ^ inverse), 3),
                "splits": splits,
            }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("graphs", nargs="*", default=GRAPHS, metavar="GRAPH")
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--splits", type=int, default=50)
    parser.add_argument("--data-root", type=Path, default=data_root())
    parser.add_argument("--out", default="results/benchmarks/noise.json")
    options = parser.parse_args()
    rows = []
    for name in options.graphs:
        for row in rows_of(name, options.data_root, options.device, options.splits):
            rows.append(row)
            print("  ".join(f"{key} {value}" for key, value in row.items()), flush=True)
    write(options.out, {"noise": rows}, options.device)


if __name__ == "__main__":
    main()
