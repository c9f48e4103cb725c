"""How well a partition fits a graph, and how far the low modes of two graphs are apart (Proposition 1)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from tadropedge._old.checks import check_device, check_integer, check_kind, check_length, check_tensor
from tadropedge._old.errors import TadropedgeError
from tadropedge._old.graph import Graph, check_graph
from tadropedge._old.memory import check_memory, within_memory
from tadropedge._old.shift import check_keep, shift_operator

ORTHONORMAL = 1e-6
DENSE_BYTES = 24  # per entry of a dense matrix: itself, its eigenvectors, the work of the solver


@within_memory("the whole spectrum of a graph", "it is dense: take a smaller graph or fewer subgraphs")
def low_modes(graph: Graph, q: int, keep: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """All eigenvalues ``[..., N]`` and the q lowest eigenvectors ``[..., N, q]`` of D − A, dense in float64: O(N³).

    Unlike the weights, which treat each component for itself, this is the spectrum of the whole graph, or of its
    subgraphs given by a mask ``keep [..., M]``.

    >>> values, modes = low_modes(Graph.from_edge_index([[0, 2], [1, 3]]), q=2)
    >>> values.round(decimals=6).abs().tolist(), modes.shape
    ([0.0, 0.0, 2.0, 2.0], torch.Size([4, 2]))
    """
    check_graph(graph)
    if check_integer("q", q, least=1) > graph.num_nodes:
        raise TadropedgeError(f"q={q} is larger than the number of nodes, {graph.num_nodes}")
    matrices = 1 if keep is None else max(1, check_tensor("keep", keep).numel() // max(1, graph.num_edges))
    what = f"the whole spectrum of {matrices} graphs of {graph.num_nodes} nodes"
    check_memory(DENSE_BYTES * matrices * graph.num_nodes**2, what, device=graph.device)
    laplacian = shift_operator(graph, keep, normalization="laplacian", dtype=torch.float64).to_dense()
    values, vectors = torch.linalg.eigh(laplacian)
    return values, vectors[..., :q]


def subspace_distance(first: Tensor, second: Tensor) -> Tensor:
    """√(Σ_(κ<q) Σ_(i≥q) |u_κ · u'_i|²), the distance of two subspaces given by orthonormal bases ``[..., N, q]``.

    It is ‖(I − U Uᵀ) U'‖_F, which needs no other eigenvectors, and the root of the sum of the squared sines of the
    principal angles. A metric on q-dimensional subspaces, from 0 to √min(q, N − q).

    >>> plane = torch.eye(3)[:, :2]
    >>> subspace_distance(plane, plane[:, [1, 0]]).item(), subspace_distance(plane, torch.eye(3)[:, 1:]).item()
    (0.0, 1.0)
    """
    first, second = _orthonormal("first", first), _orthonormal("second", second)
    axes = zip(first.shape[-3::-1], second.shape[-3::-1], strict=False)  # those of batches, from the last
    if first.shape[-2:] != second.shape[-2:] or any(one != other and 1 not in (one, other) for one, other in axes):
        raise TadropedgeError(
            f"first and second must span subspaces of the same dimension, got bases of shape {list(first.shape)} "
            f"and {list(second.shape)}"
        )
    distance: Tensor = torch.linalg.matrix_norm(second - first @ (first.mT @ second))
    return distance


def relative_subgraph_degree(graph: Graph, clusters: Tensor, keep: Tensor | None = None) -> Tensor:
    """β(G_κ) = |E(G, G_κ)| / √|V(G_κ)| of each cluster, float64 ``[..., q]``.

    ``clusters [N]`` numbers the cluster of each node from 0 to q − 1; E(G, G_κ) are the edges that leave cluster κ. The
    edges of a weighted graph count with their weights, for which Proposition 1 holds as well.

    >>> graph = Graph.from_edge_index([[0, 1, 2, 3], [1, 2, 3, 4]])
    >>> relative_subgraph_degree(graph, torch.tensor([0, 0, 0, 0, 1])).tolist()
    [0.5, 1.0]
    """
    check_graph(graph)
    sizes = _cluster_sizes(graph, clusters)
    low, high = clusters[graph.pairs]
    leaving = (low != high).to(torch.float64) if graph.weight is None else graph.weight.where(low != high, 0.0)
    if keep is not None:
        check_length("keep", check_keep(graph, keep), graph.num_edges, "edge of the graph")
        leaving = leaving * keep
    counts = leaving.new_zeros((*leaving.shape[:-1], len(sizes)))
    for end in (low, high):
        counts.scatter_add_(-1, end.expand_as(leaving), leaving)
    return counts / sizes.sqrt()


@dataclass(frozen=True, eq=False)
class Realizability:
    """How well a q-partition fits a graph, or each of a batch of subgraphs ``[...]``.

    * ``alpha``: the smallest α for which the partition is α-realizable, infinite where λ_q = 0;
    * ``mean_degree``: β̄, the root mean square of the relative subgraph degrees;
    * ``next_value``: λ_q, the lowest eigenvalue of D − A beyond the first q;
    * ``modes [..., N, q]``: the q lowest eigenvectors, from which the distance is measured.
    """

    alpha: Tensor
    mean_degree: Tensor
    next_value: Tensor
    modes: Tensor

    def bound(self, other: Realizability) -> Tensor:
        """α + α' of Proposition 1, which no distance between the two subspaces of low modes exceeds."""
        return self.alpha + check_kind("other", other, Realizability).alpha

    @property
    def largest_distance(self) -> float:
        """√min(q, N − q), which no distance exceeds at all: a larger bound says nothing."""
        nodes, q = self.modes.shape[-2:]
        return math.sqrt(min(q, nodes - q))


def alpha_realizable(graph: Graph, clusters: Tensor, keep: Tensor | None = None) -> Realizability:
    """The smallest α with β̄ ≤ α λ_q / √(2 q): how well the q ``clusters [N]`` fit the graph. Dense, O(N³).

    Dropping edges inside clusters leaves β̄ as it is and can only lower λ_q, so α can only grow.

    >>> graph = Graph.from_edge_index([[0, 0, 1, 2, 3, 3, 4], [1, 2, 2, 3, 4, 5, 5]])  # two triangles and an edge
    >>> fit = alpha_realizable(graph, torch.tensor([0, 0, 0, 1, 1, 1]))
    >>> round(fit.alpha.item(), 4)  # β̄ = 1 / √3, λ_2 = 3, q = 2
    0.3849
    """
    beta = relative_subgraph_degree(graph, clusters, keep)
    q = beta.shape[-1]
    if q >= graph.num_nodes:
        raise TadropedgeError(f"{q} clusters of {graph.num_nodes} nodes leave no eigenvalue beyond the first {q}")
    values, modes = low_modes(graph, q, keep)
    mean = beta.square().mean(dim=-1).sqrt()
    # An eigenvalue that is zero but for rounding means more than q components.
    zero = values[..., q] <= 1e-12 * values[..., -1].clamp_min(1.0) * graph.num_nodes
    beyond = torch.where(zero, 0.0, values[..., q])
    alpha = torch.where(zero, torch.inf, mean * math.sqrt(2 * q) / torch.where(zero, 1.0, beyond))
    return Realizability(alpha, mean, beyond, modes)


def _cluster_sizes(graph: Graph, clusters: Tensor) -> Tensor:
    """The number of nodes of each cluster; none may be empty."""
    check_length("clusters", clusters, graph.num_nodes, "node")
    check_device("clusters", clusters, graph.device, "the graph")
    if clusters.dtype != torch.int64 or clusters.dim() != 1 or int(clusters.min()) < 0:
        raise TadropedgeError(f"clusters must be int64 numbers from 0, one for each node, got {clusters.dtype}")
    sizes = torch.bincount(clusters)
    empty = (sizes == 0).nonzero()
    if empty.numel():
        raise TadropedgeError(f"cluster {int(empty[0])} has no nodes: number the clusters from 0")
    return sizes.to(torch.float64)


def _orthonormal(name: str, basis: Tensor) -> Tensor:
    if check_tensor(name, basis).dim() < 2 or basis.shape[-1] > basis.shape[-2]:
        raise TadropedgeError(f"{name} must be a basis [..., N, q] with q <= N, got {list(basis.shape)}")
    basis = basis.to(torch.float64)
    identity = torch.eye(basis.shape[-1], dtype=torch.float64, device=basis.device)
    if not bool(((basis.mT @ basis - identity).abs() <= ORTHONORMAL).all()):
        raise TadropedgeError(f"the columns of {name} must be orthonormal, as eigenvectors are")
    return basis
