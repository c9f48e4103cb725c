"""Graph classification with GIN, as in PyG's own example, and edges dropped in training by their importance."""

import torch
from torch.nn.functional import cross_entropy, one_hot
from torch_geometric.data import Batch, Data
from torch_geometric.loader import DataLoader
from torch_geometric.nn import GIN, MLP, global_add_pool
from torch_geometric.transforms import Compose
from torch_geometric.utils import degree, to_undirected

from tadropedge.pyg import AddKeepProbability, AddScore, TADropEdge


def molecules(count: int, seed: int = 0) -> list[Data]:
    """Random trees of 10 to 29 nodes; those of class 1 hold a ring of six."""
    generator, graphs = torch.Generator().manual_seed(seed), []
    for number in range(count):
        n = int(torch.randint(10, 30, (1,), generator=generator))
        parent = (torch.rand(n - 1, generator=generator) * torch.arange(1, n)).long()
        ring = torch.arange(n - 6, n if number % 2 else n - 6)
        arcs = to_undirected(torch.stack((torch.cat((parent, ring)), torch.cat((torch.arange(1, n), ring.roll(1))))))
        x = one_hot(degree(arcs[0], n).long(), 30).float()
        graphs.append(Data(x=x, edge_index=arcs, y=torch.tensor([number % 2])))
    return graphs


class Net(torch.nn.Module):
    """GIN with one new line."""

    def __init__(self, drop: torch.nn.Module) -> None:
        super().__init__()
        self.drop, self.gnn, self.head = drop, GIN(30, 32, 3, norm="batch_norm"), MLP([32, 32, 2], dropout=0.5)

    def forward(self, batch: Data) -> torch.Tensor:
        batch = self.drop(batch)  # the new line
        return self.head(global_add_pool(self.gnn(batch.x, batch.edge_index), batch.batch))  # type: ignore[no-any-return]


def accuracy(graphs: list[Data], drop: torch.nn.Module, epochs: int) -> float:
    """Train on four fifths of the graphs, and return the accuracy on the others."""
    model, cut = Net(drop), len(graphs) * 4 // 5
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for batch in (batch for _ in range(epochs) for batch in DataLoader(graphs[:cut], batch_size=32, shuffle=True)):
        cross_entropy(model.train()(batch), batch.y).backward()
        optimizer.step(), optimizer.zero_grad()
    test = Batch.from_data_list(graphs[cut:])
    return float((model.eval()(test).argmax(1) == test.y).float().mean())


def main(epochs: int = 10) -> None:
    """Print the accuracy with all edges and with dropping."""
    scored = Compose([AddScore("effective"), AddKeepProbability("proportional", keep_ratio=0.9)])
    graphs = [scored(graph) for graph in molecules(300)]  # of a dataset: pre_transform=scored
    for name, drop in (("all edges", torch.nn.Identity()), ("TADropEdge", TADropEdge(seed=0))):
        torch.manual_seed(0)
        print(f"{name}: {accuracy(graphs, drop, epochs):.3f}")


if __name__ == "__main__":
    main()
