"""ResGCN: a GCN whose hidden layers add to what they are given, so that it can be deep."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from tadropedge._old.nn.backbones import DEFAULT_SPACE, GCN, Convolve
from tadropedge._old.nn.layers import Features, GraphConvolution, first_rows
from tadropedge._old.nn.network import Shapes

# Many layers need small steps. Operators with eigenvalues up to 2, which would double signals in every layer, are left
# out.
DEEP_SPACE = {
    **DEFAULT_SPACE,
    "learning_rate": [0.001, 0.002, 0.005, 0.01, 0.02],
    "normalization": ["gcn", "random-walk"],
}


class ResGCN(GCN):
    """``h_(ℓ+1) = dropout(ReLU(S h_ℓ W_ℓ + b_ℓ)) + h_ℓ`` in the hidden layers; the first and the last are those of gcn.

    With batch norm and self weight as in gcn. Two layers have none in between: they are those of gcn.

    Unlike in DropEdge's code, the parameters of the n − 2 hidden layers start n − 2 times smaller than in gcn: all that
    they add is positive, so that signals would grow exponentially with the depth (on Cora, 64 layers of 64 units began
    with a loss of 4 · 10⁵, and had learned nothing after 100 epochs).

    * Source: Li, Müller, Thabet and Ghanem, *DeepGCNs* (ICCV 2019), as in the code of DropEdge (Rong et al., ICLR 2020,
      blocks of one layer).
    * Cost: that of gcn, and one sum per layer.
    * Good for: many layers.
    """

    space = {**DEEP_SPACE, "self_weight": [False, True], "batch_norm": [False, True]}

    @classmethod
    def bound(cls, key: str, shapes: Shapes) -> float:
        """That of gcn, in hidden layers divided by their number."""
        hidden = sum(name.startswith("hidden") and name.endswith(".weight") for name in shapes)
        return super().bound(key, shapes) / (hidden if key.startswith("hidden") else 1)

    def join(self, hidden: Sequence[GraphConvolution], h: Tensor, convolve: Convolve) -> Features:
        """The end of the chain of sums."""
        for layer in hidden:
            more = convolve(layer, h)
            h = first_rows(h, more.shape[-2]) + more
        return h
