"""The peer of the training benchmark: the same epochs written with PyTorch Geometric, one model at a time.

It is written in two ways: ``usual``, as in PyG's examples (dense features, edge lists, every layer normalises), and
``sparse``, the fastest we know of that PyG's own layers allow: features and operators as CSR tensors, each operator
normalised once for all layers, and that of the whole graph once for all epochs.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn
from torch_geometric.nn import GCNConv
from torch_geometric.nn.conv.gcn_conv import gcn_norm
from torch_geometric.utils import dropout_edge, to_torch_csr_tensor

from tadropedge._old.data import Dataset
from tadropedge._old.training.config import Trial


class Gcn(nn.Module):
    """GCNConv layers with ReLU and dropout between them; edges are an edge list, or a normalised operator."""

    def __init__(self, features: int, hidden: int, classes: int, layers: int, dropout: float, normalize: bool) -> None:
        super().__init__()
        widths = [features, *[hidden] * (layers - 1), classes]
        self.convolutions = nn.ModuleList(GCNConv(a, b, normalize=normalize) for a, b in pairwise(widths))
        self.dropout = dropout

    def forward(self, x: Tensor, edges: Tensor) -> Tensor:
        """Logits ``[N, C]``."""
        for convolution in self.convolutions[:-1]:
            x = convolution(x, edges).relu()
            x = F.dropout(x, self.dropout, self.training)
        return self.convolutions[-1](x, edges)


WAYS = ("usual", "sparse")


def pyg_epoch(
    dataset: Dataset, trial: Trial, hidden: int, layers: int, way: str = "usual"
) -> Callable[[], tuple[float, ...]]:
    """One epoch of DropEdge: a step on a fresh subgraph, then an evaluation on the whole graph.

    It returns training loss, validation loss, validation accuracy and test accuracy.
    """
    pairs, y, split = dataset.graph.pairs, dataset.labels, dataset.split
    edge_index = torch.cat((pairs, pairs.flip(0)), dim=1)
    sparse = way == "sparse"
    x = dataset.features if sparse else dataset.features.to_dense()
    torch.manual_seed(trial.seed)
    sizes = (dataset.num_features, hidden, dataset.num_classes, layers)
    model = Gcn(*sizes, trial.dropout, normalize=not sparse).to(dataset.device)
    optimizer = torch.optim.Adam(model.parameters(), lr=trial.learning_rate, weight_decay=trial.weight_decay)

    def operator(edges: Tensor) -> Tensor:
        if not sparse:
            return edges
        places, values = gcn_norm(edges, None, dataset.graph.num_nodes)
        return to_torch_csr_tensor(places, values, size=dataset.graph.num_nodes)

    whole = operator(edge_index)

    def epoch() -> tuple[float, ...]:
        model.train()
        optimizer.zero_grad()
        kept, _ = dropout_edge(edge_index, p=1 - trial.keep_prob, force_undirected=True)
        loss = F.cross_entropy(model(x, operator(kept))[split.train], y[split.train])
        loss.backward()
        optimizer.step()
        model.eval()
        with torch.no_grad():
            logits = model(x, whole)
            right = logits.argmax(dim=-1) == y
            val_loss = F.cross_entropy(logits[split.val], y[split.val])
        return (
            float(loss.detach()),
            float(val_loss),
            float(right[split.val].float().mean()),
            float(right[split.test].float().mean()),
        )

    return epoch
