"""Places for the nodes of a picture: springs along edges, repulsion between all nodes by a particle mesh.

The same graph always gets the same places. Work grows with N + M, not with N².
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import scipy.fft
from scipy.sparse.csgraph import shortest_path
from scipy.spatial import cKDTree

from tadropedge._old.graph import Graph

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

PIVOTS = 30
STEPS, FAR_STEPS = 200, 120  # near neighbours are looked at once the graph at large has unfolded
NEIGHBOURS = 8
REPULSION, GRAVITY = 1.0, 0.02


def layout(graph: Graph) -> Floats:
    """Places ``[N, 2]``, centred; a typical edge has length one.

    Started from distances to a few pivots, which unfold the graph at large, then moved by forces: an edge pulls its
    ends together in proportion to its length, two nodes push each other apart by (1 + d_i)(1 + d_j) over their
    distance, and everything falls slowly to the centre, so that small components stay near.

    >>> places = layout(Graph.from_edge_index([[0, 1, 2], [1, 2, 3]]))
    >>> ends, middle = np.linalg.norm(places[0] - places[3]), np.linalg.norm(places[1] - places[2])
    >>> bool(ends > 2 * middle)
    True
    """
    low, high = graph.pairs.cpu().numpy()
    mass = 1.0 + np.bincount(np.concatenate((low, high)), minlength=graph.num_nodes).astype(np.float64)
    places, mesh = _start(graph), _Mesh(graph.num_nodes)
    speed = np.zeros_like(places)
    for step in range(STEPS):
        pull = places[high] - places[low]
        push, reach = mesh.field(places, mass), 0.15 * float(np.sqrt(np.mean(places**2)))
        if step >= FAR_STEPS:
            reach = mesh.cell(places)
            push += near_field(places, mass, reach)
        force = mass[:, None] * (REPULSION * push - GRAVITY * places)
        for end, sign in ((low, 1.0), (high, -1.0)):
            for axis in range(2):
                force[:, axis] += sign * np.bincount(end, pull[:, axis], minlength=graph.num_nodes)
        # Momentum carries along valleys; a node moves no farther than the cooling step allows.
        speed = 0.6 * speed + force / mass[:, None]
        longest = np.linalg.norm(speed, axis=1, keepdims=True)
        places = places + 0.5 * speed * np.minimum(1.0, reach * (1 - step / STEPS) / np.maximum(longest, 1e-12))
    places = places - np.median(places, axis=0)
    typical = float(np.median(np.linalg.norm(places[high] - places[low], axis=1)))
    return places / max(typical, 1e-12)


def _start(graph: Graph) -> Floats:
    """Pivot multidimensional scaling of the largest component (Brandes and Pich), the others in a ring around it."""
    labels, sizes = graph.components.labels.cpu().numpy(), graph.components.sizes.cpu().numpy()
    largest = int(sizes.argmax())
    inside = np.flatnonzero(labels == largest)
    random = np.random.default_rng(0)
    places = np.empty((graph.num_nodes, 2))
    places[inside] = _pivot_places(graph, inside)
    radius = 1.2 * float(np.abs(places[inside]).max(initial=1.0))
    angle = 2 * np.pi * random.permutation(len(sizes)) / len(sizes)
    outside = labels != largest
    around = np.stack((np.cos(angle), np.sin(angle)), axis=1)[labels[outside]]
    places[outside] = radius * around
    return places + 0.05 * random.standard_normal(places.shape)  # no two nodes in one place


def _pivot_places(graph: Graph, inside: Integers) -> Floats:
    hops = graph.adjacency()[inside][:, inside]
    pivots = [int(np.argmax(np.diff(hops.indptr)))]
    nearest = np.full(len(inside), np.inf)
    rows = []
    for _ in range(min(PIVOTS, len(inside))):  # each pivot as far as can be from those before
        rows.append(shortest_path(hops, unweighted=True, indices=pivots[-1]))
        nearest = np.minimum(nearest, rows[-1])
        pivots.append(int(nearest.argmax()))
    squares = np.square(np.stack(rows, axis=1))
    centred = squares - squares.mean(axis=0) - squares.mean(axis=1, keepdims=True) + squares.mean()
    _, axes = np.linalg.eigh(centred.T @ centred)
    found = np.zeros((len(inside), 2))
    axes = axes[:, ::-1][:, :2]
    axes = axes * np.sign(axes[np.abs(axes).argmax(axis=0), np.arange(axes.shape[1])])
    found[:, : axes.shape[1]] = centred @ axes
    scale = np.sqrt(np.mean(found**2)) / np.sqrt(len(inside))
    return found / scale if scale > 0 else found


def near_field(places: Floats, mass: Floats, radius: float) -> Floats:
    """The same sum over the few nearest nodes that are closer than ``radius``, softened well below it."""
    count = min(NEIGHBOURS + 1, len(places))
    far, who = cKDTree(places).query(places, k=count, distance_upper_bound=radius)
    far, who = far[:, 1:], who[:, 1:]  # the first is the node itself
    inside = np.isfinite(far)
    who = np.where(inside, who, 0)
    strength = np.where(inside, mass[who] / (np.where(inside, far, 0.0) ** 2 + (radius / 4) ** 2), 0.0)
    total: Floats = (strength[:, :, None] * (places[:, None] - places[who])).sum(axis=1)
    return total


class _Mesh:
    """Repulsion between N nodes through a mesh of about 16 N cells: masses are spread, one convolution sums them up."""

    def __init__(self, nodes: int) -> None:
        self.side = int(np.clip(4 * np.sqrt(nodes), 32, 192))
        offset = (np.arange(2 * self.side) + self.side) % (2 * self.side) - self.side
        x, y = offset[:, None], offset[None, :]
        self.kernel = scipy.fft.fft2((x + 1j * y) / np.maximum(x**2 + y**2, 1))  # both axes in one complex number

    def cell(self, places: Floats) -> float:
        """The width of a cell; inside one the mesh sees nothing."""
        return (float(np.ptp(places, axis=0).max()) or 1.0) / (self.side - 2)

    def field(self, places: Floats, mass: Floats) -> Floats:
        """Σ_j m_j (x_i − x_j) / |x_i − x_j|² at every node, ``[N, 2]``."""
        side = self.side
        cell = self.cell(places)
        place = (places - places.min(axis=0)) / cell
        corner = np.minimum(place.astype(np.int64), side - 2)
        right, up = (place - corner).T
        first = corner[:, 0] * side + corner[:, 1]
        cells = np.stack((first, first + 1, first + side, first + side + 1))
        shares = np.stack(((1 - right) * (1 - up), (1 - right) * up, right * (1 - up), right * up))
        density = np.bincount(cells.ravel(), (shares * mass).ravel(), minlength=side**2).reshape(side, side)
        spread = scipy.fft.ifft2(scipy.fft.fft2(density, self.kernel.shape) * self.kernel)[:side, :side].ravel()
        total = (shares * spread[cells]).sum(axis=0) / cell
        return np.stack((total.real, total.imag), axis=1)
