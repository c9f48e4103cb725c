"""What will be done: the components of a graph as steps, each with the solvers to try, the reason and the memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
import torch

from tadropedge.blocks import DENSE_NODES, Block, blocks
from tadropedge.errors import check_positive, check_runs_on, lookup
from tadropedge.graph import Graph, check_graph
from tadropedge.spectrum.aim import CPU, Floats
from tadropedge.spectrum.clusters import Clusters
from tadropedge.spectrum.solvers import SOLVERS
from tadropedge.spectrum.survey import DENSE_SHARE, Survey, whiskers
from tadropedge.spectrum.twins import Twins

LAPLACIANS = {"combinatorial": "D − A", "normalized": "I − D^-1/2 A D^-1/2"}


@dataclass(frozen=True, kw_only=True)
class Wish:
    """What is wanted of every component, checked: see :func:`tadropedge.aggregate_resistance`."""

    q: int | None = None
    desired_clusters: int | None = None
    laplacian: str = "combinatorial"
    solver: str = "auto"
    tolerance: float = 1e-8

    def __post_init__(self) -> None:
        lookup("laplacian", self.laplacian, LAPLACIANS)
        lookup("solver", self.solver, {"auto": None, **SOLVERS})
        clusters = Clusters.wanted(self.q, self.desired_clusters)
        plain = {"q": clusters.q, "desired_clusters": clusters.desired}  # not the integers of another library
        for name, value in (plain | {"tolerance": check_positive("tolerance", self.tolerance)}).items():
            object.__setattr__(self, name, value)

    @property
    def clusters(self) -> Clusters:
        """How many modes."""
        return Clusters(self.q, self.desired_clusters)

    def parts(self, graph: Graph) -> Iterator[Block]:
        """The components that have enough nodes, of which there must be one."""
        self.clusters.check_fits(graph.components.largest)
        return blocks(graph, self.clusters.least_nodes)


@dataclass(frozen=True)
class System:
    """The matrix that solvers see, the Laplacian with its twins merged, and its unit null vector."""

    L: sp.csr_matrix
    null: Floats
    twins: Twins

    @classmethod
    def of(cls, block: Block, laplacian: str) -> System:
        """The system of a block of one component."""
        L = block.sparse_laplacian(laplacian)
        null = np.sqrt(block.degrees()[0]) if laplacian == "normalized" else np.ones(block.size)
        null /= np.linalg.norm(null)
        twins = Twins.of(L)
        if twins.merged:
            spread = twins.spread()
            L, null = (spread.T @ L @ spread).tocsr(), spread.T @ null
            L.sort_indices()
        return cls(L, null, twins)


@dataclass(frozen=True, kw_only=True)
class Step:
    """One thing to do: a batch of small components (``system=None``), or one large component with a ladder of its own.

    ``rungs`` are the solvers in the order in which they are tried, ``reason`` says why in one sentence, and ``survey``
    is what was seen of the component, with its twin leaves merged.
    """

    block: Block
    wish: Wish
    survey: Survey
    rungs: tuple[str, ...]
    reason: str
    system: System | None = None
    runs_on: torch.device = CPU

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
        """Leaves that are merged with others of the same hub."""
        return 0 if self.system is None else self.system.twins.merged

    @property
    def pairs(self) -> int:
        """Eigenpairs to begin with."""
        return min(self.survey.nodes, self.wish.clusters.pairs_needed)

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
        tiny = block.size <= DENSE_SHARE * wish.clusters.pairs_needed  # no work for an iterative solver
        if block.size <= DENSE_NODES and (tiny or wish.solver in ("auto", "dense")):
            survey = Survey(block.size, len(block.edges) // block.count, separator=0)
            reason = f"up to {DENSE_NODES} nodes are solved as dense batches"
            yield Step(block=block, wish=wish, survey=survey, rungs=("dense",), reason=reason)
        else:
            yield from (_alone(block.one(member), wish, device) for member in range(block.count))


def _alone(block: Block, wish: Wish, device: torch.device) -> Step:
    """A component with a ladder of its own."""
    system = System.of(block, wish.laplacian)
    survey = Survey.of(system.L)
    rungs, reason = survey.choice(wish.solver, min(survey.nodes, wish.clusters.pairs_needed), device)
    if system.twins.merged:
        reason = f"{system.twins.merged:,} twin leaves are merged; {reason}"
    return Step(block=block, wish=wish, survey=survey, rungs=rungs, reason=reason, system=system, runs_on=device)


def explain(
    graph: Graph,
    q: int | None = None,
    *,
    desired_clusters: int | None = None,
    laplacian: str = "combinatorial",
    solver: str = "auto",
    device: torch.device | str | None = None,
) -> list[Step]:
    """The plan that :func:`tadropedge.aggregate_resistance` follows for these settings; nothing is solved.

    >>> graph = Graph.from_edge_index([[0, 1, 2, 3], [1, 2, 3, 1]])
    >>> [(step.nodes, step.count, step.rungs) for step in explain(graph, q=2)]
    [(4, 1, ('dense',))]
    """
    wish = Wish(q=q, desired_clusters=desired_clusters, laplacian=laplacian, solver=solver)
    where = check_runs_on(device, check_graph(graph).device)
    return list(plan(wish.parts(graph), wish, where))
