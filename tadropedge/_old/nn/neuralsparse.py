"""NeuralSparse (Zheng et al. 2020): a GCN on at most k edges per node, chosen by a network that is learned with it.

::

    z_uv = MLP(x_u, x_v)                             one hidden layer of 32, ReLU
    π_u  = softmax of z_uv over the neighbours v of u
    y_uv = softmax over v of (log π_uv + g_uv) / τ,  g Gumbel noise

Node u keeps the k neighbours of largest y, which is k draws from π without replacement, with weights y. Then a
two-layer GCN on ``D^-1/2 (Y + I) D^-1/2``. The temperature falls, ``τ = max(0.05, exp(−0.001 t))`` in epoch t.

At evaluation there is no noise: the k largest π, with the same τ. The public code adds noise there too, works on dense
N × N matrices, and has a third, dense layer (128, 64); here the GCN has two layers like those it is compared with.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from tadropedge._old.nn.entries import Ranking
from tadropedge._old.nn.finish import Noise
from tadropedge._old.nn.layers import Features, Parameters, Sparse
from tadropedge._old.nn.network import RATES, Network, Problem, Setting, Shapes, Sizes, TrainingStep, Value

EDGE_HIDDEN = 32
DECAY, COLDEST = 0.001, 0.05
LARGEST_BITS = 0x7F800000  # of infinity: float32 bits of positive numbers are ordered as the numbers are


class NeuralSparse(Network):
    """A two-layer GCN on a learned sparse subgraph."""

    settings = {"hidden": Setting(128, 1), "samples": Setting(5, 1)}
    shared = ("hidden",)
    space = {**RATES, "hidden": [64, 128], "samples": [3, 5, 10, 15]}
    drops = False

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem)
        self.samples = problem.column("samples")
        self.ranking = Ranking(problem.entries, int(self.samples.min()))

    @classmethod
    def entry_width(cls, hidden: int) -> int:
        """The MLP's hidden layer, and the signals at both ends of every edge."""
        return 3 * EDGE_HIDDEN + 2 * hidden

    @classmethod
    def shapes(cls, sizes: Sizes, settings: Mapping[str, Value]) -> Shapes:
        """The GCN's weights and the MLP's."""
        inputs, hidden, classes = sizes.num_features, sizes.hidden, sizes.num_classes
        gcn: Shapes = {"input.weight": (inputs, hidden), "input.bias": (hidden,)}
        gcn |= {"output.weight": (hidden, classes), "output.bias": (classes,)}
        mlp = {"edge.weight": (inputs, 2 * EDGE_HIDDEN), "edge.bias": (EDGE_HIDDEN,), "edge.out": (EDGE_HIDDEN, 1)}
        return gcn | mlp

    def training(self, state: Parameters, step: TrainingStep) -> tuple[Tensor, float]:
        """With Gumbel noise."""
        noise = -(-step.draws.uniform(self.problem.entries.count).log()).log()
        y = self.sparsified(state, step.x, step.epoch, noise)
        return self._logits(state, step.x, y, step.noise), 0.0

    def evaluation(self, state: Parameters, x: Features, epoch: Tensor) -> Tensor:
        """Without noise."""
        return self._logits(state, x, self.sparsified(state, x, epoch, None), None)

    def sparsified(self, state: Parameters, x: Features, epoch: Tensor, noise: Tensor | None) -> Tensor:
        """The weights y of the kept edges, ``[T, E]``, and 0 elsewhere."""
        entries = self.problem.entries
        temperature = (-DECAY * epoch).exp().clamp_min(COLDEST)
        # softmax((log π + g) / τ): log π is z up to a constant of the row, which a softmax does not see.
        scores = self._scores(state, x)
        y = entries.row_softmax((scores if noise is None else scores + noise) / temperature)
        bits = y.detach().contiguous().view(torch.int32).to(torch.int64)
        kept = self.ranking.lowest(LARGEST_BITS - bits, self.samples)
        return torch.where(kept, y, 0.0)

    def _scores(self, state: Parameters, x: Features) -> Tensor:
        """``z_uv``, ``[T, E]``. The first layer of the MLP is linear in x_u and in x_v, so it is done node by node."""
        entries = self.problem.entries
        own, other = (x @ state["edge.weight"]).chunk(2, dim=-1)
        hidden = entries.at_rows(own.contiguous()) + entries.at_cols(other.contiguous())
        hidden = (hidden + state["edge.bias"][:, None, :]).relu()
        # A sum, not a product with one column: its rounding would depend on the number of trials.
        return (hidden * state["edge.out"][:, None, :, 0]).sum(dim=-1)

    def _logits(self, state: Parameters, x: Features, y: Tensor, noise: Noise | None) -> Tensor:
        shift: Sparse = self.problem.entries.normalized(y)
        h = shift @ (x @ state["input.weight"]) + state["input.bias"][:, None, :]
        h = h.relu() if noise is None else noise(h.relu(), 0)
        return shift @ (h @ state["output.weight"]) + state["output.bias"][:, None, :]
