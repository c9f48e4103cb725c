"""The graphs of the benchmarks, as PyG's users have them: a ``Data`` with both directions of every edge."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.io import read_planetoid_data

import tadropedge as tde
from benchmarks import frame  # says where the data is
from tadropedge.lab import Dataset, load

CITATION = {"cora": "Cora", "citeseer": "CiteSeer", "pubmed": "PubMed"}
CLUSTERS, PER_NODE = 7, 10  # of power-law graphs
PIECE = 4_000_000  # edges that are drawn together
DATA = Path(os.environ.get("TADROPEDGE_DATA", frame.ROOT))


def data_of(name: str) -> Data:
    """A graph by its name, sorted by rows; with features where it has any. ``tiny`` is for trying."""
    if name == "tiny":
        return block_model(500, 20)
    if name in CITATION:
        return read_planetoid_data(str(DATA / "planetoid" / CITATION[name] / "raw"), name)
    path = DATA / "graphs" / f"{name}.npz"
    if path.exists():
        with np.load(path) as held:
            x = torch.zeros(*held["x_shape"].tolist())
            row = np.repeat(np.arange(len(x)), np.diff(held["x_indptr"]))
            x[torch.from_numpy(row), torch.from_numpy(held["x_indices"]).long()] = torch.from_numpy(held["x_data"])
            edge_index, y = both_directions(torch.from_numpy(held["edge_index"])), torch.from_numpy(held["y"])
        return Data(x=x, edge_index=edge_index, y=y)
    [file] = (DATA / "graphs").glob(f"{name}.*.gz")
    pairs = tde.Graph.from_file(file).pairs
    return Data(edge_index=both_directions(pairs), num_nodes=int(pairs.max()) + 1)


def graph_of(name: str) -> tde.Graph:
    """The same as a graph, with what it finds once: its components and its pattern."""
    graph = tde.Graph.from_data(data_of(name))
    _ = graph.components, graph.pattern
    return graph


def both_directions(edge_index: Tensor) -> Tensor:
    """Both directions of every edge once, sorted by rows, without self-loops."""
    low, high = edge_index[:, edge_index[0] != edge_index[1]]
    nodes = int(edge_index.max()) + 1
    keys = torch.cat((low * nodes + high, high * nodes + low)).unique()
    return torch.stack((keys // nodes, keys % nodes))


def block_model(nodes: int = 5_000, degree: int = 100, classes: int = 5, features: int = 64) -> Data:
    """A block model of that mean degree, four of five edges inside the classes, with noisy features."""
    random = torch.Generator().manual_seed(0)
    y, count = torch.arange(nodes) % classes, nodes * degree // 2
    one = torch.randint(nodes, (count,), generator=random)
    step = torch.randint(1, nodes // classes, (count,), generator=random) * classes
    across = torch.randint(1, nodes, (count,), generator=random)
    other = (one + torch.where(torch.rand(count, generator=random) < 0.8, step, across)) % nodes
    x = torch.nn.functional.one_hot(y, features).float() + torch.randn(nodes, features, generator=random)
    return Data(x=x, edge_index=both_directions(torch.stack((one, other))), y=y)


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
