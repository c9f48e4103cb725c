"""Similarity of features: the cosine between what two neighbours are."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from tadropedge._support.checks import check_device
from tadropedge.errors import TadropedgeError, show
from tadropedge.graph import Graph

ENTRIES = {"cpu": 1 << 18, "cuda": 1 << 24}  # features of one end that are looked at together: what a cache holds

Multiply = Callable[[Tensor, Tensor], Tensor]


def cosine(graph: Graph, features: Tensor) -> Tensor:
    """max(0, x_u · x_v / (|x_u| |x_v|)) for every edge (u, v), float64 ``[M]``; 0 where a node has no features.

    ``features [N, F]``, dense or CSR, on the device of the graph. The products of whole numbers, such as bags of words,
    are exact, so equal scores are equal bits. Edge weights do not enter.

    * Source: the feature similarity of GCN-Jaccard and its kin (Wu et al., IJCAI 2019; Zhang and Zitnik, GNNGuard,
      NeurIPS 2020), and of DropEdge++ (Han et al., 2023).
    * Cost: O(M F), or the entries of the rows of all edges where the features are sparse; memory for a few million
      entries at a time. Sparse features are multiplied on the CPU.
    * Good for: noisy graphs whose features tell the classes, trees and bipartite graphs included, where no
      neighbours are shared. It says nothing new to a network that reads the same features.

    >>> graph = Graph.from_edge_index([[0, 1, 2], [1, 2, 3]])
    >>> cosine(graph, torch.tensor([[1.0, 0.0], [3.0, 4.0], [-4.0, 3.0], [0.0, 0.0]])).round(decimals=4).tolist()
    [0.6, 0.0, 0.0]
    """
    features = _checked(graph, features)
    multiply, step = _sparse(features) if features.layout is torch.sparse_csr else _dense(features)
    nodes = torch.arange(graph.num_nodes, device=graph.device)
    low, high = graph.pairs
    product, square = _in_chunks(multiply, low, high, step), _in_chunks(multiply, nodes, nodes, step)
    # One root, not two: the cosine of a row with itself is then exactly 1.
    lengths = (square[low] * square[high]).sqrt()
    return torch.where(lengths > 0, product / lengths, 0.0).clamp(0, 1)


def _dense(features: Tensor) -> tuple[Multiply, int]:
    """The product of two lists of rows, and how many rows are looked at together."""

    def multiply(low: Tensor, high: Tensor) -> Tensor:
        return (features[low].to(torch.float64) * features[high].to(torch.float64)).sum(1)

    return multiply, ENTRIES[features.device.type] // max(1, features.shape[1])


def _sparse(features: Tensor) -> tuple[Multiply, int]:
    """The same of CSR features."""
    from scipy.sparse import csr_matrix

    parts = (features.values().to(torch.float64), features.col_indices(), features.crow_indices())
    rows = csr_matrix(tuple(part.cpu().numpy() for part in parts), shape=features.shape)
    rows.sum_duplicates()

    def multiply(low: Tensor, high: Tensor) -> Tensor:
        product = rows[low.cpu().numpy()].multiply(rows[high.cpu().numpy()])
        return torch.from_numpy(product.sum(axis=1).A1).to(features.device)

    return multiply, 16 * ENTRIES["cpu"] // max(1, rows.nnz // rows.shape[0])


def _in_chunks(multiply: Multiply, low: Tensor, high: Tensor, step: int) -> Tensor:
    pieces = zip(low.split(max(1, step)), high.split(max(1, step)), strict=True)
    return torch.cat([multiply(one, other) for one, other in pieces])


def _checked(graph: Graph, features: object) -> Tensor:
    """Return ``features`` if they are one row of finite numbers per node."""
    wanted = f"the score 'cosine' needs one row of features per node, [{graph.num_nodes}, F], dense or CSR"
    if not isinstance(features, Tensor):
        raise TadropedgeError(f"{wanted}, got {show(features)}", argument="features")
    plain = features.layout in (torch.strided, torch.sparse_csr) and not features.is_complex()
    if not plain or features.dim() != 2 or features.shape[0] != graph.num_nodes:
        got = f"{features.dtype} ({features.layout}) of shape {list(features.shape)}"
        raise TadropedgeError(f"{wanted}, got {got}", argument="features")
    check_device("features", features, graph.device, "the graph")
    values = (features if features.layout is torch.strided else features.values()).detach()
    if not bool(values.isfinite().all()):
        wrong = float(values[~values.isfinite()][0])
        raise TadropedgeError(f"the score 'cosine' needs finite features, got {wrong:g}", argument="features")
    return features.detach()
