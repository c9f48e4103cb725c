"""PTDNet (Luo et al. 2021): every layer of a GCN drops edges by learned gates.

Layer l has an MLP with one hidden layer of 16 on its own input h, and a hard-concrete gate for each direction of an
edge::

    log α_uv = MLP_l(h_u, h_v)
    s = sigmoid((log ε − log(1 − ε) + log α) / τ),  ε uniform in (0, 1)
    gate = min(1, max(0, s (ζ − γ) + γ)),           γ = −0.1, ζ = 1.1

and propagates with ``D^-1/2 (G + I) D^-1/2`` of its gates G. To the loss are added, for each layer,

* ``sparsity`` (λ1) times the expected share of open gates, mean of ``sigmoid(log α − τ log(−γ/ζ))``;
* ``nuclear`` (λ3) times the largest singular value of G, which stands for its nuclear norm as in the public code.

The temperature falls, ``τ = max(0.05, 2 · 0.99^t)`` in epoch t. At evaluation ``s = sigmoid(log α)``, stretched and cut
in the same way, without noise.

The public code's γ = 0 makes its L0 term constant, and its nuclear norm multiplies dense N × N matrices; here γ is that
of the hard-concrete distribution, and singular vectors come from a few power iterations on the sparse gates. Since the
L0 term now does something, the defaults are a tenth of the public λ1 = 0.1 and λ3 = 0.01, which close every gate on
Cora. The public code averages three noisy outputs and adds their squared spread (0.01); here there is one.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import torch
from torch import Tensor

from tadropedge._old.nn.entries import Entries
from tadropedge._old.nn.finish import Noise
from tadropedge._old.nn.layers import Features, Parameters, Sparse, aligned_product
from tadropedge._old.nn.network import RATES, Network, Problem, Setting, Shapes, Sizes, TrainingStep, Value
from tadropedge._old.sampling import mix_tensor, pair_words
from tadropedge._old.sparse import multiply

EDGE_HIDDEN = 16
GAMMA, ZETA = -0.1, 1.1
HOTTEST, COOLING, COLDEST = 2.0, 0.99, 0.05
POWER_ITERATIONS = 8


class PTDNet(Network):
    """A two-layer GCN with gates on the edges of each layer."""

    settings = {
        "hidden": Setting(256, 1),
        "sparsity": Setting(0.01),
        "nuclear": Setting(0.001),
    }
    shared = ("hidden",)
    space = {
        **RATES,
        "hidden": [64, 128, 256],
        "sparsity": [0.0, 0.001, 0.01, 0.1],
        "nuclear": [0.0, 0.0001, 0.001, 0.01],
    }
    drops = False

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem)
        self.sparsity, self.nuclear = problem.column("sparsity"), problem.column("nuclear")

    @classmethod
    def entry_width(cls, hidden: int) -> int:
        """The MLPs' hidden layers, and the signals at both ends of every edge."""
        return 6 * EDGE_HIDDEN + 2 * hidden

    @classmethod
    def shapes(cls, sizes: Sizes, settings: Mapping[str, Value]) -> Shapes:
        """The weights of both layers, each with its MLP."""
        inputs, hidden, classes = sizes.num_features, sizes.hidden, sizes.num_classes
        shapes: Shapes = {}
        for name, width, outputs in (("input", inputs, hidden), ("output", hidden, classes)):
            shapes |= {f"{name}.weight": (width, outputs), f"{name}.bias": (outputs,)}
            shapes |= {f"{name}.edge.weight": (width, 2 * EDGE_HIDDEN), f"{name}.edge.bias": (EDGE_HIDDEN,)}
            shapes |= {f"{name}.edge.out": (EDGE_HIDDEN, 1), f"{name}.edge.shift": (1,)}
        return shapes

    def training(self, state: Parameters, step: TrainingStep) -> tuple[Tensor, Tensor]:
        """With noisy gates and both terms of regularisation."""
        temperature = (HOTTEST * COOLING**step.epoch).clamp_min(COLDEST)
        uniform = [step.draws.uniform(self.problem.entries.count, layer) for layer in range(2)]
        logits, log_alphas, gates = self._forward(state, step.x, temperature, uniform, step.noise)
        entries = self.problem.entries
        penalty = torch.zeros_like(self.sparsity)
        for log_alpha, gate in zip(log_alphas, gates, strict=True):
            penalty = penalty + self.sparsity * expected_open(entries, log_alpha, temperature)
            penalty = penalty + self.nuclear * singular_values(entries, gate).sum(dim=-1)
        return logits, penalty

    def evaluation(self, state: Parameters, x: Features, epoch: Tensor) -> Tensor:
        """With the gates' own values."""
        return self._forward(state, x)[0]

    def gates(self, state: Parameters, x: Features) -> list[Tensor]:
        """The gates at evaluation, ``[T, E]`` for each layer; 0 on the diagonal."""
        return self._forward(state, x)[2]

    def _forward(
        self,
        state: Parameters,
        x: Features,
        temperature: Tensor | None = None,
        uniform: list[Tensor] | None = None,
        noise: Noise | None = None,
    ) -> tuple[Tensor, list[Tensor], list[Tensor]]:
        """Logits, and log α and the gates of both layers."""
        entries = self.problem.entries
        h: Features = x
        log_alphas: list[Tensor] = []
        gates: list[Tensor] = []
        for layer, name in enumerate(("input", "output")):
            weights = torch.cat((state[f"{name}.edge.weight"], state[f"{name}.weight"]), dim=-1)
            # The layer and its MLP read the same input. Batches would round an odd number of columns differently.
            product = aligned_product(h, weights)
            ends, y = product[..., : 2 * EDGE_HIDDEN], product[..., 2 * EDGE_HIDDEN :].contiguous()
            log_alphas.append(self._log_alpha(state, name, ends))
            gate = hard_concrete(log_alphas[-1], temperature, None if uniform is None else uniform[layer])
            gates.append(torch.where(entries.edge, gate, 0.0))
            y = entries.normalized(gates[-1]) @ y + state[f"{name}.bias"][:, None, :]
            if layer == 0:
                h = y.relu() if noise is None else noise(y.relu(), 0)
        return y, log_alphas, gates

    def _log_alpha(self, state: Parameters, name: str, ends: Tensor) -> Tensor:
        """``log α``, ``[T, E]``; the MLP's first layer is linear in h_u and in h_v, so it was done node by node."""
        entries = self.problem.entries
        own, other = ends.chunk(2, dim=-1)
        hidden = entries.at_rows(own.contiguous()) + entries.at_cols(other.contiguous())
        hidden = (hidden + state[f"{name}.edge.bias"][:, None, :]).relu()
        # A sum, not a product with one column: its rounding would depend on the number of trials.
        return (hidden * state[f"{name}.edge.out"][:, None, :, 0]).sum(dim=-1) + state[f"{name}.edge.shift"]


def sigmoid(x: Tensor) -> Tensor:
    """``1 / (1 + e^-x)``. On a CPU torch's own rounds the end of a tensor differently, so the batch would matter.

    >>> sigmoid(torch.tensor([-200.0, 0.0, 200.0])).tolist()
    [0.0, 0.5, 1.0]
    """
    return 0.5 + 0.5 * (0.5 * x).tanh()


def hard_concrete(log_alpha: Tensor, temperature: Tensor | None = None, uniform: Tensor | None = None) -> Tensor:
    """The gate in [0, 1]: noisy where ``uniform`` numbers are given, else the gate's own value.

    >>> hard_concrete(torch.tensor([-9.0, 0.0, 9.0])).tolist()
    [0.0, 0.5, 1.0]
    """
    s = sigmoid(log_alpha)
    if uniform is not None and temperature is not None:
        s = sigmoid((uniform.logit() + log_alpha) / temperature)
    return (s * (ZETA - GAMMA) + GAMMA).clamp(0, 1)


def expected_open(entries: Entries, log_alpha: Tensor, temperature: Tensor) -> Tensor:
    """The L0 term: the mean over all edges of the probability that a noisy gate is above 0, ``[T]``."""
    probability = sigmoid(log_alpha - temperature * math.log(-GAMMA / ZETA))
    return torch.where(entries.edge, probability, 0.0).sum(dim=-1) / entries.edge.sum().clamp_min(1)


def singular_values(entries: Entries, gates: Tensor, count: int = 1, iterations: int = POWER_ITERATIONS) -> Tensor:
    """The ``count`` largest singular values of G ``[T, E]``, largest first, ``[T, count]``.

    The right singular vectors V come from power iterations with GᵀG that carry no gradient; ``σ_i = ‖G v_i‖`` does, and
    at a singular vector that is the gradient ``u_i v_iᵀ`` of σ_i. With few iterations the values are lower bounds.
    """
    places, (turned, order) = entries.places, entries.places.turned
    with torch.no_grad():
        values, turned_values = gates.detach(), gates.detach().index_select(-1, order)
        words = mix_tensor(pair_words(entries.num_nodes * count, gates.device).view(entries.num_nodes, count))
        start = 1.0 + words.to(gates.dtype) * 2.0**-64  # between 1/2 and 3/2: never orthogonal to a non-negative vector
        vectors = start.expand(len(gates), -1, -1)
        for _ in range(iterations):
            vectors = _orthonormal(multiply(turned, turned_values, multiply(places, values, vectors.contiguous())))
    images = Sparse(places, gates) @ vectors
    return (images.square().sum(dim=-2) + 1e-12).sqrt()


def _orthonormal(vectors: Tensor) -> Tensor:
    """Gram and Schmidt's process on the columns of ``[T, N, k]``."""
    columns: list[Tensor] = []
    for place in range(vectors.shape[-1]):
        column = vectors[..., place]
        for other in columns:
            column = column - (column * other).sum(dim=-1, keepdim=True) * other
        columns.append(column / column.norm(dim=-1, keepdim=True).clamp_min(1e-30))
    return torch.stack(columns, dim=-1)
