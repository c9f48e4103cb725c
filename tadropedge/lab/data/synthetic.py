"""Datasets that need no file. Each is a pure function of its seed, and has split sizes of its own.

``karate`` is small and real. In ``clusters`` a node must be averaged with its neighbours; in ``noisy_clusters`` most of
these are random; ``roads`` has nodes whose degrees say nothing; ``dense`` has many more edges than it needs.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
import torch
from scipy.sparse.csgraph import minimum_spanning_tree

from tadropedge._support.checks import check_integer, check_number, check_seed
from tadropedge.errors import TadropedgeError
from tadropedge.graph import Graph
from tadropedge.lab.data.corrupt import MOST, add_random_edges
from tadropedge.lab.data.dataset import Dataset
from tadropedge.lab.data.splits import PerClass

Whole = npt.NDArray[np.int64]
Points = npt.NDArray[np.float64]

JUNCTIONS = 0.4  # of the nodes of roads; the others lie on chains between two of them
ROADS = 1.5  # per junction: three end at a junction on average
LLOYD = 10  # steps, after which regions are about equally large


def karate(seed: int = 0) -> Dataset:
    """Zachary's karate club: 34 members, 78 friendships, four communities, identity features.

    W. W. Zachary, *An information flow model for conflict and fission in small groups*, 1977; communities as in
    T. N. Kipf and M. Welling's example, 2017. Two members of each community train, 10 choose and 16 judge.

    >>> data = karate()
    >>> data, data.split(0)
    (Dataset('karate', num_nodes=34, num_edges=78, num_features=34, num_classes=4), Split(train=8, val=10, test=16))
    """
    from torch_geometric.datasets import KarateClub

    club = KarateClub()[0]
    splits = PerClass(2, 10, 16, seed=seed)
    return Dataset("karate", Graph.from_data(club), torch.eye(34), club.y.long(), splits=splits)


def clusters(
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
    n_i normal. A linear classifier finds 0.31 of the test labels from the features alone and 0.81 from features
    averaged over two hops (mean of ten seeds). ``per_class`` labels per class train; a third of the rest chooses.

    >>> clusters(clusters=3, nodes=20).split(0)
    Split(train=15, val=15, test=30)
    """
    _check_sizes(clusters, nodes, features, per_class)
    random = _random(seed)
    label = np.arange(clusters * nodes) // nodes
    graph = block_model(label, inside, between, random)
    values = _around_centres(label, clusters, features, noise, random)
    return _labelled("clusters", graph, values, label, per_class, seed)


def noisy_clusters(
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
    ``per_class`` labels per class train; half of the rest chooses and half judges.

    >>> data = noisy_clusters(classes=3, nodes=20, clusters=1, inside=1.0, noise=0.5)
    >>> data.graph.num_edges, data.split(0)  # 3 · 190 inside clusters, and half as many
    (855, Split(train=30, val=15, test=15))
    """
    _check_sizes(classes, check_integer("clusters", clusters, least=1) * nodes, features, per_class)
    blur, noise = check_number("blur", blur, 0), check_number("noise", noise, 0, MOST)
    random, total = _random(seed), classes * clusters * nodes
    cluster = np.arange(total) // nodes
    label = cluster // clusters
    graph = add_random_edges(block_model(cluster, inside, 0.0, random), noise, int(random.integers(2**63)))
    centres = random.choice((-1.0, 1.0), (classes, features))
    values = centres[label] + blur * random.standard_normal((total, features))
    return _labelled("noisy-clusters", graph, values, label, per_class, seed, to_validate=1 / 2)


def roads(
    seed: int = 0,
    nodes: int = 2500,
    classes: int = 6,
    *,
    regions: int = 24,
    features: int = 16,
    noise: float = 1.0,
    per_class: int = 20,
) -> Dataset:
    """Junctions joined by roads that do not cross, and long chains of nodes along the roads; mean degree 2.4.

    Two fifths of the nodes are junctions, uniform in a square. Roads are the shortest spanning tree of the junctions
    and, at random, further edges of their Gabriel graph (no other junction in the circle whose diameter is the
    edge), until three roads end at a junction on average. The other nodes are laid along the roads, as many on each
    as its length asks for. ``regions`` places are spread over the plane, a node belongs to the nearest, and regions
    take the ``classes`` in turn; features as in :func:`clusters`.

    >>> data = roads(nodes=500, classes=3, regions=9)
    >>> data.graph, data.graph.components.count
    (Graph(num_nodes=500, num_edges=600), 1)
    """
    _check_sizes(classes, nodes // max(classes, 1), features, per_class)
    random = _random(seed)
    place = random.random((round(JUNCTIONS * nodes), 2))
    edges = _gabriel_edges(place)
    length = np.linalg.norm(place[edges[0]] - place[edges[1]], axis=1)
    tree = minimum_spanning_tree(sp.coo_matrix((length, edges), shape=(len(place),) * 2)).tocoo()
    in_tree = np.isin(edges[0] * len(place) + edges[1], tree.row * len(place) + tree.col)
    others = random.permutation(np.flatnonzero(~in_tree))[: max(0, round(ROADS * len(place)) - int(in_tree.sum()))]
    chosen = np.sort(np.concatenate((np.flatnonzero(in_tree), others)))
    pairs, place = _along(edges[:, chosen], place, nodes)
    label = _nearest_region(place, check_integer("regions", regions, least=classes, most=nodes), random) % classes
    values = _around_centres(label, classes, features, noise, random)
    return _labelled("roads", Graph.from_edge_index(pairs, num_nodes=nodes), values, label, per_class, seed)


def dense(
    seed: int = 0,
    classes: int = 4,
    nodes: int = 200,
    *,
    inside: float = 0.12,
    between: float = 0.06,
    features: int = 16,
    noise: float = 1.0,
    per_class: int = 10,
) -> Dataset:
    """A stochastic block model of mean degree 60 in which every second edge joins two classes, features as in clusters.

    The classes need the edges, and many of them: a linear classifier finds 0.38 of the test labels from the features
    alone, 0.82 from features averaged over two hops, and 0.41 where a random tenth of the edges is left (mean of six
    seeds).

    >>> data = dense()
    >>> round(2 * data.graph.num_edges / data.graph.num_nodes)
    60
    """
    made = clusters(
        seed, classes, nodes, inside=inside, between=between, features=features, noise=noise, per_class=per_class
    )
    return replace(made, name="dense")


def block_model(community: Whole, inside: float, between: float, random: np.random.Generator) -> Graph:
    """Draw each pair of nodes with probability ``inside`` or ``between`` their communities.

    >>> block_model(np.array([0, 0, 0, 1, 1]), 1.0, 0.0, np.random.default_rng(0)).pairs.tolist()
    [[0, 0, 1, 3], [1, 2, 2, 4]]
    """
    inside, between = check_number("inside", inside, 0, 1), check_number("between", between, 0, 1)
    low, high = np.triu_indices(len(community), 1)
    probability = np.where(community[low] == community[high], inside, between)
    chosen = random.random(len(low)) < probability
    return Graph.from_edge_index(np.stack((low[chosen], high[chosen])), num_nodes=len(community))


def _check_sizes(classes: int, nodes: int, features: int, per_class: int) -> None:
    """``nodes`` of each class are enough to train, to validate and to test."""
    check_integer("classes", classes, least=2)
    check_integer("features", features, least=1)
    check_integer("per_class", per_class, least=1)
    if check_integer("nodes", nodes, least=1) < per_class + 3:
        raise TadropedgeError(f"{nodes} nodes of a class are too few for per_class={per_class}: take three more")


def _random(seed: int) -> np.random.Generator:
    return np.random.default_rng(check_seed(seed) % 2**64)


def _around_centres(label: Whole, classes: int, features: int, noise: float, random: np.random.Generator) -> Points:
    """x_i = c_k + noise · n_i with c_k random unit vectors."""
    noise = check_number("noise", noise, 0)
    centres = random.standard_normal((classes, features))
    centres /= np.linalg.norm(centres, axis=1, keepdims=True)
    values: Points = centres[label] + noise * random.standard_normal((len(label), features))
    return values


def _labelled(
    name: str, graph: Graph, values: Points, label: Whole, per_class: int, seed: int, to_validate: float = 1 / 3
) -> Dataset:
    """The dataset: ``per_class`` labels train, a share of the others validates and what is left tests."""
    rest = len(label) - per_class * int(label.max() + 1)
    num_val = int(to_validate * rest + 1e-9)
    splits = PerClass(per_class, num_val, rest - num_val, seed=seed)
    return Dataset(name, graph, torch.from_numpy(values).float(), torch.from_numpy(label), splits=splits)


def _gabriel_edges(place: Points) -> Whole:
    """The pairs ``[2, M]`` of points ``[N, 2]`` in whose circle, with the pair as diameter, there is no other point.

    >>> _gabriel_edges(np.array([[0.0, 0.0], [1.0, 0.1], [2.0, 0.0], [1.0, 3.0]])).tolist()
    [[0, 1, 1], [1, 2, 3]]
    """
    from scipy.spatial import Delaunay, cKDTree

    corners = Delaunay(place).simplices.astype(np.int64)
    sides = np.sort(np.concatenate((corners[:, [0, 1]], corners[:, [1, 2]], corners[:, [0, 2]])), axis=1)
    low, high = np.unique(sides, axis=0).T
    radius = np.linalg.norm(place[low] - place[high], axis=1) / 2
    nearest = cKDTree(place).query((place[low] + place[high]) / 2)[0]
    empty = nearest > radius * (1 - 1e-9)  # its own ends are the nearest
    return np.stack((low[empty], high[empty]))


def _along(edges: Whole, place: Points, nodes: int) -> tuple[Whole, Points]:
    """Lay new nodes along the edges, by length, until there are ``nodes`` in all: the new edges, and all places.

    >>> pairs, place = _along(np.array([[0, 1], [1, 2]]), np.array([[0.0, 0.0], [3.0, 0.0], [3.0, 1.0]]), 5)
    >>> pairs.tolist(), place[3:].tolist()
    ([[0, 3, 4, 1], [3, 4, 1, 2]], [[1.0, 0.0], [2.0, 0.0]])
    """
    length = np.linalg.norm(place[edges[0]] - place[edges[1]], axis=1)
    share = (nodes - len(place)) * length / length.sum()
    count = np.floor(share).astype(np.int64)
    missing = nodes - len(place) - int(count.sum())
    count[np.argsort(count - share, kind="stable")[:missing]] += 1  # those that were rounded down most
    made, places, ends = len(place), [place], []
    for (start, end), steps in zip(edges.T.tolist(), count.tolist(), strict=True):
        chain = [start, *range(made, made + steps), end]
        ends.append(np.stack((chain[:-1], chain[1:])))
        part = np.arange(1, steps + 1)[:, None] / (steps + 1)
        places.append((1 - part) * place[start] + part * place[end])
        made += steps
    return np.concatenate(ends, axis=1), np.concatenate(places)


def _nearest_region(place: Points, regions: int, random: np.random.Generator) -> Whole:
    """The region ``[N]`` of each point: the nearest of ``regions`` centres, which Lloyd's steps have spread."""
    from scipy.spatial import cKDTree

    centres = place[random.choice(len(place), regions, replace=False)]
    for _ in range(LLOYD):
        region = cKDTree(centres).query(place)[1]
        size = np.bincount(region, minlength=regions)
        mean = np.stack([np.bincount(region, axis, regions) for axis in place.T], axis=1) / np.maximum(size, 1)[:, None]
        centres = np.where(size[:, None] > 0, mean, centres)
    return np.asarray(cKDTree(centres).query(place)[1], dtype=np.int64)
