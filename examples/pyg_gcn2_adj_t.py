"""PyG's own GCNII example on ``adj_t``, with and without dropped edges; ``--data cora`` reads TADROPEDGE_DATA."""

import argparse

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, dropout
from torch_geometric.data import Data
from torch_geometric.nn import GCN2Conv
from torch_geometric.transforms import ToSparseTensor, ToUndirected

from tadropedge.data import Dataset, load_dataset
from tadropedge.pyg import TADropEdge


class GCNII(nn.Module):
    """GCNII (Chen et al., ICML 2020) of eight layers, which normalise the matrix they are given."""

    def __init__(self, features: int, classes: int, hidden: int = 32) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(features, hidden), nn.Linear(hidden, classes)
        self.convs = nn.ModuleList(GCN2Conv(hidden, alpha=0.1, theta=0.5, layer=n + 1) for n in range(8))

    def forward(self, x: Tensor, adj_t: Tensor) -> Tensor:
        """Class scores ``[N, C]``."""
        x = start = self.first(dropout(x, 0.5, self.training)).relu()
        for conv in self.convs:
            x = conv(dropout(x, 0.5, self.training), start, adj_t).relu()
        return self.last(x)


def accuracy(made: Dataset, data: Data, drop: nn.Module, epochs: int) -> float:
    """Train on thinned graphs, and return the test accuracy on the whole one."""
    torch.manual_seed(0)
    model, train = GCNII(made.num_features, made.num_classes).train(), made.split.train
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=5e-4)
    for _ in range(epochs):
        optimizer.zero_grad()
        cross_entropy(model(data.x, drop(data).adj_t)[train], made.labels[train]).backward()
        optimizer.step()
    return float((model.eval()(data.x, data.adj_t).argmax(1) == made.labels)[made.split.test].float().mean())


def main(argv: list[str] | None = None) -> dict[str, float]:
    """Test accuracies without dropping, with DropEdge, and with edges dropped by degree."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", default="clusters")
    parser.add_argument("--epochs", type=int, default=60)
    given = parser.parse_args(argv)
    made = load_dataset(given.data)
    data = ToSparseTensor()(ToUndirected()(Data(x=made.features.to_dense(), edge_index=made.graph.pairs)))
    by_degree = TADropEdge.of("degree-proportional", keep_ratio=0.7)
    drops = {"whole": nn.Identity(), "dropedge": TADropEdge(keep_prob=0.7), "degree": by_degree}
    found = {name: accuracy(made, data, drop, given.epochs) for name, drop in drops.items()}
    print("\n".join(f"{name:9} test accuracy {value:.3f}" for name, value in found.items()))
    return found


if __name__ == "__main__":
    main()
