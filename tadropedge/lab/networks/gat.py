"""GAT: each node attends to its kept neighbours and to itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from tadropedge.lab.networks.layers import Features, product
from tadropedge.lab.networks.network import RATES, Network, Setting, Sizes, Start, Value
from tadropedge.lab.networks.sparse import first_rows
from tadropedge.lab.networks.view import View
from tadropedge.operators.product import sparse_product


class GraphAttention(nn.Module):
    """One layer of K heads.

    With ``z = h W`` of one head, and two vectors ``a``::

        e_ij  = LeakyReLU(a_target · z_i + a_source · z_j)
        α_ij  = w_ij e^(e_ij) / Σ_k w_ik e^(e_ik), over the neighbours k of i and i itself
        out_i = Σ_j f_ij α_ij z_j + b

    ``w_ij`` is what the edge weighs: 1, or 0 where it is dropped; a node without kept edges attends to itself alone.
    With ``unbiased``, w is 1 and ``f_ij`` is 1 / p of a kept edge and 0 of a dropped one, so the expected sum is that
    of the whole graph. ``place`` is the number of the layer, by which its dropout is known.
    """

    def __init__(
        self, start: Start, inputs: int, width: int, *, heads: int = 1, place: int = 0, slope: float = 0.2
    ) -> None:
        super().__init__()
        self.heads, self.place, self.slope = heads, place, slope
        self.weight = start.glorot(inputs, heads * width)
        self.source, self.target = start.glorot(heads, width), start.glorot(heads, width)
        self.bias = start.zeros(heads * width)

    def forward(self, x: Features, view: View, rates: Tensor | None) -> Tensor:
        """The signal ``[T, rows, K · width]``; entries of α are dropped by ``rates [T]``."""
        entries = view.entries(self.place)
        z = first_rows(product(x, self.weight), entries.num_nodes).unflatten(-1, (self.heads, -1))
        attention = self.attention(z, view)
        if rates is not None:
            attention = view.drop_entries(attention, rates, self.place)
        # One head after the other, since the gradient of each holds E · width numbers.
        pairs = zip(attention.unbind(dim=-1), z.unbind(dim=-2), strict=True)
        heads = [sparse_product(entries.places, a.contiguous(), y.contiguous()) for a, y in pairs]
        return first_rows(torch.cat(heads, dim=-1), entries.num_rows) + self.bias[:, None]

    def attention(self, z: Tensor, view: View) -> Tensor:
        """``f_ij α_ij`` of every entry, ``[T, E, K]``, exactly 0 where an edge is dropped."""
        entries, weights = view.entries(self.place), view.entry_weights(self.place)
        # Sums, not products with one column: their rounding would depend on the number of trials.
        target, source = ((z * vector[:, None]).sum(dim=-1) for vector in (self.target, self.source))
        scores = nn.functional.leaky_relu(entries.at_rows(target) + entries.at_cols(source), self.slope)
        scores = scores if weights is None else scores + weights.log()[..., None]
        attention, factors = entries.row_softmax(scores), view.entry_factors(self.place)
        return attention if factors is None else attention * factors[..., None]


class GAT(Network):
    """Graph attention of any depth: the heads of a hidden layer side by side, then ELU and dropout; the last has one.

    ``heads`` share the ``hidden`` units of a layer, which are rounded up to a multiple of their number.
    ``attention_dropout`` drops entries of α while it learns. As in all networks here, dropout never sees the raw
    features, which the paper drops too. Weights of the graph are not used, but those of ``weighted`` and ``expected``
    are, see :class:`GraphAttention`.

    * Source: Veličković et al., *Graph attention networks* (ICLR 2018).
    * Cost: O(M H + N H²) per layer and epoch, and memory of 10 numbers per entry and head.
    * Good for: neighbours of which some matter more than others.
    """

    settings = {
        "heads": Setting(8, 1),
        "negative_slope": Setting(0.2),
        "attention_dropout": Setting(0.0, most=1.0),
    }
    shared = ("heads", "negative_slope")
    space = {**RATES, "attention_dropout": [0.0, 0.3, 0.6]}
    sees_dropped = True
    rates: Tensor

    def __init__(self, sizes: Sizes, settings: Sequence[Mapping[str, Value]], start: Start) -> None:
        super().__init__(sizes, settings, start)
        heads, slope = int(settings[0]["heads"]), float(settings[0]["negative_slope"])
        width = -(-sizes.hidden // heads)
        hidden = sizes.layers - 1
        inputs = [sizes.num_features, *[heads * width] * hidden]
        self.layers = nn.ModuleList(
            GraphAttention(start, count, width, heads=heads, place=place, slope=slope)
            for place, count in enumerate(inputs[:-1])
        )
        self.layers.append(GraphAttention(start, inputs[-1], sizes.num_classes, place=hidden, slope=slope))
        self.register_buffer("rates", self.column("attention_dropout").to(torch.float32), persistent=False)

    @property
    def hops(self) -> list[int] | None:
        """Those of a chain."""
        return list(range(len(self.layers)))[::-1]

    def forward(self, x: Any, view: View) -> Tensor:
        """Logits ``[T, n, C]``."""
        rates = self.rates if any(one["attention_dropout"] for one in self.of_trials) else None
        *hidden, last = self.layers
        for place, layer in enumerate(hidden):
            x = view.drop(elu(layer(x, view, rates)), place)
        logits: Tensor = last(x, view, rates)
        return logits


def elu(h: Tensor) -> Tensor:
    """``h`` where it is positive, elsewhere ``e^h − 1``. Torch's own rounds the end of a tensor differently on a CPU.

    >>> elu(torch.tensor([-200.0, 0.0, 2.0])).tolist()
    [-1.0, 0.0, 2.0]
    """
    return torch.where(h > 0, h, h.clamp_max(0).expm1())
