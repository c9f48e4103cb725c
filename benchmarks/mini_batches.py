"""A training step on a mini-batch of sampled neighbours, against PyTorch Geometric's in one run.

Both: GCN or GraphSAGE of two layers and 128 units, 128 features, 1,024 nodes per step, fan-out 15,10, edges kept with
probability 0.7, Adam. Ours draws a subgraph per epoch, samples among its edges and normalises by its degrees;
``ours_ms`` is an epoch without evaluation divided by its ten steps, all of that included. PyG: ``NeighborLoader``,
``dropout_edge``, ``GCNConv`` or ``SAGEConv`` on the arcs that each layer needs (``trim_to_layer``), as arcs or CSR
tensors, of which the faster counts.

``NeighborLoader`` needs pyg-lib. Without it PyG is handed batches that were sampled before, so that its time is without
sampling: ``pyg_samples`` is no.
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable, Iterator
from itertools import cycle

import torch
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.loader import NeighborLoader
from torch_geometric.nn import GCNConv, SAGEConv
from torch_geometric.utils import dropout_edge, to_torch_csr_tensor, trim_to_layer

import tadropedge as tde
from benchmarks.epoch import take_turns
from benchmarks.frame import Row, compared, installed, run
from benchmarks.graphs import arcs_of, dataset_of, power_law, random_graph
from tadropedge.lab import Experiment, MiniBatch, TrainingSettings

KEEP, FEATURES, HIDDEN, CLASSES = 0.7, 128, 128, 16
SEEDS, FANOUT, STEPS = 1_024, (15, 10), 10
LAYERS: dict[str, type[nn.Module]] = {"gcn": GCNConv, "sage": SAGEConv}
GRAPHS: dict[str, Callable[[], tde.Graph]] = {
    "power-law, degree 20": lambda: power_law(2_000_000),
    "random, degree 100": lambda: random_graph(100_000, 5_000_000),
}


class Peer(nn.Module):
    """Two convolutions of PyG with dropout and ReLU between them, on arcs or CSR tensors, each trimmed by layer."""

    def __init__(self, layer: type[nn.Module], csr: bool) -> None:
        super().__init__()
        self.layers, self.csr = nn.ModuleList([layer(FEATURES, HIDDEN), layer(HIDDEN, CLASSES)]), csr

    def forward(self, batch: Data) -> Tensor:
        x, arcs = batch.x, batch.edge_index
        for place, layer in enumerate(self.layers):
            x, arcs, _ = trim_to_layer(place, batch.num_sampled_nodes, batch.num_sampled_edges, x, arcs)
            kept = dropout_edge(arcs, p=1 - KEEP)[0]
            x = layer(x, to_torch_csr_tensor(kept.flip(0), size=(len(x), len(x))) if self.csr else kept)
            x = nn.functional.dropout(x.relu(), 0.5) if place == 0 else x
        return x[: batch.batch_size]


def sampled(data: Data, seeds: Tensor) -> Data:
    """A batch as ``NeighborLoader`` makes it: at most so many different neighbours of each node, hop by hop."""
    order = data.edge_index[1].argsort()
    start = torch.cat(
        (torch.zeros(1, dtype=torch.int64), data.edge_index[1].bincount(minlength=data.num_nodes).cumsum(0))
    )
    place = torch.full((data.num_nodes,), -1)
    place[seeds] = torch.arange(len(seeds))
    nodes, frontier, arcs, counts = seeds, seeds, [], [len(seeds)]
    for fanout in FANOUT:
        degree = start[frontier + 1] - start[frontier]
        drawn = (torch.rand(len(frontier), fanout) * degree[:, None]).long() + start[frontier][:, None]
        drawn = torch.where(degree[:, None] > fanout, drawn, start[frontier][:, None] + torch.arange(fanout))
        chosen = order[drawn[torch.arange(fanout) < degree[:, None]].unique()]
        source, target = data.edge_index[:, chosen]
        frontier = source[place[source] < 0].unique()
        place[frontier] = torch.arange(len(nodes), len(nodes) + len(frontier))
        nodes = torch.cat((nodes, frontier))
        arcs.append(torch.stack((place[source], place[target])))
        counts.append(len(frontier))
    batch = Data(x=data.x[nodes], edge_index=torch.cat(arcs, dim=1), y=data.y[nodes], batch_size=len(seeds))
    batch.num_sampled_nodes, batch.num_sampled_edges = counts, [hop.shape[1] for hop in arcs]
    return batch


def batches(data: Data, train: Tensor, size: int, device: str, loads: bool) -> Iterator[Data]:
    """PyG's batches without end: sampled for each step, or a few that were sampled before."""
    if not loads:
        return cycle([sampled(data, train[torch.randperm(len(train))[:size]]).to(device) for _ in range(4)])
    loader = NeighborLoader(data, list(FANOUT), input_nodes=train, batch_size=size, shuffle=True)
    return (batch.to(device) for _ in iter(int, 1) for batch in loader)


def step_of(peer: nn.Module, source: Iterator[Data]) -> Callable[[], object]:
    """One step of PyG's network."""
    adam = torch.optim.Adam(peer.parameters(), lr=0.01)

    def step() -> None:
        batch = next(source)
        adam.zero_grad()
        nn.functional.cross_entropy(peer(batch), batch.y[: batch.batch_size]).backward()
        adam.step()

    return step


def steps(options: Namespace) -> Iterator[Row]:
    """A step of each network on each graph."""
    loads = installed("pyg_lib", "sampling by NeighborLoader")
    size = 64 if options.quick else SEEDS
    for name, make in {"tiny": lambda: random_graph(2_000, 40_000)}.items() if options.quick else GRAPHS.items():
        torch.manual_seed(0)
        whole = dataset_of(make(), FEATURES, CLASSES, split=(STEPS * size, 500, 500))
        edge_index, train = arcs_of(whole.graph), whole.split(0).train
        data = Data(x=whole.features, y=whole.labels, edge_index=edge_index)
        for network in ("gcn", "sage") if name.startswith("power-law") else ("gcn",):
            layer = LAYERS[network]
            settings = TrainingSettings(epochs=12, mini_batch=MiniBatch(size=size, fanout=FANOUT))
            experiment = Experiment(
                data=whole, network=network, hidden=HIDDEN, training=settings, device=options.device
            )
            source = batches(data, train, size, options.device, loads)
            peers = {way: step_of(Peer(layer, way == "CSR").to(options.device), source) for way in ("arcs", "CSR")}
            found = take_turns(experiment, KEEP, peers, seconds=0.2 if options.quick else 5, turn=1)
            found["ours"] /= STEPS
            row: Row = {"graph": name, "edges": whole.graph.num_edges, "network": network}
            yield row | compared(found) | {"pyg_samples": "yes" if loads else "no"}


TABLES = {"mini_batches": steps}

if __name__ == "__main__":
    run(TABLES)
