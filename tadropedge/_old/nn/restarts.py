"""GCNII and APPNP: every step of the propagation goes back to its start by a share α, however many there are.

``Z ← (1 − α) S Z + α H`` comes to rest at ``α (I − (1 − α) S)^-1 H``, the personalised PageRank of H, instead of at the
one vector that many products with S leave of any signal. APPNP repeats it as it stands; GCNII has a weight and a ReLU
in every step. Both start from linear layers that see no edges.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from math import log
from typing import ClassVar

import torch
from torch import Tensor

from tadropedge._old.neighbours.block import LayerBlock
from tadropedge._old.nn.backbones import DEFAULT_SPACE
from tadropedge._old.nn.finish import Noise, finish
from tadropedge._old.nn.layers import Features, GraphConvolution, Identity, Operator, Parameters, Sparse, first_rows
from tadropedge._old.nn.network import COPIES, Network, Problem, Setting, Shapes, Sizes, TrainingStep, Value
from tadropedge._old.shift import NORMALIZATIONS

# Operators whose largest eigenvalue is 1: with one of 2, many steps would be powers of 2 (1 − α).
CONTRACTING = ["gcn", "random-walk"]


class RestartingNetwork(Network):
    """A linear layer from the features, some steps with restarts, and a linear layer to the classes.

    ``layers`` counts the steps, each of which can have a subgraph of its own. Dropout follows the first linear layer
    and every step that ends in ReLU, never the raw features.
    """

    settings: ClassVar[Mapping[str, Setting]] = {
        "normalization": Setting("gcn", choices=NORMALIZATIONS),
        "alpha": Setting(0.1, most=1.0),
    }
    weighs = True
    softens = True
    spreads = True

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem)
        self.input, self.output = self.linear(problem.sizes)
        self.operators = problem.operators([str(one["normalization"]) for one in problem.settings])
        self.recordable = self.operators.recordable
        self.alpha = self.column("alpha")

    def column(self, name: str) -> Tensor:
        """A number of every trial, ``[T, 1, 1]``."""
        return self.problem.column(name).to(torch.float32)[:, None, None]

    @classmethod
    def linear(cls, sizes: Sizes) -> tuple[GraphConvolution, GraphConvolution]:
        """The first layer, with ReLU, and the last."""
        first = GraphConvolution("input", sizes.num_features, sizes.hidden)
        return first, GraphConvolution("output", sizes.hidden, sizes.num_classes, activate=False)

    @classmethod
    def shapes(cls, sizes: Sizes, settings: Mapping[str, Value]) -> Shapes:
        """Weights and biases of the linear layers."""
        return {key: shape for layer in cls.linear(sizes) for key, shape in layer.shapes().items()}

    @classmethod
    def depth(cls, layers: int) -> int:
        """The steps, and a linear layer before and after them."""
        return layers + 2

    @property
    def draws(self) -> int:
        """Every step can have its own subgraph."""
        return self.problem.sizes.layers

    def soften(self, weights: Tensor) -> None:
        """Evaluate on operators of weighted edges."""
        self.operators.soften(weights)
        self._whole = self._scaled(self.operators.whole)

    def training(self, state: Parameters, step: TrainingStep) -> tuple[Tensor, float]:
        """On the operators of the kept edges, with dropout."""
        shifts = [self.damped(self.operators.of(*kept)) for kept in step.kept]
        return self.logits(state, step.x, shifts, step.noise), 0.0

    def evaluation(self, state: Parameters, x: Features, epoch: Tensor) -> Tensor:
        """On the operators of the whole graph."""
        return self.logits(state, x, [self._whole])

    @property
    def hops(self) -> list[int] | None:
        """Step by step; linear layers see no edges."""
        return list(range(self.problem.sizes.layers))[::-1]

    @property
    def of_rows(self) -> bool:
        """As the normalisation has it."""
        return self.operators.of_rows

    def on_blocks(self, state: Parameters, x: Features, blocks: Sequence[LayerBlock], noise: Noise | None) -> Tensor:
        """On the rows of the operators that each step computes."""
        return self.logits(state, x, [self._scaled(self.operators.on_block(block)) for block in blocks], noise)

    def damped(self, shift: Operator) -> Operator:
        """``(1 − α) S``: scaled once, not the signals in every step."""
        return self._whole if shift is self.operators.whole else self._scaled(shift)

    @cached_property
    def _whole(self) -> Operator:
        return self._scaled(self.operators.whole)

    def _scaled(self, shift: Operator) -> Operator:
        if isinstance(shift, Sparse):
            return shift.scaled(1 - self.alpha[..., 0])
        assert isinstance(shift, Tensor)
        return shift * (1 - self.alpha)

    def logits(self, state: Parameters, x: Features, shifts: Sequence[Operator], noise: Noise | None = None) -> Tensor:
        """Logits ``[T, N, C]``. ``shifts``: ``(1 − α) S``, one for all steps or one per step; ``noise``: training."""
        raise NotImplementedError

    def steps(self, shifts: Sequence[Operator]) -> Sequence[Operator]:
        """One operator per step."""
        return shifts if len(shifts) > 1 else [*shifts] * self.problem.sizes.layers


class GCNII(RestartingNetwork):
    """``h_(ℓ+1) = ReLU(((1 − α) S h_ℓ + α h_0) ((1 − β_ℓ) I + β_ℓ W_ℓ))``, with ``β_ℓ = log(θ / ℓ + 1)``, ℓ = 1 … n.

    ``h_0 = ReLU(x W + b)``, and a linear layer from the last h to the classes. ``alpha`` is α, the share of the start
    in every step, ``theta`` is θ: weights matter less the deeper they lie.

    As in the public code, dropout is applied to what enters a step or the last layer, not to the h_0 that every step
    goes back to. Unlike there, it is not applied to the features, and weight decay is the same for all parameters.

    * Source: Chen, Wei, Huang, Ding and Li, *Simple and deep graph convolutional networks* (ICML 2020).
    * Cost: O(M H + N H²) per layer and epoch, H hidden units.
    * Good for: many layers.
    """

    settings = {**RestartingNetwork.settings, "theta": Setting(0.5)}
    space = {
        "learning_rate": [0.002, 0.005, 0.01, 0.02],
        "weight_decay": DEFAULT_SPACE["weight_decay"],
        "dropout": DEFAULT_SPACE["dropout"],
        "normalization": CONTRACTING,
        "alpha": [0.1, 0.2, 0.5],  # the values of the paper
        "theta": [0.5, 1.0, 1.5],
    }

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem)
        sizes, device = problem.sizes, problem.graph.device
        theta = [float(one["theta"]) for one in problem.settings]
        beta = [[log(each / step + 1) for each in theta] for step in range(1, sizes.layers + 1)]
        self.beta = torch.tensor(beta, dtype=torch.float32, device=device)[..., None, None]  # [n, T, 1, 1]
        self.one = torch.eye(sizes.hidden, device=device)
        self.no_bias = torch.zeros((len(theta), sizes.hidden), device=device)

    def expect(self, shares: Sequence[float]) -> None:
        """Operators of the kept edges alone where that is faster."""
        self.operators.expect(shares, self.problem.sizes.hidden)

    @classmethod
    def shapes(cls, sizes: Sizes, settings: Mapping[str, Value]) -> Shapes:
        """The linear layers, and a square weight for every step."""
        steps = {f"step{step}.weight": (sizes.hidden, sizes.hidden) for step in range(1, sizes.layers + 1)}
        return super().shapes(sizes, settings) | steps

    def logits(self, state: Parameters, x: Features, shifts: Sequence[Operator], noise: Noise | None = None) -> Tensor:
        """Logits ``[T, N, C]``, step by step."""
        training = noise is not None
        start = self.input(state, x, Identity(), training)
        h = start if noise is None else noise(start, 0)
        start = self.alpha * start
        for step, shift in enumerate(self.steps(shifts), 1):
            z = shift @ h
            z += first_rows(start, z.shape[-2])
            beta = self.beta[step - 1]
            weight = torch.addcmul((1 - beta) * self.one, beta, state[f"step{step}.weight"])
            h = finish(z @ weight, self.no_bias, None, True, noise, step, training)
        return self.output(state, h, Identity(), training)


class APPNP(RestartingNetwork):
    """``Z ← (1 − α) S Z + α H``, n times from ``Z = H``, with ``H = ReLU(x W_1 + b_1) W_2 + b_2``; Z are the logits.

    ``layers`` is n: steps of the propagation, which has no parameters. ``alpha`` is α, the share of H in every step.
    Where it is trained with ``dropedge:unbiased`` and per layer, that is the dropout of the operator in its paper.

    * Source: Klicpera, Bojchevski and Günnemann, *Predict then propagate: graph neural networks meet personalized
      PageRank* (ICLR 2019).
    * Cost: two linear layers, and O(M C) per step and epoch, C classes.
    * Good for: many steps at little cost, and few labels.
    """

    space = {
        **{name: values for name, values in DEFAULT_SPACE.items() if name != "keep_prob"},
        "normalization": CONTRACTING,
        "alpha": [0.05, 0.1, 0.2, 0.5],
    }

    def expect(self, shares: Sequence[float]) -> None:
        """Operators of the kept edges alone where that is faster."""
        self.operators.expect(shares, self.problem.sizes.num_classes)

    @classmethod
    def footprint(cls, sizes: Sizes, settings: Mapping[str, Value], signals: int, entries: int) -> int:
        """Only the linear layers are as wide as the hidden units; every step may have an operator of its own."""
        wide = signals * sizes.hidden + sizes.num_features * sizes.hidden + sizes.hidden * sizes.num_classes
        return COPIES * (2 * wide + entries) + 4 * sizes.layers * (signals * sizes.num_classes + entries)

    def logits(self, state: Parameters, x: Features, shifts: Sequence[Operator], noise: Noise | None = None) -> Tensor:
        """Logits ``[T, N, C]``, step by step."""
        training = noise is not None
        h = self.input(state, x, Identity(), training, noise, 0)
        z = self.output(state, h, Identity(), training)
        start = self.alpha * z
        for shift in self.steps(shifts):
            z = shift @ z
            z += first_rows(start, z.shape[-2])
        return z
