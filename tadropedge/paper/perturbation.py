"""How far the subgraphs of each strategy are from their graph, beside DropEdge at the same p and at the same budget."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from tadropedge.diagnostics import ErrorModel
from tadropedge.diagnostics.relative_error import spectral_norm
from tadropedge.graph import Graph
from tadropedge.paper.judge import Array, mean_and_error
from tadropedge.paper.rows import Measured, Number, Row
from tadropedge.sampling import sample_edges
from tadropedge.shift import shift_operator
from tadropedge.strategies import keep_probabilities

AT_ONCE = 2**24  # numbers of a batch of dense operators


@dataclass(frozen=True, kw_only=True)
class Subgraphs(Row):
    """The subgraphs of one strategy on a family of graphs.

    Norms are medians over draws. Ratios, ours over DropEdge's, are geometric means; their errors are those of their
    logarithms, over graphs, or over draws where there is one graph.
    """

    part: Literal["subgraphs"] = "subgraphs"
    family: str
    graphs: int
    nodes: int
    normalization: str
    keep_prob: float
    draws: int
    smallest_sum: float
    strategy: str
    kept_share: float
    error_norm: float
    error_norm_same_p: float
    error_norm_same_budget: float
    below_one: float
    unexplained: float
    relative_ratio_same_p: Number
    relative_ratio_same_budget: Number
    absolute_ratio_same_p: Number
    absolute_ratio_same_budget: Number


@dataclass(frozen=True, eq=False)
class Case:
    """One graph with the scores its strategies use."""

    family: str
    graph: Graph
    scores: Tensor
    gamma: float | str = "auto"

    def probabilities(self, strategy: str, p: float) -> Tensor:
        """The keep probabilities ``[M]`` of a strategy with default probability p."""
        return keep_probabilities(self.scores, keep_prob=p, strategy=strategy, gamma=self.gamma)


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


def distances(model: ErrorModel, case: Case, prob: Tensor, normalization: str, draws: Sequence[int]) -> Array:
    """Draw subgraphs; ‖E‖₂, ‖S − S'‖₂ and the share of ‖S − S'‖_F that no E represents of each, ``[3, D]``."""
    step = max(1, AT_ONCE // case.graph.num_nodes**2)
    parts = []
    for start in range(0, len(draws), step):
        keep = sample_edges(prob, seed=list(draws[start : start + step]))
        other = shift_operator(case.graph, keep, normalization=normalization, dtype=torch.float64).to_dense()
        found = model.of(other)
        absolute = spectral_norm(model.shift - other)
        parts.append(torch.stack((found.norm, absolute, found.residual / found.change.clamp_min(1e-300))))
    measured: Array = torch.cat(parts, dim=1).cpu().numpy()
    return measured


def compare(
    make: Callable[[], Sequence[Case]], strategies: Sequence[str], normalization: str, p: float, draws: Sequence[int]
) -> list[Subgraphs]:
    """One row for each strategy on a family of graphs; all ways of dropping see the same coins."""
    cases = make()
    shifts = (shift_operator(case.graph, normalization=normalization, dtype=torch.float64) for case in cases)
    models = [ErrorModel(shift) for shift in shifts]

    def measured(probs: Sequence[Tensor]) -> Array:  # [3, G, D]
        found = [distances(*one, normalization, draws) for one in zip(models, cases, probs, strict=True)]
        return np.stack(found, axis=1)

    rows = []
    same_p = measured([torch.full_like(case.scores, p) for case in cases])
    for strategy in strategies:
        probs = [case.probabilities(strategy, p) for case in cases]
        kept = [float(prob.mean()) for prob in probs]
        level = measured([torch.full_like(prob, share) for prob, share in zip(probs, kept, strict=True)])
        relative, absolute, unexplained = measured(probs)
        rows.append(
            Subgraphs(
                family=cases[0].family,
                graphs=len(cases),
                nodes=cases[0].graph.num_nodes,
                normalization=normalization,
                keep_prob=p,
                draws=len(draws),
                smallest_sum=min(model.smallest_sum for model in models),
                strategy=strategy,
                kept_share=float(np.mean(kept)),
                error_norm=float(np.median(relative)),
                error_norm_same_p=float(np.median(same_p[0])),
                error_norm_same_budget=float(np.median(level[0])),
                below_one=float((relative < 1).mean()),
                unexplained=float(unexplained.mean()),
                relative_ratio_same_p=_ratio(relative / same_p[0]),
                relative_ratio_same_budget=_ratio(relative / level[0]),
                absolute_ratio_same_p=_ratio(absolute / same_p[1]),
                absolute_ratio_same_budget=_ratio(absolute / level[1]),
            )
        )
    return rows


def _ratio(ratios: Array) -> Measured:
    """A geometric mean of ``[G, D]``: ‖E‖ has a long tail, as sums of eigenvalues nearly vanish."""
    logs = np.log(ratios)
    mean = mean_and_error(logs.mean(axis=1) if len(logs) > 1 else logs[0])
    return Measured(float(np.exp(mean.value)), mean.error)
