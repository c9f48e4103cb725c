"""Similarity of features: the cosine between what two neighbours are."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from tadropedge._old.checks import check_device, is_plain
from tadropedge._old.errors import TadropedgeError, show
from tadropedge._old.graph import Graph

if TYPE_CHECKING:
    import scipy.sparse as sp

ENTRIES = {"cpu": 1 << 18, "cuda": 1 << 24}  # features of one end that are looked at together: what a cache holds


class EqualScoresWarning(UserWarning):
    """All scores of a graph are equal, so they tell nothing of its edges."""


def cosine(graph: Graph, features: Tensor | None) -> Tensor:
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
    rows = _checked(graph, features)
    if rows.layout is torch.sparse_csr:
        return _told(_sparse(graph, rows).to(graph.device))
    products = [torch.empty(0, dtype=torch.float64, device=graph.device)]
    size = _each(rows, rows)
    step = max(1, ENTRIES[rows.device.type] // max(1, rows.shape[1]))
    for low, high in zip(*(end.split(step) for end in graph.pairs), strict=True):
        products.append(_each(rows[low], rows[high]))
    low, high = size[graph.pairs]
    return _told(_angle(torch.cat(products), low, high))


def _told(found: Tensor) -> Tensor:
    """The scores; that they are all equal, and so tell nothing of the edges, is said as a warning."""
    if len(found) > 1 and bool((found == found[0]).all()):
        why = "neighbours have no feature in common, as with one-hot features" if found[0] == 0 else "features agree"
        warnings.warn(
            f"the score 'cosine' is {float(found[0]):g} for every edge ({why}): all scores are equal, so dropping by "
            "them is dropping uniformly",
            EqualScoresWarning,
            stacklevel=3,
        )
    return found


def _checked(graph: Graph, features: Tensor | None) -> Tensor:
    if features is None:
        raise TadropedgeError("the score 'cosine' needs node features: give features= a tensor [N, F], or data.x")
    wanted = f"the score 'cosine' needs one row of features per node, [{graph.num_nodes}, F], dense or CSR"
    if not isinstance(features, Tensor):
        raise TadropedgeError(f"{wanted}, got {show(features)}")
    sparse = features.layout is torch.sparse_csr and features.device.type != "meta" and not features.is_complex()
    if not (sparse or is_plain(features)) or features.dim() != 2 or features.shape[0] != graph.num_nodes:
        raise TadropedgeError(f"{wanted}, got {features.dtype} ({features.layout}) of shape {list(features.shape)}")
    check_device("features", features, graph.device, "the graph")
    values = (features.values() if sparse else features).detach()
    if not bool(values.isfinite().all()):
        raise TadropedgeError(f"the score 'cosine' needs finite features, got {values[~values.isfinite()][0]:g}")
    return features.detach()


def _each(first: Tensor, second: Tensor) -> Tensor:
    """The products of two lists of rows, float64 ``[B]``, in pieces."""
    step = max(1, ENTRIES[first.device.type] // max(1, first.shape[1]))
    pieces = zip(first.split(step), second.split(step), strict=True)
    return torch.cat([(one.to(torch.float64) * other.to(torch.float64)).sum(1) for one, other in pieces])


def _sparse(graph: Graph, features: Tensor) -> Tensor:
    """The cosines of CSR features."""
    from scipy.sparse import csr_matrix

    parts = (features.values().to(torch.float64), features.col_indices(), features.crow_indices())
    rows: sp.csr_matrix = csr_matrix(tuple(part.cpu().numpy() for part in parts), shape=features.shape)
    rows.sum_duplicates()
    low, high = (end.cpu() for end in graph.pairs)
    step = max(1, 16 * ENTRIES["cpu"] // max(1, rows.nnz // rows.shape[0]))
    products = []
    for one, other in zip(low.split(step), high.split(step), strict=True):
        product = rows[one.numpy()].multiply(rows[other.numpy()])
        products.append(torch.from_numpy(product.sum(axis=1).A1))
    size = torch.from_numpy(rows.multiply(rows).sum(axis=1).A1)
    return _angle(torch.cat(products), size[low], size[high])


def _angle(product: Tensor, low: Tensor, high: Tensor) -> Tensor:
    """The cosine from the product of two rows and the product of each with itself."""
    # One root, not two: the cosine of a row with itself is then exactly 1.
    lengths = (low * high).sqrt()
    return torch.where(lengths > 0, product / lengths, 0.0).clamp(0, 1)
