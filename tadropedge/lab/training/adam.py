"""Adam for a batch of trials: every trial has its own learning rate and weight decay."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from tadropedge.operators.kernels import kernels


class Adam:
    """Adam with weight decay added to the gradient, on parameters ``[T, ...]`` that it changes in place.

    ``rates [T]`` and ``decays [T]`` are those of the trials. With gradient g of parameter w at step k, from 1:

        g ← g + decay · w,   m ← β₁ m + (1 − β₁) g,   v ← β₂ v + (1 − β₂) g²,
        w ← w − rate · (m / (1 − β₁ᵏ)) / (√(v / (1 − β₂ᵏ)) + ε)

    * Source: Kingma and Ba, ICLR 2015. ``torch.optim.Adam`` has one rate for all trials.
    """

    def __init__(self, parameters: Sequence[Tensor], rates: Tensor, decays: Tensor) -> None:
        self.parameters, self.rates, self.decays = list(parameters), rates, decays
        self.steps = torch.zeros((), dtype=torch.int64, device=rates.device)  # so far
        self.first = [torch.zeros_like(parameter) for parameter in self.parameters]
        self.second = [torch.zeros_like(parameter) for parameter in self.parameters]

    @torch.no_grad()
    def step(self, gradients: Sequence[Tensor]) -> None:
        """One step."""
        self.steps += 1
        for parts in zip(self.parameters, gradients, self.first, self.second, strict=True):
            kernels(parts[0]).adam(*parts, self.rates, self.decays, self.steps)

    def take(self, parameters: Sequence[Tensor], rows: Sequence[int]) -> Adam:
        """That of the trials at these rows, whose ``parameters`` are new objects."""
        places = list(rows)
        taken = Adam(parameters, self.rates[places], self.decays[places])
        taken.steps = self.steps
        taken.first, taken.second = ([value[places] for value in values] for values in (self.first, self.second))
        return taken
