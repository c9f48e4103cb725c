"""Conditions: the same data with edges added at random, or with the features of some nodes hidden.

Both are pure functions of a seed: under the same conditions every method sees the same data. Labels, the split and how
others are drawn stay as they are.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
import torch
from torch import Tensor

from tadropedge._old.checks import check_integer, check_kind, check_number, check_seed, settle
from tadropedge._old.data.dataset import Dataset
from tadropedge._old.data.features import csr_tensor
from tadropedge._old.errors import TadropedgeError
from tadropedge._old.graph import Graph
from tadropedge._old.memory import check_memory
from tadropedge._old.sparse import hush_beta_warning

PAIR_BYTES = 200  # per pair that is drawn: its ends, its key, and what is sorted
MOST = 1e6  # a share of more edges is a mistake
HIDING = 1  # the stream of random words that hides nodes: splits are drawn from the seed itself


@dataclass(frozen=True)
class Conditions:
    """What is done to a dataset before anything is trained on it.

    * ``add_edges``: random edges added between pairs that have none, as a share of the graph's own; 1.0 doubles them;
    * ``hide_features``: the share of the nodes whose features are replaced, see :func:`conditioned`;
    * ``seed``: chooses both.

    >>> Conditions(add_edges=0.25).words, bool(Conditions())
    ('+25%edges', False)
    """

    add_edges: float = 0.0
    hide_features: float = 0.0
    seed: int = 0

    def __post_init__(self) -> None:
        settle(self, add_edges=check_number("add_edges", self.add_edges, 0, MOST))
        settle(self, hide_features=check_number("hide_features", self.hide_features, 0, 1))
        settle(self, seed=check_seed(self.seed))

    def __bool__(self) -> bool:
        return bool(self.add_edges or self.hide_features)

    @property
    def words(self) -> str:
        """What follows the name of the data; nothing where nothing is done."""
        return "".join(self._parts())

    def _parts(self) -> Iterator[str]:
        if self.add_edges:
            yield f"+{100 * self.add_edges:.6g}%edges"
        if self.hide_features:
            yield f"+{100 * self.hide_features:.6g}%hidden"


def conditioned(dataset: Dataset, conditions: Conditions) -> Dataset:
    """The dataset under ``conditions``, on its device; its name tells them, as ``cora+100%edges+50%hidden``.

    *Added edges* have the mean weight of the graph's own, where these have weights. A column of scores has no numbers
    for them, so a dataset that has one is refused.

    *Hidden features* are rows of zeros, of nodes that are chosen at random and nested: those hidden at 0.5 are among
    those hidden at 0.8. Below 1, at least one node keeps its own. With 1, nothing could be learned from zeros: then
    every node gets a feature of its own, the identity ``[N, N]`` as CSR, as is usual for graphs without features.

    >>> from tadropedge._old.data import load_karate
    >>> conditioned(load_karate(), Conditions(add_edges=0.5, hide_features=0.5))
    Dataset('karate+50%edges+50%hidden', num_nodes=34, num_edges=117, num_features=34, num_classes=4, level='node', \
split=(8, 10, 16))
    """
    check_kind("dataset", dataset, Dataset)
    conditions = check_kind("conditions", conditions, Conditions)
    if not conditions:
        return dataset
    changed: dict[str, object] = {"name": dataset.name + conditions.words}
    if conditions.add_edges:
        if dataset.score_column is not None:
            raise TadropedgeError(
                f"add_edges={conditions.add_edges:g} cannot be used with a score_column: it has no numbers for edges "
                "that are added"
            )
        try:
            changed["graph"] = with_random_edges(dataset.graph, conditions.add_edges, conditions.seed)
        except TadropedgeError as error:
            raise type(error)(f"add_edges={conditions.add_edges:g}: {error}") from error
    if conditions.hide_features:
        if dataset.level != "node":
            raise TadropedgeError(
                f"hide_features={conditions.hide_features:g} is for node-level data, and {dataset.name} is a "
                f"{dataset.level}-level task"
            )
        changed["features"] = with_hidden_rows(dataset.features, conditions.hide_features, conditions.seed)
    return replace(dataset, **changed)  # type: ignore[arg-type]


def with_random_edges(graph: Graph, share: float, seed: int = 0) -> Graph:
    """The graph with round(``share`` · M) edges more, between pairs of nodes that had none.

    >>> ring = Graph.from_edge_index([[0, 1, 2, 3], [1, 2, 3, 0]])
    >>> with_random_edges(ring, 0.5).pairs.tolist()  # both of the pairs that were free
    [[0, 0, 0, 1, 1, 2], [1, 2, 3, 2, 3, 3]]
    """
    count = round(check_number("share", share, 0, MOST) * graph.num_edges)
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
    check_memory(PAIR_BYTES * count, f"{count} random edges", "add fewer")
    random = np.random.default_rng(seed)
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


def hidden_nodes(num_nodes: int, share: float, seed: int = 0) -> npt.NDArray[np.int64]:
    """The nodes whose features are hidden, sorted: the first ones of a random order, which does not know the share.

    >>> hidden_nodes(6, 0.5).tolist(), hidden_nodes(6, 0.7).tolist()
    ([2, 3, 4], [0, 2, 3, 4])
    """
    num_nodes, share = check_integer("num_nodes", num_nodes, least=1), check_number("share", share, 0, 1)
    order = np.random.default_rng(np.random.SeedSequence(check_seed(seed), spawn_key=(HIDING,))).permutation(num_nodes)
    count = num_nodes if share == 1 else min(round(share * num_nodes), num_nodes - 1)
    return np.sort(order[:count])


def with_hidden_rows(features: Tensor, share: float, seed: int = 0) -> Tensor:
    """Features ``[N, F]`` with rows of zeros for :func:`hidden_nodes`; of all nodes, the identity ``[N, N]`` as CSR.

    >>> with_hidden_rows(torch.ones(6, 1), 0.5)[:, 0].tolist()
    [1.0, 1.0, 0.0, 0.0, 0.0, 1.0]
    """
    nodes = features.shape[0]
    if share == 1:
        return csr_tensor(sp.identity(nodes, dtype=np.float32, format="csr")).to(features.device)
    hidden = torch.from_numpy(hidden_nodes(nodes, share, seed)).to(features.device)
    if features.layout is not torch.sparse_csr:
        return features.index_fill(0, hidden, 0.0)
    crow = features.crow_indices()
    stays = torch.ones(nodes, dtype=torch.bool, device=features.device).index_fill(0, hidden, False)
    kept = stays.repeat_interleave(crow.diff())
    counts = torch.where(stays, crow.diff(), 0)
    ends = torch.cat((crow[:1], counts.cumsum(0).to(crow.dtype)))
    hush_beta_warning()
    columns, values = features.col_indices()[kept], features.values()[kept]
    return torch.sparse_csr_tensor(ends, columns, values, features.shape, check_invariants=False)
