"""A training step on a mini-batch of sampled neighbours: ours against PyTorch Geometric's, in one run.

Both: GCN or GraphSAGE of two layers and 128 units, 128 features, 1,024 seeds, fan-out 15,10, edges kept with
probability 0.7, one step of Adam. Ours samples among the edges kept in the epoch and normalises by the degrees of the
thinned graph. PyG: ``NeighborLoader``, ``dropout_edge``, ``GCNConv`` or ``SAGEConv`` on the arcs that each layer needs
(``trim_to_layer``), as arcs and as CSR matrices, of which the faster counts.

``NeighborLoader`` needs pyg-lib or torch-sparse. Where neither is here, PyG is handed batches of the same sizes, and
sampling is part of our time only: ``pyg_samples`` is false, and ``pyg_sampling_milliseconds`` is empty. The calls take
turns, and ratios are those of their medians.

    python benchmarks/old/mini_batches.py [--device cuda] [--workers 0] [--out FILE]
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Iterator
from functools import partial
from itertools import cycle
from typing import Any

import torch
import torch_geometric.typing as compiled
from report import write
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.loader import NeighborLoader
from torch_geometric.nn import GCNConv, SAGEConv
from torch_geometric.utils import dropout_edge, to_torch_csr_tensor, to_undirected, trim_to_layer

import tadropedge._old as tde
from tadropedge._old.neighbours.plan import MiniBatches
from tadropedge._old.training.batch import Course
from tadropedge._old.training.config import Architecture, Trial
from tadropedge._old.training.mini_batches import SampledTraining
from tadropedge._old.training.task import Task

KEEP, FEATURES, HIDDEN, CLASSES = 0.7, 128, 128, 16
SEEDS, FANOUT = 1_024, (15, 10)
SIZES = {"mean degree 20": (200_000, 2_000_000), "mean degree 100": (100_000, 5_000_000)}


def power_law(nodes: int, edges: int) -> tde.Graph:
    """A random graph whose expected degrees fall as a power of their rank."""
    generator = torch.Generator().manual_seed(0)
    weight = torch.arange(1, nodes + 1, dtype=torch.float64) ** -0.4
    ends = torch.multinomial(weight, 2 * edges, replacement=True, generator=generator).view(2, edges)
    return tde.Graph.from_edge_index(torch.randperm(nodes, generator=generator)[ends], num_nodes=nodes)


class Peer(nn.Module):
    """Two convolutions of PyG with dropout and ReLU between them, on arcs or on CSR matrices, each trimmed by layer."""

    def __init__(self, layer: type[nn.Module], csr: bool) -> None:
        super().__init__()
        self.layers, self.csr = nn.ModuleList([layer(FEATURES, HIDDEN), layer(HIDDEN, CLASSES)]), csr

    def forward(self, batch: Data) -> Tensor:
        """Logits of the seeds."""
        x, arcs = batch.x, batch.edge_index
        counts = (batch.get("num_sampled_nodes"), batch.get("num_sampled_edges"))
        for place, layer in enumerate(self.layers):
            if counts[0] is not None:
                x, arcs, _ = trim_to_layer(place, *counts, x, arcs)
            kept = dropout_edge(arcs, p=1 - KEEP)[0]
            x = layer(x, to_torch_csr_tensor(kept.flip(0), size=(len(x), len(x))) if self.csr else kept)
            x = nn.functional.dropout(x.relu(), 0.5) if place == 0 else x
        return x[: batch.batch_size]


def batches_of(training: SampledTraining, device: str) -> Iterator[Data]:
    """Batches as NeighborLoader's with pyg-lib, by our sampler, for machines without it."""
    task = training.task
    while True:
        for seeds in training.steps():
            found, _ = training.mini_batch(seeds)
            outer, inner = found.blocks
            fresh = outer.edge & (outer.row >= inner.num_rows)  # the neighbours of seeds were found before
            hops = [torch.stack((block.col, block.row))[:, own] for block, own in ((inner, inner.edge), (outer, fresh))]
            made = Data(x=task.features[found.nodes], edge_index=torch.cat(hops, dim=1), y=task.labels[found.nodes])
            made.batch_size = len(seeds)
            made.num_sampled_nodes = [len(seeds), inner.num_cols - len(seeds), outer.num_cols - inner.num_cols]
            made.num_sampled_edges = [hop.shape[1] for hop in hops]
            yield made.to(device)


def medians(calls: list[Callable[[], Any]], repeat: int, device: str) -> list[float]:
    """Median seconds of each call; the calls take turns, so noise affects all of them."""
    seconds: list[list[float]] = [[] for _ in calls]
    for turn in range(repeat + 3):
        for place, call in enumerate(calls):
            start = time.perf_counter()
            call()
            if device == "cuda":
                torch.cuda.synchronize()
            if turn >= 3:  # the first turns warm up
                seconds[place].append(time.perf_counter() - start)
    return [statistics.median(times) for times in seconds]


def compare(title: str, network: str, graph: tde.Graph, options: argparse.Namespace) -> dict[str, object]:
    device, generator = options.device, torch.Generator().manual_seed(1)
    nodes = graph.num_nodes
    x, y = torch.randn(nodes, FEATURES, generator=generator), torch.randint(CLASSES, (nodes,), generator=generator)
    train = torch.randperm(nodes, generator=generator)[: nodes // 2]
    task = Task(graph=graph.to(device), features=x.to(device), labels=y.to(device), num_classes=CLASSES,
                splits=[(train, train[:1], train[:1])], scores={})  # fmt: skip
    given = (task, Architecture(network, 2, HIDDEN), Trial("dropedge", keep_prob=KEEP), Course(epochs=1))
    ours = SampledTraining(*given, plan=MiniBatches(size=SEEDS, fanout=FANOUT))
    steps = _cycle(ours)
    data = Data(x=x, y=y, edge_index=to_undirected(graph.pairs.cpu()))
    can_sample = compiled.WITH_PYG_LIB or compiled.WITH_TORCH_SPARSE
    if can_sample:
        more = {"num_workers": options.workers, "persistent_workers": options.workers > 0, "shuffle": True}
        loader = NeighborLoader(data, list(FANOUT), input_nodes=train, batch_size=SEEDS, **more)
        source: Iterator[Data] = (batch.to(device) for _ in iter(int, 1) for batch in loader)
    else:
        source = batches_of(SampledTraining(*given, plan=ours.plan), device)
    if not can_sample:
        source = cycle([next(source) for _ in range(4)])  # so that our sampler is not part of its time

    peers = [Peer({"gcn": GCNConv, "sage": SAGEConv}[network], csr).to(device) for csr in (False, True)]
    calls = [lambda: ours._step(next(steps)), lambda: ours.mini_batch(next(steps))]
    calls += [partial(learn, peer, torch.optim.Adam(peer.parameters(), lr=0.01), source) for peer in peers]
    calls += [lambda: next(source)] if can_sample else []
    mine, sampling, arcs, csr, *their_sampling = medians(calls, options.repeat, device)
    theirs = min(arcs, csr)
    return {
        "graph": title,
        "edges": graph.num_edges,
        "network": network,
        "device": device,
        "milliseconds": round(1e3 * mine, 1),
        "sampling_milliseconds": round(1e3 * sampling, 1),
        "pyg_milliseconds": round(1e3 * theirs, 1),
        "pyg_uses": "arcs" if arcs < csr else "csr",
        "pyg_sampling_milliseconds": round(1e3 * their_sampling[0], 1) if their_sampling else None,
        "pyg_samples": can_sample,
        "times_faster": round(theirs / mine, 2),
        "repetitions": options.repeat,
    }


def learn(peer: nn.Module, adam: torch.optim.Optimizer, source: Iterator[Data]) -> None:
    """One step of PyG's network."""
    batch = next(source)
    adam.zero_grad()
    nn.functional.cross_entropy(peer(batch), batch.y[: batch.batch_size]).backward()
    adam.step()


def _cycle(training: SampledTraining) -> Iterator[Tensor]:
    """The seeds of one step after the other, epoch after epoch."""
    while True:
        yield from (seeds for seeds in training.steps() if len(seeds) == SEEDS)
        training.epoch += 1


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--workers", type=int, default=0, help="processes of NeighborLoader")
    parser.add_argument("--repeat", type=int, default=20)
    parser.add_argument("--threads", type=int, help="of torch (default: its own choice)")
    parser.add_argument("--out", help="file for the numbers (default results/benchmarks/mini-batches-DEVICE.json)")
    options = parser.parse_args()
    if options.threads is not None:
        torch.set_num_threads(options.threads)
    rows = []
    for title, sizes in SIZES.items():
        graph = power_law(*sizes)
        for network in ("gcn", "sage"):
            rows.append(compare(title, network, graph, options))
            print(rows[-1])
    write(
        options.out or f"results/benchmarks/mini-batches-{options.device}.json", {"mini_batches": rows}, options.device
    )


if __name__ == "__main__":
    main()
