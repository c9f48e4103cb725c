"""Edge scores and sparsifiers: seconds, memory and accuracy.

* ``scores``: every score in one pass over com-dblp, against networkit where it is installed (on one thread and on all;
  its edges sorted and indexed beforehand) and against SciPy's ``(A @ A).multiply(A)`` for common neighbours;
* ``scores-1e6``, ``scores-1e7``: each score of a random graph of so many edges with power-law degrees, in a process of
  its own, with its peak memory; ``scores-1e7`` is measured only by ``--only``;
* ``scores-accuracy``: aggregate resistance of Cora and CiteSeer against a dense float64 solution;
* ``scores-sparsify``: sparsifiers by effective resistance, by degree and by chance: the range of xᵀL'x / xᵀLx.
"""

from __future__ import annotations

import os
import sys
import warnings
from argparse import Namespace
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import torch
from scipy.stats import spearmanr

import tadropedge as tde
from benchmarks.frame import ROOT, Row, alone, beside, installed, medians, reset_peak, run, timed
from benchmarks.graphs import graph_of, power_law

SCORES = (
    "degree", "jaccard", "common-neighbours", "forman", "cosine", "local-degree", "local-similarity", "pagerank",
    "eigenvector",
)  # fmt: skip
LARGE = tuple(score for score in SCORES if score not in ("common-neighbours", "forman"))  # which count triangles, too
FEATURES = 64
CLASSES = {"cora": 7, "citeseer": 6}
SPARSIFIED = {"amazon_photo": (0.2, 0.5), "grid": (0.7, 0.9)}  # graphs with their budgets
BY = (None, "degree", "effective")


def settings_of(score: str, nodes: int, device: str) -> dict[str, Any]:
    """Random features for the score that needs them."""
    random = torch.Generator().manual_seed(0)
    return {"features": torch.rand(nodes, FEATURES, generator=random).to(device)} if score == "cosine" else {}


def networkit_scores(graph: tde.Graph) -> dict[str, dict[str, Callable[[], object]]]:
    """Its scores by our names and the number of threads; none where it is not installed."""
    if not installed("networkit", "networkit's scores"):
        return {}
    import networkit as nk

    low, high = graph.pairs.cpu().numpy()
    theirs = nk.GraphFromCoo((np.ones(len(low)), (low, high)), n=graph.num_nodes, weighted=False, directed=False)
    theirs.sortEdges()
    theirs.indexEdges()
    most = os.cpu_count() or 1
    kinds = {"common-neighbours": "Triangle", "local-degree": "LocalDegree", "local-similarity": "LocalSimilarity"}

    def call(kind: str, threads: int) -> object:
        nk.setNumberOfThreads(threads)
        given = []
        if kind == "LocalSimilarity":
            given = [nk.sparsification.TriangleEdgeScore(theirs).run().scores()]
        name = f"{kind}EdgeScore" if kind == "Triangle" else f"{kind}Score"
        return getattr(nk.sparsification, name)(theirs, *given).run()

    return {
        name: {f"networkit, {threads} threads": partial(call, kind, threads) for threads in sorted({1, most})}
        for name, kind in kinds.items()
    }


def in_one_pass(options: Namespace) -> Iterator[Row]:
    """Every score, with its peers."""
    name, seconds = ("tiny", 0.1) if options.quick else ("com-dblp", 2.0)
    graph = graph_of(name).to(options.device)
    A = graph.to("cpu").adjacency()
    A.data[:] = 1
    peers = networkit_scores(graph)
    peers.setdefault("common-neighbours", {})["SciPy"] = lambda: (A @ A).multiply(A)
    for score in SCORES:
        given = settings_of(score, graph.num_nodes, options.device)
        ours = partial(tde.edge_scores, graph, score, **given)
        row: Row = {"graph": name, "edges": graph.num_edges, "score": score}
        if score in peers:
            yield row | beside(ours, peers[score], seconds, options.device, peer="peer")
        else:
            yield row | {"ours_ms": 1e3 * medians({"ours": ours}, seconds, options.device)["ours"]}


def job(score: str, edges: int, device: str) -> Row:
    """One score of a large graph; a GPU is warmed up by a small one."""
    if device == "cuda":
        small = power_law(10_000).to(device)
        tde.edge_scores(small, score, **settings_of(score, small.num_nodes, device))
    graph = power_law(edges).to(device)
    given = settings_of(score, graph.num_nodes, device)
    reset_peak(device)
    seconds = timed(lambda: tde.edge_scores(graph, score, **given), device)
    return {"nodes": graph.num_nodes, "edges": graph.num_edges, "ours_s": seconds}


def large(edges: int, options: Namespace) -> Iterator[Row]:
    """Each score alone."""
    for score in ("degree", "jaccard") if options.quick else LARGE:
        drawn = 10_000 if options.quick else edges
        yield {"score": score, **alone(job, score=score, edges=drawn, device=options.device)}


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
            error, rank = float(np.abs(found - reference).max()), float(spearmanr(found, reference).statistic)
            row: Row = {"graph": name, "laplacian": laplacian, "q": q, "largest_error": error}
            yield row | {"Spearman": f"{rank:.6f}", "share_of_zeros": float((found == 0).mean())}


def sparsified(options: Namespace) -> Iterator[Row]:
    """What sparsifiers keep of the Laplacian."""
    for name, budgets in {"grid": (0.7,)}.items() if options.quick else SPARSIFIED.items():
        graph = grid(20 if options.quick else 300) if name == "grid" else graph_of(name)
        for ratio in budgets:
            for score in BY:
                kept: list[tde.Graph] = []
                call = partial(tde.sparsify, graph, score, keep_ratio=ratio, device=options.device)
                seconds = timed(lambda call=call, kept=kept: kept.append(call()[0]), options.device)
                found = tde.certify(graph, kept[0])
                row: Row = {"graph": name, "edges": graph.num_edges, "keep_ratio": ratio, "score": score or "chance"}
                row |= {"lambda_min": found.lambda_min, "lambda_max": found.lambda_max, "epsilon": found.epsilon}
                yield row | {"ours_s": seconds}


def grid(side: int) -> tde.Graph:
    """A square grid."""
    node = np.arange(side * side).reshape(side, side)
    across, down = (np.stack((a.ravel(), b.ravel())) for a, b in ((node[:, :-1], node[:, 1:]), (node[:-1], node[1:])))
    return tde.Graph.from_edge_index(np.concatenate((across, down), axis=1))


SIZES = {f"scores-{size}": partial(large, int(float(size))) for size in ("1e6", "1e7")}
TABLES = {"scores": in_one_pass, **SIZES, "scores-accuracy": accuracy, "scores-sparsify": sparsified}

if __name__ == "__main__":
    run(TABLES, slow=["scores-1e7"])
