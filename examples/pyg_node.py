"""DropEdge in a GCN: every step of training sees another subgraph, and ``eval()`` the whole graph."""

import argparse

import torch
import torch.nn.functional as F
from torch_geometric.datasets import KarateClub
from torch_geometric.nn import GCNConv

from tadropedge.pyg import DropEdge


class GCN(torch.nn.Module):
    def __init__(self, features, hidden, classes):
        super().__init__()
        self.drop = DropEdge("degree-proportional", keep_ratio=0.7)
        self.first = GCNConv(features, hidden)
        self.second = GCNConv(hidden, classes)

    def forward(self, x, edge_index):
        edge_index, _ = self.drop(edge_index)
        x = self.first(x, edge_index).relu()
        return self.second(x, edge_index)


parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--epochs", type=int, default=200)
epochs = parser.parse_args().epochs

torch.manual_seed(0)
data = KarateClub()[0]
model = GCN(data.num_features, 16, int(data.y.max()) + 1)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=5e-4)

for _ in range(epochs):
    model.train()
    optimizer.zero_grad()
    logits = model(data.x, data.edge_index)
    loss = F.cross_entropy(logits[data.train_mask], data.y[data.train_mask])
    loss.backward()
    optimizer.step()

model.eval()
right = model(data.x, data.edge_index).argmax(dim=1) == data.y
print(f"accuracy on nodes without a label in training: {float(right[~data.train_mask].float().mean()):.2f}")
