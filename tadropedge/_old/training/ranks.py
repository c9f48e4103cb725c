"""The processes that train one model together: who takes which nodes, and sums over all of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch import distributed as dist

from tadropedge._old.errors import LostError


@dataclass(frozen=True)
class Ranks:
    """Process ``rank`` of ``count``; one alone needs no others.

    >>> Ranks(1, 3).share(torch.arange(5)).tolist(), Ranks().share(torch.arange(3)).tolist()
    ([1, 4], [0, 1, 2])
    """

    rank: int = 0
    count: int = 1

    @property
    def first(self) -> bool:
        """Whether this process prints and writes."""
        return self.rank == 0

    def share(self, nodes: Tensor) -> Tensor:
        """The nodes of a step that this process takes."""
        return nodes[self.rank :: self.count]

    def summed(self, value: Tensor) -> Tensor:
        """The sum of a tensor over all processes."""
        if self.count > 1:
            value = value.clone()
            try:
                dist.all_reduce(value)
            except RuntimeError as error:  # what torch raises when a connection breaks or nobody answers
                raise LostError(
                    f"process {self.rank} of {self.count} lost the others: one of them ended, or did not answer"
                ) from error
        return value

    def all_summed(self, values: Sequence[Tensor]) -> Sequence[Tensor]:
        """The sums of several tensors of one type over all processes, sent as one."""
        if self.count == 1:
            return values
        flat = self.summed(torch.cat([value.flatten() for value in values]))
        parts = flat.split([value.numel() for value in values])
        return [part.view_as(value) for part, value in zip(parts, values, strict=True)]
