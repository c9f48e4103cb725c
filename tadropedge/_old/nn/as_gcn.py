"""AS-GCN (Huang, Zhang, Rong, Huang 2018): layers are sampled from the top down, by a learned sampler.

The layer below the nodes V is n nodes drawn independently from ::

    q(u) ∝ √(Σ_(v ∈ V) Â(v, u)²) · (ReLU(h̄_V + h_u) + 1) · (ReLU(h_u) + 1)

with ``h = x · w`` for two learned vectors w, one for the upper and one for the lower nodes, and h̄_V the mean over V.
The propagation has the same attention, ``a(v, u) = ReLU(h_v + h_u) + 1``::

    z(v) = Σ_u Â(v, u) a(v, u) y(u)  ≈  (1/n) Σ_j Â(v, u_j) a(v, u_j) y(u_j) / q(u_j)

V is the mini-batch for the upper layer and the sampled nodes for the lower one. The loss adds ``variance`` times
the variance of the upper estimate of the mean of z over V, averaged over the classes: ``(1/n²) Σ_j (μ_j − μ̄)²`` with
``μ_j = mean_v Â(v, u_j) a(v, u_j) y(u_j) / q(u_j)``. Through it the sampler learns; the estimate takes q as given.

Unlike the public code: h̄_V is a mean (there a sum over V, which grows with the batch); the variance is that of the
estimate (there μ_j / n is compared with μ̄); n = 512 by default (there 128, too few here for both layers); at evaluation
the sum over u is not divided by the number of nodes; there is no limit of 32 neighbours; the test accuracy is not used.
``inductive`` is as in FastGCN: both papers learn on the training graph.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from tadropedge._old.nn.layers import Features, Parameters, Sparse
from tadropedge._old.nn.network import RATES, Problem, Sampler, Setting, Shapes, Sizes, TrainingStep, Value


class ASGCN(Sampler):
    """A two-layer GCN with attention, both layers sampled."""

    settings = {
        "hidden": Setting(16, 1),
        "samples": Setting(512, 1),
        "inductive": Setting(False),
        "variance": Setting(0.5),
    }
    space = {
        **RATES,
        "hidden": [16, 128],
        "samples": [256, 512, 1024, 4096],
        "variance": [0.0, 0.5],
    }
    batch_size = 256
    weighs = True

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem)
        self.samples, self.variance = problem.column("samples"), problem.column("variance")
        self.most = int(self.samples.max())

    @classmethod
    def entry_width(cls, hidden: int) -> int:
        """The gradient of the attention needs the signals at both ends of every edge."""
        return 2 * hidden

    @classmethod
    def shapes(cls, sizes: Sizes, settings: Mapping[str, Value]) -> Shapes:
        """Two weights with their biases, and the sampler's two vectors."""
        inputs, hidden, classes = sizes.num_features, sizes.hidden, sizes.num_classes
        first = {"input.weight": (inputs, hidden), "input.bias": (hidden,), "sampler.weight": (inputs, 2)}
        return first | {"output.weight": (hidden, classes), "output.bias": (classes,)}

    def training(self, state: Parameters, step: TrainingStep) -> tuple[Tensor, Tensor]:
        """Sample the upper layer, then the lower one, then propagate upwards."""
        scores = step.x @ state["sampler.weight"]  # [T, N, 2]: h of upper and of lower nodes
        upper, lower = (step.shift(self.problem, layer) for layer in (1, 0))
        q = self.probabilities(upper, scores, step.nodes)
        top = step.draws.importance(q.detach(), self.samples, self.most, 0)
        drawn = top * q.detach()  # times that each node was drawn, up to a factor
        bottom = step.draws.importance(self.probabilities(lower, scores, drawn).detach(), self.samples, self.most, 1)

        h = self._hidden(state, step.x, self.attended(lower, scores), bottom)
        y = step.noise(h, 0) @ state["output.weight"]
        attended = self.attended(upper, scores)
        logits = attended @ (top[..., None] * y) + state["output.bias"][:, None, :]
        spread = self._spread(attended, q, top, y, step.nodes)
        return logits, self.variance * spread / self.samples

    def evaluation(self, state: Parameters, x: Features, epoch: Tensor) -> Tensor:
        """The whole sums, with the attention."""
        scores = x @ state["sampler.weight"]
        attended = self.attended(self.problem.shift(None), scores)
        h = self._hidden(state, x, attended, None)
        return attended @ (h @ state["output.weight"]) + state["output.bias"][:, None, :]

    def _hidden(self, state: Parameters, x: Features, attended: Sparse, weights: Tensor | None) -> Tensor:
        y = x @ state["input.weight"]
        y = y if weights is None else weights[..., None] * y
        return (attended @ y + state["input.bias"][:, None, :]).relu()

    def attended(self, shift: Sparse, scores: Tensor) -> Sparse:
        """``Â(v, u) (ReLU(h_v + h_u) + 1)``, values ``[T, E]``."""
        entries = self.problem.entries
        sums = entries.at_rows(scores[..., :1].contiguous()) + entries.at_cols(scores[..., 1:].contiguous())
        return Sparse(shift.places, shift.values * (sums[..., 0].relu() + 1))

    def probabilities(self, shift: Sparse, scores: Tensor, nodes: Tensor) -> Tensor:
        """``q [T, N]`` below the upper nodes, which ``nodes [T, N]`` counts; it sums to 1."""
        squares = Sparse(shift.places, shift.values.square(), shift.symmetric)
        reach = (squares @ nodes[..., None])[..., 0]
        reach = torch.where(reach > 0, torch.where(reach > 0, reach, 1.0).sqrt(), 0.0)
        centre = (nodes * scores[..., 0]).sum(dim=1, keepdim=True) / nodes.sum(dim=1, keepdim=True).clamp_min(1e-12)
        own = scores[..., 1]
        q = reach * ((centre + own).relu() + 1) * (own.relu() + 1)
        return q / q.sum(dim=1, keepdim=True).clamp_min(1e-30)

    def _spread(self, attended: Sparse, q: Tensor, weights: Tensor, y: Tensor, nodes: Tensor) -> Tensor:
        """``(1/n) Σ_j (μ_j − μ̄)²``, mean over the classes, ``[T]``; its gradient reaches the sampler through q."""
        places, order = attended.places.turned
        received = Sparse(places, attended.values.index_select(1, order)) @ nodes[..., None]  # Σ_v Â(v, u) a(v, u)
        size = nodes.sum(dim=1).clamp_min(1)[:, None, None]
        mu = received / size * y / torch.where(q > 0, q, 1.0)[..., None]
        share = (weights * q.detach())[..., None]  # times drawn / n
        mean = (share * mu).sum(dim=1, keepdim=True)
        return (share * (mu - mean).square()).sum(dim=1).mean(dim=-1)
