"""GAT: each node attends to its kept neighbours and to itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from tadropedge.lab.networks.gcn import TUNED
from tadropedge.lab.networks.layers import ON_INPUT, BatchNorm, Features, LayerNorm, Linear, product
from tadropedge.lab.networks.network import FEATURES, RATES, Network, Setting, Sizes, Start, Value
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
        self,
        start: Start,
        inputs: int,
        width: int,
        *,
        heads: int = 1,
        place: int = 0,
        slope: float = 0.2,
        residual: bool = False,
    ) -> None:
        super().__init__()
        self.heads, self.place, self.slope = heads, place, slope
        self.weight = start.glorot(inputs, heads * width)
        self.source, self.target = start.glorot(heads, width), start.glorot(heads, width)
        self.bias = start.zeros(heads * width)
        self.residual = start.glorot(inputs, heads * width) if residual else None

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
        h = first_rows(torch.cat(heads, dim=-1), entries.num_rows) + self.bias[:, None]
        return h if self.residual is None else h + first_rows(product(x, self.residual), entries.num_rows)

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
    ``attention_dropout`` drops entries of α while it learns, ``feature_dropout`` those of the features. ``residual``
    adds ``h W_res`` to each layer; ``layer_norm`` and ``batch_norm`` come before ELU, ``pre_linear`` puts
    ``dropout(X W + b)`` in front of the first layer. Weights of the graph are not used, but those of ``weighted`` and
    ``expected`` are, as factors within the softmax, see :class:`GraphAttention`.

    * Source: Veličković et al., *Graph attention networks* (ICLR 2018).
    * Cost: O(M H + N H²) per layer and epoch, and memory of 10 numbers per entry and head.
    * Good for: neighbours of which some matter more than others.
    """

    settings = {
        "heads": Setting(8, 1),
        "negative_slope": Setting(0.2),
        "attention_dropout": Setting(0.0, most=1.0),
        "residual": Setting(False),
        **TUNED,
        "pre_linear": Setting(False),
    }
    shared = ("heads", "negative_slope", "residual", "batch_norm", "layer_norm", "pre_linear")
    space = {**RATES, **FEATURES, "attention_dropout": [0.0, 0.3, 0.6]}
    sees_dropped = True
    rates: Tensor

    def __init__(self, sizes: Sizes, settings: Sequence[Mapping[str, Value]], start: Start) -> None:
        super().__init__(sizes, settings, start)
        told = settings[0]
        heads, slope, residual = int(told["heads"]), float(told["negative_slope"]), bool(told["residual"])
        width = -(-sizes.hidden // heads)
        hidden = sizes.layers - 1
        self.input = Linear(start, sizes.num_features, heads * width) if told["pre_linear"] else None
        inputs = [sizes.num_features if self.input is None else heads * width, *[heads * width] * hidden]
        self.layers = nn.ModuleList(
            GraphAttention(start, count, width, heads=heads, place=place, slope=slope, residual=residual)
            for place, count in enumerate(inputs[:-1])
        )
        last = GraphAttention(start, inputs[-1], sizes.num_classes, place=hidden, slope=slope, residual=residual)
        self.layers.append(last)
        several = range(hidden)
        self.norms = nn.ModuleList(BatchNorm(start, heads * width) for _ in several if told["batch_norm"])
        self.layer_norms = nn.ModuleList(LayerNorm(start, heads * width) for _ in several if told["layer_norm"])
        self.register_buffer("rates", self.column("attention_dropout").to(torch.float32), persistent=False)

    @property
    def hops(self) -> list[int] | None:
        """Those of a chain."""
        return list(range(len(self.layers)))[::-1]

    def forward(self, x: Any, view: View) -> Tensor:
        """Logits ``[T, n, C]``."""
        rates = self.rates if any(one["attention_dropout"] for one in self.of_trials) else None
        *hidden, last = self.layers
        x = self.features(x, view)
        if self.input is not None:
            x = self.input(x, view, drop=ON_INPUT)
        for place, layer in enumerate(hidden):
            h = layer(x, view, rates)
            h = self.layer_norms[place](h) if self.layer_norms else h
            h = self.norms[place](h, view) if self.norms else h
            x = view.drop(elu(h), place)
        logits: Tensor = last(x, view, rates)
        return logits


def elu(h: Tensor) -> Tensor:
    """``h`` where it is positive, elsewhere ``e^h − 1``. Torch's own rounds the end of a tensor differently on a CPU.

    >>> elu(torch.tensor([-200.0, 0.0, 2.0])).tolist()
    [-1.0, 0.0, 2.0]
    """
    return torch.where(h > 0, h, h.clamp_max(0).expm1())
