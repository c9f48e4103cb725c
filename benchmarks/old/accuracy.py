"""Edge scores of Cora, CiteSeer and PubMed against a dense float64 eigen-decomposition.

PubMed's dense solution takes minutes and 7 GB, so this is not part of the tests; they check Cora and CiteSeer the
same way. Run: python benchmarks/old/accuracy.py [--out FILE]
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from pathlib import Path

import numpy as np
from report import data_root, write
from scipy.stats import spearmanr

import tadropedge._old as tde
from tadropedge._old.data.planetoid import citation_graph

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))
import dense

CLASSES = {"cora": 7, "citeseer": 6, "pubmed": 3}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", default="results/benchmarks/accuracy.json")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore", tde.RepeatedEigenvalueWarning)
    rows = []
    for name, q in CLASSES.items():
        graph = citation_graph(name, data_root())
        for laplacian in ("combinatorial", "normalized"):
            start = time.perf_counter()
            ours = tde.aggregate_resistance(graph, q, laplacian=laplacian).numpy()
            middle = time.perf_counter()
            reference = dense.aggregate_resistance(graph, q, laplacian)
            end = time.perf_counter()
            rows.append(
                {
                    "dataset": name,
                    "q": q,
                    "laplacian": laplacian,
                    "largest_error": float(np.abs(ours - reference).max()),
                    "spearman": float(spearmanr(ours, reference).statistic),
                    "ties_at_zero": float((ours == 0).mean()),
                    "seconds": round(middle - start, 3),
                    "dense_seconds": round(end - middle, 1),
                }
            )
            print(rows[-1], flush=True)
    write(arguments.out, {"accuracy": rows})


if __name__ == "__main__":
    main()
