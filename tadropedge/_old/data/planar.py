"""Sparse planar graphs with regions to tell apart: a square grid, and roads with long chains between junctions.

Node classification where degrees say little: nearly all nodes have the same few neighbours, so that scores that see
further than degrees have their best chance. The plane is divided into regions, each with a class; features are class
centres with so much noise that a node alone says little, and the mean over its neighbourhood says more.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
import torch
from scipy.sparse.csgraph import minimum_spanning_tree
from scipy.spatial import Delaunay, cKDTree

from tadropedge._old.checks import check_integer, check_number, check_seed
from tadropedge._old.data.dataset import Dataset
from tadropedge._old.data.splits import PerClass
from tadropedge._old.errors import TadropedgeError
from tadropedge._old.graph import Graph
from tadropedge._old.memory import check_memory

Points = npt.NDArray[np.float64]
Pairs = npt.NDArray[np.int64]

MOST_NOISE = 1e30  # features of float32 stay finite
LLOYD = 10  # steps, after which regions are about equally large
NODE_BYTES = 400  # besides features
JUNCTIONS = 0.4  # of the nodes of roads; the others lie on chains between two of them
ROADS = 1.5  # per junction: three end at a junction on average
FEWEST = 10  # nodes of roads, of which four are junctions


def load_grid(
    seed: int = 0,
    side: int = 48,
    classes: int = 6,
    *,
    regions: int = 24,
    features: int = 16,
    noise: float = 1.0,
    per_class: int = 20,
) -> Dataset:
    """A square grid of ``side`` · ``side`` nodes, each joined to the next in its row and column.

    ``regions`` places are spread over the grid, and a node belongs to the nearest; regions take the ``classes`` in
    turn. Node i of class k has x_i = c_k + noise · n_i with c_k a random unit vector in ``features`` dimensions and
    n_i normal. ``per_class`` labels per class train; of the rest a third chooses and two thirds judge. The seed decides
    regions, features and split; the edges are always the same.

    >>> load_grid(side=20, classes=3, regions=9)
    Dataset('grid', num_nodes=400, num_edges=760, num_features=16, num_classes=3, level='node', split=(60, 113, 227))
    """
    side, random = check_integer("side", side, least=2), np.random.default_rng(check_seed(seed))
    check_memory(NODE_BYTES * side**2, f"a grid of {side} × {side} nodes", "take a smaller side")
    place = np.stack(np.divmod(np.arange(side**2), side), axis=1)
    here = np.arange(side**2).reshape(side, side)
    right, down = (here[:, :-1].ravel(), here[:, 1:].ravel()), (here[:-1].ravel(), here[1:].ravel())
    graph = Graph.from_edge_index(np.concatenate((right, down), axis=1))
    return _regional(
        "grid", graph, place / side, random,
        classes=classes, regions=regions, features=features, noise=noise, per_class=per_class, seed=seed,
    )  # fmt: skip


def load_roads(
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
    as its length asks for. Regions, classes, features and split as in :func:`load_grid`; the seed decides all of it.

    >>> data = load_roads(nodes=500, classes=3, regions=9)
    >>> data.graph, data.graph.components.count
    (Graph(num_nodes=500, num_edges=600), 1)
    """
    nodes, random = check_integer("nodes", nodes, least=FEWEST), np.random.default_rng(check_seed(seed))
    check_memory(NODE_BYTES * nodes, f"roads of {nodes} nodes", "take fewer nodes")
    place = random.random((round(JUNCTIONS * nodes), 2))
    edges = gabriel_edges(place)
    length = np.linalg.norm(place[edges[0]] - place[edges[1]], axis=1)
    tree = minimum_spanning_tree(sp.coo_matrix((length, edges), shape=(len(place),) * 2)).tocoo()
    in_tree = np.isin(edges[0] * len(place) + edges[1], tree.row * len(place) + tree.col)
    others = random.permutation(np.flatnonzero(~in_tree))[: max(0, round(ROADS * len(place)) - int(in_tree.sum()))]
    chosen = np.sort(np.concatenate((np.flatnonzero(in_tree), others)))
    pairs, place = along(edges[:, chosen], place, nodes)
    return _regional(
        "roads", Graph.from_edge_index(pairs, num_nodes=nodes), place, random,
        classes=classes, regions=regions, features=features, noise=noise, per_class=per_class, seed=seed,
    )  # fmt: skip


def gabriel_edges(place: Points) -> Pairs:
    """The pairs ``[2, M]`` of points ``[N, 2]`` in whose circle, with the pair as diameter, there is no other point.

    >>> gabriel_edges(np.array([[0.0, 0.0], [1.0, 0.1], [2.0, 0.0], [1.0, 3.0]])).tolist()
    [[0, 1, 1], [1, 2, 3]]
    """
    corners = Delaunay(place).simplices.astype(np.int64)
    sides = np.sort(np.concatenate((corners[:, [0, 1]], corners[:, [1, 2]], corners[:, [0, 2]])), axis=1)
    low, high = np.unique(sides, axis=0).T
    radius = np.linalg.norm(place[low] - place[high], axis=1) / 2
    nearest = cKDTree(place).query((place[low] + place[high]) / 2)[0]
    empty = nearest > radius * (1 - 1e-9)  # its own ends are the nearest
    return np.stack((low[empty], high[empty]))


def along(edges: Pairs, place: Points, nodes: int) -> tuple[Pairs, Points]:
    """Lay new nodes along the edges, by length, until there are ``nodes`` in all: the new edges, and all places.

    >>> pairs, place = along(np.array([[0, 1], [1, 2]]), np.array([[0.0, 0.0], [3.0, 0.0], [3.0, 1.0]]), 5)
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


def nearest_region(place: Points, regions: int, random: np.random.Generator) -> Pairs:
    """The region ``[N]`` of each point: the nearest of ``regions`` centres, which Lloyd's steps have spread.

    >>> nearest_region(np.array([[0.0, 0], [0.1, 0], [5, 5], [5, 5.1]]), 2, np.random.default_rng(0)).tolist()
    [0, 0, 1, 1]
    """
    centres = place[random.choice(len(place), regions, replace=False)]
    for _ in range(LLOYD):
        region = cKDTree(centres).query(place)[1]
        size = np.bincount(region, minlength=regions)
        mean = np.stack([np.bincount(region, axis, regions) for axis in place.T], axis=1) / np.maximum(size, 1)[:, None]
        centres = np.where(size[:, None] > 0, mean, centres)
    return np.asarray(cKDTree(centres).query(place)[1], dtype=np.int64)


def _regional(
    name: str,
    graph: Graph,
    place: Points,
    random: np.random.Generator,
    *,
    classes: int,
    regions: int,
    features: int,
    noise: float,
    per_class: int,
    seed: int,
) -> Dataset:
    """Regions of the plane with classes, and features around the centres of the classes."""
    classes, features = check_integer("classes", classes, least=2), check_integer("features", features, least=1)
    regions, per_class = check_integer("regions", regions, least=classes), check_integer("per_class", per_class, 1)
    noise, total = check_number("noise", noise, 0, MOST_NOISE), graph.num_nodes
    check_memory(32 * total * features, f"{features} features of {total} nodes", "take fewer features")
    if regions > total:
        raise TadropedgeError(f"regions={regions} are more than there are nodes, {total}: take fewer")
    label = nearest_region(place, regions, random) % classes
    size = np.bincount(label, minlength=classes)
    if size.min() < per_class + 3:
        raise TadropedgeError(
            f"class {size.argmin()} of {name} has {size.min()} nodes, too few for per_class={per_class}: take at least "
            "three more than that, by more nodes or fewer classes"
        )
    centres = random.standard_normal((classes, features))
    centres /= np.linalg.norm(centres, axis=1, keepdims=True)
    values = centres[label] + noise * random.standard_normal((total, features))
    labels, rest = torch.from_numpy(label), total - classes * per_class
    drawn = PerClass(per_class, rest // 3, rest - rest // 3, seed=seed)
    return Dataset(
        name,
        graph,
        torch.from_numpy(values).float(),
        labels,
        num_classes=classes,
        level="node",
        split=drawn.split(labels, seed),
        drawn=drawn,
    )
