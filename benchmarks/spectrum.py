"""The lowest eigenvectors of a graph and effective resistance: seconds and peak memory, each in a process of its own.

* ``spectrum``: aggregate resistance against scores from SciPy's eigenvectors at the best settings that are known to us:
  a looser tolerance and a larger basis for Lanczos, a symmetric factorisation for shift-invert, plain aggregation of
  pyamg as the preconditioner of LOBPCG. ``one_minus_Spearman``: of a peer's scores and ours. A peer has 90 s.
* ``spectrum-1e6``, ``-1e7``, ``-1e8``: ours alone, effective resistance to a standard error of 30 %, and two scores in
  one pass, on a graph of so many edges with power-law degrees in seven blocks. The two larger ones are measured only by
  ``--only``.
"""

from __future__ import annotations

import importlib
import sys
from argparse import Namespace
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import laplacian as scipy_laplacian
from scipy.sparse.linalg import LinearOperator, eigsh, lobpcg, splu
from scipy.stats import spearmanr

import tadropedge as tde
from benchmarks.frame import Row, alone, installed, peak_mb, reset_peak, run, timed
from benchmarks.graphs import graph_of, largest_component, power_law

LAPLACIANS = ("combinatorial", "normalized")
QUANTITIES = (*LAPLACIANS, "effective", "jaccard", "pagerank")
SHIFT = -1e-5  # L itself is singular, so a shift-invert needs a small one
LIMIT, LONG = 90, 7_200  # seconds


def lanczos(L: Any, start: np.ndarray) -> np.ndarray:
    """SciPy's Lanczos for the smallest eigenvalues, with a large basis, as accurate as a score needs."""
    return eigsh(L, k=start.shape[1], which="SA", tol=1e-6, ncv=40)[1]


def shift_invert(L: Any, start: np.ndarray) -> np.ndarray:
    """SciPy's shift-invert mode with a factorisation that knows that L is symmetric."""
    shifted = (L - SHIFT * sp.identity(L.shape[0])).tocsc()
    factor = splu(shifted, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options={"SymmetricMode": True})
    inverse = LinearOperator(L.shape, matvec=factor.solve, dtype=np.float64)
    return eigsh(L, k=start.shape[1], sigma=SHIFT, which="LM", OPinv=inverse)[1]


def multigrid(L: Any, start: np.ndarray) -> np.ndarray:
    """LOBPCG with plain aggregation, whose coarse matrices stay sparse where nodes have many neighbours."""
    levels = sys.modules["pyamg"].smoothed_aggregation_solver((L + 1e-5 * sp.identity(L.shape[0])).tocsr(), smooth=None)
    return lobpcg(L, start, M=levels.aspreconditioner(), tol=1e-5, largest=False)[1]


PEERS: dict[str, Callable[..., np.ndarray]] = {
    "eigsh SA, tol 1e-6, ncv 40": lanczos,
    "eigsh sigma, symmetric": shift_invert,
    "LOBPCG, pyamg": multigrid,
}
GRAPHS: dict[str, tuple[int, tuple[str, ...]]] = {
    "pubmed": (3, tuple(PEERS)),
    "email-enron": (7, tuple(PEERS)),
    "com-dblp": (7, ("LOBPCG, pyamg",)),  # the other two take more than 90 s
}


def against(options: Namespace) -> Iterator[Row]:
    """Ours and its peers on graphs of one component."""
    there = installed("pyamg", "LOBPCG with pyamg")
    for name, (q, peers) in {"tiny": (5, tuple(PEERS))}.items() if options.quick else GRAPHS.items():
        for laplacian in LAPLACIANS[: 1 if name in ("tiny", "com-dblp") else 2]:
            given = {"graph": name, "quantity": laplacian, "q": q}
            theirs = [peer for peer in peers if there or "pyamg" not in peer]
            for method in ("ours", *(theirs if options.device == "cpu" else ())):  # they know no GPU
                yield given | {"method": method} | alone(job, LIMIT, **given, method=method, device=options.device)


def large(size: str, options: Namespace) -> Iterator[Row]:
    """Ours on a large graph."""
    for quantity in QUANTITIES[: 3 if options.quick else None]:
        given = {"graph": "2e4" if options.quick else size, "quantity": quantity}
        yield given | alone(job, LONG, **given, method="ours", q=7, device=options.device)


def job(graph: str, quantity: str, method: str, q: int, device: str) -> Row:
    """One method: seconds until the scores are there, without reading the graph, and how they rank beside ours."""
    made = power_law(int(float(graph))) if graph[0].isdigit() else largest_component(graph_of(graph))
    settings = {"q": q, "laplacian": quantity} if quantity in LAPLACIANS else {}
    settings |= {"relative_error": 0.3} if quantity == "effective" else {}
    score = "aggregate" if quantity in LAPLACIANS else quantity
    ours = partial(tde.edge_scores, made, score, device=device, **settings)
    if device == "cuda":  # wakes it
        tde.edge_scores(power_law(100_000), "aggregate", q=7, device=device)
    if "pyamg" in method:
        importlib.import_module("pyamg")  # not in its time
    reset_peak(device)
    row: Row = {"nodes": made.num_nodes, "edges": made.num_edges}
    if method == "ours":
        seconds = timed(ours, device)
        return row | {"seconds": seconds if seconds > 3 else min(seconds, timed(ours, device))}
    scores: list[np.ndarray] = []
    row["seconds"] = timed(lambda: scores.append(scores_of_peer(made, quantity == "normalized", PEERS[method], q)))
    row["peak_mb"] = peak_mb(device)
    return row | {"one_minus_Spearman": 1 - float(spearmanr(scores[0], ours().numpy()).statistic)}


def scores_of_peer(graph: tde.Graph, normalized: bool, peer: Callable[..., np.ndarray], q: int) -> np.ndarray:
    """The scores from a peer's eigenvectors, the first of which it is told."""
    A, (low, high) = graph.adjacency(), graph.pairs.numpy()
    start = np.random.default_rng(0).standard_normal((graph.num_nodes, q))
    start[:, 0] = np.sqrt(np.asarray(A.sum(axis=1)).ravel()) if normalized else 1.0
    vectors = peer(scipy_laplacian(A, normed=normalized).tocsr(), start)
    return ((vectors[low] - vectors[high]) ** 2).sum(axis=1)


SIZES = {f"spectrum-{size}": partial(large, size) for size in ("1e6", "1e7", "1e8")}
TABLES = {"spectrum": against, **SIZES}

if __name__ == "__main__":
    run(TABLES, slow=["spectrum-1e7", "spectrum-1e8"])
