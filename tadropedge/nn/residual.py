"""ResGCN: a GCN whose hidden layers add to what they are given, so that it can be deep."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from tadropedge.nn.backbones import DEFAULT_SPACE, GCN, Convolve
from tadropedge.nn.layers import Features, GraphConvolution

# Signals grow from layer to layer, so that many layers need small steps; operators with eigenvalues up to 2 are left
# out, which would double them in every layer.
DEEP_SPACE = {
    **DEFAULT_SPACE,
    "learning_rate": [0.001, 0.002, 0.005, 0.01, 0.02],
    "normalization": ["gcn", "random-walk"],
}


class ResGCN(GCN):
    """``h_(ℓ+1) = dropout(ReLU(S h_ℓ W_ℓ + b_ℓ)) + h_ℓ`` in the hidden layers; the first and the last are those of gcn.

    With batch norm and self weight as in gcn. Two layers have none in between: they are those of gcn.

    * Source: Li, Müller, Thabet and Ghanem, *DeepGCNs* (ICCV 2019), as in the code of DropEdge (Rong et al., ICLR 2020,
      blocks of one layer).
    * Cost: that of gcn, and one sum per layer.
    * Good for: many layers.
    """

    space = {**DEEP_SPACE, "self_weight": [False, True], "batch_norm": [False, True]}

    def join(self, hidden: Sequence[GraphConvolution], h: Tensor, convolve: Convolve) -> Features:
        """The end of the chain of sums."""
        for layer in hidden:
            h = h + convolve(layer, h)
        return h
