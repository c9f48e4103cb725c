"""One line of dropping makes PyG's own layers cheaper on dense graphs, and costs less than PyG's own dropping.

* ``pyg``: a step and a whole script of PyG's: two layers of 64 hidden units (GAT: 8 heads), Adam, cross-entropy on a
  tenth of the nodes. The one line is ``edge_index, _ = drop(data.edge_index)``; at keep ratio 1 it is missing.
  Evaluation sees the whole graph, so a script that evaluates after every epoch gains less than one that evaluates after
  ten. Scores are made in the first step of each script. ``..._times``: against keep ratio 1.
* ``pyg-module``: one call of the module on a graph that it knows, against ``dropout_edge(force_undirected=True)``.
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable, Iterator

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch_geometric.data import Data
from torch_geometric.nn import GATConv, GCNConv, SAGEConv
from torch_geometric.utils import dropout_edge

from benchmarks.frame import Row, beside, medians, now, run
from benchmarks.graphs import block_model, data_of
from tadropedge.pyg import DropEdge

GRAPHS = ("amazon_photo", "block model")
RATIOS = (1.0, 0.3, 0.1)
EVERY = (1, 10)
HIDDEN, HEADS = 64, 8
LAYERS: dict[str, Callable[[int, int], nn.Module]] = {
    "GAT": lambda width, out: GATConv(width, out // HEADS, heads=HEADS) if out == HIDDEN else GATConv(width, out),
    "SAGE": lambda width, out: SAGEConv(width, out, aggr="max"),
    "GCN": lambda width, out: GCNConv(width, out),
}
METHOD = "degree-proportional"
KNOWN = ("cora", "pubmed", "com-dblp")
MODULES = ("dropedge", "degree-proportional")


class Network(nn.Module):
    """Two layers."""

    def __init__(self, layer: str, features: int, classes: int) -> None:
        super().__init__()
        self.first, self.second = LAYERS[layer](features, HIDDEN), LAYERS[layer](HIDDEN, classes)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        """Logits ``[N, C]``."""
        hidden = functional.dropout(self.first(x, edge_index).relu(), training=self.training)
        return self.second(hidden, edge_index)


class Script:
    """A training script of PyG; ``keep_ratio`` 1 has no line of ours."""

    def __init__(self, layer: str, data: Data, keep_ratio: float) -> None:
        torch.manual_seed(0)
        self.data, self.device = data, data.edge_index.device.type
        self.model = Network(layer, data.num_features, int(data.y.max()) + 1).to(self.device)
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=0.01)
        self.drop = DropEdge(METHOD, keep_ratio=keep_ratio) if keep_ratio < 1 else None
        self.train_mask = (torch.rand(data.num_nodes) < 0.1).to(self.device)

    def step(self) -> None:
        """One epoch."""
        self.model.train()
        edge_index = self.data.edge_index
        if self.drop is not None:
            edge_index, _ = self.drop(self.data.edge_index)
        self.optimizer.zero_grad()
        out = self.model(self.data.x, edge_index)
        functional.cross_entropy(out[self.train_mask], self.data.y[self.train_mask]).backward()
        self.optimizer.step()

    @torch.no_grad()
    def accuracy(self) -> float:
        """On the nodes that are not trained on, with the whole graph."""
        self.model.eval()
        right = self.model(self.data.x, self.data.edge_index).argmax(dim=1) == self.data.y
        return float(right[~self.train_mask].float().mean())

    def run(self, epochs: int, every: int) -> tuple[float, float]:
        """Seconds of the whole script, and its last accuracy."""
        accuracy, start = 0.0, now(self.device)
        for epoch in range(1, epochs + 1):
            self.step()
            if epoch % every == 0:
                accuracy = self.accuracy()
        return now(self.device) - start, accuracy


def scripts(options: Namespace) -> Iterator[Row]:
    """A step and a script of each layer at every keep ratio."""
    epochs, seconds = (10, 0.2) if options.quick else (10, 4.0)
    for name in ("tiny",) if options.quick else GRAPHS:
        data = (block_model() if name == "block model" else data_of(name)).to(options.device)
        for layer in LAYERS:
            made = {str(ratio): Script(layer, data, ratio).step for ratio in RATIOS}
            steps, whole = medians(made, seconds, options.device), None
            for ratio in RATIOS:
                found: Row = {"step_s": steps[str(ratio)]}
                for every in EVERY:
                    found[f"script_{every}_s"], accuracy = Script(layer, data, ratio).run(epochs, every)
                whole = whole or found
                times = {f"{what.removesuffix('_s')}_times": whole[what] / found[what] for what in found}
                head = {"graph": name, "arcs": data.num_edges, "layer": layer, "keep_ratio": ratio}
                yield {**head, **found, **times, "accuracy": accuracy}


def module(options: Namespace) -> Iterator[Row]:
    """The module, which knows the graph, against ``dropout_edge``."""
    for name in ("tiny",) if options.quick else KNOWN:
        edge_index = data_of(name).edge_index.to(options.device)
        for method in MODULES:
            drop = DropEdge(method, keep_ratio=0.5)
            ways = {"dropout_edge": lambda edges=edge_index: dropout_edge(edges, p=0.5, force_undirected=True)}
            ours = lambda drop=drop, edges=edge_index: drop(edges)  # noqa: E731
            row: Row = {"graph": name, "arcs": edge_index.shape[1], "method": method}
            yield row | beside(ours, ways, 0.1 if options.quick else 2, options.device)


TABLES = {"pyg": scripts, "pyg-module": module}

if __name__ == "__main__":
    run(TABLES)
