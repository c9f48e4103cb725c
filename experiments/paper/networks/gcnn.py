"""The order-K GCNN: polynomial graph filters, ReLU, and a linear read-out of each node or of a whole signal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from tadropedge.lab.networks.layers import Inputs
from tadropedge.lab.networks.network import RATES, Network, Setting, Sizes, Start, Value
from tadropedge.lab.networks.sparse import Operator
from tadropedge.lab.networks.view import View
from tadropedge.operators.product import dense_product
from tadropedge.operators.shift import NORMALIZATIONS


class GCNN(Network):
    """``X_ℓ = ReLU(Σ_k S^k X_(ℓ−1) B_(ℓ,k) + b_ℓ)`` for ℓ = 1 … L and k = 0 … K, then a linear map to the classes.

    ``order`` is K. The last map reads each node by itself. Weights and their biases start uniform in ± 1 / √inputs.

    * Source: Gama, Marques, Leus and Ribeiro, *Convolutional neural network architectures for signals supported on
      graphs* (IEEE TSP 2019).
    """

    settings = {"normalization": Setting("gcn", choices=NORMALIZATIONS), "order": Setting(5)}
    shared = ("order",)
    space = {**RATES, "normalization": ["gcn", "first-order", "gcn-residual", "random-walk"]}

    def __init__(
        self, sizes: Sizes, settings: Sequence[Mapping[str, Value]], start: Start, *, nodes_read: int = 1
    ) -> None:
        super().__init__(sizes, settings, start)
        self.order = int(settings[0]["order"])
        widths = [sizes.num_features, *[sizes.hidden] * sizes.layers]
        taps = [(self.order + 1) * width for width in widths[:-1]]
        shapes = [*((inputs, sizes.hidden) for inputs in taps), (nodes_read * widths[-1], sizes.num_classes)]
        self.weights, self.biases = nn.ParameterList(), nn.ParameterList()
        for inputs, outputs in shapes:
            self.weights.append(start.uniform((inputs, outputs), inputs**-0.5))
            self.biases.append(start.uniform((outputs,), inputs**-0.5))

    def forward(self, x: Any, view: View) -> Tensor:
        """Logits ``[T, N, C]`` of features ``[N, F]``."""
        features = x.dense if isinstance(x, Inputs) else x
        h = self.filtered(features[None, None], view)[:, 0]
        return dense_product(h, self.weights[-1]) + self.biases[-1][:, None]

    def filtered(self, h: Tensor, view: View) -> Tensor:
        """What the filters make of signals ``[T, S, N, F]``, S of them: ``[T, S, N, H]``."""
        samples, nodes = h.shape[1:3]
        shift = view.shift(self.normalizations)
        for place in range(self.sizes.layers):
            h = dense_product(powers(h, shift, self.order), self.weights[place])
            h = view.drop((h + self.biases[place][:, None]).relu(), place).unflatten(1, (samples, nodes))
        return h

    def taps(self) -> list[Tensor]:
        """The filter taps b_k^(fg) of each layer, ``[T, F_ℓ, F_(ℓ−1), K + 1]``, as the paper numbers them."""
        return [weight.unflatten(-2, (self.order + 1, -1)).transpose(-3, -1) for weight in list(self.weights)[:-1]]


class SignalGCNN(GCNN):
    """The same for whole signals: a linear map of all N · H numbers of a signal to its classes."""

    def __init__(self, sizes: Sizes, settings: Sequence[Mapping[str, Value]], start: Start, *, num_nodes: int) -> None:
        super().__init__(sizes, settings, start, nodes_read=num_nodes)

    def forward(self, x: Tensor, view: View) -> Tensor:
        """Logits ``[T, S, C]`` of signals ``[S, N, F]``, or ``[T, S, N, F]`` where each trial has its own."""
        h = self.filtered(x if x.dim() == 4 else x[None], view)
        return dense_product(h.flatten(-2), self.weights[-1]) + self.biases[-1][:, None]


def powers(h: Tensor, shift: Operator, order: int) -> Tensor:
    """``[X, S X, …, S^K X]`` of signals ``[T, S, N, F]``, side by side as features: ``[T, S N, (K + 1) F]``."""
    samples, features = h.shape[1], h.shape[3]
    power = h.transpose(1, 2).flatten(2)  # [T, N, S F]: a product with S is one large matrix product
    found = [power]
    for _ in range(order):
        power = shift @ power.contiguous()
        found.append(power)
    trials = max(map(len, found))
    side_by_side = torch.stack([each.expand(trials, -1, -1) for each in found], dim=2)  # [T, N, K + 1, S F]
    return side_by_side.unflatten(-1, (samples, features)).permute(0, 3, 1, 2, 4).flatten(1, 2).flatten(2)
