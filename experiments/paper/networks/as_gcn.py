"""AS-GCN: layers are sampled from the top down, by a learned sampler."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from experiments.paper.networks.sampling import RATES, gcn_operator, importance
from tadropedge.lab.networks.layers import Linear, product
from tadropedge.lab.networks.network import Network, Setting, Sizes, Start, Value
from tadropedge.lab.networks.sparse import Entries, Sparse
from tadropedge.lab.networks.view import View


class ASGCN(Network):
    """A two-layer GCN with attention, both layers sampled.

    The layer below the nodes V is n nodes drawn independently from ::

        q(u) ∝ √(Σ_(v ∈ V) Â(v, u)²) · (ReLU(h̄_V + h_u) + 1) · (ReLU(h_u) + 1)

    with ``h = x · w`` for two learned vectors w, one for the upper and one for the lower nodes, and h̄_V the mean over
    V. The propagation has the same attention, ``a(v, u) = ReLU(h_v + h_u) + 1``::

        z(v) = Σ_u Â(v, u) a(v, u) y(u)  ≈  (1/n) Σ_j Â(v, u_j) a(v, u_j) y(u_j) / q(u_j)

    V is the training nodes for the upper layer and the sampled nodes for the lower one. The loss adds ``variance``
    times the variance of the upper estimate of the mean of z over V, averaged over the classes: ``(1/n²) Σ_j (μ_j −
    μ̄)²`` with ``μ_j = mean_v Â(v, u_j) a(v, u_j) y(u_j) / q(u_j)``. Through it the sampler learns; the estimate takes q
    as given.

    Unlike the public code: h̄_V is a mean (there a sum over V, which grows with the batch); the variance is that of the
    estimate (there μ_j / n is compared with μ̄); n = 512 by default (there 128, too few here for both layers); at
    evaluation the sum over u is not divided by the number of nodes; there is no limit of 32 neighbours; the test
    accuracy is not used.

    * Source: Huang, Zhang, Rong and Huang, *Adaptive sampling towards fast graph representation learning* (NeurIPS
      2018).
    """

    settings = {"hidden": Setting(16, 1), "samples": Setting(512, 1), "variance": Setting(0.5)}
    shared = ("hidden",)
    space = {**RATES, "hidden": [16, 128], "samples": [256, 512, 1024, 4096], "variance": [0.0, 0.5]}
    recordable = False  # the largest number of samples is read on the host
    samples: Tensor
    variance: Tensor

    def __init__(self, sizes: Sizes, settings: Sequence[Mapping[str, Value]], start: Start) -> None:
        super().__init__(sizes, settings, start)
        hidden = int(settings[0]["hidden"])
        self.input = Linear(start, sizes.num_features, hidden)
        self.sampler = start.glorot(sizes.num_features, 2)
        self.output = Linear(start, hidden, sizes.num_classes)
        for name in ("samples", "variance"):
            self.register_buffer(name, self.column(name), persistent=False)

    def forward(self, x: Any, view: View) -> Tensor | tuple[Tensor, Tensor]:
        """Logits ``[T, N, C]``; in training those of two sampled layers, and what is added to the loss ``[T]``."""
        shift, entries, scores = gcn_operator(view, self.trials), view.entries(), product(x, self.sampler)
        attended, y = self.attended(shift, entries, scores), product(x, self.input.weight)
        if view.noise is None or view.nodes is None:
            h = (attended @ y + self.input.bias[:, None]).relu()
            return attended @ product(h, self.output.weight) + self.output.bias[:, None]
        q = probabilities(shift, scores, view.nodes)
        top = importance(view.noise, q.detach(), self.samples, 0)
        drawn = top * q.detach()  # times that each node was drawn, up to a factor
        bottom = importance(view.noise, probabilities(shift, scores, drawn).detach(), self.samples, 1)
        h = (attended @ (bottom[..., None] * y) + self.input.bias[:, None]).relu()
        y = product(view.drop(h, 0), self.output.weight)
        logits = attended @ (top[..., None] * y) + self.output.bias[:, None]
        return logits, self.variance * spread(attended, q, top, y, view.nodes) / self.samples

    def attended(self, shift: Sparse, entries: Entries, scores: Tensor) -> Sparse:
        """``Â(v, u) (ReLU(h_v + h_u) + 1)``, from ``scores [T, N, 2]``: h of upper and of lower nodes."""
        sums = entries.at_rows(scores[..., :1].contiguous()) + entries.at_cols(scores[..., 1:].contiguous())
        return Sparse(shift.places, shift.values * (sums[..., 0].relu() + 1))


def probabilities(shift: Sparse, scores: Tensor, nodes: Tensor) -> Tensor:
    """``q [T, N]`` below the upper nodes, which ``nodes [T, N]`` counts; it sums to 1."""
    reach = (shift.squared @ nodes[..., None])[..., 0]
    reach = torch.where(reach > 0, torch.where(reach > 0, reach, 1.0).sqrt(), 0.0)
    centre = (nodes * scores[..., 0]).sum(dim=1, keepdim=True) / nodes.sum(dim=1, keepdim=True).clamp_min(1e-12)
    own = scores[..., 1]
    q = reach * ((centre + own).relu() + 1) * (own.relu() + 1)
    return q / q.sum(dim=1, keepdim=True).clamp_min(1e-30)


def spread(attended: Sparse, q: Tensor, weights: Tensor, y: Tensor, nodes: Tensor) -> Tensor:
    """``(1/n) Σ_j (μ_j − μ̄)²``, mean over the classes, ``[T]``; its gradient reaches the sampler through q."""
    places, order = attended.places.turned
    received = Sparse(places, attended.values.index_select(1, order)) @ nodes[..., None]  # Σ_v Â(v, u) a(v, u)
    size = nodes.sum(dim=1).clamp_min(1)[:, None, None]
    mu = received / size * y / torch.where(q > 0, q, 1.0)[..., None]
    share = (weights * q.detach())[..., None]  # times drawn / n
    mean = (share * mu).sum(dim=1, keepdim=True)
    return (share * (mu - mean).square()).sum(dim=1).mean(dim=-1)
