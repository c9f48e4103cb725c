"""What a call has left to do for a graph that is known: toss coins, and take the kept arcs out of all."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from tadropedge._old.pyg.plans import DropPlan
from tadropedge._old.sampling import key, key_tensor, thresholds, toss, toss_below, toss_seeds


@dataclass(frozen=True, kw_only=True, eq=False)
class ArcCoins:
    """A coin for each arc: its word, and what the coin must be below, both ``[A]``.

    ``below`` are thresholds on a CPU, and float64 probabilities on a GPU, whose kernel reads them. ``prob`` are the
    probabilities by which kept weights are divided, where a rule made them.
    """

    words: Tensor
    below: Tensor
    prob: Tensor | None = None

    @classmethod
    def of(cls, words: Tensor, prob: Tensor, *, divides: bool = False) -> ArcCoins:
        """The coins of arcs with these keep probabilities ``[A]``, which were checked."""
        below = prob.to(torch.float64) if prob.is_cuda else thresholds(prob)
        return cls(words=words, below=below, prob=prob if divides else None)

    def mask(self, seed: int | Tensor, epoch: int | Tensor, layer: int = 0) -> Tensor:
        """The kept arcs ``[A]`` of a (seed, epoch) that the host knows, or else of two tensors.

        >>> coins = ArcCoins.of(torch.tensor([3, 5, 3]), torch.tensor([0.5, 1.0, 0.5]))
        >>> coins.mask(0, epoch=2).tolist(), coins.mask(torch.tensor(0), torch.tensor(2)).tolist()
        ([False, True, False], [False, True, False])
        """
        on_host = not self.below.is_floating_point()
        if isinstance(seed, int) and isinstance(epoch, int):
            if on_host:
                return toss_below(self.words, self.below, seed, epoch)
            return toss(self.words, *key(seed, epoch), self.below)
        seeds, epochs = (torch.as_tensor(number, device=self.words.device) for number in (seed, epoch))
        if not on_host:
            return toss_seeds(self.words, seeds, epochs, self.below)
        multiplier, offset = key_tensor(seeds, epochs)
        return (self.words * multiplier + offset) >> 11 < self.below

    def row(self, seed: Tensor, epoch: Tensor) -> Tensor:
        """The same on a GPU, by one kernel for two tensors that lie there."""
        from tadropedge._old.kernels import row_of_coins

        return row_of_coins(self.words, seed, epoch, self.below)


@dataclass(frozen=True, kw_only=True, eq=False)
class PlannedCoins:
    """Coins of pairs ``words [M]``, where layers are nested or options look at the graph: see :class:`DropPlan`."""

    plan: DropPlan
    rows: Tensor
    words: Tensor
    exact: bool = False

    def mask(self, seed: int | Tensor, epoch: int | Tensor, layer: int = 0, *, fixed: bool = False) -> Tensor:
        """The kept arcs ``[A]`` of a layer; ``fixed`` is for code that a CUDA graph records."""
        at = [torch.as_tensor(number, device=self.words.device) for number in (seed, epoch)]
        return self.plan.mask(self.rows, self.words, *at, layer=layer, exact=self.exact, fixed=fixed)
