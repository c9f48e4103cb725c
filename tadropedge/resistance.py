"""Phase II: how much each edge holds its component together.

Aggregate resistance is the paper's weight, from the q lowest modes of each component. Effective resistance is
the same form over all modes, each divided by its eigenvalue: the electrical resistance between the ends.
"""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from tadropedge.cache import Arrays, cached
from tadropedge.electrical import METHODS, resistances
from tadropedge.errors import (
    RepeatedEigenvalueWarning,
    TadropedgeError,
    check_integer,
    check_positive,
    check_runs_on,
    lookup,
)
from tadropedge.graph import Graph, check_graph
from tadropedge.spectrum import LAPLACIANS, SOLVERS, Subspaces, cluster_subspaces
from tadropedge.spectrum.clusters import Clusters

Floats = npt.NDArray[np.float64]

SAME = 1e-9  # weights this close, relatively, are equal in exact arithmetic and made equal here
LONGEST_TIE = 4


def aggregate_resistance(
    graph: Graph,
    q: int | None = None,
    *,
    desired_clusters: int | None = None,
    laplacian: str = "combinatorial",
    solver: str = "auto",
    tolerance: float = 1e-8,
    cache_dir: str | Path | None = None,
    progress: bool | None = None,
    device: torch.device | str | None = None,
) -> Tensor:
    """Aggregate resistance weights ω, float64 ``[M]`` in the order of ``graph.pairs``.

    ω_m = [Dᵀ V Vᵀ D]_mm = Σ_(ℓ<q) (u_ℓ[i_m] − u_ℓ[j_m])², where u_0 … u_(q−1) are the eigenvectors of the
    q lowest eigenvalues of the Laplacian of the edge's component and D is its ±1 incidence matrix.

    * Components with fewer than q nodes get the lowest weight seen in the others.
    * ``desired_clusters=α`` chooses q for each component, at its largest eigengap from α − ⌊α/2⌋ to α + ⌊α/2⌋
      (see :func:`tadropedge.spectrum.gap_window`).
    * Where q falls inside a repeated eigenvalue the q vectors are not unique. Then the whole eigenspace is
      used and a :class:`RepeatedEigenvalueWarning` says so, once a call.
    * ``laplacian``: ``"combinatorial"`` (D − A, the paper's text) or ``"normalized"`` (I − D^-1/2 A D^-1/2,
      which fits the paper's γ better). Edge weights of the graph enter the Laplacian.
    * ``solver``: ``"auto"``, or one of ``dense``, ``shift-invert``, ``davidson``, ``lobpcg``, ``lanczos``,
      ``short-lanczos``. Every answer is checked by its residual; ``auto`` looks at each component first
      (:func:`tadropedge.spectrum.explain` says what it sees), goes on to the next solver when one fails, and at the
      end raises a :class:`ConvergenceError`, or a :class:`NotEnoughMemoryError` before it begins.
    * ``tolerance`` bounds the absolute error of every weight, as far as float64 allows; where it does not, the
      ``tadropedge`` logger warns and says which bound holds. Weights below the numerical floor are exact zeros, and
      weights that differ by rounding alone are equal: ties, not noise.
    * ``cache_dir`` keeps results on disk, by the content of graph and settings.
    * ``device``: where large components are solved, ``"cpu"`` or ``"cuda"``; by default where the graph lies.

    Two triangles and the edge that joins them:

    >>> graph = Graph.from_edge_index([[0, 0, 1, 2, 3, 3, 4], [1, 2, 2, 3, 4, 5, 5]])
    >>> aggregate_resistance(graph, q=2).round(decimals=3).tolist()
    [0.0, 0.042, 0.042, 0.272, 0.042, 0.042, 0.0]
    """
    clusters = checked_clusters(graph, q, desired_clusters)
    lookup("laplacian", laplacian, LAPLACIANS)
    lookup("solver", solver, {"auto": None, **SOLVERS})
    tolerance = check_positive("tolerance", tolerance)
    where = check_runs_on(device, graph.device)
    settings = {
        "weights": "aggregate",
        "q": clusters.q,
        "desired": clusters.desired,
        "laplacian": laplacian,
        "solver": solver,
        "tolerance": tolerance,
    }
    arrays = cached(
        cache_dir,
        graph,
        settings,
        lambda: _aggregate(graph, clusters, laplacian, solver, tolerance, progress, where),
    )
    widened, solved = arrays["widened"].tolist()
    if widened:
        warnings.warn(
            f"{name_of(clusters)} falls inside a repeated eigenvalue in {widened:.0f} of {solved:.0f} components; "
            "the whole eigenspace is used there",
            RepeatedEigenvalueWarning,
            stacklevel=2,
        )
    return torch.from_numpy(arrays["weights"]).to(graph.device)


def checked_clusters(graph: Graph, q: int | None, desired_clusters: int | None) -> Clusters:
    """The number of clusters that is asked for, if at least one component has as many nodes."""
    clusters = Clusters.wanted(q, desired_clusters)
    if clusters.least_nodes > check_graph(graph).components.largest:
        name = "q" if q is not None else "desired_clusters"
        raise TadropedgeError(
            f"{name}={clusters.least_nodes} is larger than every component; the largest has "
            f"{graph.components.largest} nodes"
        )
    return clusters


def name_of(clusters: Clusters) -> str:
    """How the user asked for the number of clusters."""
    return f"q={clusters.q}" if clusters.q is not None else f"desired_clusters={clusters.desired}"


def _aggregate(
    graph: Graph,
    clusters: Clusters,
    laplacian: str,
    solver: str,
    tolerance: float,
    progress: bool | None,
    device: torch.device,
) -> Arrays:
    weights = np.full(graph.num_edges, np.nan)
    widened = solved = 0
    for modes in cluster_subspaces(graph, clusters, laplacian, solver, tolerance, progress, device):
        weights[modes.block.edges] = modal_weights(modes)
        widened += int(modes.widened.sum())
        solved += modes.block.count
    return {"weights": settled(weights), "widened": np.array([widened, solved], dtype=np.float64)}


def modal_weights(modes: Subspaces) -> Floats:
    """ω of every edge of a block, in the order of ``modes.block.edges``, before rounding is made to ties."""
    block = modes.block
    values = modes.local[block.member, block.low] + modes.local[block.member, block.high]
    for column in range(modes.vectors.shape[2]):
        mode = modes.vectors[:, :, column]
        values += (mode[block.member, block.low] - mode[block.member, block.high]) ** 2
    values[values <= modes.floor[block.member]] = 0.0
    values[modes.counts[block.member] == block.size] = 2.0  # all modes: P = I
    return values


def settled(weights: Floats) -> Floats:
    """The weights of a whole graph: NaN, of components without modes of their own, as the lowest; ties made equal."""
    known = ~np.isnan(weights)
    lowest = weights[known].min() if known.any() else 0.0
    return _make_ties(np.where(known, weights, lowest))


def _make_ties(weights: Floats) -> Floats:
    """Give weights that differ by rounding alone one value, so that their ranks do not depend on noise."""
    order = np.argsort(weights, kind="stable")
    ascending = weights[order]
    starts = np.concatenate(([True], np.diff(ascending) > SAME * ascending[1:]))
    group = np.cumsum(starts) - 1
    least = ascending[starts]
    most = ascending[np.append(starts[1:], True)]
    narrow = most - least <= LONGEST_TIE * SAME * most  # a long chain of near neighbours is no tie
    tied = np.empty_like(weights)
    tied[order] = np.where(narrow[group], least[group], ascending)
    return tied


def effective_resistance(
    graph: Graph,
    *,
    method: str = "auto",
    relative_error: float = 0.1,
    seed: int = 0,
    cache_dir: str | Path | None = None,
    progress: bool | None = None,
    device: torch.device | str | None = None,
) -> Tensor:
    """Effective resistance between the ends of each edge, float64 ``[M]`` in the order of ``graph.pairs``.

    R_m = (e_i − e_j)ᵀ L⁺ (e_i − e_j), with L = D − A. On unweighted graphs it is 1 on bridges, less elsewhere, and
    Σ R = N − (number of components): R_m is the probability that edge m lies in a random spanning tree.

    Bridges are found first: their resistance is exactly one over their weight, and without them the graph
    falls into parts that do not influence each other. ``exact`` inverts the Laplacian of each part;
    ``sketch`` projects on random signs (Johnson and Lindenstrauss): k = ⌈2 / relative_error²⌉ Laplacian
    solves estimate every R_m without bias, with a standard error of ``relative_error`` · R_m, and the sum is
    then made right. ``auto`` is exact for parts of up to 4,096 nodes and sketches larger ones; ``sketch`` still
    inverts parts of up to 512 nodes, where that is cheaper. ``device`` says where large parts are solved, by default
    where the graph lies; the same seed gives the same estimates there, up to the accuracy of the solves.

    >>> graph = Graph.from_edge_index([[0, 1, 2, 2], [1, 2, 0, 3]])  # a triangle with a tail
    >>> effective_resistance(graph).round(decimals=4).tolist()
    [0.6667, 0.6667, 0.6667, 1.0]
    """
    check_graph(graph)
    lookup("method", method, METHODS)
    relative_error = check_positive("relative_error", relative_error, below=1)
    seed = check_integer("seed", seed, least=0)
    where = check_runs_on(device, graph.device)
    settings = {"weights": "effective", "method": method, "error": relative_error, "seed": seed}
    arrays = cached(
        cache_dir,
        graph,
        settings,
        lambda: {"weights": _make_ties(resistances(graph, method, relative_error, seed, progress, where))},
    )
    return torch.from_numpy(arrays["weights"]).to(graph.device)
