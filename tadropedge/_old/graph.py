"""The graph: undirected, simple, frozen. Everything that is per edge follows the order of ``graph.pairs``."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from tadropedge._old.arrays import checked_matrix, plain_array
from tadropedge._old.checks import (
    as_integer,
    check_array,
    check_device,
    check_encodable,
    check_flag,
    check_integer,
    check_length,
    check_number,
    check_numbers,
    check_path,
    check_runs_on,
    check_text,
    check_whole,
    settle,
)
from tadropedge._old.errors import TadropedgeError, show
from tadropedge._old.files import Asked, Held, read_file
from tadropedge._old.files.npz import matrix_arcs
from tadropedge._old.fingerprint import fingerprint
from tadropedge._old.memory import check_room
from tadropedge._old.pattern import Pattern

if TYPE_CHECKING:  # SciPy, too, takes a while to import: it is where a matrix is needed
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
    def num_isolated(self) -> int:
        """The number of components that are a single node."""
        return int((self.sizes == 1).sum())

    @property
    def largest(self) -> int:
        """The number of nodes of the largest component."""
        return int(self.sizes.max())


@dataclass(frozen=True, eq=False, repr=False)
class Graph:
    """An undirected simple graph G = (V, E) with N nodes and M edges.

    Use a ``from_...`` constructor: directions, duplicates and self-loops of the input are made simple there.

    * ``pairs [2, M]``: one column per edge, sorted, ``pairs[0] < pairs[1]``;
    * ``weight [M]``: positive float64 edge weights, or ``None`` when every weight is one;
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
    weight: Tensor | None = None
    arc_pair: Tensor = field(default_factory=lambda: torch.empty(0, dtype=torch.int64))
    _: KW_ONLY
    node_ids: tuple[Hashable, ...] | None = None

    def __post_init__(self) -> None:
        settle(self, num_nodes=check_integer("num_nodes", self.num_nodes, least=1, most=MOST_NODES))
        pairs = check_whole("pairs", self.pairs)
        if pairs.dim() != 2 or pairs.shape[0] != 2 or pairs.dtype != torch.int64:
            raise TadropedgeError(f"pairs must be int64 [2, M], got {pairs.dtype} of shape {list(pairs.shape)}")
        low, high = pairs
        if not _are_sorted(low, high, self.num_nodes):
            raise TadropedgeError("pairs must be sorted, with pairs[0] < pairs[1]; use Graph.from_edge_index")
        if pairs.numel() and (int(low.min()) < 0 or int(high.max()) >= self.num_nodes):
            raise TadropedgeError(f"pairs hold node ids from 0 to num_nodes - 1 = {self.num_nodes - 1}, got others")
        self._check_parts()

    def _check_parts(self) -> None:
        """Check what comes with the pairs: weights, arcs and names."""
        edges = self.num_edges
        if self.weight is not None:
            weight = check_length("weight", self.weight, edges, "pair")
            if weight.dtype != torch.float64 or weight.dim() != 1:
                raise TadropedgeError(f"weight must be float64 [M], got {weight.dtype} of shape {list(weight.shape)}")
            check_device("weight", weight, self.device, "pairs")
            _check_positive(weight)
        arcs = check_whole("arc_pair", self.arc_pair)
        if arcs.dim() != 1 or arcs.dtype != torch.int64:
            raise TadropedgeError(f"arc_pair must be int64 [A], got {arcs.dtype} of shape {list(arcs.shape)}")
        if arcs.numel() and (int(arcs.min()) < -1 or int(arcs.max()) >= edges):
            raise TadropedgeError(f"arc_pair must hold numbers of pairs, from -1 to {edges - 1}, got others")
        if self.node_ids is not None and (not isinstance(self.node_ids, tuple) or len(self.node_ids) != self.num_nodes):
            raise TadropedgeError(f"node_ids must be a tuple of {self.num_nodes} names, got {show(self.node_ids)}")

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
        arcs = _arcs(edge_index)
        num_nodes = _num_nodes(arcs, num_nodes)
        weight = None if edge_weight is None else _weights(edge_weight, arcs)
        keys, arc_pair = _distinct(_keys(arcs, num_nodes))
        del arcs
        pairs = torch.empty((2, keys.shape[0]), dtype=torch.int64, device=keys.device)
        torch.div(keys, num_nodes, rounding_mode="floor", out=pairs[0])
        torch.remainder(keys, num_nodes, out=pairs[1])
        if weight is not None:
            simple = arc_pair >= 0
            weight = _mean_weight(weight[simple], arc_pair[simple], keys.shape[0])
        del keys
        return cls(pairs, num_nodes, weight, arc_pair)

    @classmethod
    def from_data(cls, data: Data, weight: str | None = "edge_weight") -> Graph:
        """Build a graph from a PyTorch Geometric ``Data``; ``weight`` names the attribute with edge weights."""
        edge_index = getattr(data, "edge_index", None)
        if edge_index is None or not hasattr(data, "num_nodes"):
            raise TadropedgeError(f"expected a homogeneous torch_geometric Data with an edge_index, got {show(data)}")
        weight = None if weight is None else check_text("weight", weight)
        values = getattr(data, weight, None) if weight is not None else None
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
        num_nodes = _checked_nodes(matrix.shape[0])
        arcs, weight = matrix_arcs(checked_matrix(matrix, "matrix"))
        return cls.from_edge_index(arcs, num_nodes, weight)

    @classmethod
    def from_networkx(cls, graph: nx.Graph, weight: str | None = "weight") -> Graph:
        """Build a graph from NetworkX; nodes are numbered in iteration order, arcs in the order of ``graph.edges``.

        ``weight`` names the edge attribute with the weights; edges without it have weight one.
        """
        if not (hasattr(graph, "nodes") and hasattr(graph, "edges")):
            raise TadropedgeError(f"expected a NetworkX graph, got {show(graph)}")
        weight = None if weight is None else check_text("weight", weight)
        ids = tuple(graph.nodes)
        for node in ids:
            check_encodable("a node", node)
        number = {node: index for index, node in enumerate(ids)}
        edges = list(graph.edges(data=weight or False, **({"default": 1.0} if weight else {})))
        arcs = np.array([(number[edge[0]], number[edge[1]]) for edge in edges], dtype=np.int64).reshape(-1, 2)
        values = _float_array([edge[2] for edge in edges], weight) if weight else None
        return replace(cls.from_edge_index(arcs.T, len(ids), values), node_ids=ids)

    @classmethod
    def from_file(
        cls,
        path: str | Path,
        *,
        num_nodes: int | None = None,
        header: bool | None = None,
        weighted: bool = True,
    ) -> Graph:
        """Read a graph from a file of any format that ``docs/formats.md`` describes.

        That is an edge list (``.csv``, ``.tsv``, white space, each also ``.gz``), arrays (``.npz``), a saved ``Data``
        (``.pt``), Matrix Market (``.mtx``), GraphML, GML, or a folder of OGB. Lines of an edge list are ``source target
        [weight]``, or have more columns of which a header calls one ``weight``, ``w`` or ``value``; lines that start
        with ``#`` or ``%`` are comments. Ids are integers or strings; ``graph.node_ids`` keeps them, numbered in sorted
        order. ``num_nodes`` says that the ids are already 0 … N − 1 (nodes that no edge names are then kept as isolated
        nodes).
        """
        file, weighted = check_path("path", path), check_flag("weighted", weighted)
        header = None if header is None else check_flag("header", header)
        if num_nodes is not None:
            num_nodes = check_integer("num_nodes", num_nodes, least=1, most=MOST_NODES)
        held = read_file(file, Asked(header=header, weighted=weighted))
        return graph_of(held, file.name, num_nodes=num_nodes, weighted=weighted)

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
    def pattern(self) -> Pattern:
        """The fixed sparsity pattern that all shift operators of this graph share."""
        return Pattern.of(self.pairs, self.num_nodes)

    @cached_property
    def node_index(self) -> dict[Hashable, int]:
        """The number of each node by the user's own id."""
        return {node: number for number, node in enumerate(self.node_ids or range(self.num_nodes))}

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

    def to_arcs(self, values: Tensor, loops: float | bool = 0.0) -> Tensor:
        """Spread per-pair ``values [..., M]`` over the input's own arcs ``[..., A]``; self-loops get ``loops``.

        >>> graph = Graph.from_edge_index([[0, 1, 1, 2], [1, 0, 1, 1]])
        >>> graph.to_arcs(torch.tensor([5.0, 7.0])).tolist()
        [5.0, 5.0, 0.0, 7.0]
        """
        check_length("values", values, self.num_edges, "edge of the graph")
        check_device("values", values, self.device, "the graph")
        filling = bool(loops) if isinstance(loops, bool | np.bool_) else check_number("loops", loops)
        try:
            filling = float(filling) if values.is_floating_point() else filling
            padding = values.new_full((*values.shape[:-1], 1), filling)
        except (RuntimeError, OverflowError):
            raise TadropedgeError(f"loops must be a number that {values.dtype} holds, got {filling}") from None
        padded = torch.cat((values, padding), dim=-1)
        return padded[..., self.arc_pair]  # −1 reads the padding

    def to(self, device: torch.device | str) -> Graph:
        """Return the same graph on another device."""
        device = check_runs_on(device)
        weight = None if self.weight is None else self.weight.to(device)
        return replace(self, pairs=self.pairs.to(device), weight=weight, arc_pair=self.arc_pair.to(device))

    def __repr__(self) -> str:
        weighted = "" if self.weight is None else ", weighted"
        return f"Graph(num_nodes={self.num_nodes}, num_edges={self.num_edges}{weighted})"


def graph_of(held: Held, file: str, *, num_nodes: int | None = None, weighted: bool = True) -> Graph:
    """The graph of what ``file`` holds; ``num_nodes`` says that its nodes are called 0 … N − 1."""
    arcs, ids = held.arcs, held.ids
    if num_nodes is not None and ids is not None:
        if isinstance(ids[0], str):
            raise TadropedgeError(f"{file}: num_nodes={num_nodes} needs integer ids, found {ids[0]!r}")
        arcs, ids = np.array(ids)[arcs], None
    try:
        nodes = held.num_nodes if num_nodes is None else num_nodes
        graph = Graph.from_edge_index(arcs, nodes, held.weight if weighted else None)
    except TadropedgeError as error:
        raise TadropedgeError(str(error) if file in str(error) else f"{file}: {error}") from error
    for name in ids or ():
        check_encodable("a node", name)
    return graph if ids is None else replace(graph, node_ids=ids)


def without_arcs(graph: Graph) -> Graph:
    """The same graph without the arcs that it was made of, 8 bytes each, for those who ask for pairs alone.

    >>> without_arcs(Graph.from_edge_index([[0, 1], [1, 0]])).arc_pair.tolist()
    []
    """
    return replace(graph, arc_pair=torch.empty(0, dtype=torch.int64, device=graph.device))


def check_graph(graph: object) -> Graph:
    """Return ``graph`` if it is a :class:`Graph` with edges, or say how to build one."""
    if not isinstance(graph, Graph):
        raise TadropedgeError(
            f"expected a tadropedge.Graph, got {show(graph)}; build one with Graph.from_edge_index, "
            "from_data, from_scipy, from_networkx or from_file"
        )
    if graph.num_edges == 0:
        raise TadropedgeError(f"the graph has {graph.num_nodes} nodes and no edges: there is nothing to weigh")
    return graph


def at_both_ends(graph: Graph, values: Tensor) -> Tensor:
    """The sum ``[M]`` of ``values [N]`` at the two ends of every edge.

    >>> at_both_ends(Graph.from_edge_index([[0, 1], [1, 2]]), torch.tensor([1, 10, 100])).tolist()
    [11, 110]
    """
    low, high = graph.pairs
    total = values.index_select(0, low)
    for first in range(0, len(low), PIECE):
        some = slice(first, first + PIECE)
        total[some] += values.index_select(0, high[some])
    return total


def _are_sorted(low: Tensor, high: Tensor, num_nodes: int) -> bool:
    """Whether ``low < high`` everywhere and the pairs increase; on a CPU piece by piece, which takes no memory."""
    step = PIECE if low.device.type == "cpu" else max(len(low), 1)
    for first in range(0, len(low), step):
        piece = slice(first, first + step + 1)  # with the one that the next piece begins with
        some, other = low[piece], high[piece]
        key = some * num_nodes + other
        if not bool((some < other).all() and (key.diff() > 0).all()):
            return False
    return True


def _keys(arcs: Tensor, num_nodes: int) -> Tensor:
    """The number ``low · N + high`` of each arc, int64 ``[A]``, −1 for self-loops."""
    keys = torch.empty(arcs.shape[1], dtype=torch.int64, device=arcs.device)
    step = PIECE if arcs.device.type == "cpu" else max(len(keys), 1)
    for first in range(0, len(keys), step):
        some = arcs[:, first : first + step].to(torch.int64)
        low, high = torch.minimum(some[0], some[1]), torch.maximum(some[0], some[1])
        keys[first : first + step] = torch.where(low < high, low * num_nodes + high, -1)
    return keys


def _distinct(keys: Tensor) -> tuple[Tensor, Tensor]:
    """The distinct keys that are not −1, in order, and the place of each key among them, −1 for −1.

    >>> _distinct(torch.tensor([7, -1, 3, 7]))
    (tensor([3, 7]), tensor([ 1, -1,  0,  1]))
    """
    if keys.device.type != "cpu" or len(keys) < PIECE:
        found, place = torch.unique(keys, return_inverse=True)
        loops = int(len(found) > 0 and int(found[0]) < 0)
        return (found[1:], place - 1) if loops else (found, place)
    ascending, order = keys.sort()
    new = torch.ones(len(order), dtype=torch.bool)
    torch.ne(ascending[1:], ascending[:-1], out=new[1:])
    loops = int(len(order) > 0 and int(ascending[0]) < 0)
    found = ascending[new][loops:]
    del ascending
    rank = new.cumsum(0).sub_(1 + loops)
    return found, torch.empty_like(rank).index_copy_(0, order, rank)


def _arcs(edge_index: Any) -> Tensor:
    """Check ``edge_index`` and return it as whole numbers ``[2, A]``; arrays of the usual types are not copied."""
    plain = type(edge_index) in (np.ndarray, np.memmap) and edge_index.dtype in (np.int32, np.int64)
    if plain and edge_index.flags.writeable and min(edge_index.strides, default=0) >= 0:
        arcs = torch.from_numpy(edge_index)
    else:
        arcs = check_array("edge_index", edge_index)
    if arcs.dim() != 2 or arcs.shape[0] != 2:
        raise TadropedgeError(f"expected an edge_index of shape [2, A], got shape {list(arcs.shape)}")
    integral = not (arcs.is_floating_point() or arcs.dtype == torch.bool)
    if not integral and arcs.numel():  # an empty list has no integers to show its type
        raise TadropedgeError(f"edge_index must hold whole numbers, got dtype {arcs.dtype}")
    arcs = arcs.detach()
    return arcs if arcs.dtype == torch.int32 else arcs.to(torch.int64)


def _num_nodes(arcs: Tensor, wanted: int | None) -> int:
    """Check every node id against the number of nodes."""
    least, most = (int(arcs.min()), int(arcs.max())) if arcs.numel() else (0, -1)
    num_nodes = most + 1 if wanted is None else as_integer(wanted)
    if num_nodes is None:
        raise TadropedgeError(f"num_nodes must be a whole number, got {show(wanted, typed=False)}")
    if least < 0:
        raise TadropedgeError(f"edge_index holds the negative node id {least}; ids run from 0 to num_nodes - 1")
    _checked_nodes(num_nodes)
    if most >= num_nodes:
        raise TadropedgeError(
            f"edge_index holds the node id {most}, but num_nodes={num_nodes}: ids run from 0 to {num_nodes - 1}"
        )
    return num_nodes


def _checked_nodes(num_nodes: int) -> int:
    """Refuse numbers of nodes that nothing could be computed for."""
    if num_nodes < 1:
        raise TadropedgeError(f"an empty graph: num_nodes is {num_nodes}, expected at least 1")
    if num_nodes > MOST_NODES:
        told = show(num_nodes, typed=False)
        raise TadropedgeError(
            f"a graph may have up to {MOST_NODES} nodes, got num_nodes={told}; number the nodes from 0"
        )
    check_room(NODE_BYTES * num_nodes, f"a graph of {num_nodes} nodes")
    return num_nodes


def _weights(edge_weight: Any, arcs: Tensor) -> Tensor:
    """Check edge weights and return them as float64 ``[A]`` on the device of ``arcs``."""
    weight = check_numbers("edge_weight", edge_weight).detach()
    if isinstance(edge_weight, Tensor):
        check_device("edge_weight", weight, arcs.device, "edge_index")
    if weight.dim() == 2 and weight.shape[1] == 1:
        weight = weight[:, 0]
    if weight.dim() != 1 or weight.shape[0] != arcs.shape[1]:
        raise TadropedgeError(
            f"edge_weight has shape {list(weight.shape)}, but edge_index has {arcs.shape[1]} arcs: "
            f"expected shape [{arcs.shape[1]}]"
        )
    weight = weight.to(device=arcs.device, dtype=torch.float64)
    _check_positive(weight)
    return weight


def _check_positive(weight: Tensor) -> None:
    wrong = ~((weight > 0) & torch.isfinite(weight))
    if bool(wrong.any()):
        place = int(wrong.nonzero()[0])
        raise TadropedgeError(
            f"edge weights must be positive and finite, got {float(weight[place])} at position {place}"
        )


def _float_array(values: Any, name: str | None) -> npt.NDArray[np.float64]:
    try:
        if np.iscomplexobj(values):
            raise TypeError("complex numbers")
        return np.array(plain_array(values, str(name)), dtype=np.float64)
    except TadropedgeError:
        raise
    except (TypeError, ValueError) as error:
        raise TadropedgeError(f"{name} must be numbers, got {show(values)}") from error


def _mean_weight(weight: Tensor, pair: Tensor, count: int) -> Tensor | None:
    """Average the weights of the arcs of each pair; ``None`` stands for all ones."""
    least = weight.new_zeros(count).scatter_reduce_(0, pair, weight, "amin", include_self=False)
    most = weight.new_zeros(count).scatter_reduce_(0, pair, weight, "amax", include_self=False)
    share = weight / torch.bincount(pair, minlength=count)[pair]
    mean = weight.new_zeros(count).index_add_(0, pair, share)
    mean = torch.where(least == most, least, mean)  # the mean of equal numbers, without rounding
    return None if bool((mean == 1).all()) else mean
