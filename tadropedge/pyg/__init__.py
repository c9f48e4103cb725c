"""The door for PyTorch Geometric: drop edges by importance in any script.

>>> import torch
>>> from tadropedge.pyg import DropEdge
>>> drop = DropEdge("degree-proportional", keep_ratio=0.5, seed=2)
>>> edge_index, edge_mask = drop(torch.tensor([[0, 1, 1, 2, 2, 0, 2, 3], [1, 0, 2, 1, 0, 2, 3, 2]]))
>>> edge_index.tolist()
[[1, 2, 2, 0, 2, 3], [2, 1, 0, 2, 3, 2]]
"""

from tadropedge.pyg.dropout import dropout_edge, exclude_edges
from tadropedge.pyg.model_checks import check_model
from tadropedge.pyg.module import DropEdge, TADropEdge
from tadropedge.pyg.transforms import AddKeepProbability, AddScore

__all__ = [
    "AddKeepProbability",
    "AddScore",
    "DropEdge",
    "TADropEdge",
    "check_model",
    "dropout_edge",
    "exclude_edges",
]
