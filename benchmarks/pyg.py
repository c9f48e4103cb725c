"""One line of dropping makes PyG's own layers cheaper on dense graphs: a step, and a script of ten epochs.

The script is PyG's own: two layers of 64 hidden units (GAT: 8 heads), Adam, cross-entropy on a tenth of the nodes. The
one line is ``edge_index, _ = drop(data.edge_index)``; at keep ratio 1 it is missing. Evaluation sees the whole graph,
so a script that evaluates after every epoch gains less than one that evaluates after ten. Scores are made in the first
step of each script. ``..._times``: against keep ratio 1.
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable, Iterator
from functools import partial

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch_geometric.data import Data
from torch_geometric.nn import GATConv, GCNConv, SAGEConv

from benchmarks.frame import Row, medians, run, timed
from benchmarks.graphs import data_of
from tadropedge.pyg import DropEdge

GRAPHS = ("amazon_photo", "dense")
RATIOS = (1.0, 0.3, 0.1)
EVERY = (1, 10)
HIDDEN, HEADS = 64, 8
LAYERS: dict[str, Callable[[int, int], nn.Module]] = {
    "GAT": lambda width, out: GATConv(width, out // HEADS, heads=HEADS) if out == HIDDEN else GATConv(width, out),
    "SAGE": lambda width, out: SAGEConv(width, out, aggr="max"),
    "GCN": lambda width, out: GCNConv(width, out),
}
METHOD = "degree-proportional"


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
    """A training script of PyG; at keep ratio 1 it has no line of ours."""

    def __init__(self, layer: str, data: Data, keep_ratio: float) -> None:
        torch.manual_seed(0)
        self.data, self.model = data, Network(layer, data.num_features, int(data.y.max()) + 1).to(data.x.device)
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=0.01)
        self.drop = DropEdge(METHOD, keep_ratio=keep_ratio) if keep_ratio < 1 else None
        self.train_mask = (torch.rand(data.num_nodes) < 0.1).to(data.x.device)

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
    def evaluate(self) -> float:
        """The accuracy on the nodes that are not trained on, with the whole graph."""
        self.model.eval()
        right = self.model(self.data.x, self.data.edge_index).argmax(dim=1) == self.data.y
        return float(right[~self.train_mask].float().mean())

    def run(self, every: int) -> None:
        """Ten epochs."""
        for epoch in range(1, 11):
            self.step()
            if epoch % every == 0:
                self.evaluate()


def scripts(options: Namespace) -> Iterator[Row]:
    """A step and a script of each layer at every keep ratio."""
    for name in ("tiny",) if options.quick else GRAPHS:
        data = data_of(name).to(options.device)
        for layer in LAYERS:
            made = {str(ratio): Script(layer, data, ratio).step for ratio in RATIOS}
            steps = medians(made, 0.2 if options.quick else 4, options.device)
            whole = None
            for ratio in RATIOS:
                found: Row = {"step_s": steps[str(ratio)]}
                for every in EVERY:
                    script = Script(layer, data, ratio)
                    found[f"script_{every}_s"] = timed(partial(script.run, every), options.device)
                whole = whole or found
                times = {f"{what.removesuffix('_s')}_times": whole[what] / found[what] for what in found}
                yield {"graph": name, "arcs": data.num_edges, "layer": layer, "keep_ratio": ratio, **found, **times}


TABLES = {"pyg": scripts}

if __name__ == "__main__":
    run(TABLES)
