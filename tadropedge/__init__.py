"""tadropedge: score the edges of a graph; weigh, drop or prune them by the score.

>>> import torch
>>> import tadropedge as tde
>>> graph = tde.Graph.from_edge_index([[0, 0, 1, 2, 3, 3, 4], [1, 2, 2, 3, 4, 5, 5]])  # two triangles, joined
>>> scores = tde.edge_scores(graph, "aggregate", q=2)
>>> prob = tde.keep_probabilities(scores, rule="cdf", keep_prob=0.7)
>>> keep = tde.sample_edges(prob, seed=0, epoch=3)
>>> shift = tde.shift_operator(graph, keep, normalization="gcn")
>>> (shift @ torch.eye(6)).shape
torch.Size([6, 6])
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # for checkers of types, which read no dictionary
    from tadropedge.dropping import Dropping as Dropping
    from tadropedge.errors import ConvergenceError as ConvergenceError
    from tadropedge.errors import EqualScoresWarning as EqualScoresWarning
    from tadropedge.errors import NotEnoughMemoryError as NotEnoughMemoryError
    from tadropedge.errors import RepeatedEigenvalueWarning as RepeatedEigenvalueWarning
    from tadropedge.errors import TadropedgeError as TadropedgeError
    from tadropedge.graph import Components as Components
    from tadropedge.graph import Graph as Graph
    from tadropedge.lab.citations import cite as cite
    from tadropedge.lab.comparison.compare import compare as compare
    from tadropedge.lab.comparison.judge import judge as judge
    from tadropedge.losses import consistency_loss as consistency_loss
    from tadropedge.operators.shift import ShiftOperator as ShiftOperator
    from tadropedge.operators.shift import shift_operator as shift_operator
    from tadropedge.registry import OPTIONS as OPTIONS
    from tadropedge.registry import RULES as RULES
    from tadropedge.registry import SCORES as SCORES
    from tadropedge.registry import USES as USES
    from tadropedge.rules import auto_gamma as auto_gamma
    from tadropedge.rules import keep_probabilities as keep_probabilities
    from tadropedge.sampling.sample import sample_edges as sample_edges
    from tadropedge.scores.compose import blend as blend
    from tadropedge.scores.compose import rank as rank
    from tadropedge.scores.solve import edge_scores as edge_scores
    from tadropedge.sparsifier.certificate import certify as certify
    from tadropedge.sparsifier.sparsify import sparsify as sparsify

__version__ = "0.2.0.dev0"

# Where each public name lives. Modules are loaded when a name is first used: ``import tadropedge`` costs nothing.
_HOME = {
    "Components": "graph",
    "ConvergenceError": "errors",
    "Dropping": "dropping",
    "EqualScoresWarning": "errors",
    "Graph": "graph",
    "NotEnoughMemoryError": "errors",
    "OPTIONS": "registry",
    "RULES": "registry",
    "RepeatedEigenvalueWarning": "errors",
    "SCORES": "registry",
    "ShiftOperator": "operators.shift",
    "TadropedgeError": "errors",
    "USES": "registry",
    "auto_gamma": "rules",
    "blend": "scores.compose",
    "certify": "sparsifier.certificate",
    "cite": "lab.citations",
    "compare": "lab.comparison.compare",
    "consistency_loss": "losses",
    "edge_scores": "scores.solve",
    "judge": "lab.comparison.judge",
    "keep_probabilities": "rules",
    "rank": "scores.compose",
    "sample_edges": "sampling.sample",
    "shift_operator": "operators.shift",
    "sparsify": "sparsifier.sparsify",
}

__all__ = sorted(_HOME)


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'tadropedge' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"tadropedge.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
