"""The graphs of the benchmarks, as PyG's users have them: a ``Data`` with both directions of every edge."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor
from torch_geometric import EdgeIndex
from torch_geometric.data import Data

import tadropedge as tde
from benchmarks.frame import DATA
from tadropedge.lab import Dataset, load

CLUSTERS, PER_NODE = 7, 10  # of power-law graphs
PIECE = 4_000_000  # edges that are drawn together
GRAPHS = DATA / "graphs"
BLOCKS = {"tiny": (60, 0.2, 0.05), "dense": (1_000, 0.08, 0.005)}  # nodes of five blocks, chances inside and between


def labelled(name: str) -> Dataset:
    """A dataset by its name, of this package or of a file. ``tiny`` is for trying, ``dense`` has degrees near 100."""
    if name in BLOCKS:
        nodes, inside, between = BLOCKS[name]
        return load("dense", classes=5, nodes=nodes, inside=inside, between=between, features=64, split="full")
    file = GRAPHS / f"{name}.npz"
    return load(file if file.exists() else name, split="full")


def graph_of(name: str) -> tde.Graph:
    """A graph by its name, with what it finds once: its components and its pattern."""
    files = list(GRAPHS.glob(f"{name}.t*.gz"))
    graph = tde.Graph.from_file(files[0]) if files else labelled(name).graph
    _ = graph.components, graph.pattern
    return graph


def data_of(name: str) -> Data:
    """A dataset as PyG's users have it: dense features, and both directions of every edge, sorted by rows."""
    data = labelled(name)
    return Data(x=data.features.to_dense(), edge_index=arcs_of(data.graph), y=data.labels)


def arcs_of(graph: tde.Graph) -> Tensor:
    """Both directions of every edge, sorted by rows."""
    arcs = torch.cat((graph.pairs, graph.pairs.flip(0)), dim=1)
    return arcs[:, (arcs[0] * graph.num_nodes + arcs[1]).argsort()]


def sorted_index(places: Tensor, values: Tensor, nodes: int) -> tuple[EdgeIndex, Tensor]:
    """PyG's own index of a symmetric operator, in 32 bits and sorted by rows, and its values."""
    index = EdgeIndex(places.to(torch.int32), sparse_size=(nodes, nodes), is_undirected=True)
    index, order = index.sort_by("row")
    return index, values[order]


def random_graph(nodes: int, edges: int) -> tde.Graph:
    """A uniformly random graph of about so many edges."""
    ends = torch.randint(nodes, (2, edges), generator=torch.Generator().manual_seed(0))
    return tde.Graph.from_edge_index(ends[:, ends[0] != ends[1]], num_nodes=nodes)


def power_law(edges: int, seed: int = 0) -> tde.Graph:
    """The largest component of blocks of nodes with power-law degrees (exponent 2.5): four of five edges are inside."""
    random, nodes = np.random.default_rng(seed), max(edges // PER_NODE, CLUSTERS)
    weight = np.minimum((1 - random.random(nodes)) ** (-1 / 1.5), 2 * np.sqrt(nodes))
    total = np.concatenate(([0.0], np.cumsum(weight)))
    starts = np.linspace(0, nodes, CLUSTERS + 1).astype(int)
    pieces = []
    for first in range(0, edges, PIECE):
        count = min(PIECE, edges - first)
        low = _before(total, random.random(count) * total[-1])
        block = np.searchsorted(starts, low, side="right") - 1
        inside = random.random(count) < 0.8
        begin, end = np.where(inside, total[starts[block]], 0.0), np.where(inside, total[starts[block + 1]], total[-1])
        high = np.minimum(_before(total, begin + random.random(count) * (end - begin)), nodes - 1)
        pieces.append(torch.from_numpy(np.stack((low, high))[:, low != high]))
    return largest_component(tde.Graph.from_edge_index(torch.cat(pieces, dim=1), nodes))


def largest_component(graph: tde.Graph) -> tde.Graph:
    """The component of most nodes, whose numbers are new."""
    labels = torch.as_tensor(graph.components.labels)
    mine = labels == labels.bincount().argmax()
    number = mine.cumsum(0) - 1
    return tde.Graph.from_edge_index(number[graph.pairs[:, mine[graph.pairs[0]]]], int(mine.sum()))


def _before(total: np.ndarray, at: np.ndarray) -> np.ndarray:
    """The place of the last number that is at most as large; torch uses all cores."""
    found: np.ndarray = torch.searchsorted(torch.from_numpy(total), torch.from_numpy(at), right=True).numpy()
    return found - 1


def dataset_of(graph: tde.Graph, features: int, classes: int, split: tuple[int, int, int] | str = "full") -> Dataset:
    """Random features and labels, on which speed does not depend."""
    random = torch.Generator().manual_seed(1)
    x = torch.randn(graph.num_nodes, features, generator=random)
    y = torch.randint(classes, (graph.num_nodes,), generator=random)
    return load(Dataset("benchmark", graph, x, y), split=split)
