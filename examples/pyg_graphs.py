"""Whole graphs: every graph is scored once, before training, and GIN sees thinned batches of them."""

import argparse

import torch
import torch.nn.functional as F
from torch_geometric.data import Data
from torch_geometric.loader import DataLoader
from torch_geometric.nn import GIN, global_add_pool
from torch_geometric.utils import to_undirected

from tadropedge.pyg import AddKeepProbability, DropEdge


def molecule(number):
    """A random tree of 10 to 29 nodes; every second one has a ring of six."""
    n = int(torch.randint(10, 30, ()))
    parent = (torch.rand(n - 1) * torch.arange(1, n)).long()
    ring = torch.arange(n - 6, n) if number % 2 else torch.arange(0)
    tree = torch.stack((parent, torch.arange(1, n)))
    edge_index = to_undirected(torch.cat((tree, torch.stack((ring, ring.roll(1)))), dim=1), num_nodes=n)
    return Data(x=torch.ones(n, 1), edge_index=edge_index, y=torch.tensor([number % 2]))


parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--epochs", type=int, default=20)
epochs = parser.parse_args().epochs

torch.manual_seed(0)
score = AddKeepProbability("degree-proportional", keep_ratio=0.9)  # of a dataset: pre_transform=score
graphs = [score(molecule(number)) for number in range(300)]
train, test = DataLoader(graphs[:240], batch_size=32, shuffle=True), DataLoader(graphs[240:], batch_size=60)
drop, model = DropEdge(keep_prob="edge_keep_prob"), GIN(1, 32, num_layers=4, out_channels=2, norm="batch_norm")
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
for _ in range(epochs):
    model.train()
    for batch in train:
        optimizer.zero_grad()
        thin = drop(batch)
        loss = F.cross_entropy(global_add_pool(model(thin.x, thin.edge_index), thin.batch), thin.y)
        loss.backward()
        optimizer.step()

model.eval()
batch = next(iter(test))
right = global_add_pool(model(batch.x, batch.edge_index), batch.batch).argmax(dim=1) == batch.y
print(f"accuracy on other graphs: {float(right.float().mean()):.2f}")
