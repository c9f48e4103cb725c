"""Random edges, and scores that find them: each way of dropping at one budget, with fixed settings, on the same splits.

As many random edges as the graph has are added. A GCN of two layers of 64 units (learning rate 0.01, weight decay 5e-4,
dropout 0.5, 200 epochs) is trained with 20 labels per class: as it is, with features whose rows sum to one, and with a
self weight, through which a node sees its own features whatever its edges are. All but ``original`` keep half of the
edges. Nothing is tuned: what tuning makes of it is the business of ``experiments.map``.

python -m experiments.noise graphs/cora_ml.npz graphs/chameleon_filtered.npz --splits 50 --out results/noise.csv
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import torch

import tadropedge as tde
from experiments.frame import commit, machine, write_rows
from tadropedge.lab import Candidate, Experiment, TrainingSettings, Trial, decide, load, train

SCORES = ("inverse-effective", "inverse-degree", "jaccard", "common-neighbours", "cosine")
METHODS = ("dropedge", "original", *(f"{score}-proportional" for score in SCORES))
VARIANTS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {  # how data are read, and settings of the network
    "plain": ({}, {}),
    "row-normalised features": ({"normalize": True}, {}),
    "self weight": ({}, {"self_weight": True}),
}


def area(scores: torch.Tensor, noise: torch.Tensor) -> float:
    """The chance that a random edge has a lower score than one of the graph's own; ties count half.

    >>> area(torch.tensor([1.0, 2.0, 2.0, 3.0]), torch.tensor([True, True, False, False]))
    0.875
    """
    own = scores[~noise].sort().values
    below, above = (torch.searchsorted(own, scores[noise], right=right).double().mean() for right in (False, True))
    return 1 - float(below + above) / (2 * len(own))


def rows_of(name: str, splits: int, epochs: int, device: str, seed: int = 0) -> Iterator[dict[str, Any]]:
    """A row for each variant and way of dropping on one graph."""
    for variant, (reading, settings) in VARIANTS.items():
        own, data = (load(name, per_class=20, seed=seed, add_edges=share, **reading) for share in (0.0, 1.0))
        keys = [low * data.graph.num_nodes + high for low, high in (own.graph.pairs, data.graph.pairs)]
        noise = ~torch.isin(keys[1], keys[0])
        experiment = Experiment(data=data, settings=settings, training=TrainingSettings(epochs=epochs), device=device)
        found = {}
        for method in METHODS:
            candidate = Candidate.parse(method if method == "original" else f"{method}@0.5")
            trials = [Trial(candidate=candidate, seed=number, split=number) for number in range(splits)]
            found[method] = [outcome.test_score for outcome in train(experiment, trials)]
        verdicts = decide(found, [(method, METHODS[0]) for method in METHODS[1:]])
        for method, scores in found.items():
            dropping, against = tde.Dropping.parse(method), verdicts.get((method, METHODS[0]))
            edges = dropping.scores(data.graph, features=data.features)
            yield {
                "graph": name,
                "variant": variant,
                "method": method,
                "accuracy": sum(scores) / splits,
                "over_dropedge": against and against.difference,
                "low": against and against.low,
                "high": against and against.high,
                "area": None if dropping.score is None else area(-edges if dropping.inverse else edges, noise),
                **{"splits": splits, "epochs": epochs, "seed": seed, "commit": commit(), "machine": machine(device)},
            }


def main() -> None:
    """Measure and write a csv file."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("graphs", nargs="+", metavar="GRAPH", help="what tadropedge.lab.load takes")
    parser.add_argument("--splits", type=int, default=50)
    parser.add_argument("--epochs", type=int, default=200)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--out", type=Path, default=Path("results/noise.csv"))
    options = parser.parse_args()
    rows = []
    for name in options.graphs:
        for row in rows_of(name, options.splits, options.epochs, options.device):
            rows.append(row)
            write_rows(pd.DataFrame(rows), options.out)
            print("  ".join(f"{key} {value}" for key, value in list(row.items())[:7]), flush=True)


if __name__ == "__main__":
    main()
