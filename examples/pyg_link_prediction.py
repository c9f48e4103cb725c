"""PyG's link prediction, whose message edges are thinned in training: test AUC without and with it.

Supervision edges are the labels, and are not thinned: that would throw labels away and, by importance, prefer some.
"""

import argparse
import os

import torch
from torch.nn.functional import softplus
from torch_geometric import seed_everything
from torch_geometric.data import Data
from torch_geometric.nn import GCN
from torch_geometric.transforms import RandomLinkSplit
from torch_geometric.utils import negative_sampling, to_undirected

from tadropedge.data import load_dataset
from tadropedge.pyg import TADropEdge


def logits(encoder, data, pairs):
    low, high = encoder(data.x, data.edge_index)[pairs]
    return (low * high).sum(1)


def area(encoder, data):
    found = logits(encoder.eval(), data, data.edge_label_index)
    return float((found[data.edge_label == 1][:, None] > found[data.edge_label == 0]).float().mean())


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
        (softplus(-real).mean() + softplus(fake).mean()).backward()
        optimizer.step()
        best = max(best, (area(encoder, val), area(encoder, test)))
    return best[1]


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", default="cora" if "TADROPEDGE_DATA" in os.environ else "clusters")
    parser.add_argument("--epochs", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(argv)
    found = load_dataset(options.data, seed=options.seed)
    data = Data(x=found.features.to_dense(), edge_index=to_undirected(found.graph.pairs))
    drops = {"all edges": torch.nn.Identity(), "dropping": TADropEdge(score="degree", keep_prob=0.5, seed=options.seed)}
    result = {name: test_area(data, drop, options) for name, drop in drops.items()}
    print(", ".join(f"{name}: AUC {found:.3f}" for name, found in result.items()))
    return result


if __name__ == "__main__":
    main()
