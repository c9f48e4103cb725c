"""The quantities of the paper's analysis, for any graph and any model.

How far a subgraph is from its graph (relative error, subspace distance), how far that can move a network (Lipschitz
constants, Theorem 1), how well a partition fits a graph (α-realizability, Proposition 1), and how much the outputs of
a network vary over subgraphs.
"""

from tadropedge._old.diagnostics.filters import divided_lipschitz, lipschitz, response_bound, theorem_constant
from tadropedge._old.diagnostics.partition import (
    Realizability,
    alpha_realizable,
    low_modes,
    relative_subgraph_degree,
    subspace_distance,
)
from tadropedge._old.diagnostics.relative_error import ErrorModel, RelativeError, misalignment, relative_error
from tadropedge._old.diagnostics.variance import OutputVariance, output_variance

__all__ = [
    "ErrorModel",
    "OutputVariance",
    "Realizability",
    "RelativeError",
    "alpha_realizable",
    "divided_lipschitz",
    "lipschitz",
    "low_modes",
    "misalignment",
    "output_variance",
    "relative_error",
    "relative_subgraph_degree",
    "response_bound",
    "subspace_distance",
    "theorem_constant",
]
