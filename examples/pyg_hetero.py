"""Authors and papers: each relation is thinned as a graph of its own; ``rev_writes`` has the edges of ``writes``."""

import argparse

import torch
import torch.nn.functional as F
from torch_geometric.data import HeteroData
from torch_geometric.nn import GraphSAGE, to_hetero
from torch_geometric.transforms import ToUndirected

from tadropedge.pyg import DropEdge

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--epochs", type=int, default=60)
epochs = parser.parse_args().epochs

torch.manual_seed(0)
field = {"author": torch.arange(200) % 4, "paper": torch.arange(400) % 4}
data = HeteroData()
data["author"].x, data["author"].y = torch.randn(200, 8), field["author"]  # only papers tell of their field
data["paper"].x = F.one_hot(field["paper"], 8) + torch.randn(400, 8)
for source, name, target in (("author", "writes", "paper"), ("paper", "cites", "paper")):
    chance = torch.where(field[source][:, None] == field[target], 0.05, 0.005)
    data[source, name, target].edge_index = torch.bernoulli(chance).nonzero().t()
data = ToUndirected()(data)
train, test = torch.randperm(200).split([100, 100])

model = to_hetero(GraphSAGE(8, 16, num_layers=2, out_channels=4), data.metadata())
drop = DropEdge("degree-proportional", keep_ratio=0.7)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=5e-4)
for _ in range(epochs):
    model.train()
    optimizer.zero_grad()
    thin = drop(data)
    logits = model(thin.x_dict, thin.edge_index_dict)["author"]
    loss = F.cross_entropy(logits[train], data["author"].y[train])
    loss.backward()
    optimizer.step()

right = model.eval()(data.x_dict, data.edge_index_dict)["author"].argmax(dim=1) == data["author"].y
print(f"accuracy on other authors: {float(right[test].float().mean()):.2f}")
