"""FastGCN (Chen, Ma, Xiao 2018): graph convolution as an integral, estimated from a few sampled nodes.

``h(v) = Σ_u Â(v, u) h(u) W`` is the expectation of ``Â(v, u) h(u) W / q(u)`` for u drawn with probability q(u). With r
independent draws u_1 … u_r from ``q(u) ∝ ‖Â(:, u)‖²``::

    logits(v) ≈ (1/r) Σ_j Â(v, u_j) h(u_j) W_1 / q(u_j),     h(u) = ReLU(Â(u, :) X W_0)

The first layer is exact: the paper precomputes ÂX. In the second, drawing r nodes is scaling the columns of Â by
``s_u = (times u was drawn) / (r q(u))``, whose expectation is 1.

q lives on the nodes that the mini-batch touches, as in the public code, and is normalised there, which the public code
leaves out: so the estimate is unbiased. The public code draws without replacement and does not square; here both are as
in the paper. With ``inductive`` the training graph is the one between training nodes, as in the paper; by default it is
the whole graph, which the other methods of a comparison see too.
"""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor

from tadropedge.nn.baselines.network import Network, Problem, Step, Value
from tadropedge.nn.layers import Parameters, Sparse


class FastGCN(Network):
    """A two-layer GCN whose output layer sees ``samples`` nodes."""

    defaults: ClassVar[dict[str, Value]] = {"hidden": 16, "batch_size": 256, "samples": 400, "inductive": False}
    batched = True

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem)
        self.samples, self.most = problem.settings["samples"], self.largest("samples")

    @staticmethod
    def shapes(inputs: int, hidden: int, classes: int) -> dict[str, tuple[int, ...]]:
        """Two weights and their biases."""
        first = {"input.weight": (inputs, hidden), "input.bias": (hidden,)}
        return first | {"output.weight": (hidden, classes), "output.bias": (classes,)}

    def training(self, parameters: Parameters, step: Step) -> tuple[Tensor, Tensor]:
        """An exact layer, then an estimated one."""
        shift = self.problem.shift(step.keep(0))
        h = step.noise(self._hidden(parameters, shift), 0)
        shift = self.problem.shift(step.keep(1))
        weights = step.draws.importance(column_norms(shift, step.nodes), self.samples, self.most)
        logits = shift @ (weights[..., None] * (h @ parameters["output.weight"]))
        return logits + parameters["output.bias"][:, None, :], self.no_penalty

    def evaluation(self, parameters: Parameters, epoch: Tensor) -> Tensor:
        """Both layers exact."""
        shift = self.problem.shift(None)
        logits = shift @ (self._hidden(parameters, shift) @ parameters["output.weight"])
        return logits + parameters["output.bias"][:, None, :]

    def _hidden(self, parameters: Parameters, shift: Sparse) -> Tensor:
        product = shift @ self.problem.times(parameters["input.weight"])
        return (product + parameters["input.bias"][:, None, :]).relu()


def column_norms(shift: Sparse, nodes: Tensor) -> Tensor:
    """``‖Â(:, u)‖²`` of the nodes u that the rows of ``nodes [T, N]`` reach, else 0: q up to a factor, ``[T, N]``."""
    squares = Sparse(shift.places, shift.values.square(), shift.symmetric)
    norms = squares @ torch.ones_like(nodes)[:1, :, None]
    touched = squares @ nodes[..., None]
    return torch.where(touched > 0, norms, 0.0)[..., 0]
