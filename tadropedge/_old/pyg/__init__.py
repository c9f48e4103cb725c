"""PyTorch Geometric: transforms that score the edges of a ``Data``, and a module that drops them in training.

>>> import torch
>>> from torch_geometric.data import Data
>>> data = Data(edge_index=torch.tensor([[0, 1, 1, 2, 2, 0, 2, 3], [1, 0, 2, 1, 0, 2, 3, 2]]), num_nodes=4)
>>> drop = TADropEdge(score="degree", strategy="proportional", keep_ratio=0.5, exact=True)
>>> drop(data)  # in training mode two of the four edges; the next call draws others
Data(edge_index=[2, 4], num_nodes=4)
>>> data = AddKeepProbability(strategy="cdf", keep_prob=0.5)(AddResistance(q=2)(data))
>>> data.edge_keep_prob.tolist()
[0.625, 0.625, 0.875, 0.875, 0.875, 0.875, 1.0, 1.0]
>>> drop = TADropEdge(seed=0)
>>> edge_index, edge_mask = drop(data.edge_index, data.edge_keep_prob)
>>> bool((edge_index == data.edge_index[:, edge_mask]).all())
True
"""

from tadropedge._old.pyg.drop_edge import TADropEdge
from tadropedge._old.pyg.functional import ta_dropout_edge
from tadropedge._old.pyg.numbers import graph_node_ids
from tadropedge._old.pyg.transforms import AddKeepProbability, AddResistance, AddScore, AddShift
from tadropedge._old.pyg.traps import check_model

__all__ = [
    "AddKeepProbability",
    "AddResistance",
    "AddScore",
    "AddShift",
    "TADropEdge",
    "check_model",
    "graph_node_ids",
    "ta_dropout_edge",
]
