"""Few labels: several subgraphs of one step are drawn, and their predictions are asked to agree on every node."""

import argparse

import torch
import torch.nn.functional as F
from torch_geometric.data import Data
from torch_geometric.nn import APPNP, GAT, GCN, MLP, Sequential
from torch_geometric.utils import stochastic_blockmodel_graph

from tadropedge import consistency_loss
from tadropedge.pyg import DropEdge, check_model

MODELS = {
    "gcn": lambda: GCN(16, 32, num_layers=2, out_channels=4, dropout=0.5),
    "gat": lambda: GAT(16, 32, num_layers=2, out_channels=4, dropout=0.5, heads=4),
    "appnp": lambda: Sequential(
        "x, edge_index", [(MLP([16, 32, 4], dropout=0.5), "x -> x"), (APPNP(K=10, alpha=0.1), "x, edge_index -> x")]
    ),
}
parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--model", choices=MODELS, default="gcn")
parser.add_argument("--epochs", type=int, default=100)
options = parser.parse_args()

torch.manual_seed(0)
chance = torch.full((4, 4), 0.005).fill_diagonal_(0.05)  # of an edge, between nodes of four classes
y = torch.arange(4).repeat_interleave(100)
data = Data(x=F.one_hot(y, 16) + torch.randn(400, 16), edge_index=stochastic_blockmodel_graph([100] * 4, chance), y=y)
train = torch.arange(400) % 100 < 3  # three labels per class

model, drop = MODELS[options.model](), DropEdge("degree-proportional", keep_ratio=0.7)
check_model(model)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=5e-4)
for _ in range(options.epochs):
    model.train()
    optimizer.zero_grad()
    logits = torch.stack([model(view.x, view.edge_index) for view in drop.views(data, 2)])  # [2, N, C]
    loss = F.cross_entropy(logits[:, train].flatten(0, 1), y[train].repeat(2)) + consistency_loss(logits, balance=0.5)
    loss.backward()
    optimizer.step()

right = model.eval()(data.x, data.edge_index).argmax(dim=1) == y
print(f"accuracy on nodes without a label in training: {float(right[~train].float().mean()):.2f}")
