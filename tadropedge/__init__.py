"""tadropedge: topology adaptive edge dropping for graph neural networks.

>>> import torch
>>> import tadropedge as tde
>>> graph = tde.Graph.from_edge_index([[0, 0, 1, 2, 3, 3, 4], [1, 2, 2, 3, 4, 5, 5]])
>>> weights = tde.aggregate_resistance(graph, q=2)
>>> prob = tde.keep_probabilities(weights, keep_prob=0.7, strategy="cdf")
>>> keep = tde.sample_edges(prob, seed=0, epoch=3)
>>> shift = tde.shift_operator(graph, keep, normalization="gcn")
>>> (shift @ torch.eye(6)).shape
torch.Size([6, 6])
"""

from tadropedge.errors import ConvergenceError, NotEnoughMemoryError, RepeatedEigenvalueWarning, TadropedgeError
from tadropedge.graph import Components, Graph
from tadropedge.resistance import aggregate_resistance, effective_resistance
from tadropedge.sampling import sample_directed, sample_edges
from tadropedge.shift import ShiftOperator, shift_operator
from tadropedge.strategies import STRATEGIES, auto_gamma, keep_probabilities

__version__ = "0.1.0"

__all__ = [
    "STRATEGIES",
    "Components",
    "ConvergenceError",
    "Graph",
    "NotEnoughMemoryError",
    "RepeatedEigenvalueWarning",
    "ShiftOperator",
    "TadropedgeError",
    "aggregate_resistance",
    "auto_gamma",
    "effective_resistance",
    "keep_probabilities",
    "sample_directed",
    "sample_edges",
    "shift_operator",
]
