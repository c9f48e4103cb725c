"""Dense references: each fast path of the package, written again in about ten lines of plain NumPy or torch."""

from __future__ import annotations

import numpy as np
import scipy.linalg
import torch
from scipy.sparse.csgraph import connected_components


def adjacency(graph):
    A = np.zeros((graph.num_nodes, graph.num_nodes))
    low, high = graph.pairs.numpy()
    A[low, high] = A[high, low] = 1 if graph.weight is None else graph.weight.numpy()
    return A


def laplacian(A, kind="combinatorial"):
    degrees = A.sum(1)
    if kind == "combinatorial":
        return np.diag(degrees) - A
    scale = np.where(degrees > 0, degrees, 1) ** -0.5
    return np.diag((degrees > 0) * 1.0) - scale[:, None] * A * scale


def aggregate_resistance(graph, q, kind="combinatorial"):
    """[Dᵀ V Vᵀ D]_mm component by component; the whole eigenspace where q would cut a repeated eigenvalue."""
    low, high = graph.pairs.numpy()
    adj = graph.adjacency()
    count, labels = connected_components(adj)
    weights = np.full(len(low), np.nan)
    for component in range(count):
        nodes = np.flatnonzero(labels == component)
        if len(nodes) < max(q, 2):
            continue
        L = laplacian(adj[nodes][:, nodes].toarray(), kind)
        some = {"subset_by_index": (0, q + 7)} if len(nodes) > 1000 else {}
        values, vectors = scipy.linalg.eigh(L, overwrite_a=True, **some)
        k = q
        while k < len(nodes) and values[k] - values[k - 1] < 1e-6 * values[k] + 1e-12:
            k += 1
        V = np.zeros((graph.num_nodes, k))
        V[nodes] = vectors[:, :k]
        mine = labels[low] == component
        weights[mine] = ((V[low[mine]] - V[high[mine]]) ** 2).sum(1)
    return np.where(np.isnan(weights), np.nanmin(weights), weights)


def effective_resistance(graph):
    """(e_i − e_j)ᵀ L⁺ (e_i − e_j)."""
    inverse = np.linalg.pinv(laplacian(adjacency(graph)))
    low, high = graph.pairs.numpy()
    return inverse[low, low] + inverse[high, high] - 2 * inverse[low, high]


def triangles(graph):
    """Paths of two steps between the ends of each edge."""
    A = (adjacency(graph) > 0).astype(np.int64)
    low, high = graph.pairs.numpy()
    return (A @ A)[low, high]


def ends(graph, values):
    """What the two ends of each edge have, ``[2, M]``."""
    return np.asarray(values)[graph.pairs.numpy()]


def jaccard(graph):
    """Of the neighbourhoods as sets."""
    around = [set(np.flatnonzero(row)) for row in adjacency(graph)]
    return np.array([len(around[u] & around[v]) / len(around[u] | around[v]) for u, v in graph.pairs.T.tolist()])


def common_neighbours(graph):
    return triangles(graph) / ends(graph, (adjacency(graph) > 0).sum(1)).min(0)


def forman(graph):
    curvature = 4 - ends(graph, (adjacency(graph) > 0).sum(1)).sum(0) + 3 * triangles(graph)
    return curvature.max() - curvature


def cosine(graph, features):
    rows = torch.nn.functional.normalize(features.double()).numpy()
    low, high = graph.pairs.numpy()
    return np.maximum(0, (rows @ rows.T)[low, high])


def local(graph, worth):
    """1 − log(rank) / log(d), the larger of both ends; ``worth[u, v]`` of an edge to u, ties share the best rank."""
    A = adjacency(graph) > 0

    def seen_from(u, v):
        rank = 1 + (worth[u, A[u]] > worth[u, v]).sum()
        return 1 - np.log(rank) / np.log(A[u].sum()) if A[u].sum() > 1 else 1.0

    return np.array([max(seen_from(u, v), seen_from(v, u)) for u, v in graph.pairs.T.tolist()])


def local_degree(graph):
    return local(graph, np.tile((adjacency(graph) > 0).sum(0), (graph.num_nodes, 1)))


def local_similarity(graph):
    worth = np.zeros((graph.num_nodes, graph.num_nodes))
    low, high = graph.pairs.numpy()
    worth[low, high] = worth[high, low] = jaccard(graph)
    return local(graph, worth)


def mean_log(graph, centrality):
    means = np.log(ends(graph, centrality)).mean(0)
    return means - means.min()


def pagerank(graph):
    """σ = 0.85 A D⁻¹ σ + 1."""
    A = adjacency(graph)
    walk = A / np.where(A.sum(0) > 0, A.sum(0), 1)
    return mean_log(graph, np.linalg.solve(np.eye(len(A)) - 0.85 * walk, np.ones(len(A))))


def eigenvector(graph):
    """The leading eigenvector of each component, of mean square 1."""
    A = adjacency(graph)
    count, labels = connected_components(graph.adjacency())
    centrality = np.ones(len(A))
    for nodes in (np.flatnonzero(labels == component) for component in range(count)):
        leading = np.linalg.eigh(A[np.ix_(nodes, nodes)])[1][:, -1]
        centrality[nodes] = np.abs(leading) * np.sqrt(len(nodes)) + 1e-8
    return mean_log(graph, centrality)


def masked_adjacency(graph, keep):
    """A of the kept edges, float64; ``keep [M]``, or ``[2 M]`` with each direction apart."""
    low, high = graph.pairs
    values = keep.double() * (1 if graph.weight is None else graph.weight.repeat(len(keep) // len(low)))
    A = torch.zeros(graph.num_nodes, graph.num_nodes, dtype=torch.float64)
    if len(keep) == len(low):
        A[low, high] = A[high, low] = values
    else:
        A[torch.cat((low, high)), torch.cat((high, low))] = values
    return A


def shift(A, normalization):
    """The nine formulas, as they are printed."""
    identity = torch.eye(len(A), dtype=A.dtype)
    D, loops = A.sum(1), A.sum(1) + 1
    root = torch.where(D > 0, D, torch.inf) ** -0.5
    scaled = root[:, None] * A * root
    gcn = loops[:, None] ** -0.5 * (A + identity) * loops**-0.5
    return {
        "gcn": lambda: gcn,
        "first-order": lambda: identity + scaled,
        "gcn-residual": lambda: identity + gcn,
        "random-walk": lambda: (A + identity) / loops[:, None],
        "neighbour-mean": lambda: root[:, None] ** 2 * A,
        "adjacency": lambda: A,
        "spectral": lambda: A / torch.linalg.eigvalsh(A)[-1] if A.any() else A,
        "laplacian": lambda: torch.diag(D) - A,
        "normalized-laplacian": lambda: torch.diag((D > 0).to(A.dtype)) - scaled,
    }[normalization]()
