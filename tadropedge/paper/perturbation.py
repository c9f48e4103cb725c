"""How far the subgraphs of each strategy are from their graph, beside DropEdge at the same p and at the same budget."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from tadropedge.diagnostics import ErrorModel
from tadropedge.diagnostics.relative_error import spectral_norm
from tadropedge.graph import Graph
from tadropedge.paper.judge import mean_and_error
from tadropedge.sampling import sample_edges
from tadropedge.shift import shift_operator
from tadropedge.strategies import keep_probabilities

Array = npt.NDArray[np.float64]

AT_ONCE = 2**24  # numbers of a batch of dense operators


@dataclass(frozen=True, eq=False)
class Case:
    """One graph with the weights its strategies use."""

    family: str
    graph: Graph
    weights: Tensor
    gamma: float | str = "auto"

    def probabilities(self, strategy: str, p: float) -> Tensor:
        """The keep probabilities ``[M]`` of a strategy with default probability p."""
        return keep_probabilities(self.weights, keep_prob=p, strategy=strategy, gamma=self.gamma)


def largest_component(graph: Graph) -> Graph:
    """The largest component as a graph of its own, nodes in their old order.

    >>> largest_component(Graph.from_edge_index([[0, 2, 3], [1, 3, 4]])).pairs.tolist()
    [[0, 1], [1, 2]]
    """
    components = graph.components
    inside = components.labels == components.sizes.argmax()
    number = inside.cumsum(0) - 1
    kept = inside[graph.pairs[0]]
    return Graph.from_edge_index(number[graph.pairs[:, kept]], num_nodes=int(inside.sum()))


@dataclass(frozen=True, eq=False)
class Distances:
    """For each draw ``[D]``: ‖E‖₂, ‖S − S'‖₂, and the share of ‖S − S'‖_F that no E represents."""

    relative: Array
    absolute: Array
    unexplained: Array


def distances(model: ErrorModel, case: Case, prob: Tensor, normalization: str, draws: Sequence[int]) -> Distances:
    """Draw subgraphs and measure each."""
    step = max(1, AT_ONCE // case.graph.num_nodes**2)
    parts = []
    for start in range(0, len(draws), step):
        keep = sample_edges(prob, seed=list(draws[start : start + step]))
        other = shift_operator(case.graph, keep, normalization=normalization, dtype=torch.float64).to_dense()
        found = model.of(other)
        absolute = spectral_norm(model.shift - other)
        parts.append(torch.stack((found.norm, absolute, found.residual / found.change.clamp_min(1e-300))))
    relative, absolute, unexplained = torch.cat(parts, dim=1).cpu().numpy()
    return Distances(relative, absolute, unexplained)


def compare(
    cases: Sequence[Case], strategies: Sequence[str], normalization: str, p: float, draws: Sequence[int]
) -> list[dict[str, Any]]:
    """One row for each strategy on a family of graphs."""
    measured: dict[str, list[dict[str, Distances]]] = {strategy: [] for strategy in strategies}
    kept: dict[str, list[float]] = {strategy: [] for strategy in strategies}
    sums = []
    for case in cases:
        whole = shift_operator(case.graph, normalization=normalization, dtype=torch.float64)
        model = ErrorModel(whole)
        sums.append(model.smallest_sum)
        uniform = distances(model, case, torch.full_like(case.weights, p), normalization, draws)
        for strategy in strategies:
            prob = case.probabilities(strategy, p)
            level = torch.full_like(prob, float(prob.mean()))
            kept[strategy].append(float(prob.mean()))
            measured[strategy].append(
                {
                    "own": distances(model, case, prob, normalization, draws),
                    "same_p": uniform,
                    "same_budget": distances(model, case, level, normalization, draws),
                }
            )
    shared = {
        "part": "subgraphs",
        "family": cases[0].family,
        "graphs": len(cases),
        "nodes": cases[0].graph.num_nodes,
        "normalization": normalization,
        "keep_prob": p,
        "draws": len(draws),
        "smallest_sum": min(sums),
    }
    return [
        {**shared, "strategy": strategy, "kept_share": float(np.mean(kept[strategy])), **summary(measured[strategy])}
        for strategy in strategies
    ]


def summary(graphs: Sequence[Mapping[str, Distances]]) -> dict[str, Any]:
    """Medians of ‖E‖, and ratios of ours to DropEdge's as geometric means with standard errors of their logarithms.

    ‖E‖ has a long tail, as sums of eigenvalues nearly vanish, so means of logarithms are compared. The error is that
    over graphs, or over draws where there is one graph.
    """
    every = {name: np.concatenate([graph[name].relative for graph in graphs]) for name in graphs[0]}
    own = np.concatenate([graph["own"].unexplained for graph in graphs])
    columns: dict[str, Any] = {
        "error_norm": float(np.median(every["own"])),
        "error_norm_same_p": float(np.median(every["same_p"])),
        "error_norm_same_budget": float(np.median(every["same_budget"])),
        "below_one": float((every["own"] < 1).mean()),
        "unexplained": float(own.mean()),
    }
    for kind in ("relative", "absolute"):
        for how in ("same_p", "same_budget"):
            logs = [np.log(getattr(graph["own"], kind) / getattr(graph[how], kind)) for graph in graphs]
            mean, error = mean_and_error([log.mean() for log in logs] if len(logs) > 1 else logs[0])
            columns |= {f"{kind}_ratio_{how}": float(np.exp(mean)), f"{kind}_ratio_{how}_error": error}
    return columns
