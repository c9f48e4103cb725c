"""One line of dropping makes PyG's own layers cheaper on dense graphs: a step, and a whole script with its evaluations.

The script is PyG's own: two layers, Adam, cross-entropy on a tenth of the nodes. The one line is
``edge_index, _ = drop(data.edge_index)``; evaluation sees the whole graph, so a script that evaluates after every epoch
gains less than one that evaluates after ten.

    python benchmarks/pyg.py [--quick] [--epochs 50] [--method degree-proportional] [--out FILE]
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path

import torch
from report import Row, block_model, graph_data, medians, table, write
from torch import Tensor, nn
from torch.nn import functional
from torch_geometric.data import Data
from torch_geometric.nn import GATConv, GCNConv, SAGEConv

from tadropedge.pyg import DropEdge

GRAPHS = ("amazon_photo", "squirrel_filtered", "block model")
RATIOS = (1.0, 0.3, 0.1)
EVERY = (1, 10)
HIDDEN, HEADS = 64, 8
LAYERS: dict[str, Callable[[int, int], nn.Module]] = {
    "GAT": lambda width, out: GATConv(width, out // HEADS, heads=HEADS) if out == HIDDEN else GATConv(width, out),
    "SAGE": lambda width, out: SAGEConv(width, out, aggr="max"),
    "GCN": lambda width, out: GCNConv(width, out),
}
PROTOCOL = (
    "step: median seconds of dropping, forward, backward and Adam, the three ratios in turns, after a warm-up round; "
    "script: seconds of all epochs, an evaluation on the whole graph after every 1 or every 10 of them; the scores are "
    "made in the first step of each script; two layers of 64 hidden units (GAT: 8 heads), keep_ratio 1 is PyG alone; "
    "times_less: against keep_ratio 1"
)


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

    def __init__(self, layer: str, data: Data, method: str, keep_ratio: float) -> None:
        torch.manual_seed(0)
        self.data, self.model = data, Network(layer, data.num_features, int(data.y.max()) + 1)
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=0.01)
        self.drop = DropEdge(method, keep_ratio=keep_ratio) if keep_ratio < 1 else None
        self.train_mask = torch.rand(data.num_nodes) < 0.1

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
        accuracy, start = 0.0, time.perf_counter()
        for epoch in range(1, epochs + 1):
            self.step()
            if epoch % every == 0:
                accuracy = self.accuracy()
        return time.perf_counter() - start, accuracy


def measure(name: str, data: Data, layer: str, method: str, epochs: int, seconds: float) -> list[Row]:
    """One row per keep ratio."""
    scripts = {ratio: Script(layer, data, method, ratio) for ratio in RATIOS}
    steps = medians({str(ratio): script.step for ratio, script in scripts.items()}, seconds)
    rows: list[Row] = []
    for ratio in RATIOS:
        row: Row = {"graph": name, "arcs": data.num_edges, "layer": layer, "keep_ratio": ratio}
        row["step"] = steps[str(ratio)]
        for every in EVERY:
            row[f"script_{every}"], row["accuracy"] = Script(layer, data, method, ratio).run(epochs, every)
        rows.append(row)
    for row in rows:
        for what in ("step", *(f"script_{every}" for every in EVERY)):
            row[f"{what}_times_less"] = rows[0][what] / row[what]
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a small block model and a few epochs: does it run?")
    parser.add_argument("--epochs", type=int, default=50, help="of each script (default 50)")
    parser.add_argument("--seconds", type=float, default=15.0, help="for the steps of one layer (default 15)")
    parser.add_argument("--method", default="degree-proportional")
    parser.add_argument("--out", type=Path, help="file for the numbers (default results/benchmarks/pyg.json)")
    options = parser.parse_args()
    epochs, seconds = (10, 0.5) if options.quick else (options.epochs, options.seconds)
    rows: list[Row] = []
    for name in ("small block model",) if options.quick else GRAPHS:
        data = block_model(500, 40) if options.quick else block_model() if "block" in name else graph_data(name)
        for layer in LAYERS:
            rows += measure(name, data, layer, options.method, epochs, seconds)
            print(table(rows[-len(RATIOS) :]), flush=True)
    print("", table(rows), sep="\n")
    write("pyg", PROTOCOL, {"method": options.method, "epochs": epochs, "layers": rows}, options.out)


if __name__ == "__main__":
    main()
