"""The graph: undirected, simple, frozen. Everything that is per edge follows the order of ``graph.pairs``."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from tadropedge._support.checks import (
    check_device,
    check_integer,
    check_length,
    check_numbers,
    check_runs_on,
    check_whole,
)
from tadropedge._support.fingerprint import fingerprint
from tadropedge._support.memory import check_memory
from tadropedge.errors import TadropedgeError, show
from tadropedge.operators.kernels import kernels
from tadropedge.operators.kernels.words import pair_keys
from tadropedge.operators.pattern import INT32_LIMIT, Pattern

if TYPE_CHECKING:
    import networkx as nx
    import scipy.sparse as sp
    from torch_geometric.data import Data

MOST_NODES = 3_037_000_499  # the square of a larger number of nodes does not fit 64 bits
NODE_BYTES = 24  # the least that a node takes: its places in the pattern, its component
PIECE = 1 << 22  # edges that are looked at together, so that what is computed of them does not count


@dataclass(frozen=True)
class Components:
    """Phase I of TADropEdge: the disjoint components, numbered by their lowest node.

    ``labels [N]`` names the component of each node, ``sizes [C]`` counts its nodes.
    """

    labels: Tensor
    sizes: Tensor

    @property
    def count(self) -> int:
        """The number of components, isolated nodes included."""
        return self.sizes.shape[0]

    @property
    def largest(self) -> int:
        """The number of nodes of the largest component."""
        return int(self.sizes.max())


@dataclass(frozen=True, eq=False, repr=False)
class Graph:
    """An undirected simple graph G = (V, E) with N nodes and M edges.

    Make one with a ``from_...`` constructor, which checks its input and makes directions, duplicates and self-loops
    simple. ``Graph(...)`` itself trusts what it is given.

    * ``pairs [2, M]``: one column per edge, sorted, ``pairs[0] < pairs[1]``;
    * ``weight [M]``: float64 edge weights of at least 0, or ``None`` when every weight is one;
    * ``arc_pair [A]``: the pair of each input arc, −1 for self-loops;
    * ``node_ids``: the user's own names of the nodes, where the input had names.

    An edge that the input lists several times (both directions, duplicates) gets the mean of their weights,
    so listing an edge twice never changes it. Components, pattern and fingerprint are computed once: do not
    write into the tensors of a graph.

    >>> graph = Graph.from_edge_index([[0, 1, 1, 2], [1, 0, 1, 1]])
    >>> graph
    Graph(num_nodes=3, num_edges=2)
    >>> graph.pairs.tolist()
    [[0, 1], [1, 2]]
    >>> graph.arc_pair.tolist()
    [0, 0, -1, 1]
    """

    pairs: Tensor
    num_nodes: int
    weight: Tensor | None
    arc_pair: Tensor
    node_ids: tuple[Hashable, ...] | None = None

    # -- constructors ---------------------------------------------------------------------------------

    @classmethod
    def from_edge_index(
        cls,
        edge_index: Tensor | npt.ArrayLike,
        num_nodes: int | None = None,
        edge_weight: Tensor | npt.ArrayLike | None = None,
    ) -> Graph:
        """Build a graph from arcs ``edge_index [2, A]`` in any direction, with optional weights ``[A]``.

        ``num_nodes=None`` means the largest id plus one. The graph lies on the device of ``edge_index``.
        """
        arcs = _checked_arcs(edge_index)
        num_nodes = _checked_nodes(arcs, num_nodes)
        weight = None if edge_weight is None else _checked_weight(edge_weight, arcs)
        keys, arc_pair = _distinct(_pair_numbers(arcs, num_nodes))
        pairs = torch.empty((2, keys.shape[0]), dtype=torch.int64, device=keys.device)
        torch.div(keys, num_nodes, rounding_mode="floor", out=pairs[0])
        torch.remainder(keys, num_nodes, out=pairs[1])
        del keys
        if weight is not None:
            weight = _mean_per_pair(weight, arc_pair, pairs.shape[1])
            weight = None if bool((weight == 1).all()) else weight
        return cls(pairs, num_nodes, weight, arc_pair)

    @classmethod
    def from_data(cls, data: Data, weight: str | None = "edge_weight") -> Graph:
        """Build a graph from a PyTorch Geometric ``Data``; ``weight`` names the attribute with edge weights."""
        edge_index = getattr(data, "edge_index", None)
        if edge_index is None or not hasattr(data, "num_nodes"):
            raise TadropedgeError(f"expected a homogeneous torch_geometric Data with an edge_index, got {show(data)}")
        values = None if weight is None else getattr(data, weight, None)
        return cls.from_edge_index(edge_index, data.num_nodes, values)

    @classmethod
    def from_scipy(cls, matrix: sp.spmatrix | sp.sparray) -> Graph:
        """Build a graph from a square sparse adjacency matrix; its values are the edge weights.

        As everywhere in SciPy, repeated entries are summed and stored zeros are no edges. Input arcs are the
        remaining entries in row-major order.
        """
        from scipy.sparse import issparse

        if not issparse(matrix):
            raise TadropedgeError(f"expected a SciPy sparse matrix, got {show(matrix)}")
        if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
            raise TadropedgeError(f"an adjacency matrix must be square, got shape {tuple(matrix.shape)}")
        if np.iscomplexobj(matrix):
            raise TadropedgeError(f"edge weights must be real, got a matrix of {matrix.dtype}")
        rows, cols, weight = matrix_arcs(matrix)
        return cls.from_edge_index(np.stack((rows, cols)), matrix.shape[0], weight)

    @classmethod
    def from_networkx(cls, graph: nx.Graph, weight: str | None = "weight") -> Graph:
        """Build a graph from NetworkX; nodes are numbered in iteration order, arcs in the order of ``graph.edges``.

        ``weight`` names the edge attribute with the weights; edges without it have weight one.
        """
        if not (hasattr(graph, "nodes") and hasattr(graph, "edges")):
            raise TadropedgeError(f"expected a NetworkX graph, got {show(graph)}")
        ids = tuple(graph.nodes)
        number = {node: index for index, node in enumerate(ids)}
        ends = [(number[one], number[other]) for one, other in graph.edges()]
        arcs = np.array(ends, dtype=np.int64).reshape(-1, 2).T
        values = None if weight is None else [value for _, _, value in graph.edges(data=weight, default=1.0)]
        return replace(cls.from_edge_index(arcs, len(ids), values), node_ids=ids)

    @classmethod
    def from_file(cls, path: str | Path, *, num_nodes: int | None = None, **options: Any) -> Graph:
        """Read a graph from a file; ``options`` are those of :func:`tadropedge.files.read_file`.

        With ``num_nodes`` the integer ids of an edge list are the numbers of the nodes, 0 to ``num_nodes − 1``, so that
        isolated nodes are there, too.
        """
        from tadropedge.files import read_file

        return read_file(path, **options, nodes=False).to_graph(num_nodes)

    # -- what it holds --------------------------------------------------------------------------------

    @property
    def num_edges(self) -> int:
        """M, the number of undirected edges."""
        return self.pairs.shape[1]

    @property
    def device(self) -> torch.device:
        """Where the graph lies."""
        return self.pairs.device

    @cached_property
    def components(self) -> Components:
        """The disjoint components (Phase I).

        >>> components = Graph.from_edge_index([[0, 3], [1, 4]], num_nodes=6).components
        >>> components.labels.tolist(), components.sizes.tolist()
        ([0, 0, 1, 2, 2, 3], [2, 1, 2, 1])
        """
        from scipy.sparse import csr_matrix
        from scipy.sparse.csgraph import connected_components

        # One triangle of the matrix, as the pairs stand: the search looks at its transpose, too.
        low, high = self.pairs.cpu().numpy()
        starts = np.concatenate(([0], np.cumsum(np.bincount(low, minlength=self.num_nodes))))
        shape = (self.num_nodes, self.num_nodes)
        upper = csr_matrix((np.ones(self.num_edges), high, starts), shape=shape)
        count, labels = connected_components(upper, directed=False)
        sizes = np.bincount(labels, minlength=count)
        return Components(
            torch.from_numpy(labels.astype(np.int64)).to(self.device), torch.from_numpy(sizes).to(self.device)
        )

    @cached_property
    def connections(self) -> Graph:
        """The graph without edges of weight zero: the graph itself where it has none.

        >>> Graph.from_edge_index([[0, 1], [1, 2]], edge_weight=[0.0, 2.0]).connections.pairs.tolist()
        [[1], [2]]
        """
        if self.weight is None or bool((self.weight > 0).all()):
            return self
        return self.subgraph(self.weight > 0)

    @cached_property
    def pattern(self) -> Pattern:
        """The fixed sparsity pattern that all shift operators of this graph share."""
        return Pattern.of(self.pairs, self.num_nodes)

    @cached_property
    def keys(self) -> Tensor:
        """The identity of each edge, int64 ``[M]``, by which coins know it: a hash of its two node ids."""
        return pair_keys(self.pairs)

    @cached_property
    def fingerprint(self) -> str:
        """A hash of nodes, edges and weights: equal for equal graphs, whatever input they came from."""
        return fingerprint(num_nodes=self.num_nodes, pairs=self.pairs, weight=self.weight)

    def adjacency(self) -> sp.csr_matrix:
        """The symmetric weighted adjacency matrix A as SciPy CSR, float64 ``[N, N]``."""
        from scipy.sparse import csr_matrix

        low, high = self.pairs.cpu().numpy()
        values = np.ones(self.num_edges) if self.weight is None else self.weight.cpu().numpy()
        rows, cols = np.concatenate((low, high)), np.concatenate((high, low))
        shape = (self.num_nodes, self.num_nodes)
        return csr_matrix((np.concatenate((values, values)), (rows, cols)), shape=shape)

    # -- from arcs to pairs and back ------------------------------------------------------------------

    def to_arcs(self, values: Tensor, loops: float | bool = 0.0) -> Tensor:
        """Spread per-pair ``values [..., M]`` over the input's own arcs ``[..., A]``; self-loops get ``loops``.

        >>> graph = Graph.from_edge_index([[0, 1, 1, 2], [1, 0, 1, 1]])
        >>> graph.to_arcs(torch.tensor([5.0, 7.0])).tolist()
        [5.0, 5.0, 0.0, 7.0]
        """
        check_length("values", values, self.num_edges, "edge of the graph")
        check_device("values", values, self.device, "the graph")
        if values.dtype == torch.bool and values.dim() == 1 and loops is True:
            mask: Tensor = kernels(values).spread(values, self._arc_place)
            return mask
        padding = values.new_full((*values.shape[:-1], 1), loops)
        return torch.cat((values, padding), dim=-1).index_select(-1, self._arc_place)

    def to_pairs(self, values: Any, name: str = "values") -> Tensor:
        """One float64 number per edge ``[M]`` from one per input arc ``[A]``: their mean; self-loops do not count.

        Numbers ``[M]`` for a graph of other than M arcs are taken as they are.

        >>> graph = Graph.from_edge_index([[0, 1, 1, 2], [1, 0, 1, 1]])
        >>> graph.to_pairs([1.0, 3.0, 9.0, 5.0]).tolist()
        [2.0, 5.0]
        """
        numbers = check_numbers(name, values).detach().to(dtype=torch.float64, device=self.device)
        numbers = numbers[:, 0] if numbers.dim() == 2 and numbers.shape[1] == 1 else numbers
        if numbers.shape == self.arc_pair.shape:
            return _mean_per_pair(numbers, self.arc_pair, self.num_edges)
        if numbers.shape != (self.num_edges,):
            raise TadropedgeError(
                f"{name} must be one number for each of {len(self.arc_pair)} listed edges, got shape "
                f"{list(numbers.shape)}",
                argument=name,
            )
        return numbers

    def subgraph(self, kept: Tensor) -> Graph:
        """The graph of the ``kept [M]`` edges on the same nodes; ``arc_pair`` is −1 for arcs of the others.

        >>> Graph.from_edge_index([[0, 1, 2], [1, 2, 0]]).subgraph(torch.tensor([False, True, True])).arc_pair.tolist()
        [-1, 1, 0]
        """
        place = torch.where(kept, kept.cumsum(0) - 1, -1)
        weight = None if self.weight is None else self.weight[kept]
        return Graph(self.pairs[:, kept], self.num_nodes, weight, self.to_arcs(place, loops=-1), self.node_ids)

    @cached_property
    def _arc_place(self) -> Tensor:
        """Where the value of each arc stands among those of M pairs and one more for self-loops."""
        index = torch.int32 if self.num_edges < INT32_LIMIT else torch.int64  # of which a mask reads half as much
        return torch.where(self.arc_pair < 0, self.num_edges, self.arc_pair).to(index)

    def to(self, device: torch.device | str) -> Graph:
        """Return the same graph on another device."""
        device = check_runs_on(device)
        weight = None if self.weight is None else self.weight.to(device)
        return replace(self, pairs=self.pairs.to(device), weight=weight, arc_pair=self.arc_pair.to(device))

    def __repr__(self) -> str:
        weighted = "" if self.weight is None else ", weighted"
        return f"Graph(num_nodes={self.num_nodes}, num_edges={self.num_edges}{weighted})"


def check_graph(graph: object, edges: bool = True) -> Graph:
    """Return ``graph`` if it is a :class:`Graph`, with ``edges`` to look at, or say how to build one."""
    if not isinstance(graph, Graph):
        raise TadropedgeError(
            f"expected a tadropedge.Graph, got {show(graph)}; build one with Graph.from_edge_index, "
            "from_data, from_scipy, from_networkx or from_file"
        )
    if edges and graph.num_edges == 0:
        raise TadropedgeError(f"the graph has {graph.num_nodes} nodes and no edges: there is nothing to score")
    return graph


def at_both_ends(graph: Graph, values: Tensor) -> Tensor:
    """The sum ``[M]`` of ``values [N]`` at the two ends of every edge.

    >>> at_both_ends(Graph.from_edge_index([[0, 1], [1, 2]]), torch.tensor([1, 10, 100])).tolist()
    [11, 110]
    """
    low, high = graph.pairs
    return values.index_select(0, low).add_(values.index_select(0, high))


def matrix_arcs(matrix: Any) -> tuple[npt.NDArray[Any], npt.NDArray[Any], npt.NDArray[np.float64]]:
    """Rows, columns and values of the entries of a SciPy matrix that are not 0, in row-major order.

    A matrix whose index arrays do not fit together would make compiled code read beyond them; SciPy checks them here.
    """
    try:
        if hasattr(matrix, "check_format"):  # CSR, CSC and BSR
            matrix.check_format(full_check=True)
        csr = matrix.tocsr().astype(np.float64)  # a copy: the user's matrix is not changed
        csr.check_format(full_check=True)
    except (ValueError, IndexError, TypeError) as error:
        raise TadropedgeError(f"the sparse matrix is malformed: {error}") from error
    csr.sum_duplicates()
    csr.eliminate_zeros()
    entries = csr.tocoo()
    return entries.row, entries.col, entries.data


def _pair_numbers(arcs: Tensor, num_nodes: int) -> Tensor:
    """The number ``low · N + high`` of each arc, int64 ``[A]``, −1 for self-loops."""
    numbers = torch.empty(arcs.shape[1], dtype=torch.int64, device=arcs.device)
    step = PIECE if arcs.device.type == "cpu" else max(len(numbers), 1)
    for first in range(0, len(numbers), step):
        some = arcs[:, first : first + step].to(torch.int64)
        low, high = torch.minimum(some[0], some[1]), torch.maximum(some[0], some[1])
        numbers[first : first + step] = torch.where(low < high, low * num_nodes + high, -1)
    return numbers


def _distinct(numbers: Tensor) -> tuple[Tensor, Tensor]:
    """The distinct numbers that are not −1, in order, and the place of each number among them, −1 for −1.

    >>> _distinct(torch.tensor([7, -1, 3, 7]))
    (tensor([3, 7]), tensor([ 1, -1,  0,  1]))
    """
    if numbers.device.type != "cpu" or len(numbers) < PIECE:
        found, place = torch.unique(numbers, return_inverse=True)
        loops = int(len(found) > 0 and int(found[0]) < 0)
        return (found[1:], place - 1) if loops else (found, place)
    ascending, order = numbers.sort()  # torch.unique takes three times the memory
    new = torch.ones(len(order), dtype=torch.bool)
    torch.ne(ascending[1:], ascending[:-1], out=new[1:])
    loops = int(int(ascending[0]) < 0)
    found = ascending[new][loops:]
    del ascending
    rank = new.cumsum(0).sub_(1 + loops)
    return found, torch.empty_like(rank).index_copy_(0, order, rank)


def _mean_per_pair(values: Tensor, arc_pair: Tensor, count: int) -> Tensor:
    """The mean ``[M]`` of the ``values [A]`` of the arcs of each pair; that of equal numbers without rounding."""
    listed = arc_pair >= 0
    pair, values = arc_pair[listed], values[listed]
    least = values.new_zeros(count).scatter_reduce_(0, pair, values, "amin", include_self=False)
    most = values.new_zeros(count).scatter_reduce_(0, pair, values, "amax", include_self=False)
    share = values / torch.bincount(pair, minlength=count)[pair]
    mean = values.new_zeros(count).index_add_(0, pair, share)
    return torch.where(least == most, least, mean)


def _checked_arcs(edge_index: Any) -> Tensor:
    """Check ``edge_index`` and return it as whole numbers ``[2, A]``."""
    arcs = check_numbers("edge_index", edge_index)
    if arcs.dim() != 2 or arcs.shape[0] != 2:
        raise TadropedgeError(f"expected an edge_index of shape [2, A], got shape {list(arcs.shape)}")
    if arcs.numel():  # an empty list has no integers to show its type
        check_whole("edge_index", arcs)
    arcs = arcs.detach()
    return arcs if arcs.dtype == torch.int32 else arcs.to(torch.int64)


def _checked_nodes(arcs: Tensor, wanted: int | None) -> int:
    """Check every node id against the number of nodes, and that against what a graph may have."""
    least, most = (int(arcs.min()), int(arcs.max())) if arcs.numel() else (0, -1)
    if least < 0:
        raise TadropedgeError(f"edge_index holds the negative node id {least}; ids run from 0 to num_nodes - 1")
    if wanted is None and most < 0:
        raise TadropedgeError("an empty graph: edge_index holds no arcs; give num_nodes, at least 1")
    num_nodes = check_integer("num_nodes", most + 1 if wanted is None else wanted, least=1, most=MOST_NODES)
    if most >= num_nodes:
        raise TadropedgeError(
            f"edge_index holds the node id {most}, but num_nodes={num_nodes}: ids run from 0 to {num_nodes - 1}"
        )
    check_memory(NODE_BYTES * num_nodes, f"a graph of {num_nodes} nodes", "number the nodes from 0")
    return num_nodes


def _checked_weight(edge_weight: Any, arcs: Tensor) -> Tensor:
    """Check edge weights and return them as float64 ``[A]`` on the device of ``arcs``."""
    weight = check_numbers("edge_weight", edge_weight).detach()
    if isinstance(edge_weight, Tensor):
        check_device("edge_weight", weight, arcs.device, "edge_index")
    if weight.dim() == 2 and weight.shape[1] == 1:
        weight = weight[:, 0]
    if weight.shape != arcs.shape[1:]:
        raise TadropedgeError(
            f"edge_weight has shape {list(weight.shape)}, but edge_index has {arcs.shape[1]} arcs: "
            f"expected shape [{arcs.shape[1]}]",
            argument="edge_weight",
        )
    weight = weight.to(device=arcs.device, dtype=torch.float64)
    check_sign(weight)
    return weight


def check_sign(weight: Tensor) -> None:
    """Refuse edge weights that are negative or not finite."""
    least, most = torch.stack(torch.aminmax(weight.detach())).tolist() if weight.numel() else (0.0, 0.0)
    if not (least >= 0 and most < float("inf")):
        place = int((~((weight >= 0) & torch.isfinite(weight))).flatten().nonzero()[0])
        raise TadropedgeError(
            f"edge weights must be finite and at least 0, got {float(weight.flatten()[place])} at position {place}; "
            "where signs matter, score and drop by edge_weight.abs() and keep the signed weights beside it",
            argument="edge_weight",
        )
