"""Link prediction: the links that a step asks for are left out of its messages, in both directions."""

import argparse
import copy

import torch
import torch.nn.functional as F
from torch_geometric.data import Data
from torch_geometric.nn import GCN
from torch_geometric.transforms import RandomLinkSplit
from torch_geometric.utils import negative_sampling, stochastic_blockmodel_graph

from tadropedge.pyg import DropEdge

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--epochs", type=int, default=100)
epochs = parser.parse_args().epochs

torch.manual_seed(0)
chance = torch.full((4, 4), 0.01).fill_diagonal_(0.3)  # of an edge, between nodes of four blocks
data = Data(x=torch.eye(200), edge_index=stochastic_blockmodel_graph([50] * 4, chance))
train, _, test = RandomLinkSplit(0.0, 0.2, is_undirected=True, add_negative_train_samples=False)(data)

model = GCN(data.num_features, 32, num_layers=2, out_channels=16)
drop = DropEdge("degree-proportional", keep_ratio=0.8, exclude="edge_label_index")
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)


def scores(data, pairs):
    z = model(data.x, data.edge_index)
    return (z[pairs[0]] * z[pairs[1]]).sum(dim=1)


for _ in range(epochs):
    model.train()
    optimizer.zero_grad()
    step = copy.copy(train)
    step.edge_label_index = train.edge_label_index[:, torch.randperm(train.edge_label_index.size(1))[:200]]
    absent = negative_sampling(train.edge_index, train.num_nodes, num_neg_samples=200)
    pairs = torch.cat((step.edge_label_index, absent), dim=1)
    found = scores(drop(step), pairs)
    loss = F.binary_cross_entropy_with_logits(found, (torch.arange(400) < 200).float())
    loss.backward()
    optimizer.step()

model.eval()
found = scores(test, test.edge_label_index)
above = found[test.edge_label == 1][:, None] > found[test.edge_label == 0]
print(f"area under the ROC curve: {float(above.float().mean()):.2f}")
