"""Mini-batches by ``k_hop_subgraph``: each epoch all batches see one thinned graph; test accuracy without and with it.

Scores are those of the whole graph, so probabilities are attached before it is cut. ``node_id`` names the nodes of a
batch by their ids in the whole graph: an edge that is in two batches then has one fate in both.
"""

import argparse
import os

import torch
import torch.nn.functional as F
from torch_geometric.data import Data
from torch_geometric.nn import GraphSAGE
from torch_geometric.utils import k_hop_subgraph, to_undirected

from tadropedge.data import load_dataset
from tadropedge.pyg import AddKeepProbability, AddScore, TADropEdge


def test_accuracy(data, found, drops, options):
    torch.manual_seed(options.seed)
    model = GraphSAGE(data.num_features, 32, num_layers=2, out_channels=found.num_classes, dropout=0.5)
    drop = TADropEdge(seed=options.seed, advance="manual")
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=5e-4)
    best = (-1.0, 0.0)
    for epoch in range(options.epochs):
        model.train()
        drop.set_epoch(epoch)
        for seeds in found.split.train[torch.randperm(len(found.split.train))].split(options.batch):
            nodes, arcs, place, inside = k_hop_subgraph(seeds, 2, data.edge_index, True, data.num_nodes)
            if drops:
                arcs = drop(arcs, data.edge_keep_prob[inside], node_id=nodes)[0]
            optimizer.zero_grad()
            F.cross_entropy(model(data.x[nodes], arcs)[place], data.y[seeds]).backward()
            optimizer.step()
        right = (model.eval()(data.x, data.edge_index).argmax(1) == data.y).float()
        best = max(best, (float(right[found.split.val].mean()), float(right[found.split.test].mean())))
    return best[1]


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", default="cora" if "TADROPEDGE_DATA" in os.environ else "clusters")
    for name, value in (("--epochs", 20), ("--batch", 64), ("--seed", 0)):
        parser.add_argument(name, type=int, default=value)
    options = parser.parse_args(argv)
    found = load_dataset(options.data, seed=options.seed)
    data = Data(x=found.features.to_dense(), edge_index=to_undirected(found.graph.pairs), y=found.labels)
    data = AddKeepProbability("cdf", keep_prob=0.5)(AddScore("degree")(data))
    names = {"all edges": False, "dropping": True}
    result = {name: test_accuracy(data, found, drops, options) for name, drops in names.items()}
    print(", ".join(f"{name}: {accuracy:.3f}" for name, accuracy in result.items()))
    return result


if __name__ == "__main__":
    main()
