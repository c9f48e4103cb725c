"""PyG's GAT, each of whose layers sees another thinned graph in training: test accuracy without and with dropping."""

import argparse
import os

import torch
import torch.nn.functional as F
from torch_geometric.nn import GATConv
from torch_geometric.utils import to_undirected

from tadropedge.data import load_dataset
from tadropedge.pyg import TADropEdge


class GAT(torch.nn.Module):
    def __init__(self, features, classes, drop):
        super().__init__()
        self.drop = drop
        self.first = GATConv(features, 8, heads=8, dropout=0.6)
        self.last = GATConv(64, classes, heads=1, concat=False, dropout=0.6)

    def forward(self, x, edge_index):
        first, last = (self.drop(edge_index)[0] if self.drop else edge_index for _ in range(2))
        x = F.elu(self.first(F.dropout(x, 0.6, self.training), first))
        return self.last(F.dropout(x, 0.6, self.training), last)


def test_accuracy(found, drop, options):
    torch.manual_seed(options.seed)
    x, labels, split = found.features.to_dense(), found.labels, found.split
    edge_index = to_undirected(found.graph.pairs)
    model = GAT(found.num_features, found.num_classes, drop)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.005, weight_decay=5e-4)
    best = (-1.0, 0.0)
    for _ in range(options.epochs):
        model.train()
        optimizer.zero_grad()
        F.cross_entropy(model(x, edge_index)[split.train], labels[split.train]).backward()
        optimizer.step()
        right = (model.eval()(x, edge_index).argmax(1) == labels).float()
        best = max(best, (float(right[split.val].mean()), float(right[split.test].mean())))
    return best[1]


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", default="cora" if "TADROPEDGE_DATA" in os.environ else "clusters")
    for name, value in (("--epochs", 100), ("--seed", 0)):
        parser.add_argument(name, type=int, default=value)
    options = parser.parse_args(argv)
    found = load_dataset(options.data, seed=options.seed)
    drop = TADropEdge(score="jaccard", keep_prob=0.5, seed=options.seed)
    result = {"all edges": test_accuracy(found, None, options), "dropping": test_accuracy(found, drop, options)}
    print(", ".join(f"{name}: {accuracy:.3f}" for name, accuracy in result.items()))
    return result


if __name__ == "__main__":
    main()
