"""PTDNet: every layer of a GCN drops edges by learned gates."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from experiments.paper.networks.edges import EdgeScores
from experiments.paper.networks.sampling import RATES
from tadropedge.lab.networks.layers import Features, Linear, product
from tadropedge.lab.networks.network import Network, Setting, Sizes, Start, Value
from tadropedge.lab.networks.sparse import Entries, Sparse
from tadropedge.lab.networks.view import View
from tadropedge.operators.kernels.words import mix_tensor
from tadropedge.operators.product import multiply
from tadropedge.sampling.coins import numbered_keys

EDGE_HIDDEN = 16
GAMMA, ZETA = -0.1, 1.1
HOTTEST, COOLING, COLDEST = 2.0, 0.99, 0.05
POWER_ITERATIONS = 8


class PTDNet(Network):
    """A two-layer GCN with gates on the edges of each layer.

    Layer l has an MLP with one hidden layer of 16 on its own input h, and a hard-concrete gate for each direction of an
    edge::

        log α_uv = MLP_l(h_u, h_v)
        s = sigmoid((log ε − log(1 − ε) + log α) / τ),  ε uniform in (0, 1)
        gate = min(1, max(0, s (ζ − γ) + γ)),           γ = −0.1, ζ = 1.1

    and propagates with ``D^-1/2 (G + I) D^-1/2`` of its gates G. To the loss are added, for each layer,

    * ``sparsity`` (λ1) times the expected share of open gates, mean of ``sigmoid(log α − τ log(−γ/ζ))``;
    * ``nuclear`` (λ3) times the largest singular value of G, which stands for its nuclear norm as in the public code.

    The temperature falls, ``τ = max(0.05, 2 · 0.99^t)`` in epoch t. At evaluation ``s = sigmoid(log α)``, stretched and
    cut in the same way, without noise.

    The public code's γ = 0 makes its L0 term constant, and its nuclear norm multiplies dense N × N matrices; here γ is
    that of the hard-concrete distribution, and the singular vector comes from a few power iterations on the sparse
    gates. Since the L0 term now does something, the defaults are a tenth of the public λ1 = 0.1 and λ3 = 0.01, which
    close every gate on Cora. The public code averages three noisy outputs and adds their squared spread (0.01); here
    there is one.

    * Source: Luo et al., *Learning to drop: robust graph neural network via topological denoising* (WSDM 2021).
    """

    settings = {"hidden": Setting(256, 1), "sparsity": Setting(0.01), "nuclear": Setting(0.001)}
    shared = ("hidden",)
    space = {
        **RATES,
        "hidden": [64, 128, 256],
        "sparsity": [0.0, 0.001, 0.01, 0.1],
        "nuclear": [0.0, 0.0001, 0.001, 0.01],
    }
    supports = ()
    sparsity: Tensor
    nuclear: Tensor

    def __init__(self, sizes: Sizes, settings: Sequence[Mapping[str, Value]], start: Start) -> None:
        super().__init__(sizes, settings, start)
        hidden = int(settings[0]["hidden"])
        shapes = ((sizes.num_features, hidden), (hidden, sizes.num_classes))
        self.linear, self.edges = nn.ModuleList(), nn.ModuleList()
        for inputs, outputs in shapes:
            self.linear.append(Linear(start, inputs, outputs))
            self.edges.append(EdgeScores(start, inputs, EDGE_HIDDEN, shift=True))
        for name in ("sparsity", "nuclear"):
            self.register_buffer(name, self.column(name).to(torch.float32), persistent=False)

    def forward(self, x: Any, view: View) -> Tensor | tuple[Tensor, Tensor]:
        """Logits ``[T, N, C]``; in training with noisy gates, and with what is added to the loss ``[T]``."""
        entries, penalty, h = view.entries(), torch.zeros_like(self.sparsity), x
        temperature = (HOTTEST * COOLING**view.epoch).clamp_min(COLDEST)
        for place, (linear, edges) in enumerate(zip(self.linear, self.edges, strict=True)):
            log_alpha = edges(h, entries)
            uniform = None if view.noise is None else view.noise.uniform(entries.count, place)
            gates = torch.where(entries.edge, hard_concrete(log_alpha, temperature, uniform), 0.0)
            if view.training:
                penalty = penalty + self.sparsity * expected_open(entries, log_alpha, temperature)
                penalty = penalty + self.nuclear * largest_singular_value(entries, gates)
            y = entries.normalized(gates) @ product(h, linear.weight) + linear.bias[:, None]
            h = view.drop(y.relu(), 0)
        return (y, penalty) if view.training else y

    def gates(self, x: Features, view: View) -> list[Tensor]:
        """The gates at evaluation, ``[T, E]`` for each layer; 0 on the diagonal."""
        entries, found, h = view.entries(), [], x
        for linear, edges in zip(self.linear, self.edges, strict=True):
            found.append(torch.where(entries.edge, hard_concrete(edges(h, entries)), 0.0))
            h = (entries.normalized(found[-1]) @ product(h, linear.weight) + linear.bias[:, None]).relu()
        return found


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
    noisy = uniform is not None and temperature is not None
    s = sigmoid((uniform.logit() + log_alpha) / temperature) if noisy else sigmoid(log_alpha)
    return (s * (ZETA - GAMMA) + GAMMA).clamp(0, 1)


def expected_open(entries: Entries, log_alpha: Tensor, temperature: Tensor) -> Tensor:
    """The L0 term: the mean over all edges of the probability that a noisy gate is above 0, ``[T]``."""
    probability = sigmoid(log_alpha - temperature * math.log(-GAMMA / ZETA))
    return torch.where(entries.edge, probability, 0.0).sum(dim=-1) / entries.edge.sum().clamp_min(1)


def largest_singular_value(entries: Entries, gates: Tensor, iterations: int = POWER_ITERATIONS) -> Tensor:
    """That of G ``[T, E]``, ``[T]``.

    The right singular vector v comes from power iterations with GᵀG that carry no gradient; ``σ = ‖G v‖`` does, and at
    a singular vector that is the gradient ``u vᵀ`` of σ. With few iterations the value is a lower bound.
    """
    places, (turned, order) = entries.places, entries.places.turned
    with torch.no_grad():
        values, turned_values = gates.detach(), gates.detach().index_select(-1, order)
        words = mix_tensor(numbered_keys(entries.num_nodes, gates.device))
        start = 1.0 + words.to(gates.dtype) * 2.0**-64  # between 1/2 and 3/2: never orthogonal to a non-negative vector
        vector = start[:, None].expand(len(gates), -1, -1)
        for _ in range(iterations):
            vector = multiply(turned, turned_values, multiply(places, values, vector.contiguous()))
            vector = vector / vector.norm(dim=1, keepdim=True).clamp_min(1e-30)
    image = Sparse(places, gates) @ vector
    return (image.square().sum(dim=(1, 2)) + 1e-12).sqrt()
