"""GraphSAGE: mean aggregation over a few sampled neighbours."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from experiments.paper.networks.sampling import RATES, Ranking
from tadropedge.lab.networks.layers import Features, Linear, product
from tadropedge.lab.networks.network import Network, Setting, Sizes, Start, Value
from tadropedge.lab.networks.sparse import Entries, Sparse
from tadropedge.lab.networks.view import View

DROPPED = 2**32  # added to the key of an edge that does not exist: it comes after all that do


class GraphSAGE(Network):
    """Two mean-aggregator layers and a linear one.

    For k = 1, 2, with ``h⁰ = x``::

        h_N(v) = mean of h^(k−1)_u over S_k sampled neighbours u of v
        h^k_v  = ReLU(W_k · [h^(k−1)_v, h_N(v)] + b_k),   then  h^k_v / ‖h^k_v‖

    ``W · [h, h_N]`` is written as ``h W_self + h_N W``. S_1 = 25 and S_2 = 10 in the paper; here ``samples`` is S_1,
    and S_2 is two fifths of it. A node with at most S_k neighbours uses them all, one with more uses S_k distinct ones,
    each set equally likely.

    Unlike in the paper, a step computes all training nodes, a node in several neighbourhoods samples once per layer,
    and sampling is without replacement. At evaluation the mean is over all neighbours.

    * Source: Hamilton, Ying and Leskovec, *Inductive representation learning on large graphs* (NeurIPS 2017).
    """

    settings = {"hidden": Setting(128, 1), "samples": Setting(25, 1)}
    shared = ("hidden",)
    space = {**RATES, "hidden": [64, 128], "samples": [5, 10, 25]}
    supports = ("dropping",)
    samples: Tensor

    def __init__(self, sizes: Sizes, settings: Sequence[Mapping[str, Value]], start: Start) -> None:
        super().__init__(sizes, settings, start)
        hidden = int(settings[0]["hidden"])
        self.layers = nn.ModuleList(MeanLayer(start, width, hidden) for width in (sizes.num_features, hidden))
        self.output = Linear(start, hidden, sizes.num_classes)
        self.register_buffer("samples", self.column("samples"), persistent=False)
        self.rankings: list[Ranking] = []

    def forward(self, x: Any, view: View) -> Tensor:
        """Logits ``[T, N, C]``; in training on sampled neighbours."""
        h: Features = x
        for place, layer in enumerate(self.layers):
            h = view.drop(layer(h, self.mean(view, place)), place)
        return self.output(h, view)

    def mean(self, view: View, place: int) -> Sparse:
        """The mean over the neighbours that a layer sees."""
        entries, weights = view.entries(), view.entry_weights()
        exists = entries.edge[None] if weights is None else (weights > 0) & entries.edge
        if view.noise is None:
            return mean_operator(entries, exists.expand(self.trials, -1))
        samples = [self.samples, (2 * self.samples + 4).div(5, rounding_mode="floor")]  # the second rounded up
        if not self.rankings or self.rankings[0].entries is not entries:
            self.rankings = [Ranking(entries, int(most.min())) for most in samples]
        keys = (view.noise.words(entries.count, place) >> 32) & (2**32 - 1)
        chosen = self.rankings[place].lowest(torch.where(exists, keys, keys + DROPPED), samples[place])
        return mean_operator(entries, chosen & exists)


class MeanLayer(nn.Module):
    """``ReLU(h W_self + M (h W) + b)`` of unit length, with M the mean over neighbours."""

    def __init__(self, start: Start, inputs: int, outputs: int) -> None:
        super().__init__()
        self.weight, self.self_weight = start.glorot(inputs, outputs), start.glorot(inputs, outputs)
        self.bias = start.zeros(outputs)

    def forward(self, h: Features, mean: Sparse) -> Tensor:
        """The signal ``[T, N, outputs]``."""
        h = mean @ product(h, self.weight) + product(h, self.self_weight) + self.bias[:, None]
        return nn.functional.normalize(h.relu(), dim=-1)


def mean_operator(entries: Entries, chosen: Tensor) -> Sparse:
    """The mean over the ``chosen [T, E]`` entries of each row; 0 where there is none."""
    ones = chosen.to(torch.float32)
    counts = entries.row_sums(ones).clamp_min(1)
    return Sparse(entries.places, ones / counts.index_select(1, entries.row))
