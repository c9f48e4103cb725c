"""The time of a training step by the share of the edges it keeps: ours against PyTorch Geometric's, in one run.

DropEdge with a two-layer GCN of 128 hidden features on 128 dense features, without evaluations, on com-dblp and on
random graphs of 10⁷ edges: one of mean degree 200, and one of mean degree 1000, where nodes cost even less beside
edges. Ours is what ``tadropedge.training`` runs. PyTorch Geometric drops by ``dropout_edge(force_undirected=True)`` and
has two peers. One is ``GCNConv``, with an edge list or a CSR matrix, whichever is faster; an edge list whose messages
do not fit the memory is left out. The other has no layer of PyG's: its ``EdgeIndex``, in 32 bits and sorted once per
epoch, multiplied by hand.

The two take turns, a few epochs each, and numbers are medians. On a CPU both use huge pages: otherwise fresh memory for
signals of every node would cost more than a product with few edges.

    python benchmarks/old/keep_ratio.py [--device cuda] [--out FILE] [--quick]
"""

from __future__ import annotations

import os

os.environ.setdefault("THP_MEM_ALLOC_ENABLE", "1")  # torch reads it when it is imported

import argparse
import statistics
import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812
from peer import Gcn
from report import data_root, write
from torch import Tensor
from torch_geometric import EdgeIndex
from torch_geometric.nn.conv.gcn_conv import gcn_norm
from torch_geometric.utils import dropout_edge, to_torch_csr_tensor

from tadropedge._old import Graph
from tadropedge._old.data import Dataset
from tadropedge._old.data.dataset import Split
from tadropedge._old.memory import free_bytes
from tadropedge._old.training.batch import Batch, Course
from tadropedge._old.training.config import Architecture, Trial
from tadropedge._old.training.laboratory import make_task

RATIOS = (1.0, 0.5, 0.2, 0.1, 0.05)
FEATURES, HIDDEN, CLASSES = 128, 128, 16
EDGES = 10_000_000  # of the random graphs
NODES = (100_000, 20_000)
LAYERS, BY_HAND = ("edge list", "CSR"), "EdgeIndex"
COPIES = 4  # of the messages of a layer that the edge list holds at its peak
ROUNDS = 2


def random_graph(nodes: int, edges: int) -> Graph:
    """A uniformly random graph with about ``edges`` edges."""
    generator = torch.Generator().manual_seed(0)
    ends = torch.randint(nodes, (2, edges), generator=generator)
    return Graph.from_edge_index(ends[:, ends[0] != ends[1]], num_nodes=nodes)


def dataset_of(name: str, graph: Graph, device: str) -> Dataset:
    """Random features and labels; half of the nodes train."""
    generator = torch.Generator().manual_seed(1)
    nodes = graph.num_nodes
    order = torch.randperm(nodes, generator=generator)
    split = Split(order[: nodes // 2], order[nodes // 2 : -nodes // 4], order[-nodes // 4 :])
    labels = torch.randint(CLASSES, (nodes,), generator=generator)
    features = torch.randn(nodes, FEATURES, generator=generator)
    return Dataset(name, graph, features, labels, num_classes=CLASSES, level="node", split=split).to(device)


def our_seconds(dataset: Dataset, ratio: float, epochs: int) -> list[float]:
    """Seconds of each epoch of a training; the first ones warm up, and the last has an evaluation."""
    task = make_task(dataset, [dataset.split])
    whole = epochs + (5 if dataset.device.type == "cuda" else 2)  # two epochs warm up a recording
    course = Course(epochs=whole, evaluate_every=whole)
    trial = Trial("dropedge", keep_prob=ratio)
    batch = Batch(task, Architecture(layers=2, hidden=HIDDEN), [trial], [0], course)
    ends: list[float] = []
    batch.run(lambda _: ends.append(now(dataset.device)))
    return [end - begin for begin, end in pairwise(ends[:-1])][-epochs:]


def now(device: torch.device) -> float:
    """The time when all work so far is done."""
    if device.type == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter()


class Indexed(Gcn):
    """The layers of :class:`peer.Gcn`, multiplied by PyG's own index of edges and their weights."""

    def forward(self, x: Tensor, edges: Any) -> Tensor:
        """Logits ``[N, C]``."""
        index, weights = edges
        for place, layer in enumerate(self.convolutions):
            x = index.matmul(layer.lin(x), weights) + layer.bias
            if place < len(self.convolutions) - 1:
                x = F.dropout(x.relu(), self.dropout, self.training)
        return x


def pyg_step(dataset: Dataset, ratio: float, way: str) -> Callable[[], Tensor]:
    """One training step with PyTorch Geometric; it returns the loss."""
    torch.manual_seed(0)
    pairs, nodes = dataset.graph.pairs, dataset.graph.num_nodes
    edge_index = torch.cat((pairs, pairs.flip(0)), dim=1)
    train, labels = dataset.split.train, dataset.labels[dataset.split.train]
    kind = Indexed if way == "EdgeIndex" else Gcn
    model = kind(FEATURES, HIDDEN, CLASSES, 2, 0.5, normalize=way == "edge list").to(dataset.device)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=5e-4)

    def operator(kept: Tensor) -> Any:
        if way == "edge list":
            return kept
        places, values = gcn_norm(kept, None, nodes)
        if way == "CSR":
            return to_torch_csr_tensor(places, values, size=nodes)
        index = EdgeIndex(places.to(torch.int32), sparse_size=(nodes, nodes), is_undirected=True)
        index, order = index.sort_by("row")
        return index, values[order]

    def step() -> Tensor:
        optimizer.zero_grad()
        kept, _ = dropout_edge(edge_index, p=1 - ratio, force_undirected=True)
        loss = F.cross_entropy(model(dataset.features, operator(kept))[train], labels)
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step


def fits(dataset: Dataset, ratio: float, way: str) -> bool:
    """Whether the messages of a way fit the memory; a CPU that runs out of it would not say so."""
    entries = 2 * ratio * dataset.graph.num_edges + dataset.graph.num_nodes
    return way != "edge list" or 4 * COPIES * entries * HIDDEN < 0.6 * (free_bytes(dataset.device) or 0)


def pyg_seconds(step: Callable[[], object], epochs: int, device: torch.device) -> list[float]:
    """Seconds of each step."""
    ends = [now(device)]
    for _ in range(epochs):
        step()
        ends.append(now(device))
    return [end - begin for begin, end in pairwise(ends)]


def one_step_each(dataset: Dataset, ratio: float) -> dict[str, float]:
    """Seconds of a step in every way of PyG that fits the memory; on a GPU of the last of five."""
    found, tries = {}, 5 if dataset.device.type == "cuda" else 1
    for way in (*LAYERS, BY_HAND):
        if fits(dataset, ratio, way):
            try:
                found[way] = pyg_seconds(pyg_step(dataset, ratio, way), tries, dataset.device)[-1]
            except torch.OutOfMemoryError:
                torch.cuda.empty_cache()
    return found


def measured(dataset: Dataset, ratio: float, epochs: int) -> dict[str, Any]:
    """One row, without what compares it with other ratios."""
    ways = one_step_each(dataset, ratio)
    best = min((way for way in LAYERS if way in ways), key=lambda way: ways[way], default=None)
    peers = {way: pyg_step(dataset, ratio, way) for way in (best, BY_HAND) if way is not None and way in ways}
    seconds: dict[str | None, list[float]] = {"ours": [], **{way: [] for way in peers}}
    for _ in range(ROUNDS):
        seconds["ours"] += our_seconds(dataset, ratio, epochs)
        for way, step in peers.items():
            seconds[way] += pyg_seconds(step, epochs, dataset.device)
    middle = {way: 1e3 * statistics.median(found) for way, found in seconds.items()}
    graph, mine = dataset.graph, middle["ours"]
    return {
        "graph": dataset.name,
        "device": dataset.device.type,
        "nodes": graph.num_nodes,
        "edges": graph.num_edges,
        "mean_degree": round(2 * graph.num_edges / graph.num_nodes, 1),
        "keep_ratio": ratio,
        "milliseconds_an_epoch": round(mine, 3),
        "pyg_milliseconds": None if best is None else round(middle[best], 3),
        "pyg_way": best or "does not fit",
        "pyg_one_step": {way: round(1e3 * one, 3) for way, one in ways.items()},
        "times_faster": None if best is None else round(middle[best] / mine, 2),
        "by_hand_milliseconds": round(middle[BY_HAND], 3) if BY_HAND in middle else None,
        "times_faster_than_by_hand": round(middle[BY_HAND] / mine, 2) if BY_HAND in middle else None,
        "epochs_measured": ROUNDS * epochs,
    }


def measured_rows(device: str, root: Path, quick: bool) -> Iterator[dict[str, Any]]:
    """Every row of a device; ``quick`` tries all code at tiny size; its numbers mean nothing."""
    names = ["random"] if quick else ["com-dblp", *(f"random, degree {2 * EDGES // nodes}" for nodes in NODES)]
    for place, name in enumerate(names):
        if name == "com-dblp":
            graph = Graph.from_file(root / "graphs" / "com-dblp.tsv.gz")
        else:
            graph = random_graph(1000, 5000) if quick else random_graph(NODES[place - 1], EDGES)
        dataset = dataset_of(name, graph, device)
        whole = None
        for ratio in RATIOS:
            count = 50 if device == "cuda" else 2 if place else 4
            row = measured(dataset, ratio, 1 if quick else count)
            whole = whole or row["milliseconds_an_epoch"]
            yield row | {"times_faster_than_all": round(whole / row["milliseconds_an_epoch"], 2)}


def line(row: dict[str, Any]) -> str:
    """A row for the terminal."""
    text = (
        "{graph:19s} {device}  keeps {keep_ratio:4.2f}  ours {milliseconds_an_epoch:9.2f} ms, "
        "{times_faster_than_all:5.2f} times faster than all edges".format(**row)
    )
    if row["pyg_milliseconds"] is not None:
        text += "   GCNConv {pyg_milliseconds:9.2f} ms {times_faster:5.2f} × ({pyg_way})".format(**row)
    if row["by_hand_milliseconds"] is not None:
        text += "   by hand {by_hand_milliseconds:9.2f} ms {times_faster_than_by_hand:5.2f} ×".format(**row)
    return text


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--data-root", type=Path, default=data_root())
    parser.add_argument("--out", help="file for the numbers (default results/benchmarks/keep-ratio-DEVICE.json)")
    parser.add_argument("--quick", action="store_true", help="try all code at tiny size; writes only with --out")
    options = parser.parse_args()
    rows = []
    for row in measured_rows(options.device, options.data_root, options.quick):
        rows.append(row)
        print(line(row), flush=True)
    if options.out or not options.quick:
        write(
            options.out or f"results/benchmarks/keep-ratio-{options.device}.json", {"keep_ratio": rows}, options.device
        )


if __name__ == "__main__":
    main()
