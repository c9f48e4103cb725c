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

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tadropedge._old.comparing import compare
    from tadropedge._old.errors import ConvergenceError, NotEnoughMemoryError, RepeatedEigenvalueWarning, TadropedgeError
    from tadropedge._old.graph import Components, Graph
    from tadropedge._old.registry import SCORES, STRATEGIES
    from tadropedge._old.sampling import sample_directed, sample_edges
    from tadropedge._old.scores.aggregate import aggregate_resistance
    from tadropedge._old.scores.effective import effective_resistance
    from tadropedge._old.scores.solve import edge_scores
    from tadropedge._old.shift import ShiftOperator, shift_operator
    from tadropedge._old.sparsifier import sparsify
    from tadropedge._old.strategies import auto_gamma, keep_probabilities

__version__ = "0.2.0.dev0"

# Where each public name lives. Modules are loaded when a name is first used: ``import tadropedge`` costs nothing.
_HOMES = {
    "comparing": ("compare",),
    "errors": ("ConvergenceError", "NotEnoughMemoryError", "RepeatedEigenvalueWarning", "TadropedgeError"),
    "graph": ("Components", "Graph"),
    "registry": ("SCORES", "STRATEGIES"),
    "sampling": ("sample_directed", "sample_edges"),
    "scores.aggregate": ("aggregate_resistance",),
    "scores.effective": ("effective_resistance",),
    "scores.solve": ("edge_scores",),
    "shift": ("ShiftOperator", "shift_operator"),
    "sparsifier": ("sparsify",),
    "strategies": ("auto_gamma", "keep_probabilities"),
}
_MODULES = {name: module for module, names in _HOMES.items() for name in names}

__all__ = [
    "SCORES",
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
    "compare",
    "edge_scores",
    "effective_resistance",
    "keep_probabilities",
    "sample_directed",
    "sample_edges",
    "shift_operator",
    "sparsify",
]


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module 'tadropedge' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"tadropedge._old.{_MODULES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
