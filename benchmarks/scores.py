"""Edge scores and sparsifiers: seconds, memory and accuracy.

* ``scores``: every score in one pass over com-dblp; common neighbours against networkit's triangles, where it is
  installed (its edges sorted and indexed beforehand), and SciPy's ``(A @ A).multiply(A)``;
* ``scores-accuracy``: aggregate resistance of Cora and CiteSeer against a dense float64 solution;
* ``scores-sparsify``: sparsifiers by effective resistance, by degree and by chance: the range of xᵀL'x / xᵀLx.
"""

from __future__ import annotations

import sys
import warnings
from argparse import Namespace
from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
import torch
from scipy.stats import spearmanr

import tadropedge as tde
from benchmarks.frame import ROOT, Row, beside, installed, medians, run, timed
from benchmarks.graphs import graph_of

SCORES = (
    "degree", "jaccard", "common-neighbours", "forman", "cosine", "local-degree", "local-similarity", "pagerank",
    "eigenvector",
)  # fmt: skip
CLASSES = {"cora": 7, "citeseer": 6}
SPARSIFIED = {"amazon_photo": (0.2, 0.5), "pubmed": (0.6, 0.8)}  # graphs with their budgets
BY = (None, "degree", "effective")


def triangles_of_networkit(graph: tde.Graph) -> dict[str, Callable[[], object]]:
    """Its triangles of each edge, on all threads; none where it is not installed."""
    if not installed("networkit", "networkit's triangles"):
        return {}
    import networkit as nk

    low, high = graph.pairs.cpu().numpy()
    theirs = nk.GraphFromCoo((np.ones(len(low)), (low, high)), n=graph.num_nodes, weighted=False, directed=False)
    theirs.sortEdges()
    theirs.indexEdges()
    return {"networkit": lambda: nk.sparsification.TriangleEdgeScore(theirs).run()}


def in_one_pass(options: Namespace) -> Iterator[Row]:
    """Every score, with its peers."""
    name, seconds = ("tiny", 0.1) if options.quick else ("com-dblp", 2.0)
    graph = graph_of(name).to(options.device)
    features = torch.rand(graph.num_nodes, 64, device=options.device)
    A = graph.to("cpu").adjacency()
    A.data[:] = 1
    triangles = {**triangles_of_networkit(graph), "SciPy": lambda: (A @ A).multiply(A)}
    for score in SCORES:
        ours = partial(tde.edge_scores, graph, score, **({"features": features} if score == "cosine" else {}))
        row: Row = {"graph": name, "edges": graph.num_edges, "score": score}
        if score == "common-neighbours":
            yield row | beside(ours, triangles, seconds, options.device, peer="peer")
        else:
            yield row | {"ours_ms": 1e3 * medians({"ours": ours}, seconds, options.device)["ours"]}


def accuracy(options: Namespace) -> Iterator[Row]:
    """Against a dense solution."""
    sys.path.insert(0, str(ROOT / "tests"))
    import dense

    warnings.simplefilter("ignore", tde.RepeatedEigenvalueWarning)
    for name, q in {"tiny": 5}.items() if options.quick else CLASSES.items():
        graph = graph_of(name)
        for laplacian in ("combinatorial", "normalized"):
            found = tde.edge_scores(graph, "aggregate", q=q, laplacian=laplacian, device=options.device).numpy()
            reference = dense.aggregate_resistance(graph, q, laplacian)
            error, rank = float(np.abs(found - reference).max()), 1 - float(spearmanr(found, reference).statistic)
            row: Row = {"graph": name, "laplacian": laplacian, "q": q, "largest_error": error}
            yield row | {"one_minus_Spearman": rank, "share_of_zeros": float((found == 0).mean())}


def sparsified(options: Namespace) -> Iterator[Row]:
    """What sparsifiers keep of the Laplacian."""
    for name, budgets in {"tiny": (0.5,)}.items() if options.quick else SPARSIFIED.items():
        graph = graph_of(name)
        for ratio in budgets:
            for score in BY:
                kept: list[tde.Graph] = []
                call = partial(tde.sparsify, graph, score, keep_ratio=ratio, device=options.device)
                seconds = timed(lambda call=call, kept=kept: kept.append(call()[0]), options.device)
                found = tde.certify(graph, kept[0])
                row: Row = {"graph": name, "edges": graph.num_edges, "keep_ratio": ratio, "score": score or "chance"}
                row |= {"lambda_min": found.lambda_min, "lambda_max": found.lambda_max, "epsilon": found.epsilon}
                yield row | {"ours_s": seconds}


TABLES = {"scores": in_one_pass, "scores-accuracy": accuracy, "scores-sparsify": sparsified}

if __name__ == "__main__":
    run(TABLES)
