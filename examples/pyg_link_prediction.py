"""PyG's link prediction, message edges thinned in training: test AUC without and with it.

Supervision edges are the labels, and are not thinned: that would throw labels away and, by importance, prefer some.
"""

import argparse
import os

import torch
from torch_geometric import seed_everything
from torch_geometric.data import Data
from torch_geometric.nn import GCN
from torch_geometric.transforms import RandomLinkSplit
from torch_geometric.utils import negative_sampling, to_undirected

from tadropedge.data import load_dataset
from tadropedge.pyg import TADropEdge


def logits(encoder, data, pairs):
    return encoder(data.x, data.edge_index)[pairs].prod(0).sum(1)  # one for each pair of nodes


def area(encoder, data):
    found, real = logits(encoder.eval(), data, data.edge_label_index), data.edge_label == 1
    return float((found[real][:, None] > found[~real]).float().mean())


def test_area(data, drop, options):
    seed_everything(options.seed)
    train, val, test = RandomLinkSplit(0.05, 0.1, is_undirected=True, add_negative_train_samples=False)(data)
    encoder, best = GCN(train.num_features, 64, num_layers=2, out_channels=32), (-1.0, 0.0)
    optimizer = torch.optim.Adam(encoder.parameters(), lr=0.01)
    for _ in range(options.epochs):
        optimizer.zero_grad()
        others = negative_sampling(train.edge_index, train.num_nodes, len(train.edge_label))
        pairs = torch.cat((train.edge_label_index, others), dim=1)
        real, fake = logits(encoder.train(), drop(train), pairs).split(len(train.edge_label))
        (torch.nn.Softplus()(-real).mean() + torch.nn.Softplus()(fake).mean()).backward()
        optimizer.step()
        best = max(best, (area(encoder, val), area(encoder, test)))
    return best[1]


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", default="cora" if "TADROPEDGE_DATA" in os.environ else "clusters")
    for name, value in (("--epochs", 100), ("--seed", 0)):
        parser.add_argument(name, type=int, default=value)
    options = parser.parse_args(argv)
    found = load_dataset(options.data, seed=options.seed)
    data = Data(x=found.features.to_dense(), edge_index=to_undirected(found.graph.pairs))
    drop = TADropEdge(score="degree", keep_prob=0.5, seed=options.seed)
    result = {"all edges": test_area(data, torch.nn.Identity(), options), "dropping": test_area(data, drop, options)}
    print(", ".join(f"{name}: AUC {value:.3f}" for name, value in result.items()))
    return result


if __name__ == "__main__":
    main()
