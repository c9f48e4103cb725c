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
    """The eight formulas, as they are printed."""
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
        "adjacency": lambda: A,
        "spectral": lambda: A / torch.linalg.eigvalsh(A)[-1] if A.any() else A,
        "laplacian": lambda: torch.diag(D) - A,
        "normalized-laplacian": lambda: torch.diag((D > 0).to(A.dtype)) - scaled,
    }[normalization]()


def relative_error(S, other):
    """E of S − S' = E S + S E by least squares of the Kronecker system; lstsq takes the one of smallest norm."""
    n = len(S)
    system = np.kron(S, np.eye(n)) + np.kron(np.eye(n), S)
    return np.linalg.lstsq(system, (S - other).ravel(), rcond=1e-9)[0].reshape(n, n)


def subspace_distance(first, second):
    """√(Σ_(κ<q) Σ_(i≥q) |u_κ · u'_i|²), with the second basis made whole by the complete QR decomposition."""
    q = first.shape[1]
    whole = np.linalg.qr(second, mode="complete")[0]
    return np.sqrt(((first.T @ whole[:, q:]) ** 2).sum())
