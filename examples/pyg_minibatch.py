"""Mini-batches: the whole graph is scored once, and each epoch all batches are cut from one thinned graph.

A batch says who its nodes are by ``n_id``, as those of PyG's ``NeighborLoader`` do, so that an edge which is in two
batches has one fate in both.
"""

import argparse

import torch
import torch.nn.functional as F
from torch_geometric.data import Data
from torch_geometric.nn import GraphSAGE
from torch_geometric.utils import k_hop_subgraph, stochastic_blockmodel_graph

from tadropedge.pyg import AddKeepProbability, DropEdge

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--epochs", type=int, default=20)
epochs = parser.parse_args().epochs

torch.manual_seed(0)
chance = torch.full((4, 4), 0.005).fill_diagonal_(0.05)  # of an edge, between nodes of four classes
y = torch.arange(4).repeat_interleave(100)
data = Data(x=F.one_hot(y, 16) + torch.randn(400, 16), edge_index=stochastic_blockmodel_graph([100] * 4, chance), y=y)
data = AddKeepProbability("degree-proportional", keep_ratio=0.7)(data)
train, test = torch.randperm(400).split(200)

model, drop = GraphSAGE(16, 32, num_layers=2, out_channels=4), DropEdge(keep_prob="edge_keep_prob")
optimizer = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=5e-4)
for epoch in range(epochs):
    model.train()
    drop.set_epoch(epoch)
    for seeds in train[torch.randperm(200)].split(50):
        nodes, edge_index, place, inside = k_hop_subgraph(seeds, 2, data.edge_index, relabel_nodes=True)
        batch = Data(x=data.x[nodes], edge_index=edge_index, edge_keep_prob=data.edge_keep_prob[inside], n_id=nodes)
        optimizer.zero_grad()
        thin = drop(batch)
        loss = F.cross_entropy(model(thin.x, thin.edge_index)[place], y[seeds])
        loss.backward()
        optimizer.step()

right = model.eval()(data.x, data.edge_index).argmax(dim=1) == y
print(f"accuracy on other nodes: {float(right[test].float().mean()):.2f}")
