"""The low Laplacian spectrum of every component: solvers, the plan that chooses them, the ladder that checks them."""

from tadropedge._old.spectrum.clusters import cluster_counts, gap_window
from tadropedge._old.spectrum.ladder import Subspaces, cluster_subspaces
from tadropedge._old.spectrum.plan import LAPLACIANS, Explanation, Step, explain
from tadropedge._old.spectrum.solvers import SOLVERS

__all__ = [
    "LAPLACIANS",
    "SOLVERS",
    "Explanation",
    "Step",
    "Subspaces",
    "cluster_counts",
    "cluster_subspaces",
    "explain",
    "gap_window",
]
