"""NeuralSparse: a GCN on at most k edges per node, chosen by a network that is learned with it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from experiments.paper.networks.edges import EdgeScores
from experiments.paper.networks.sampling import RATES, Ranking
from tadropedge.lab.networks.layers import Linear, product
from tadropedge.lab.networks.network import Network, Setting, Sizes, Start, Value
from tadropedge.lab.networks.view import View

EDGE_HIDDEN = 32
DECAY, COLDEST = 0.001, 0.05
LARGEST_BITS = 0x7F800000  # of infinity: float32 bits of positive numbers are ordered as the numbers are


class NeuralSparse(Network):
    """A two-layer GCN on a learned sparse subgraph.

    ::

        z_uv = MLP(x_u, x_v)                             one hidden layer of 32, ReLU
        π_u  = softmax of z_uv over the neighbours v of u
        y_uv = softmax over v of (log π_uv + g_uv) / τ,  g Gumbel noise

    Node u keeps the k = ``samples`` neighbours of largest y, which is k draws from π without replacement, with weights
    y. Then a two-layer GCN on ``D^-1/2 (Y + I) D^-1/2``. The temperature falls, ``τ = max(0.05, exp(−0.001 t))`` in
    epoch t.

    At evaluation there is no noise: the k largest π, with the same τ. The public code adds noise there, too, works on
    dense N × N matrices, and has a third, dense layer; here the GCN has two layers like those it is compared with.

    * Source: Zheng et al., *Robust graph representation learning via neural sparsification* (ICML 2020).
    """

    settings = {"hidden": Setting(128, 1), "samples": Setting(5, 1)}
    shared = ("hidden",)
    space = {**RATES, "hidden": [64, 128], "samples": [3, 5, 10, 15]}
    supports = ()
    samples: Tensor

    def __init__(self, sizes: Sizes, settings: Sequence[Mapping[str, Value]], start: Start) -> None:
        super().__init__(sizes, settings, start)
        hidden = int(settings[0]["hidden"])
        self.input = Linear(start, sizes.num_features, hidden)
        self.output = Linear(start, hidden, sizes.num_classes)
        self.scores = EdgeScores(start, sizes.num_features, EDGE_HIDDEN)
        self.register_buffer("samples", self.column("samples"), persistent=False)
        self.ranking: Ranking | None = None

    def forward(self, x: Any, view: View) -> Tensor:
        """Logits ``[T, N, C]``, in training with Gumbel noise."""
        shift = view.entries().normalized(self.sparsified(x, view))
        h = (shift @ product(x, self.input.weight) + self.input.bias[:, None]).relu()
        return shift @ product(view.drop(h, 0), self.output.weight) + self.output.bias[:, None]

    def sparsified(self, x: Any, view: View) -> Tensor:
        """The weights y of the kept edges, ``[T, E]``, and 0 elsewhere."""
        entries = view.entries()
        # softmax((log π + g) / τ): log π is z up to a constant of the row, which a softmax does not see.
        scores = self.scores(x, entries)
        if view.noise is not None:
            scores = scores - (-view.noise.uniform(entries.count).log()).log()
        temperature = (-DECAY * view.epoch).exp().clamp_min(COLDEST)
        alone = (entries.places.crow.diff() == 1).index_select(0, entries.row)  # the diagonal is all that is there
        among = torch.where(entries.edge, scores / temperature, torch.where(alone, 0.0, -torch.inf))
        y = torch.where(entries.edge, entries.row_softmax(among[..., None])[..., 0], 0.0)
        if self.ranking is None or self.ranking.entries is not entries:
            self.ranking = Ranking(entries, int(self.samples.min()))
        bits = y.detach().contiguous().view(torch.int32).to(torch.int64)
        return torch.where(self.ranking.lowest(LARGEST_BITS - bits, self.samples), y, 0.0)
