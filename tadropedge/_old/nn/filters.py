"""The order-K GCNN for graph-level tasks: polynomial graph filters, ReLU, a linear read-out over all nodes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from tadropedge._old.nn.backbones import DROPEDGE_SPACE
from tadropedge._old.nn.finish import Noise
from tadropedge._old.nn.layers import Features, Operator, Parameters
from tadropedge._old.nn.network import COPIES, Network, Problem, Setting, Shapes, Sizes, TrainingStep, Value
from tadropedge._old.shift import NORMALIZATIONS

POWERS = 3  # copies of them: the list, the stack, the gradient


class FilterNetwork(Network):
    """``X_ℓ = ReLU(Σ_k S^k X_(ℓ−1) B_(ℓ,k) + b_ℓ)`` for ℓ = 1 … L, then a linear map of all N · F numbers to classes.

    ``order`` is K. Signals are ``x [S, N, F]``: S samples on one graph of N nodes, or ``[T, S, N, F]`` with samples for
    each trial.
    """

    settings = {
        "normalization": Setting("gcn", choices=NORMALIZATIONS),
        "order": Setting(5),
    }
    shared = ("order",)
    space = DROPEDGE_SPACE
    level = "graph"
    weighs = True
    softens = True

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem)
        self.order = int(problem.settings[0]["order"])
        self.operators = problem.operators([str(one["normalization"]) for one in problem.settings])
        self.recordable = self.operators.recordable

    @classmethod
    def shapes(cls, sizes: Sizes, settings: Mapping[str, Value]) -> Shapes:
        """The taps of every layer and the read-out."""
        shapes: Shapes = {}
        inputs = sizes.num_features
        for layer in range(sizes.layers):
            shapes[f"filter{layer}.weight"] = ((int(settings["order"]) + 1) * inputs, sizes.hidden)
            shapes[f"filter{layer}.bias"] = (sizes.hidden,)
            inputs = sizes.hidden
        shapes["readout.weight"] = (sizes.num_nodes * sizes.hidden, sizes.num_classes)
        return shapes | {"readout.bias": (sizes.num_classes,)}

    @classmethod
    def footprint(cls, sizes: Sizes, settings: Mapping[str, Value], signals: int, entries: int) -> int:
        """With the powers of S side by side, and a read-out of every node."""
        inputs = max(sizes.num_features, sizes.hidden if sizes.layers > 1 else 1)
        taps = (int(settings["order"]) + 1) * inputs
        weights = taps * sizes.hidden * sizes.layers + sizes.num_nodes * sizes.hidden * sizes.num_classes
        stacked = POWERS * signals * taps
        return max(super().footprint(sizes, settings, signals, entries), stacked, COPIES * weights)

    @classmethod
    def bound(cls, key: str, shapes: Shapes) -> float:
        """Weights and their biases start uniform in ±1/√inputs."""
        return float(shapes[f"{key.partition('.')[0]}.weight"][0] ** -0.5)

    @property
    def draws(self) -> int:
        """Every layer of filters can have its own subgraph."""
        return self.problem.sizes.layers

    def soften(self, weights: Tensor) -> None:
        """Evaluate on operators of weighted edges."""
        self.operators.soften(weights)

    def training(self, state: Parameters, step: TrainingStep) -> tuple[Tensor, float]:
        """On the operators of the kept edges, with dropout."""
        shifts = [self.operators.of(*kept) for kept in step.kept]
        return self.logits(state, step.x, shifts, step.noise), 0.0

    def evaluation(self, state: Parameters, x: Features, epoch: Tensor) -> Tensor:
        """On the operators of the whole graph."""
        return self.logits(state, x, [self.operators.whole])

    def logits(self, state: Parameters, x: Features, shifts: Sequence[Operator], noise: Noise | None = None) -> Tensor:
        """Logits ``[T, S, C]`` of the samples ``x [T, S, N, F]``, or ``[S, N, F]`` where all trials share them."""
        assert isinstance(x, Tensor)
        h = x if x.dim() == 4 else x[None]
        for layer in range(self.problem.sizes.layers):
            shift = shifts[layer if len(shifts) > 1 else 0]
            weight, bias = state[f"filter{layer}.weight"], state[f"filter{layer}.bias"]
            stacked = _powers(h, shift, self.order).flatten(1, 2)  # [T, S N, (K + 1) F]
            h = stacked.expand(len(weight), -1, -1) @ weight
            h += bias[:, None, :]  # in place: at evaluation these are the largest tensors there are
            h = h.relu_()
            h = noise(h, layer) if noise is not None else h
            h = h.unflatten(1, (x.shape[-3], x.shape[-2]))  # [T, S, N, H]
        return torch.baddbmm(state["readout.bias"][:, None, :], h.flatten(-2), state["readout.weight"])


def filter_taps(state: Parameters, layers: int, order: int) -> list[Tensor]:
    """The filter taps b_k^(fg) of each layer, ``[..., F_ℓ, F_(ℓ−1), K + 1]``, as the paper numbers them.

    >>> [list(taps.shape) for taps in filter_taps({"filter0.weight": torch.zeros(1, 12, 8)}, layers=1, order=5)]
    [[1, 8, 2, 6]]
    """
    weights = (state[f"filter{layer}.weight"] for layer in range(layers))
    return [weight.unflatten(-2, (order + 1, -1)).transpose(-3, -1) for weight in weights]


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
