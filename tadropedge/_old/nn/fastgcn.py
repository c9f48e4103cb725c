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

from collections.abc import Mapping

import torch
from torch import Tensor

from tadropedge._old.nn.layers import Features, Parameters, Sparse
from tadropedge._old.nn.network import RATES, Problem, Sampler, Setting, Shapes, Sizes, TrainingStep, Value


class FastGCN(Sampler):
    """A two-layer GCN whose output layer sees ``samples`` nodes."""

    settings = {
        "hidden": Setting(16, 1),
        "samples": Setting(400, 1),
        "inductive": Setting(False),
    }
    # More samples than the paper's 50 to 400: on PubMed so few cost accuracy here.
    space = {**RATES, "hidden": [16, 128], "samples": [200, 400, 1000, 4000]}
    batch_size = 256
    weighs = True

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem)
        self.samples = problem.column("samples")
        self.most = int(self.samples.max())

    @classmethod
    def shapes(cls, sizes: Sizes, settings: Mapping[str, Value]) -> Shapes:
        """Two weights and their biases."""
        inputs, hidden, classes = sizes.num_features, sizes.hidden, sizes.num_classes
        first = {"input.weight": (inputs, hidden), "input.bias": (hidden,)}
        return first | {"output.weight": (hidden, classes), "output.bias": (classes,)}

    def training(self, state: Parameters, step: TrainingStep) -> tuple[Tensor, float]:
        """An exact layer, then an estimated one."""
        shift = step.shift(self.problem, 0)
        h = step.noise(self._hidden(state, step.x, shift), 0)
        shift = step.shift(self.problem, 1)
        weights = step.draws.importance(column_norms(shift, step.nodes), self.samples, self.most)
        logits = shift @ (weights[..., None] * (h @ state["output.weight"]))
        return logits + state["output.bias"][:, None, :], 0.0

    def evaluation(self, state: Parameters, x: Features, epoch: Tensor) -> Tensor:
        """Both layers exact."""
        shift = self.problem.shift(None)
        logits = shift @ (self._hidden(state, x, shift) @ state["output.weight"])
        return logits + state["output.bias"][:, None, :]

    def _hidden(self, state: Parameters, x: Features, shift: Sparse) -> Tensor:
        product = shift @ (x @ state["input.weight"])
        return (product + state["input.bias"][:, None, :]).relu()


def column_norms(shift: Sparse, nodes: Tensor) -> Tensor:
    """``‖Â(:, u)‖²`` of the nodes u that the rows of ``nodes [T, N]`` reach, else 0: q up to a factor, ``[T, N]``."""
    squares = Sparse(shift.places, shift.values.square(), shift.symmetric)
    norms = squares @ torch.ones_like(nodes)[:1, :, None]
    touched = squares @ nodes[..., None]
    return torch.where(touched > 0, norms, 0.0)[..., 0]
