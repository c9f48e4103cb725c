"""What will be done: the components of a graph as steps, each with the solvers to try and their memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
import torch
from scipy.sparse.csgraph import breadth_first_order

from tadropedge.spectrum.blocks import DENSE_NODES, Block
from tadropedge.spectrum.davidson import BLOCKS, GUARD
from tadropedge.spectrum.lanczos import SHORT_STEPS
from tadropedge.spectrum.request import ModeRequest
from tadropedge.spectrum.target import CPU
from tadropedge.spectrum.twins import System

DENSE_FALLBACK = 6_000  # nodes up to which the dense solver may come last: 300 MB, about a minute
NARROW = 1_000  # a factorisation comes first where a separator of this many nodes cuts the graph
WIDE = 4_000  # and is not tried unasked above this many: the last front alone is 128 MB and minutes of work
DENSE_SHARE = 10  # iterative solvers are for k well below n


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

    def choice(self, solver: str = "auto", k: int = 1, device: torch.device | str = "cpu") -> tuple[str, ...]:
        """The solvers to try for k pairs, in order. A solver asked for by name is the only one.

        A factorisation comes first where it stays sparse. Where it would fill up, multigrid does, after a few products
        where those may do.

        >>> Survey(160_000, 240_000, 200).choice(), Survey(300_000, 1_000_000, 50_000).choice()
        (('shift-invert', 'davidson'), ('davidson',))
        >>> Survey(300_000, 1_000_000, 50_000, even=True).choice(), Survey(1_000, 3_000, 300).choice(k=100)
        (('short-lanczos', 'davidson'), ('dense',))
        """
        if self.wants_many(k):
            return ("dense",)
        if solver != "auto":
            return (solver,)
        if self.nodes <= DENSE_NODES:
            return ("dense",)
        names = ["davidson"]
        if self.separator <= NARROW:
            names.insert(0, "shift-invert")
        else:
            if self.separator <= WIDE:
                names.append("shift-invert")
            if self.even and torch.device(device).type == "cpu":  # a GPU is faster by blocks
                names.insert(0, "short-lanczos")
        if self.nodes <= DENSE_FALLBACK:
            names.append("dense")
        return tuple(names)

    def wants_many(self, k: int) -> bool:
        """Whether k pairs are too large a share of all for an iterative solver."""
        return self.nodes <= DENSE_SHARE * k

    def memory(self, name: str, k: int) -> int:
        """About how many bytes a solver takes beside the Laplacian, at its peak, for k pairs."""
        n, entries = self.nodes, 2 * self.edges + self.nodes
        matrix = 12 * entries
        if name == "dense":
            return 3 * 8 * n * n
        if name == "shift-invert":
            return 2 * matrix + 2 * 12 * self.fill + 8 * n * (5 * k + 40)  # vectors of all Lanczos steps
        if name == "short-lanczos":
            return 8 * n * (SHORT_STEPS + k)
        basis = 8 * n * (BLOCKS + 1) * (k + GUARD)  # of "davidson", or of a solver that the user has added
        return matrix + 2 * basis + 80 * entries  # sorting the edges for the first coarse graph is the peak


def _widest_layer(L: sp.csr_matrix) -> int:
    """The most nodes at one distance from a node at the rim, where layers are thinnest."""
    far = int(breadth_first_order(L, 0, return_predecessors=False)[-1])
    order, parent = breadth_first_order(L, far)
    position = np.empty(L.shape[0], dtype=np.int64)
    position[order] = np.arange(len(order))
    above = position[np.maximum(parent[order], 0)]  # the parent's position: parents come in order
    widest, begin, end = 1, 0, 1
    while end < len(order):
        begin, end = end, int(np.searchsorted(above[1:], end) + 1)
        widest = max(widest, end - begin)
    return widest


@dataclass(frozen=True, kw_only=True)
class Step:
    """One thing to do: a batch of small components (``system=None``), or one large component with its own solvers.

    ``solvers`` come in the order in which they are tried, and ``survey`` is what was seen of the component, with its
    twins merged.
    """

    block: Block
    request: ModeRequest
    survey: Survey
    solvers: tuple[str, ...]
    system: System | None = None
    device: torch.device = CPU

    @property
    def pairs(self) -> int:
        """Eigenpairs to begin with."""
        return min(self.survey.nodes, self.request.pairs_needed)


def plan(parts: Iterable[Block], request: ModeRequest, device: torch.device = CPU) -> Iterator[Step]:
    """The steps that find the lowest modes of every component; each is made when its turn comes.

    >>> from tadropedge.graph import Graph
    >>> graph, request = Graph.from_edge_index([[0, 1, 2, 3], [1, 2, 3, 1]]), ModeRequest(q=2)
    >>> [(step.block.nodes.tolist(), step.solvers) for step in plan(request.parts(graph), request)]
    [([[0, 1, 2, 3]], ('dense',))]
    """
    for block in parts:
        tiny = block.size <= DENSE_SHARE * request.pairs_needed  # no work for an iterative solver
        if block.size <= DENSE_NODES and (tiny or request.solver in ("auto", "dense")):
            survey = Survey(block.size, len(block.edges) // block.count, separator=0)
            yield Step(block=block, request=request, survey=survey, solvers=("dense",))
        else:
            yield from (_alone(block.one(member), request, device) for member in range(block.count))


def _alone(block: Block, request: ModeRequest, device: torch.device) -> Step:
    """A component with its own solvers."""
    system = System.of(block, request.laplacian)
    survey = Survey.of(system.L)
    solvers = survey.choice(request.solver, min(survey.nodes, request.pairs_needed), device)
    return Step(block=block, request=request, survey=survey, solvers=solvers, system=system, device=device)
