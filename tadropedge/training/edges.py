"""Which edges a batch of trials keeps in an epoch: keep probabilities and coins, ``[T, M]``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from tadropedge.graph import Graph
from tadropedge.method import SENSITIVITY, Method
from tadropedge.sampling import key_tensor, pair_words, toss
from tadropedge.sensitivity import SENSITIVITY as LEFT
from tadropedge.strategies import keep_probabilities
from tadropedge.training.config import Trial


def keep_row(graph: Graph, trial: Trial, scores: Mapping[str, Tensor]) -> Tensor:
    """The probability of keeping each edge in a trial, float64 ``[M]``; ``scores`` holds those its method needs."""
    method = Method.of(trial.method)
    ones = torch.ones(graph.num_edges, dtype=torch.float64, device=graph.device)
    if method.strategy is None:
        return ones
    weights = graph if method.strategy == SENSITIVITY else ones if method.score is None else scores[method.score]
    return keep_probabilities(
        weights,
        keep_prob=None if trial.keep_ratio is not None else trial.keep_prob,
        keep_ratio=trial.keep_ratio,
        strategy=method.strategy,
        gamma="auto" if trial.gamma is None else trial.gamma,
        inverse=method.inverse,
        sensitivity=LEFT if trial.sensitivity is None else trial.sensitivity,
    )


class EdgeCoins:
    """The edges that each trial keeps in an epoch, without moving values to the host."""

    def __init__(
        self, graph: Graph, trials: Sequence[Trial], scores: Mapping[str, Tensor], seeds: Tensor, inside: Tensor | None
    ) -> None:
        self.seeds, self.inside = seeds, inside  # inside [T, M]: the edges that may be learned on; None: all
        self.prob = None
        if any(Method.of(trial.method).strategy is not None for trial in trials):
            self.prob = torch.stack([keep_row(graph, trial, scores) for trial in trials])

    def keep(self, epoch: Tensor, layer: int = 0) -> Tensor | None:
        """The kept edges ``[T, M]`` of an epoch; every layer has its own coins. None: all edges, in every trial."""
        if self.prob is None:
            return self.inside
        multiplier, offset = key_tensor(self.seeds, epoch, layer)
        words = pair_words(self.prob.shape[-1], self.prob.device)
        kept = toss(words, multiplier[:, None], offset[:, None], self.prob)
        return kept if self.inside is None else kept & self.inside
