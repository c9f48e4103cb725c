"""PyG's GCN for node classification, with one line that drops edges in training: test accuracy without and with it."""

import argparse
import os

import torch
import torch.nn.functional as F
from torch_geometric.data import Data
from torch_geometric.nn import GCNConv
from torch_geometric.utils import to_undirected

from tadropedge.data import load_dataset
from tadropedge.pyg import TADropEdge


class GCN(torch.nn.Module):
    def __init__(self, features, hidden, classes, drop):
        super().__init__()
        self.drop = drop
        self.first, self.last = GCNConv(features, hidden), GCNConv(hidden, classes)

    def forward(self, data):
        data = self.drop(data)  # in eval() the data pass untouched
        x = self.first(F.dropout(data.x, 0.5, self.training), data.edge_index).relu()
        return self.last(F.dropout(x, 0.5, self.training), data.edge_index)


def test_accuracy(data, split, classes, drop, options):
    torch.manual_seed(options.seed)
    model = GCN(data.num_features, 16, classes, drop)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=5e-4)
    best = (-1.0, 0.0)
    for _ in range(options.epochs):
        model.train()
        optimizer.zero_grad()
        F.cross_entropy(model(data)[split.train], data.y[split.train]).backward()
        optimizer.step()
        right = (model.eval()(data).argmax(1) == data.y).float()
        best = max(best, (float(right[split.val].mean()), float(right[split.test].mean())))
    return best[1]


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", default="cora" if "TADROPEDGE_DATA" in os.environ else "clusters")
    for name, value in (("--epochs", 200), ("--seed", 0)):
        parser.add_argument(name, type=int, default=value)
    options = parser.parse_args(argv)
    found = load_dataset(options.data, seed=options.seed)
    data = Data(x=found.features.to_dense(), edge_index=to_undirected(found.graph.pairs), y=found.labels)
    drops = {"all edges": torch.nn.Identity(), "dropping": TADropEdge(score="degree", keep_prob=0.5, seed=options.seed)}
    result = {name: test_accuracy(data, found.split, found.num_classes, drop, options) for name, drop in drops.items()}
    print(", ".join(f"{name}: {accuracy:.3f}" for name, accuracy in result.items()))
    return result


if __name__ == "__main__":
    main()
