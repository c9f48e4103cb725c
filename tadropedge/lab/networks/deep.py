"""GCNII and APPNP: every step of the propagation goes back to its start by a share α, however many there are.

``Z ← (1 − α) S Z + α H`` comes to rest at ``α (I − (1 − α) S)^-1 H``, the personalised PageRank of H, instead of at the
one vector that many products with S leave of any signal. APPNP repeats it as it stands; GCNII has a weight and a ReLU
in every step. Both start from linear layers that see no edges. All weights start as Glorot and Bengio's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import log
from typing import Any

import torch
from torch import Tensor, nn

from tadropedge.lab.networks.layers import Linear, finish, product
from tadropedge.lab.networks.network import FEATURES, RATES, Network, Setting, Sizes, Start, Value
from tadropedge.lab.networks.sparse import Operator, first_rows
from tadropedge.lab.networks.view import View
from tadropedge.operators.shift import NORMALIZATIONS

# Operators whose largest eigenvalue is 1: with one of 2, many steps would be powers of 2 (1 − α).
CONTRACTING = ["gcn", "random-walk"]


class Restarting(Network):
    """A linear layer with ReLU, ``layers`` steps with restarts, and a linear layer to the classes."""

    settings = {
        "normalization": Setting("gcn", choices=NORMALIZATIONS),
        "alpha": Setting(0.1, most=1.0),
        "feature_dropout": Setting(0.0, most=1.0),
    }
    alpha: Tensor

    def __init__(self, sizes: Sizes, settings: Sequence[Mapping[str, Value]], start: Start) -> None:
        super().__init__(sizes, settings, start)
        self.input = Linear(start, sizes.num_features, sizes.hidden)
        self.output = Linear(start, sizes.hidden, sizes.num_classes)
        self.register_buffer("alpha", self.column("alpha").to(torch.float32), persistent=False)

    @property
    def hops(self) -> list[int] | None:
        """Step by step; linear layers see no edges."""
        return list(range(self.sizes.layers))[::-1]

    def shifts(self, view: View) -> list[Operator]:
        """``(1 − α) S`` of each step: scaled once, not the signals in every step."""
        seen = [view.shift(self.normalizations, step) for step in range(self.sizes.layers)]
        scaled = {id(shift): shift.scaled(1 - self.alpha) for shift in seen}  # one, where the whole graph is seen
        return [scaled[id(shift)] for shift in seen]


class GCNII(Restarting):
    """``h_(ℓ+1) = ReLU(((1 − α) S h_ℓ + α h_0) ((1 − β_ℓ) I + β_ℓ W_ℓ))``, with ``β_ℓ = log(θ / ℓ + 1)``, ℓ = 1 … n.

    ``h_0 = ReLU(x W + b)``, and a linear layer from the last h to the classes. ``alpha`` is α, the share of the start
    in every step, ``theta`` is θ: weights matter less the deeper they lie.

    As in the public code, dropout is applied to what enters a step or the last layer, not to the h_0 that every step
    goes back to; that of the features is ``feature_dropout``. Unlike there, weight decay is the same for all
    parameters.

    * Source: Chen, Wei, Huang, Ding and Li, *Simple and deep graph convolutional networks* (ICML 2020).
    * Cost: O(M H + N H²) per layer and epoch, H hidden units.
    * Good for: many layers.
    """

    settings = {**Restarting.settings, "theta": Setting(0.5)}
    space = {
        **RATES,
        **FEATURES,
        "learning_rate": [0.002, 0.005, 0.01, 0.02],
        "normalization": CONTRACTING,
        "alpha": [0.1, 0.2, 0.5],  # the values of the paper
        "theta": [0.5, 1.0, 1.5],
    }
    beta: Tensor

    def __init__(self, sizes: Sizes, settings: Sequence[Mapping[str, Value]], start: Start) -> None:
        super().__init__(sizes, settings, start)
        self.steps = nn.ParameterList(start.glorot(sizes.hidden, sizes.hidden) for _ in range(sizes.layers))
        thetas = [float(one["theta"]) for one in self.of_trials]
        beta = [[log(theta / step + 1) for step in range(1, sizes.layers + 1)] for theta in thetas]
        self.register_buffer("beta", torch.tensor(beta), persistent=False)

    def forward(self, x: Any, view: View) -> Tensor:
        """Logits ``[T, n, C]``, step by step."""
        start = self.input(self.features(x, view), view, activate=True)
        h, start = view.drop(start, 0), self.alpha[:, None, None] * start
        one, no_bias = torch.eye(self.sizes.hidden, device=h.device), h.new_zeros((self.trials, self.sizes.hidden))
        for step, shift in enumerate(self.shifts(view)):
            z = shift @ h
            z += first_rows(start, z.shape[-2])
            beta = self.beta[:, step, None, None]
            weight = torch.addcmul((1 - beta) * one, beta, self.steps[step])
            h = finish(product(z, weight), no_bias, view, drop=step + 1)
        logits: Tensor = self.output(h, view)
        return logits


class APPNP(Restarting):
    """``Z ← (1 − α) S Z + α H``, n times from ``Z = H``, with ``H = ReLU(x W_1 + b_1) W_2 + b_2``; Z are the logits.

    ``layers`` is n: steps of the propagation, which has no parameters. ``alpha`` is α, the share of H in every step.

    * Source: Klicpera, Bojchevski and Günnemann, *Predict then propagate: graph neural networks meet personalized
      PageRank* (ICLR 2019).
    * Cost: two linear layers, and O(M C) per step and epoch, C classes.
    * Good for: many steps at little cost, and few labels.
    """

    space = {**RATES, **FEATURES, "normalization": CONTRACTING, "alpha": [0.05, 0.1, 0.2, 0.5]}

    def forward(self, x: Any, view: View) -> Tensor:
        """Logits ``[T, n, C]``, step by step."""
        z: Tensor = self.output(self.input(self.features(x, view), view, activate=True, drop=0), view)
        start = self.alpha[:, None, None] * z
        for shift in self.shifts(view):
            z = shift @ z
            z += first_rows(start, z.shape[-2])
        return z
