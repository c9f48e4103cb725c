"""Weights and spectrum in one pass, part by part, each part kept on disk as soon as it is solved."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from tadropedge.cache import Arrays, cached
from tadropedge.electrical import resistances
from tadropedge.errors import TadropedgeError, check_integer, check_positive, check_runs_on, lookup
from tadropedge.graph import Graph, check_graph
from tadropedge.resistance import checked_clusters, modal_weights, settled
from tadropedge.score_report.parts import parts
from tadropedge.spectrum import LAPLACIANS, SOLVERS, cluster_subspaces
from tadropedge.spectrum.clusters import Clusters

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Report = Callable[[str, int, int], None]
Listener = Callable[[int, int], None]

KINDS = ("aggregate", "effective")


@dataclass(frozen=True)
class Request:
    """What is asked for: the arguments of ``aggregate_resistance`` or of ``effective_resistance``."""

    kind: str = "aggregate"
    q: int | None = None
    desired_clusters: int | None = None
    laplacian: str = "combinatorial"
    solver: str = "auto"
    tolerance: float = 1e-8
    relative_error: float = 0.1
    seed: int = 0
    device: str = "cpu"

    def clusters(self, graph: Graph) -> Clusters | None:
        """Check everything against the graph; the wish for clusters, ``None`` for effective resistance."""
        lookup("kind", self.kind, dict.fromkeys(KINDS))
        lookup("laplacian", self.laplacian, LAPLACIANS)
        lookup("solver", self.solver, {"auto": None, **SOLVERS})
        check_positive("tolerance", self.tolerance)
        check_positive("relative_error", self.relative_error, below=1)
        check_integer("seed", self.seed, least=0)
        check_runs_on(self.device, graph.device)
        if self.kind == "effective":
            check_graph(graph)
            return None
        return checked_clusters(graph, self.q, self.desired_clusters)

    def settings(self) -> dict[str, object]:
        """What decides the numbers, and nothing else."""
        if self.kind == "effective":
            return {"parts": "effective", "error": self.relative_error, "seed": self.seed, "device": self.device}
        return {
            "parts": "aggregate",
            "q": self.q,
            "desired": self.desired_clusters,
            "laplacian": self.laplacian,
            "solver": self.solver,
            "tolerance": self.tolerance,
            "device": self.device,
        }


@dataclass(frozen=True)
class Weighing:
    """What was found.

    ``weights [M]`` in the order of ``graph.pairs``; ``modes [C]`` and ``widened [C]``: eigenvectors used in each
    component, 0 where it has no modes of its own, and where q fell inside a repeated eigenvalue; ``eigenvalues``: the
    lowest of the largest component; ``solvers``: how many components each has solved; ``seconds`` of solving, those of
    earlier runs that were interrupted included.
    """

    graph: Graph
    request: Request
    weights: Tensor
    modes: Integers
    widened: npt.NDArray[np.bool_]
    eigenvalues: Floats
    solvers: dict[str, int] = field(default_factory=dict)
    seconds: float = 0.0

    @property
    def chosen(self) -> int:
        """Modes of the largest component: the chosen q."""
        return int(self.modes[int(self.graph.components.sizes.argmax())])


def weigh(
    graph: Graph, request: Request, cache_dir: str | Path | None = None, report: Report = lambda *_: None
) -> Weighing:
    """Weigh every edge of ``graph``; with ``cache_dir`` the same call goes on after a kill, to the same bits.

    The weights are those of :func:`tadropedge.aggregate_resistance` and :func:`tadropedge.effective_resistance`.
    ``report(phase, done, total)`` counts the edges.

    >>> graph = Graph.from_edge_index([[0, 0, 1, 2, 3, 3, 4], [1, 2, 2, 3, 4, 5, 5]])
    >>> found = weigh(graph, Request(q=2))
    >>> found.weights.argmax().item(), found.chosen, found.eigenvalues.round(3).tolist()
    (3, 2, [0.0, 0.438, 3.0])
    """
    clusters = request.clusters(graph)
    largest = int(graph.components.sizes.argmax())
    weights = np.full(graph.num_edges, np.nan)
    modes = np.zeros(graph.components.count, dtype=np.int64)
    widened = np.zeros(graph.components.count, dtype=bool)
    eigenvalues, solvers, seconds, done = np.empty(0), Counter[str](), 0.0, 0
    report("edges weighed", 0, graph.num_edges)
    for part in parts(graph, least=clusters.least_nodes if clusters else 2):
        listen = partial(_pass_on, report, done, len(part.edges), graph.num_edges)
        solve = partial(_solve, part.graph, request, clusters, listen)
        found = cached(cache_dir, part.graph, request.settings(), solve)
        weights[part.edges] = found["weights"]
        seconds += float(found["seconds"])
        done += len(part.edges)
        if clusters is not None:
            modes[part.components], widened[part.components] = found["modes"], found["widened"]
            solvers.update(dict(zip(found["solvers"].tolist(), found["solved"].tolist(), strict=True)))
            if largest in part.components:
                eigenvalues = found["eigenvalues"]
        report("edges weighed", done, graph.num_edges)
    if done < graph.num_edges:  # the rest has no modes of its own
        report("edges weighed", graph.num_edges, graph.num_edges)
    settled_weights = torch.from_numpy(settled(weights))
    return Weighing(graph, request, settled_weights, modes, widened, eigenvalues, dict(solvers), seconds)


def _pass_on(report: Report, before: int, edges: int, total: int, done: int, of: int) -> None:
    """The progress of a part, which counts nodes or cycles, as edges of the whole."""
    report("edges weighed", before + edges * done // max(of, 1), total)


def _solve(part: Graph, request: Request, clusters: Clusters | None, listen: Listener) -> Arrays:
    """What is kept of one part; memory that runs out is bad input, said in one line."""
    begun = time.monotonic()
    try:
        found = _modal(part, request, clusters, listen) if clusters else _electrical(part, request, listen)
    except TadropedgeError:  # memory that would not suffice is among them
        raise
    except MemoryError as error:
        raise TadropedgeError(
            f"not enough memory for a part of {part.num_nodes} nodes and {part.num_edges} edges ({error}); "
            "--explain says what each solver needs"
        ) from error
    return found | {"seconds": np.array(time.monotonic() - begun)}


def _electrical(part: Graph, request: Request, listen: Listener) -> Arrays:
    return {"weights": resistances(part, "auto", request.relative_error, request.seed, listen, request.device)}


def _modal(part: Graph, request: Request, clusters: Clusters, listen: Listener) -> Arrays:
    weights = np.full(part.num_edges, np.nan)
    labels = part.components.labels.numpy()
    largest = int(part.components.sizes.argmax())
    modes = np.zeros(part.components.count, dtype=np.int64)
    widened = np.zeros(part.components.count, dtype=bool)
    eigenvalues, solvers = np.empty(0), Counter[str]()
    asked = (clusters, request.laplacian, request.solver, request.tolerance)
    for found in cluster_subspaces(part, *asked, progress=listen, device=request.device):
        weights[found.block.edges] = modal_weights(found)
        component = labels[found.block.nodes[:, 0]]
        modes[component], widened[component] = found.counts, found.widened
        solvers[found.solver] += found.block.count
        if largest in component:
            place = int(np.flatnonzero(component == largest)[0])
            # Values beyond these need not have converged, and how many there are depends on the solver.
            eigenvalues = found.values[place, : max(int(found.counts[place]) + 1, clusters.pairs_needed)]
    return {
        "weights": weights,
        "modes": modes,
        "widened": widened,
        "eigenvalues": np.concatenate(([0.0], eigenvalues[1:])),  # the first is known
        "solvers": np.array(list(solvers), dtype=np.str_),
        "solved": np.array(list(solvers.values()), dtype=np.int64),
    }
