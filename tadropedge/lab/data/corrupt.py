"""Corrupted data: edges added at random, or the features of some nodes hidden; pure functions of a seed."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
import torch
from torch import Tensor

from tadropedge._support.checks import check_integer, check_number, check_seed
from tadropedge.errors import TadropedgeError
from tadropedge.graph import Graph
from tadropedge.lab.data.dataset import Dataset
from tadropedge.lab.data.features import csr_tensor

MOST = 1e6  # a share of more edges is a mistake
HIDING = 1  # the stream of random words that hides nodes: splits are drawn from the seed itself


def corrupt(dataset: Dataset, *, add_edges: float = 0.0, hide_features: float = 0.0, seed: int = 0) -> Dataset:
    """The dataset with random edges added and with features hidden; labels and splits stay as they are.

    ``add_edges`` is a share of the graph's own edges, 1.0 doubles them: see :func:`add_random_edges`.
    ``hide_features`` is a share of the nodes: see :func:`hide_rows`.

    >>> from tadropedge.lab.data.synthetic import karate
    >>> corrupt(karate(), add_edges=0.5, hide_features=0.5)
    Dataset('karate+50%edges+50%hidden', num_nodes=34, num_edges=117, num_features=34, num_classes=4)
    """
    if check_number("add_edges", add_edges, 0, MOST):
        if dataset.column is not None:
            raise TadropedgeError("edges that are added have no number in a column of scores: leave out one of the two")
        graph = add_random_edges(dataset.graph, add_edges, seed)
        dataset = replace(dataset, name=f"{dataset.name}+{100 * add_edges:.6g}%edges", graph=graph)
    if check_number("hide_features", hide_features, 0, 1):
        features = hide_rows(dataset.features, hide_features, seed)
        dataset = replace(dataset, name=f"{dataset.name}+{100 * hide_features:.6g}%hidden", features=features)
    return dataset


def add_random_edges(graph: Graph, share: float, seed: int = 0) -> Graph:
    """The graph with round(``share`` · M) edges more, between pairs of nodes that had none.

    Added edges have the mean weight of the graph's own, where these have weights.

    >>> ring = Graph.from_edge_index([[0, 1, 2, 3], [1, 2, 3, 0]])
    >>> add_random_edges(ring, 0.5).pairs.tolist()  # both of the pairs that were free
    [[0, 0, 0, 1, 1, 2], [1, 2, 3, 2, 3, 3]]
    """
    count = round(share * graph.num_edges)
    added = torch.from_numpy(random_pairs(graph, count, seed)).to(graph.device)
    weight = None if graph.weight is None else torch.cat((graph.weight, graph.weight.mean().expand(count)))
    made = Graph.from_edge_index(torch.cat((graph.pairs, added), dim=1), graph.num_nodes, weight)
    return replace(made, node_ids=graph.node_ids)


def random_pairs(graph: Graph, count: int, seed: int = 0) -> npt.NDArray[np.int64]:
    """``count`` different pairs ``[2, count]`` of nodes that have no edge between them, in the order of their drawing.

    >>> random_pairs(Graph.from_edge_index([[0, 1], [1, 2]]), 1).tolist()
    [[0], [2]]
    """
    n, count, seed = graph.num_nodes, check_integer("count", count, least=0), check_seed(seed)
    if count > n * (n - 1) // 2 - graph.num_edges:
        raise TadropedgeError(f"{n} nodes have no room for {count} more edges, got {graph.num_edges} already")
    random = np.random.default_rng(seed % 2**64)
    low, high = graph.pairs.cpu().numpy()
    taken = low * n + high
    found = np.empty(0, dtype=np.int64)
    while len(found) < count:
        ends = np.sort(random.integers(n, size=(2, 2 * (count - len(found)) + 8)), axis=0)
        new = ends[0] * n + ends[1]
        new = new[(ends[0] < ends[1]) & ~np.isin(new, taken)]
        both = np.concatenate((found, new))
        found = both[np.sort(np.unique(both, return_index=True)[1])]  # in the order in which they were drawn
    return np.stack(np.divmod(found[:count], n))


def hide_rows(features: Tensor, share: float, seed: int = 0) -> Tensor:
    """Features ``[N, F]`` with rows of zeros for a share of the nodes, which are the first of a random order.

    So those hidden at 0.5 are among those hidden at 0.8; below 1 at least one node keeps its own. With 1 nothing could
    be learned from zeros: then every node gets a feature of its own, the identity ``[N, N]`` as CSR, as is usual for
    graphs without features.

    >>> hide_rows(torch.ones(6, 1), 0.5)[:, 0].tolist(), hide_rows(torch.ones(6, 1), 0.7)[:, 0].tolist()
    ([1.0, 1.0, 0.0, 0.0, 0.0, 1.0], [0.0, 1.0, 0.0, 0.0, 0.0, 1.0])
    """
    nodes = features.shape[0]
    if share == 1:
        return csr_tensor(sp.identity(nodes, dtype=np.float32, format="csr")).to(features.device)
    words = np.random.SeedSequence(check_seed(seed) % 2**64, spawn_key=(HIDING,))
    order = np.random.default_rng(words).permutation(nodes)
    stays = torch.ones(nodes, device=features.device)
    stays[torch.from_numpy(order[: min(round(share * nodes), nodes - 1)]).to(features.device)] = 0
    if features.layout is not torch.sparse_csr:
        return features * stays[:, None]
    parts = (part.cpu().numpy() for part in (features.values(), features.col_indices(), features.crow_indices()))
    matrix = sp.csr_matrix(tuple(parts), shape=tuple(features.shape))
    matrix = sp.diags(stays.cpu().numpy()) @ matrix
    matrix.eliminate_zeros()
    return csr_tensor(matrix.tocsr()).to(features.device)
