"""The core against the old package, and the PyG module against PyG's ``dropout_edge``, in one run.

Both packages do the same work on the same graphs, and take turns: a ratio is that of two medians. The goal is at most
1.3 times the old package's time, and a module that is no slower than ``dropout_edge(force_undirected=True)``.

    python benchmarks/core.py [--graphs cora,pubmed,com-dblp] [--seconds 10] [--only scores] [--out FILE]
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import torch
from report import Row, graph_data, medians, table, write
from torch_geometric.data import Data
from torch_geometric.utils import dropout_edge

import tadropedge as new
import tadropedge._old as old
from tadropedge.pyg import DropEdge

GOAL = 1.3
SCORES = ("degree", "jaccard", "forman", "local-degree", "local-similarity", "pagerank")
COLUMNS = (16, 64)  # of the blocks that operators multiply
LARGE = 500_000  # edges from which on a score of all modes takes minutes
KEEP = 0.5
PROTOCOL = (
    "median seconds of calls that take turns in changing order, after a warm-up round, at least 3 rounds of each; "
    "ratio: new over old, or the module over PyG's dropout_edge(force_undirected=True)"
)

Pair = tuple[str, Callable[[], object], Callable[[], object]]


# -- what is measured: the same work by the new package and by the old one -------------------------------


def scores(data: Data) -> Iterator[Pair]:
    """Scores in one pass, those of features, and the spectral ones."""
    mine, other = both(data)
    asked: dict[str, Row] = {name: {} for name in SCORES}
    if data.x is not None:
        asked["cosine"] = {"features": data.x.double()}
    for name, given in asked.items():
        yield (
            name,
            lambda name=name, given=given: new.edge_scores(mine, name, **given),
            lambda name=name, given=given: old.edge_scores(other, name, **given),
        )


def spectrum(data: Data) -> Iterator[Pair]:
    """The two scores that are solved: the low modes, and effective resistance where it takes seconds."""
    mine, other = both(data)
    for laplacian in ("combinatorial", "normalized"):
        asked = {"q": 7, "laplacian": laplacian}
        yield (
            f"aggregate, {laplacian}",
            lambda asked=asked: new.edge_scores(mine, "aggregate", **asked),
            lambda asked=asked: old.edge_scores(other, "aggregate", **asked),
        )
    if mine.num_edges < LARGE:
        yield (
            "effective",
            lambda: new.edge_scores(mine, "effective", relative_error=0.3),
            lambda: old.edge_scores(other, "effective", relative_error=0.3),
        )


def sampling(data: Data) -> Iterator[Pair]:
    """From scores to masks."""
    mine, other = both(data)
    found = new.edge_scores(mine, "degree")
    for rule in ("cdf", "proportional", "cutoff"):
        share = {"keep_prob": KEEP} if rule == "cutoff" else {"keep_ratio": 0.75}
        yield (
            f"keep_probabilities, {rule}",
            lambda rule=rule, share=share: new.keep_probabilities(found, rule=rule, **share),
            lambda rule=rule, share=share: old.keep_probabilities(found, strategy=rule, **share),
        )
    prob = new.keep_probabilities(found, rule="proportional", keep_ratio=0.9)
    yield (
        "sample_edges",
        lambda: new.sample_edges(prob, seed=0, epoch=3),
        lambda: old.sample_edges(prob, seed=0, epoch=3),
    )
    yield (
        "sample_edges, exact",
        lambda: new.sample_edges(prob, seed=0, exact=True),
        lambda: old.sample_edges(prob, seed=0, exact=True),
    )
    yield (
        "sample_edges, connected",
        lambda: new.sample_edges(prob, seed=0, graph=mine, connected=True),
        lambda: old.sample_edges(prob, seed=0, connected=other),
    )
    yield (
        "sparsify",
        lambda: new.sparsify(mine, "degree", keep_ratio=KEEP, connected=False),
        lambda: old.sparsify(other, score="degree", keep_ratio=KEEP, certificate=False),
    )


def operators(data: Data) -> Iterator[Pair]:
    """Operators of masks, and their products."""
    mine, other = both(data)
    keep = new.sample_edges(torch.full((mine.num_edges,), KEEP), seed=0)
    for name in ("gcn", "random-walk", "normalized-laplacian"):
        yield (
            f"shift_operator, {name}",
            lambda name=name: new.shift_operator(mine, keep, normalization=name),
            lambda name=name: old.shift_operator(other, keep, normalization=name),
        )
    shift, before = new.shift_operator(mine, keep), old.shift_operator(other, keep)
    for width in COLUMNS:
        x = torch.randn(data.num_nodes, width)
        yield f"shift @ x, {width} columns", lambda x=x: shift @ x, lambda x=x: before @ x


def reading(data: Data) -> Iterator[Pair]:
    """From arcs, and from an edge list on disk, to a graph."""
    arcs, nodes = data.edge_index, data.num_nodes
    yield (
        "from_edge_index",
        lambda: new.Graph.from_edge_index(arcs, nodes),
        lambda: old.Graph.from_edge_index(arcs, nodes),
    )
    path = Path(tempfile.mkdtemp()) / "edges.tsv"
    np.savetxt(path, both(data)[0].pairs.numpy().T, fmt="%d", delimiter="\t")
    yield "from_file", lambda: new.Graph.from_file(path), lambda: old.Graph.from_file(path)


GROUPS = {"scores": scores, "spectrum": spectrum, "sampling": sampling, "operators": operators, "reading": reading}


def both(data: Data) -> tuple[new.Graph, old.Graph]:
    """The graph in both packages, with what each of them finds once per graph."""
    made = new.Graph.from_data(data), old.Graph.from_data(data)
    for graph in made:
        _ = graph.components, graph.pattern
    return made


def against_pyg(name: str, data: Data, seconds: float) -> list[Row]:
    """One call of the module on a graph that it knows, against ``dropout_edge``."""
    edge_index = data.edge_index
    drops = {method: DropEdge(method, keep_ratio=KEEP) for method in ("dropedge", "degree-proportional")}
    calls = {method: lambda drop=drop: drop(edge_index) for method, drop in drops.items()}
    calls["pyg"] = lambda: dropout_edge(edge_index, p=1 - KEEP, force_undirected=True)
    took = medians(calls, seconds)
    return [
        {"graph": name, "what": method, "new": took[method], "pyg": took["pyg"], "ratio": took[method] / took["pyg"]}
        for method in drops
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--graphs", default="cora,pubmed,com-dblp")
    parser.add_argument("--only", help=f"some of {', '.join(GROUPS)}, pyg")
    parser.add_argument("--seconds", type=float, default=10.0, help="for each pair of calls (default 10)")
    parser.add_argument("--out", type=Path, help="file for the numbers (default results/benchmarks/core.json)")
    options = parser.parse_args()
    chosen = (options.only or ",".join((*GROUPS, "pyg"))).split(",")
    rows: list[Row] = []
    module: list[Row] = []
    for name in options.graphs.split(","):
        data = graph_data(name)
        for group in (group for group in GROUPS if group in chosen):
            for what, mine, other in GROUPS[group](data):
                took = medians({"new": mine, "old": other}, options.seconds)
                rows.append({"graph": name, "what": what, **took, "ratio": took["new"] / took["old"]})
                print(table(rows[-1:]).splitlines()[-1], flush=True)
        if "pyg" in chosen:
            module += against_pyg(name, data, options.seconds)
    print("\n\n".join(table(found) for found in (rows, module) if found))
    slow = [f"{row['graph']}: {row['what']} ({row['ratio']:.2f})" for row in rows if row["ratio"] > GOAL]
    slow += [f"{row['graph']}: module, {row['what']} ({row['ratio']:.2f})" for row in module if row["ratio"] > 1]
    print(f"\nbeyond the goal: {'; '.join(slow) or 'none'}")
    write("core", PROTOCOL, {"against_old": rows, "against_pyg": module}, options.out)


if __name__ == "__main__":
    main()
