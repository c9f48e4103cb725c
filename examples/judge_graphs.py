"""Whole graphs, judged: GIN tells rings from trees, with and without dropping edges."""

import argparse

import torch
import torch.nn.functional as F
from torch_geometric.data import Data
from torch_geometric.loader import DataLoader
from torch_geometric.nn import GIN, global_add_pool
from torch_geometric.utils import to_undirected

import tadropedge as tde

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--trials", type=int, default=4)
parser.add_argument("--replicates", type=int, default=10)
parser.add_argument("--epochs", type=int, default=10)
parser.add_argument("--out")
options = parser.parse_args()


def molecule(number):  # a random tree; every second one has a ring of six
    n = int(torch.randint(10, 30, ()))
    parent = (torch.rand(n - 1) * torch.arange(1, n)).long()
    ring = torch.arange(n - 6, n) if number % 2 else torch.arange(0)
    tree = torch.stack((parent, torch.arange(1, n)))
    edge_index = to_undirected(torch.cat((tree, torch.stack((ring, ring.roll(1)))), dim=1), num_nodes=n)
    return Data(x=torch.ones(n, 1), edge_index=edge_index, y=torch.tensor([number % 2]))


torch.manual_seed(0)
graphs = [molecule(number) for number in range(200)]


def run(drop, settings, seed):
    """Train once: the accuracy on graphs to validate and to test."""
    torch.manual_seed(seed)
    order = torch.randperm(len(graphs)).tolist()
    train, val, test = ([graphs[i] for i in order[a:b]] for a, b in ((0, 100), (100, 150), (150, 200)))
    model = GIN(1, settings["hidden"], num_layers=3, out_channels=2, norm="batch_norm")
    optimizer = torch.optim.Adam(model.parameters(), lr=settings["learning_rate"])
    for _ in range(options.epochs):
        for batch in DataLoader(train, batch_size=25, shuffle=True):
            thin = drop(batch)
            loss = F.cross_entropy(global_add_pool(model(thin.x, thin.edge_index), thin.batch), thin.y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    model.eval()
    return tuple(accuracy(model, next(iter(DataLoader(part, batch_size=50)))) for part in (val, test))


def accuracy(model, batch):
    right = global_add_pool(model(batch.x, batch.edge_index), batch.batch).argmax(dim=1) == batch.y
    return float(right.float().mean())


searched = {"learning_rate": [0.003, 0.01, 0.03], "hidden": [16, 32]}
sizes = {"trials": options.trials, "replicates": options.replicates}
print(tde.judge(run, ["dropedge", "degree-proportional"], settings=searched, out=options.out, **sizes))
