"""The order-K GCNN for graph-level tasks: polynomial graph filters, ReLU, a linear read-out over all nodes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from tadropedge.nn.finish import Noise
from tadropedge.nn.layers import Operator, Parameters


@dataclass(frozen=True)
class FilterNetwork:
    """``X_ℓ = ReLU(Σ_k S^k X_(ℓ−1) B_(ℓ,k) + b_ℓ)`` for ℓ = 1 … L, then a linear map of all N · F numbers to classes.

    Signals are ``x [S, N, F]``: S samples on one graph of N nodes, or ``[T, S, N, F]`` with samples for each trial.
    """

    layers: int
    order: int
    num_nodes: int
    num_features: int
    hidden: int
    num_classes: int

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The shape of every trained parameter, without the trials axis."""
        shapes: dict[str, tuple[int, ...]] = {}
        inputs = self.num_features
        for layer in range(self.layers):
            shapes[f"filter{layer}.weight"] = ((self.order + 1) * inputs, self.hidden)
            shapes[f"filter{layer}.bias"] = (self.hidden,)
            inputs = self.hidden
        shapes["readout.weight"] = (self.num_nodes * self.hidden, self.num_classes)
        shapes["readout.bias"] = (self.num_classes,)
        return shapes

    def initial(self, seeds: Sequence[int], device: torch.device) -> Parameters:
        """Uniform in ±1/√inputs, each trial a pure function of its seed."""
        drawn: dict[str, list[Tensor]] = {}
        for seed in seeds:
            generator = torch.Generator().manual_seed(seed % 2**63)
            inputs = 1
            for key, shape in self.shapes().items():
                inputs = shape[0] if key.endswith("weight") else inputs
                drawn.setdefault(key, []).append((torch.rand(shape, generator=generator) * 2 - 1) * inputs**-0.5)
        return {key: torch.stack(values).to(device) for key, values in drawn.items()}

    def running(self, trials: int, device: torch.device) -> Parameters:
        """There are no running statistics."""
        return {}

    def taps(self, parameters: Parameters) -> list[Tensor]:
        """The filter taps b_k^(fg) of each layer, ``[..., F_ℓ, F_(ℓ−1), K + 1]``, as the paper numbers them.

        >>> network = FilterNetwork(layers=2, order=5, num_nodes=4, num_features=1, hidden=8, num_classes=3)
        >>> [list(taps.shape) for taps in network.taps(network.initial([0], torch.device("cpu")))]
        [[1, 8, 1, 6], [1, 8, 8, 6]]
        """
        weights = (parameters[f"filter{layer}.weight"] for layer in range(self.layers))
        return [weight.unflatten(-2, (self.order + 1, -1)).transpose(-3, -1) for weight in weights]

    @property
    def draws(self) -> int:
        """The number of layers that could have a subgraph of their own."""
        return self.layers

    def __call__(
        self,
        parameters: Parameters,
        running: Parameters,
        x: Tensor,
        shifts: Sequence[Operator],
        noise: Noise | None = None,
    ) -> Tensor:
        """Logits ``[T, S, C]`` of the samples ``x [T, S, N, F]``, or ``[S, N, F]`` where all trials share them."""
        h = x if x.dim() == 4 else x[None]
        for layer in range(self.layers):
            shift = shifts[layer if len(shifts) > 1 else 0]
            weight, bias = parameters[f"filter{layer}.weight"], parameters[f"filter{layer}.bias"]
            stacked = _powers(h, shift, self.order).flatten(1, 2)  # [T, S N, (K + 1) F]
            h = stacked.expand(len(weight), -1, -1) @ weight
            h += bias[:, None, :]  # in place: at evaluation these are the largest tensors there are
            h = h.relu_()
            h = noise(h, layer) if noise is not None else h
            h = h.unflatten(1, (x.shape[-3], x.shape[-2]))  # [T, S, N, H]
        readout, bias = parameters["readout.weight"], parameters["readout.bias"]
        return torch.baddbmm(bias[:, None, :], h.flatten(-2), readout)


def _powers(h: Tensor, shift: Operator, order: int) -> Tensor:
    """``[X, S X, …, S^K X]`` of signals ``[T, S, N, F]``, side by side as features: ``[T, S, N, (K + 1) F]``."""
    samples, features = h.shape[1], h.shape[3]
    power = h.transpose(-1, -2).flatten(1, 2)  # [T, S F, N]: a product with S is one large matrix product
    powers = [power]
    for _ in range(order):
        if isinstance(shift, Tensor):
            power = power @ shift.transpose(-1, -2)
        else:
            power = (shift @ power.transpose(-1, -2).contiguous()).transpose(-1, -2)
        powers.append(power)
    trials = max(len(each) for each in powers)
    stacked = torch.stack([each.expand(trials, -1, -1) for each in powers], dim=-1)  # [T, S F, N, K + 1]
    joined: Tensor = stacked.unflatten(1, (samples, features)).permute(0, 1, 3, 4, 2).flatten(-2)
    return joined
