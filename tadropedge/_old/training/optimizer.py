"""Adam for a batch of trials: every trial has its own learning rate and weight decay."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from tadropedge._old.nn.layers import Parameters

BETA1, BETA2, EPSILON = 0.9, 0.999, 1e-8


class Adam:
    """Adam with weight decay added to the gradient, on parameters ``[T, ...]`` that it changes in place.

    ``learning_rate`` and ``weight_decay`` are ``[T, 1, 1]``; ``epoch`` is a tensor, the number of steps done so far.
    """

    def __init__(self, parameters: Parameters, learning_rate: Tensor, weight_decay: Tensor, epoch: Tensor) -> None:
        self.parameters = list(parameters.values())
        self.epoch = epoch
        self.first = [torch.zeros_like(parameter) for parameter in self.parameters]
        self.second = [torch.zeros_like(parameter) for parameter in self.parameters]
        self.rates = [self._like(learning_rate, parameter) for parameter in self.parameters]
        self.decays = [self._like(weight_decay, parameter) for parameter in self.parameters]

    @staticmethod
    def _like(column: Tensor, parameter: Tensor) -> Tensor:
        return column.view(-1, *[1] * (parameter.dim() - 1))

    def step(self, gradients: Sequence[Tensor]) -> None:
        """One step; call it under ``torch.no_grad``."""
        count = (self.epoch + 1).to(torch.float64)  # in float32, 1 - 0.999 has lost four digits
        correction1, correction2 = 1 - BETA1**count, (1 - BETA2**count).sqrt()
        for parameter, gradient, m, v, rate, decay in zip(
            self.parameters, gradients, self.first, self.second, self.rates, self.decays, strict=True
        ):
            if parameter.is_cuda:
                from tadropedge._old.kernels import adam

                corrections = torch.stack((correction1, correction2)).to(torch.float32)
                adam(parameter, gradient, (m, v), (rate, decay), corrections, (BETA1, BETA2, EPSILON))
                continue
            gradient = torch.addcmul(gradient, decay, parameter)
            m.lerp_(gradient, 1 - BETA1)
            v.mul_(BETA2).addcmul_(gradient, gradient, value=1 - BETA2)
            size = v.sqrt().div_(correction2).add_(EPSILON)
            parameter.addcdiv_(m * (-rate / correction1), size)
