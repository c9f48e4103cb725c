"""Drop the edges of a graph of authors and papers, each relation by its own coins, and classify the authors."""

from __future__ import annotations

import argparse

import torch
from torch import nn
from torch.nn.functional import cross_entropy, one_hot
from torch_geometric.data import HeteroData
from torch_geometric.nn import GraphSAGE, to_hetero
from torch_geometric.transforms import ToUndirected

from tadropedge.pyg import TADropEdge


def library(authors: int = 200, papers: int = 400, fields: int = 4, seed: int = 0) -> HeteroData:
    """Authors mostly write papers of their field, and papers mostly cite within it; only papers have features."""
    random, data = torch.Generator().manual_seed(seed), HeteroData()
    author, paper = torch.arange(authors) % fields, torch.arange(papers) % fields
    data["author"].x, data["author"].y = torch.randn(authors, 8, generator=random), author
    data["paper"].x = one_hot(paper, 8) + 1.2 * torch.randn(papers, 8, generator=random)
    fields_of = {("author", "writes", "paper"): (author, paper), ("paper", "cites", "paper"): (paper, paper)}
    for relation, (source, target) in fields_of.items():
        chance = torch.where(source[:, None] == target, 0.05, 0.008)
        data[relation].edge_index = (torch.rand(chance.shape, generator=random) < chance).nonzero().T
    order = torch.randperm(authors, generator=random)
    data["author"].train, data["author"].test = order[: authors // 5], order[authors // 5 :]
    return ToUndirected()(data)  # adds ("paper", "rev_writes", "author"), whose edges share the fate of "writes"


def accuracy(data: HeteroData, drop: nn.Module, epochs: int) -> float:
    """The test accuracy after training, which drops edges, on the whole graph."""
    torch.manual_seed(0)
    model = to_hetero(GraphSAGE(8, 16, num_layers=2, out_channels=4, dropout=0.3), data.metadata())
    optimizer, truth = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=5e-4), data["author"].y
    for _ in range(epochs):
        thin, train = drop(data), data["author"].train
        optimizer.zero_grad()
        out = model.train()(thin.x_dict, thin.edge_index_dict)["author"]
        cross_entropy(out[train], truth[train]).backward()
        optimizer.step()
    found = model.eval()(data.x_dict, data.edge_index_dict)["author"].argmax(1)
    return float((found == truth)[data["author"].test].float().mean())


def main(argv: list[str] | None = None) -> dict[str, float]:
    """Test accuracies without dropping, and with edges of all relations or of one dropped."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=60)
    epochs, data, rule = parser.parse_args(argv).epochs, library(), {"score": "degree", "strategy": "proportional"}
    drops = {"whole": nn.Identity(), "all": TADropEdge(**rule, keep_ratio=0.7)}
    drops["cites"] = TADropEdge(**rule, keep_ratio=0.7, relations=["cites"])
    found = {name: accuracy(data, drop, epochs) for name, drop in drops.items()}
    print("\n".join(f"{name:6} test accuracy {value:.3f}" for name, value in found.items()))
    return found


if __name__ == "__main__":
    main()
