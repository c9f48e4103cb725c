"""The subgraphs of a batch of trials: keep probabilities, coins and renormalised operators, ``[T, ...]``."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from tadropedge.graph import Graph
from tadropedge.nn.layers import Operator, Sparse
from tadropedge.sampling import key_tensor, pair_words, toss
from tadropedge.shift import shift_operator
from tadropedge.sparse import Csr
from tadropedge.strategies import keep_probabilities
from tadropedge.training.config import Method, Trial

DENSE_NODES = 128  # below this a dense batched product beats a sparse one


def keep_matrix(graph: Graph, trials: Sequence[Trial], weights: dict[str, Tensor]) -> Tensor:
    """The probability of keeping each edge in each trial, float64 ``[T, M]``; ones where nothing is dropped."""
    return torch.stack([keep_row(graph, trial, weights) for trial in trials])


def keep_row(graph: Graph, trial: Trial, weights: dict[str, Tensor]) -> Tensor:
    """One row of :func:`keep_matrix`. ``weights`` maps "aggregate" and "effective" to ``[M]``, where needed."""
    method = Method.of(trial.method)
    if method.strategy is None:
        return torch.ones(graph.num_edges, dtype=torch.float64, device=graph.device)
    ones = torch.ones(graph.num_edges, device=graph.device)
    return keep_probabilities(
        ones if method.weights is None else weights[method.weights],
        keep_prob=None if trial.keep_ratio is not None else trial.keep_prob,
        keep_ratio=trial.keep_ratio,
        strategy=method.strategy,
        gamma="auto" if trial.gamma is None else trial.gamma,
        inverse=method.inverse,
    )


class Subgraphs:
    """Draws the operators of an epoch for all trials, on the device and without looking at values."""

    def __init__(self, graph: Graph, prob: Tensor, seeds: Tensor, normalizations: Sequence[str]) -> None:
        self.graph, self.prob, self.seeds = graph, prob, seeds
        self.names = sorted(set(normalizations))
        self.rows = {
            name: torch.tensor([i for i, other in enumerate(normalizations) if other == name], device=graph.device)
            for name in self.names
        }
        pattern = graph.pattern
        self.places = Csr(pattern.crow, pattern.col, graph.num_nodes)
        self.dense = graph.num_nodes <= DENSE_NODES

    def whole(self) -> Operator:
        """The operators of the whole graph, for evaluation."""
        return self._operator(torch.ones_like(self.prob, dtype=torch.bool))

    def draw(self, epoch: Tensor, layer: int = 0) -> Operator:
        """The operators of this epoch's subgraphs; every layer has coins of its own."""
        multiplier, offset = key_tensor(self.seeds, epoch, layer)
        words = pair_words(self.prob.shape[-1], self.prob.device)
        return self._operator(toss(words, multiplier[:, None], offset[:, None], self.prob))

    def _operator(self, keep: Tensor) -> Operator:
        if len(self.names) == 1:
            shift = shift_operator(self.graph, keep, normalization=self.names[0])
            return shift.to_dense() if self.dense else Sparse(self.places, shift.values, shift.symmetric)
        values = torch.empty((keep.shape[0], self.graph.pattern.num_entries), dtype=torch.float32, device=keep.device)
        for name, rows in self.rows.items():
            shift = shift_operator(self.graph, keep.index_select(0, rows), normalization=name)
            values.index_copy_(0, rows, shift.values)
        if self.dense:
            return shift.with_values(values).to_dense()
        return Sparse(self.places, values, "random-walk" not in self.names)
