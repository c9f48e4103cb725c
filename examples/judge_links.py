"""Link prediction, judged: does it pay to drop edges from the messages of a step? PyG's own model and split."""

import argparse
import copy

import torch
import torch.nn.functional as F
from torch_geometric.data import Data
from torch_geometric.nn import GCN
from torch_geometric.transforms import RandomLinkSplit
from torch_geometric.utils import negative_sampling, stochastic_blockmodel_graph

import tadropedge as tde

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--trials", type=int, default=4)
parser.add_argument("--replicates", type=int, default=10)
parser.add_argument("--epochs", type=int, default=60)
parser.add_argument("--out")
options = parser.parse_args()

chance = torch.full((4, 4), 0.01).fill_diagonal_(0.3)  # of an edge, between nodes of four blocks
torch.manual_seed(0)
whole = Data(x=torch.eye(200), edge_index=stochastic_blockmodel_graph([50] * 4, chance))


def run(drop, settings, seed):
    """Train once: the area under the ROC curve of links to validate and to test."""
    torch.manual_seed(seed)
    parts = RandomLinkSplit(0.1, 0.2, is_undirected=True, add_negative_train_samples=False)(whole)
    train, model = parts[0], GCN(whole.num_features, 32, num_layers=2, out_channels=16, dropout=settings["dropout"])
    drop.exclude = "edge_label_index"  # the links that a step asks for are no messages of it
    optimizer = torch.optim.Adam(model.parameters(), lr=settings["learning_rate"])

    def scores(data, pairs):
        z = model(data.x, data.edge_index, data.get("edge_weight"))
        return (z[pairs[0]] * z[pairs[1]]).sum(dim=1)

    for _ in range(options.epochs):
        model.train()
        step, batch = copy.copy(train), torch.randperm(train.edge_label_index.size(1))[:200]
        step.edge_label_index = train.edge_label_index[:, batch]
        absent = negative_sampling(train.edge_index, train.num_nodes, num_neg_samples=len(batch))
        found = scores(drop(step), torch.cat((step.edge_label_index, absent), dim=1))
        loss = F.binary_cross_entropy_with_logits(found, (torch.arange(len(found)) < len(batch)).float())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    return tuple(area(scores(drop.eval()(part), part.edge_label_index), part.edge_label) for part in parts[1:])


def area(scores, labels):
    above = scores[labels == 1][:, None] > scores[labels == 0]
    return float(above.float().mean())


searched = {"learning_rate": [0.003, 0.01, 0.03], "dropout": [0.0, 0.3, 0.5]}
sizes = {"trials": options.trials, "replicates": options.replicates}
print(tde.judge(run, ["dropedge", "jaccard-proportional:weighted"], settings=searched, out=options.out, **sizes))
