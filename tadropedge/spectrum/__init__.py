"""The low Laplacian spectrum of every component: solvers, the ladder that checks them, the choice of q."""

from tadropedge.spectrum.clusters import cluster_counts, gap_window
from tadropedge.spectrum.explain import Explanation, explain
from tadropedge.spectrum.solvers import SOLVERS
from tadropedge.spectrum.subspaces import LAPLACIANS, Subspaces, cluster_subspaces

__all__ = [
    "LAPLACIANS",
    "SOLVERS",
    "Explanation",
    "Subspaces",
    "cluster_counts",
    "cluster_subspaces",
    "explain",
    "gap_window",
]
