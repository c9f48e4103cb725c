"""``Plan``: what is computed once per graph. ``Draw``: one random draw from it."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from tadropedge.errors import TadropedgeError
from tadropedge.graph import Graph
from tadropedge.operators.kernels.words import Seed
from tadropedge.sampling.coins import sample

if TYPE_CHECKING:
    from tadropedge.sampling.forest import Forest

SLACK = 1e-7  # relative rounding error of a sum of probabilities, some of which were float32 before

Use = Callable[["Draw", bool], tuple[Tensor | None, Tensor | None]]
Option = Callable[["Draw"], "Draw"]


@dataclass(frozen=True, eq=False)
class Plan:
    """The keep probabilities of a graph, and what is done with them.

    * ``graph``: the graph with these pairs; ``None`` where only the ``keys`` of the pairs are known;
    * ``keys [M]``: the identity of each pair, see :func:`~tadropedge.operators.kernels.words.pair_keys`;
    * ``prob [M]`` (or ``[T, M]``): the probability of keeping each pair, float64;
    * ``use`` and ``options``: functions of :data:`tadropedge.USES` and :data:`tadropedge.OPTIONS`;
    * ``schedule``: a function from the epoch to ``prob``, if the budget changes from epoch to epoch.
    """

    graph: Graph | None
    keys: Tensor
    prob: Tensor
    use: Use
    options: tuple[Option, ...] = ()
    schedule: Callable[[int], Tensor] | None = None

    def draw(
        self, seed: Seed, epoch: Seed = 0, stream: int = 0, training: bool = True
    ) -> tuple[Tensor | None, Tensor | None]:
        """The kept pairs, bool ``[M]`` (``None``: all), and the factor of each pair's weight ``[M]`` (``None``: one).

        With several seeds, ``seed [T]``, both are ``[T, M]``.
        """
        plan = self.at(epoch)
        draw = Draw(plan, seed, epoch, stream)
        for option in self.options:
            draw = option(draw)
        return self.use(draw, training)

    def sample(self, seed: Seed, epoch: Seed = 0, stream: int = 0) -> Tensor:
        """The pairs that are kept in training, bool ``[M]``.

        >>> from tadropedge import Dropping, Graph
        >>> square = Graph.from_edge_index([[0, 1, 2, 3], [1, 2, 3, 0]])
        >>> Dropping.parse("dropedge@0.75:connected").plan(square).sample(seed=0, epoch=3).tolist()
        [True, True, True, False]
        """
        kept, _ = self.draw(seed, epoch, stream)
        return torch.ones_like(self.prob, dtype=torch.bool) if kept is None else kept

    def at(self, epoch: Seed) -> Plan:
        """The plan with the probabilities of an epoch: this one, unless there is a ``schedule``."""
        if self.schedule is None:
            return self
        return replace(self, prob=self.schedule(int(epoch)), schedule=None)

    @cached_property
    def forest(self) -> Forest:
        """The spanning forests of the graph, after a check that the expected number of kept edges Σ p covers one."""
        from tadropedge.sampling.forest import Forest  # few masks need one

        if self.graph is None:
            raise TadropedgeError("connected needs the graph: give graph=", argument="connected")
        forest, edges = Forest(self.graph), self.graph.num_edges
        total = float(self.prob.sum(dim=-1, dtype=torch.float64).min()) if self.prob.numel() else 0.0
        if total < forest.size * (1 - SLACK):
            ratio = math.ceil(forest.size / edges * 1e6) / 1e6  # rounded up, so that this ratio is enough
            raise TadropedgeError(
                f"connected masks keep at least {forest.size} of {edges} edges (keep ratio {ratio:g}), but the "
                f"probabilities sum to {total:.9g}"
            )
        return forest


@dataclass(frozen=True, eq=False)
class Draw:
    """One draw in the making: each option returns a changed copy, and the use turns the last into a mask and weights.

    * ``always``: edges that are kept whatever their coin says;
    * ``kept``: the mask, if an option has decided it;
    * ``factor``: what the weights of kept edges are multiplied by.
    """

    plan: Plan
    seed: Seed
    epoch: Seed
    stream: int
    always: Tensor | None = None
    kept: Tensor | None = None
    factor: Tensor | None = None

    @property
    def prob(self) -> Tensor:
        """The probability of keeping each pair ``[M]``."""
        return self.plan.prob

    def mask(self) -> Tensor:
        """The kept pairs, bool ``[M]``: as an option has decided, otherwise each by its coin."""
        return self.sample(self.prob) if self.kept is None else self.kept

    def sample(self, prob: Tensor) -> Tensor:
        """The mask by the coins of this draw for other ``prob [M]``."""
        return sample(self.plan.keys, prob, self.seed, self.epoch, self.stream)
