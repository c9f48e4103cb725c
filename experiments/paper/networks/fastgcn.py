"""FastGCN: graph convolution as an integral, estimated from a few sampled nodes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from experiments.paper.networks.sampling import RATES, gcn_operator, importance
from tadropedge.lab.networks.layers import Linear, product
from tadropedge.lab.networks.network import Network, Setting, Sizes, Start, Value
from tadropedge.lab.networks.sparse import Sparse
from tadropedge.lab.networks.view import View


class FastGCN(Network):
    """A two-layer GCN whose last layer sees ``samples`` nodes.

    ``h(v) = Σ_u Â(v, u) h(u) W`` is the expectation of ``Â(v, u) h(u) W / q(u)`` for u drawn with probability q(u).
    With r independent draws u_1 … u_r from ``q(u) ∝ ‖Â(:, u)‖²``::

        logits(v) ≈ (1/r) Σ_j Â(v, u_j) h(u_j) W_1 / q(u_j),     h(u) = ReLU(Â(u, :) X W_0)

    The first layer is exact: the paper precomputes ÂX. In the second, drawing r nodes is scaling the columns of Â by
    ``s_u = (times u was drawn) / (r q(u))``, whose expectation is 1.

    q lives on the nodes that the training nodes touch, as in the public code, and is normalised there, which the public
    code leaves out: so the estimate is unbiased. The public code draws without replacement and does not square; here
    both are as in the paper. The training graph is the whole one, which the other methods of a comparison see, too.

    * Source: Chen, Ma and Xiao, *FastGCN* (ICLR 2018).
    """

    settings = {"hidden": Setting(16, 1), "samples": Setting(400, 1)}
    shared = ("hidden",)
    # More samples than the paper's 50 to 400: on PubMed so few cost accuracy here.
    space = {**RATES, "hidden": [16, 128], "samples": [200, 400, 1000, 4000]}
    recordable = False  # the largest number of samples is read on the host
    samples: Tensor

    def __init__(self, sizes: Sizes, settings: Sequence[Mapping[str, Value]], start: Start) -> None:
        super().__init__(sizes, settings, start)
        hidden = int(settings[0]["hidden"])
        self.input = Linear(start, sizes.num_features, hidden)
        self.output = Linear(start, hidden, sizes.num_classes)
        self.register_buffer("samples", self.column("samples"), persistent=False)

    def forward(self, x: Any, view: View) -> Tensor:
        """Logits ``[T, N, C]``: an exact layer, then an estimated one; at evaluation both exact."""
        shift = gcn_operator(view, self.trials)
        h = (shift @ product(x, self.input.weight) + self.input.bias[:, None]).relu()
        y = product(view.drop(h, 0), self.output.weight)
        if view.noise is not None and view.nodes is not None:
            weights = importance(view.noise, column_norms(shift, view.nodes), self.samples)
            y = weights[..., None] * y
        return shift @ y + self.output.bias[:, None]


def column_norms(shift: Sparse, nodes: Tensor) -> Tensor:
    """``‖Â(:, u)‖²`` of the nodes u that the rows of ``nodes [T, N]`` reach, else 0: q up to a factor, ``[T, N]``."""
    squares = shift.squared
    norms, touched = squares @ torch.ones_like(nodes)[:1, :, None], squares @ nodes[..., None]
    return torch.where(touched > 0, norms, 0.0)[..., 0]
