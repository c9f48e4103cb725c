"""What will be done: the components of a graph as steps, each with the solvers to try, the reason and the memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import InitVar, dataclass

import numpy as np
import scipy.sparse as sp
import torch
from scipy.sparse.csgraph import breadth_first_order

from tadropedge._old.blocks import DENSE_NODES, Block
from tadropedge._old.checks import check_integer, check_positive, check_runs_on
from tadropedge._old.errors import TadropedgeError, lookup
from tadropedge._old.graph import Graph, check_graph
from tadropedge._old.spectrum.aim import CPU
from tadropedge._old.spectrum.certified import SHORT_STEPS
from tadropedge._old.spectrum.clusters import Clusters
from tadropedge._old.spectrum.davidson import BLOCKS, GUARD
from tadropedge._old.spectrum.mpi.launch import tools
from tadropedge._old.spectrum.mpi.solver import RANK_BLOCKS, RANK_BYTES, RANK_GUARD
from tadropedge._old.spectrum.solvers import SOLVERS
from tadropedge._old.spectrum.twins import System

LAPLACIANS = {"combinatorial": "D − A", "normalized": "I − D^-1/2 A D^-1/2"}
DENSE_FALLBACK = 6_000  # nodes up to which the dense solver may end a ladder: 300 MB, about a minute
NARROW = 1_000  # a factorisation comes first where a separator of this many nodes cuts the graph
WIDE = 4_000  # and is not tried unasked above this many: the last front alone is 128 MB and minutes of work
DENSE_SHARE = 10  # iterative solvers are for k well below n
MOST_RANKS = 100_000
PEELING = 100  # rounds in which leaves are taken off: longer whiskers are counted this far


@dataclass(frozen=True, kw_only=True)
class Wish(Clusters):
    """What is wanted of every component, checked: see :func:`tadropedge.aggregate_resistance`.

    ``ranks`` is no field: how many processes look for an answer does not decide it, so it is found again without them.

    >>> Wish(q=2, solver="lanczos", ranks=2)
    Traceback (most recent call last):
    tadropedge._old.errors.TadropedgeError: ranks=2 are processes of the solver 'slepc', got solver='lanczos'
    """

    laplacian: str = "combinatorial"
    solver: str = "auto"
    tolerance: float = 1e-8
    ranks: InitVar[int | None] = None

    def __post_init__(self, ranks: int | None) -> None:
        lookup("laplacian", self.laplacian, LAPLACIANS)
        lookup("solver", self.solver, {"auto": None, **SOLVERS})
        super().__post_init__()
        if ranks is not None:
            ranks = check_integer("ranks", ranks, least=1, most=MOST_RANKS)
            if self.solver != "slepc":
                raise TadropedgeError(f"ranks={ranks} are processes of the solver 'slepc', got solver={self.solver!r}")
        if self.solver == "slepc":
            tools()  # or what to install, before any work
        object.__setattr__(self, "ranks", ranks)
        object.__setattr__(self, "tolerance", check_positive("tolerance", self.tolerance))

    @property
    def processes(self) -> int:
        """Ranks to start."""
        return self.__dict__["ranks"] or 1


@dataclass(frozen=True)
class Survey:
    """``separator``: about how many nodes cut the component in two; ``fill``: expected entries of its factor.

    ``even``: whether the diagonal is the same everywhere, as in a normalised Laplacian.
    """

    nodes: int
    edges: int
    separator: int
    even: bool = False

    @classmethod
    def of(cls, L: sp.csr_matrix) -> Survey:
        """Look at the Laplacian of a component.

        >>> path = sp.diags([[-1.0] * 8, [1.0] + [2.0] * 7 + [1.0], [-1.0] * 8], [-1, 0, 1]).tocsr()
        >>> Survey.of(path)
        Survey(nodes=9, edges=8, separator=0, even=False)
        """
        n = L.shape[0]
        edges = (L.nnz - n) // 2
        # Half the widest layer of a breadth-first search separates; so does one node of each independent cycle.
        separator = min(_widest_layer(L) // 2, edges - n + 1)
        diagonal = L.diagonal()
        even = bool(np.ptp(diagonal) <= 1e-9 * diagonal.max())
        return cls(n, edges, separator, even)

    @property
    def fill(self) -> int:
        """Entries of a triangular factor: a few per node, and the full last front."""
        return 10 * self.nodes + self.separator**2 // 2

    def choice(
        self, solver: str = "auto", k: int = 1, device: torch.device | str = "cpu"
    ) -> tuple[tuple[str, ...], str]:
        """The solvers to try for k pairs, in order, and why these. A solver asked for by name is the only one.

        >>> Survey(160_000, 240_000, 200).choice()[0], Survey(300_000, 1_000_000, 50_000).choice()[0]
        (('shift-invert', 'davidson', 'lanczos'), ('davidson', 'lanczos'))
        >>> Survey(300_000, 1_000_000, 50_000, even=True).choice()[0]
        ('short-lanczos', 'davidson', 'lanczos')
        >>> Survey(1_000, 3_000, 300).choice(k=100)
        (('dense',), '100 of 1,000 pairs are wanted, which the dense solver finds best')
        """
        if self.wants_many(k):
            return ("dense",), f"{k:,} of {self.nodes:,} pairs are wanted, which the dense solver finds best"
        if solver != "auto":
            return (solver,), f"{solver} was asked for"
        if self.nodes <= DENSE_NODES:
            return ("dense",), f"up to {DENSE_NODES} nodes are solved densely"
        names = ["davidson", "lanczos"]
        why = f"about {self.separator:,} of {self.nodes:,} nodes separate it, so a factorisation "
        if self.separator <= NARROW:
            names.insert(0, "shift-invert")
            why += "stays sparse"
        else:
            if self.separator <= WIDE:
                names.insert(1, "shift-invert")
            if self.even and torch.device(device).type == "cpu":  # a GPU is faster by blocks
                names.insert(0, "short-lanczos")
            why += "would fill up and multigrid comes first" + (", unless a few products do" if self.even else "")
        if self.nodes <= DENSE_FALLBACK:
            names.append("dense")
        return tuple(names), why

    def wants_many(self, k: int) -> bool:
        """Whether k pairs are too large a share of all for an iterative solver."""
        return self.nodes <= DENSE_SHARE * k

    @property
    def matrix(self) -> int:
        """The bytes of the Laplacian, which is there before a solver begins."""
        return 12 * (2 * self.edges + self.nodes)

    def memory(self, name: str, k: int) -> int:
        """About how many bytes a solver needs at its peak for k pairs."""
        n, entries = self.nodes, 2 * self.edges + self.nodes
        matrix, vectors = self.matrix, 8 * n * max(2 * k + 1, 20)
        if name == "dense":
            return 3 * 8 * n * n
        if name == "shift-invert":
            return 2 * matrix + 2 * 12 * self.fill + 8 * n * (5 * k + 40)  # vectors of all Lanczos steps
        if name == "short-lanczos":
            return matrix + 8 * n * (SHORT_STEPS + k)
        if name == "slepc":  # all ranks together; each also loads its libraries
            return matrix + 8 * n * RANK_BLOCKS * (k + RANK_GUARD) + RANK_BYTES * entries
        if name == "davidson":
            basis = 8 * n * (BLOCKS + 1) * (k + GUARD)
            return matrix + 2 * basis + 80 * entries  # sorting the edges for the first coarse graph is the peak
        return matrix + 3 * vectors


def _widest_layer(L: sp.csr_matrix) -> int:
    """The most nodes at one distance from a node at the rim, where layers are thinnest."""
    far = int(breadth_first_order(L, 0, return_predecessors=False)[-1])
    order, parent = breadth_first_order(L, far)
    place = np.empty(L.shape[0], dtype=np.int64)
    place[order] = np.arange(len(order))
    above = place[np.maximum(parent[order], 0)]  # the parent's place: parents come in order
    widest, begin, end = 1, 0, 1
    while end < len(order):
        begin, end = end, int(np.searchsorted(above[1:], end) + 1)
        widest = max(widest, end - begin)
    return widest


def whiskers(L: sp.csr_matrix) -> int:
    """How many nodes go when leaves are taken off again and again: trees that hang off the core, or a whole tree.

    >>> tailed = sp.csr_matrix([[2.0, -1, -1, 0], [-1, 2, -1, 0], [-1, -1, 3, -1], [0, 0, -1, 1]])
    >>> whiskers(tailed)
    1
    """
    if L.nnz == 3 * L.shape[0] - 2:
        return int(L.shape[0])
    degrees = np.diff(L.indptr) - 1
    gone = np.zeros(L.shape[0], dtype=bool)
    front = np.flatnonzero(degrees == 1)
    for _ in range(PEELING):
        if not len(front):
            break
        gone[front] = True
        touched = L[front].indices
        touched = touched[~gone[touched]]
        np.subtract.at(degrees, touched, 1)
        front = np.unique(touched[degrees[touched] == 1])
    return int(gone.sum())


@dataclass(frozen=True, kw_only=True, repr=False)
class Step:
    """One thing to do: a batch of small components (``system=None``), or one large component with its own ladder.

    ``rungs`` are the solvers in the order in which they are tried, ``reason`` says why in one sentence, and ``survey``
    is what was seen of the component, with its twins merged.
    """

    block: Block
    wish: Wish
    survey: Survey
    rungs: tuple[str, ...]
    reason: str
    system: System | None = None
    runs_on: torch.device = CPU

    def __repr__(self) -> str:
        return f"Explanation({', '.join(f'{name}={getattr(self, name)!r}' for name in FACTS)})"

    @property
    def nodes(self) -> int:
        """Nodes of each component."""
        return self.block.size

    @property
    def edges(self) -> int:
        """Edges of each component, on average."""
        return len(self.block.edges) // self.count

    @property
    def count(self) -> int:
        """The number of components."""
        return self.block.count

    @property
    def leaves(self) -> int:
        """Nodes of degree one in each component, on average."""
        ends = np.tile(self.block.member * self.block.size, 2) + np.concatenate((self.block.low, self.block.high))
        return int((np.bincount(ends, minlength=self.block.nodes.size) == 1).sum()) // self.count

    @property
    def whiskers(self) -> int:
        """Nodes of trees that hang off the core; 0 in a batch, which need not know."""
        return 0 if self.system is None else whiskers(self.block.sparse_laplacian(self.wish.laplacian))

    @property
    def twins(self) -> int:
        """Nodes that are merged with others that have the same neighbours."""
        return 0 if self.system is None else self.system.twins.merged

    @property
    def pairs(self) -> int:
        """Eigenpairs to begin with."""
        return min(self.survey.nodes, self.wish.pairs_needed)

    @property
    def memory(self) -> int:
        """About how many bytes the first rung needs at its peak."""
        return self.count * self.survey.memory(self.rungs[0], self.pairs)

    @property
    def device(self) -> str:
        """Where the first rung runs."""
        return str(self.runs_on) if self.rungs[0] == "davidson" else "cpu"


FACTS = ("nodes", "edges", "count", "leaves", "whiskers", "twins", "rungs", "reason", "memory", "device")
Explanation = Step  # its name in version 0.1


def plan(parts: Iterable[Block], wish: Wish, device: torch.device = CPU) -> Iterator[Step]:
    """The steps that find the lowest modes of every component; each is made when its turn comes."""
    for block in parts:
        tiny = block.size <= DENSE_SHARE * wish.pairs_needed  # no work for an iterative solver
        if block.size <= DENSE_NODES and (tiny or wish.solver in ("auto", "dense")):
            survey = Survey(block.size, len(block.edges) // block.count, separator=0)
            reason = f"up to {DENSE_NODES} nodes are solved as dense batches"
            yield Step(block=block, wish=wish, survey=survey, rungs=("dense",), reason=reason)
        else:
            yield from (_alone(block.one(member), wish, device) for member in range(block.count))


def _alone(block: Block, wish: Wish, device: torch.device) -> Step:
    """A component with its own ladder."""
    system = System.of(block, wish.laplacian)
    survey = Survey.of(system.L)
    rungs, reason = survey.choice(wish.solver, min(survey.nodes, wish.pairs_needed), device)
    if system.twins.merged:
        reason = f"{system.twins.merged:,} twins are merged; {reason}"
    return Step(block=block, wish=wish, survey=survey, rungs=rungs, reason=reason, system=system, runs_on=device)


def explain(
    graph: Graph,
    q: int | None = None,
    *,
    desired_clusters: int | None = None,
    laplacian: str = "combinatorial",
    solver: str = "auto",
    ranks: int | None = None,
    device: torch.device | str | None = None,
) -> list[Step]:
    """The plan that :func:`tadropedge.aggregate_resistance` follows for these settings; nothing is solved.

    >>> graph = Graph.from_edge_index([[0, 1, 2, 3], [1, 2, 3, 1]])
    >>> [(step.nodes, step.count, step.rungs) for step in explain(graph, q=2)]
    [(4, 1, ('dense',))]
    """
    wish = Wish(q=q, desired_clusters=desired_clusters, laplacian=laplacian, solver=solver, ranks=ranks)
    where = check_runs_on(device, check_graph(graph).device)
    return list(plan(wish.parts(graph), wish, where))
