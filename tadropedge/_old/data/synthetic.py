"""Small datasets that need no file: Zachary's karate club, clusters with noisy features or among random edges."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch

from tadropedge._old.checks import check_integer, check_number, check_seed
from tadropedge._old.data.conditions import MOST, with_random_edges
from tadropedge._old.data.dataset import Dataset
from tadropedge._old.data.splits import PerClass
from tadropedge._old.errors import TadropedgeError
from tadropedge._old.graph import Graph
from tadropedge._old.memory import check_memory

# W. W. Zachary, An information flow model for conflict and fission in small groups, 1977: the members of
# higher number that each member met outside the club, member by member.
FRIENDS = (
    "1 2 3 4 5 6 7 8 10 11 12 13 17 19 21 31 / 2 3 7 13 17 19 21 30 / 3 7 8 9 13 27 28 32 / 7 12 13 / 6 10 / 6 10 16 "
    "/ 16 / / 30 32 33 / 33 / / / / 33 / 32 33 / 32 33 / / / 32 33 / 33 / 32 33 / / 32 33 / 25 27 29 32 33 / 25 27 31 "
    "/ 31 / 29 33 / 33 / 31 33 / 32 33 / 32 33 / 32 33 / 33"
)
# The community of each member by modularity, as in T. N. Kipf and M. Welling's example, 2017.
COMMUNITIES = "1111333101311100310101002200200200"
MOST_NOISE = 1e30  # features of float32 stay finite
ATTEMPTS = 1000  # to draw a connected graph
PAIR_BYTES = 20  # per pair of nodes, of which a block model draws every one


def load_karate(seed: int = 0) -> Dataset:
    """Zachary's karate club: 34 members, 78 friendships, four communities, identity features.

    Two members of each community train, 10 choose and 16 judge, drawn from ``seed``.

    >>> load_karate()
    Dataset('karate', num_nodes=34, num_edges=78, num_features=34, num_classes=4, level='node', split=(8, 10, 16))
    """
    arcs = [(one, int(friend)) for one, friends in enumerate(FRIENDS.split("/")) for friend in friends.split()]
    labels = torch.tensor([int(digit) for digit in COMMUNITIES])
    drawn = PerClass(2, num_val=10, num_test=16, seed=seed)
    return Dataset(
        "karate",
        Graph.from_edge_index(np.array(arcs).T),
        torch.eye(34),
        labels,
        num_classes=4,
        level="node",
        split=drawn.split(labels, seed),
        drawn=drawn,
    )


def load_clusters(
    seed: int = 0,
    clusters: int = 4,
    nodes: int = 60,
    *,
    inside: float = 0.1,
    between: float = 0.015,
    features: int = 16,
    noise: float = 1.0,
    per_class: int = 5,
) -> Dataset:
    """A stochastic block model of ``clusters`` classes with ``nodes`` nodes each, and features around class centres.

    Centres are random unit vectors c_k in ``features`` dimensions; node i of class k has x_i = c_k + noise · n_i with
    n_i normal. Neither trivial nor hopeless: a linear classifier finds 0.31 of the test labels from the features alone
    and 0.81 from features averaged over two hops (mean of ten seeds). ``per_class`` labels per class train; of the
    rest a third chooses and two thirds judge. All of it is a pure function of ``seed``.

    >>> load_clusters(clusters=3, nodes=20).split
    Split(train=15, val=15, test=30)
    """
    clusters, features = check_integer("clusters", clusters, least=2), check_integer("features", features, least=1)
    nodes, per_class = check_integer("nodes", nodes, least=1), check_integer("per_class", per_class, least=1)
    noise = check_number("noise", noise, 0, MOST_NOISE)
    for name, share in (("inside", inside), ("between", between)):
        check_number(name, share, 0, 1)
    if nodes < per_class + 3:
        raise TadropedgeError(
            f"nodes={nodes} per cluster are too few for per_class={per_class}: take three more at least"
        )
    random = np.random.default_rng(check_seed(seed))
    total = clusters * nodes
    check_memory(PAIR_BYTES * total**2 + 32 * total * features, f"a block model of {total} nodes", "take fewer nodes")
    label = np.arange(clusters * nodes) // nodes
    graph = block_model(label, inside, between, random)
    centres = random.standard_normal((clusters, features))
    centres /= np.linalg.norm(centres, axis=1, keepdims=True)
    values = centres[label] + noise * random.standard_normal((len(label), features))
    rest = clusters * (nodes - per_class)
    labels = torch.from_numpy(label)
    drawn = PerClass(per_class, rest // 3, rest - rest // 3, seed=seed)
    return Dataset(
        "clusters",
        graph,
        torch.from_numpy(values).float(),
        labels,
        num_classes=clusters,
        level="node",
        split=drawn.split(labels, seed),
        drawn=drawn,
    )


def load_noisy_clusters(
    seed: int = 0,
    classes: int = 4,
    nodes: int = 10,
    *,
    clusters: int = 8,
    inside: float = 0.8,
    noise: float = 2.0,
    features: int = 16,
    blur: float = 4.0,
    per_class: int = 10,
) -> Dataset:
    """Small clusters of one class each, hidden among ``noise`` random edges for every edge inside a cluster.

    Each class has ``clusters`` clusters of ``nodes`` nodes. Pairs of one cluster have an edge with probability
    ``inside``. Then round(``noise`` · edges) pairs without an edge are drawn uniformly and joined: these run between
    clusters, but for a few. Node i of class k has x_i = c_k + blur · n_i with n_i normal and c_k random in
    {−1, 1}^``features``: so blurred that a node must be averaged with its cluster, which random edges spoil.
    ``per_class`` labels per class train; half of the rest chooses and half judges. All of it is a pure function of
    ``seed``.

    >>> data = load_noisy_clusters(classes=3, nodes=20, clusters=1, inside=1.0, noise=0.5)
    >>> data.graph.num_edges, data.split  # 3 · 190 inside clusters, and half as many
    (855, Split(train=30, val=15, test=15))
    """
    classes, nodes = check_integer("classes", classes, least=2), check_integer("nodes", nodes, least=1)
    clusters, per_class = check_integer("clusters", clusters, least=1), check_integer("per_class", per_class, least=1)
    noise, blur = check_number("noise", noise, 0, MOST), check_number("blur", blur, 0, MOST_NOISE)
    features = check_integer("features", features, least=1)
    inside, seed = check_number("inside", inside, 0, 1), check_seed(seed)
    if clusters * nodes < per_class + 3:
        raise TadropedgeError(
            f"clusters={clusters} of nodes={nodes} are too few for per_class={per_class}: take 3 nodes more at least"
        )
    total = classes * clusters * nodes
    check_memory(PAIR_BYTES * total**2 + 32 * total * features, f"a block model of {total} nodes", "take fewer nodes")
    random = np.random.default_rng(seed)
    cluster = np.arange(total) // nodes
    label = cluster // clusters
    try:
        graph = with_random_edges(block_model(cluster, inside, 0.0, random), noise, int(random.integers(2**63)))
    except TadropedgeError as error:
        raise type(error)(f"noise={noise:g}: {error}") from error
    centres = random.choice((-1.0, 1.0), (classes, features))
    values = centres[label] + blur * random.standard_normal((total, features))
    labels, rest = torch.from_numpy(label), total - classes * per_class
    drawn = PerClass(per_class, rest // 2, rest - rest // 2, seed=seed)
    return Dataset(
        "noisy-clusters",
        graph,
        torch.from_numpy(values).float(),
        labels,
        num_classes=classes,
        level="node",
        split=drawn.split(labels, seed),
        drawn=drawn,
    )


def block_model(community: npt.NDArray[np.int64], inside: float, between: float, random: np.random.Generator) -> Graph:
    """Draw each pair of nodes with probability ``inside`` or ``between`` their communities.

    >>> graph = block_model(np.array([0, 0, 0, 1, 1]), 1.0, 0.0, np.random.default_rng(0))
    >>> graph.pairs.tolist()
    [[0, 0, 1, 3], [1, 2, 2, 4]]
    """
    inside, between = check_number("inside", inside, 0, 1), check_number("between", between, 0, 1)
    low, high = np.triu_indices(len(community), 1)
    probability = np.where(community[low] == community[high], inside, between)
    chosen = random.random(len(low)) < probability
    return Graph.from_edge_index(np.stack((low[chosen], high[chosen])), num_nodes=len(community))


def connected_block_model(
    community: npt.NDArray[np.int64], inside: float, between: float, random: np.random.Generator
) -> Graph:
    """Draw block models until one is connected."""
    for _ in range(ATTEMPTS):
        graph = block_model(community, inside, between, random)
        if graph.components.count == 1:
            return graph
    raise TadropedgeError(
        f"none of {ATTEMPTS} graphs of {len(community)} nodes with inside={inside} and between={between} was "
        "connected: raise one of them"
    )
